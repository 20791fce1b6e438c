"""LangChain agents: what a person has approved runs once, also under other middleware, branches and restarts."""

from __future__ import annotations

import asyncio
import pathlib
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("langchain")

from countersign import Ask, Rules
from countersign.langchain import Ledger, LedgerMiddleware
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, hook_config
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.prebuilt import InjectedState
from langgraph.types import Command, interrupt
from typing_extensions import Annotated

Answers = Callable[..., Ask]
RESUME = Command(resume=True)
YES = Command(resume={"decisions": [{"type": "approve"}]})
NO = Command(resume={"decisions": [{"type": "reject"}]})


class Scripted(BaseChatModel):
    """Calls `pay` until it has its result, and repeats that."""

    amount: int = 10

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any) -> ChatResult:
        last = messages[-1]
        call = {"name": "pay", "args": {"amount": self.amount}, "id": "c1", "type": "tool_call"}
        if isinstance(last, ToolMessage):
            message = AIMessage(f"{last.status}: {last.content}")
        else:
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


class RetriesTools(AgentMiddleware[Any, Any, Any]):
    """Calls the tool again when no answer came."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        for attempt in (1, 2):
            try:
                return handler(request)
            except TimeoutError:
                pass
        return ToolMessage("gave up", tool_call_id=request.tool_call["id"], status="error")


class JumpsToTools(AgentMiddleware[Any, Any, Any]):
    """Any middleware that knows nothing of approvals, and uses a documented way (langchain issues 40491 and 40492)."""

    @hook_config(can_jump_to=["tools"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"jump_to": "tools"} if isinstance(state["messages"][-1], ToolMessage) else None


class Payer:
    """An agent whose tool `pay` counts how often it has run."""

    def __init__(
        self,
        ledger: Ledger | None,
        *,
        before: Any = (),
        after: Any = (),
        saver: Any = None,
        body: Callable[[int], Any] | None = None,
        **more: Any,
    ) -> None:
        self.ran: list[int] = []

        @tool
        def pay(amount: int, state: Annotated[Any, InjectedState]) -> Any:
            """Pays."""
            self.ran.append(amount)
            return body(amount) if body else f"paid {amount}"

        if not more.get("rules"):
            more.setdefault("asks", ["pay"])
        own = [] if ledger is None else [LedgerMiddleware(ledger, **more)]
        middleware = [*before, *own, *after]
        self.agent = create_agent(Scripted(), [pay], middleware=middleware, checkpointer=saver or InMemorySaver())

    def __call__(self, work: Any = None, thread: str = "t1", **more: Any) -> Any:
        work = {"messages": [("user", "pay 10")]} if work is None else work
        return self.agent.invoke(work, {"configurable": {"thread_id": thread, **more}})

    def said(self, work: Any, **more: Any) -> str:
        done = self(work, **more)
        assert "__interrupt__" not in done
        return str(done["messages"][-1].content)


def test_a_call_is_parked_and_runs_once_after_the_decision(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    (interrupted,) = payer()["__interrupt__"]
    ask = answers()
    assert interrupted.value["ask"] == ask.id and ask.args == {"amount": 10}, "what LangChain injects is no argument"
    assert payer.said(RESUME) == "success: paid 10" and payer.ran == [10]


@pytest.mark.parametrize("answer", [YES, NO, RESUME, Command(resume={"ask": "0" * 32})])
def test_the_answer_of_a_client_decides_nothing(store: Ledger, answers: Answers, answer: Any) -> None:
    payer = Payer(store)
    payer()
    assert payer(answer)["__interrupt__"] and payer.ran == []
    answers("deny", message="not today")
    assert payer.said(answer) == "error: not today" and payer.ran == []


def test_a_call_waits_without_an_interrupt(store: Ledger, answers: Answers) -> None:
    async def work() -> str:
        payer = Payer(store, wait=None)
        deciding = asyncio.create_task(asyncio.to_thread(answers))
        done = await payer.agent.ainvoke({"messages": [("user", "pay 10")]}, {"configurable": {"thread_id": "t1"}})
        await deciding
        return f"{done['messages'][-1].content} {payer.ran}"

    assert asyncio.run(work()) == "success: paid 10 [10]"


def test_the_asynchronous_way_is_interrupted_and_resumed_as_well(store: Ledger, answers: Answers) -> None:
    async def work() -> str:
        payer, config = Payer(store), {"configurable": {"thread_id": "t1"}}
        await payer.agent.ainvoke({"messages": [("user", "pay 10")]}, config)
        await asyncio.to_thread(answers)
        done = await payer.agent.ainvoke(RESUME, config)
        return f"{done['messages'][-1].content} {payer.ran}"

    assert asyncio.run(work()) == "success: paid 10 [10]"


def test_an_edit_of_the_person_is_what_runs(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    payer()
    answers(args={"amount": 5})
    assert payer.said(RESUME) == "success: paid 5" and payer.ran == [5]


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_retry_of_another_middleware_runs_the_tool_once(store: Ledger, answers: Answers, place: str) -> None:
    def late(amount: int) -> str:
        raise TimeoutError("no answer in time")

    bare = Payer(None, before=[RetriesTools()], body=late)
    bare()
    assert len(bare.ran) == 2, "without the ledger it runs twice"
    payer = Payer(store, body=late, **{place: [RetriesTools()]})
    payer()
    answers()
    assert "may have had an effect" in payer.said(RESUME) and payer.ran == [10]


def test_issue_40491_a_rejected_call_is_not_run_by_another_middleware(store: Ledger, answers: Answers) -> None:
    reviewed = {"before": [JumpsToTools(), HumanInTheLoopMiddleware({"pay": True})]}
    bare = Payer(None, **reviewed)
    bare()
    bare(NO)
    assert bare.ran == [10], "without the ledger the rejected call runs"
    payer = Payer(store, **reviewed)
    payer()
    assert payer(NO)["__interrupt__"], "the call comes to the tools, and no one has approved it"
    answers("deny", message="no")
    assert payer.said(RESUME) == "error: no" and payer.ran == []


def test_a_branch_of_an_earlier_checkpoint_finds_the_no(store: Ledger, answers: Answers) -> None:
    payer, config = Payer(store), {"configurable": {"thread_id": "t1"}}
    payer()
    shown = next(it.config for it in payer.agent.get_state_history(config) if it.interrupts)
    answers("deny", message="no")
    payer(RESUME)
    branch = payer.agent.update_state(shown, None)
    payer.agent.invoke(None, branch)
    assert payer.ran == []


def test_two_approvals_of_one_checkpoint_run_once(store: Ledger, answers: Answers, tmp_path: pathlib.Path) -> None:
    def worker() -> Payer:
        connection = sqlite3.connect(tmp_path / "checkpoints.db", check_same_thread=False)
        return Payer(store, saver=SqliteSaver(connection))

    first, config = worker(), {"configurable": {"thread_id": "t1"}}
    first()
    shown = next(it.config for it in first.agent.get_state_history(config) if it.interrupts)
    answers()
    workers = [worker(), worker()]
    for it in workers:
        done = it.agent.invoke(RESUME, shown)
        assert done["messages"][-1].content == "success: paid 10"
    assert [it.ran for it in workers] == [[10], []]


def test_arguments_that_were_edited_in_the_state_run_nothing(store: Ledger, answers: Answers) -> None:
    payer, config = Payer(store), {"configurable": {"thread_id": "t1"}}
    payer()
    answers()
    message = payer.agent.get_state(config).values["messages"][-1]
    message.tool_calls[0]["args"] = {"amount": 9999}
    payer.agent.update_state(config, {"messages": [message]}, as_node="model")
    assert "other arguments" in payer.said(RESUME) and payer.ran == []


def test_an_interrupt_of_the_tool_itself_passes_and_is_asked_about_again(store: Ledger, answers: Answers) -> None:
    payer = Payer(store, body=lambda amount: interrupt("which account?"))
    payer()
    answers()
    assert payer(RESUME)["__interrupt__"][0].value == "which account?"
    assert [it.state for it in store.list()] == ["released"]


def test_rules_decide_about_each_call(store: Ledger) -> None:
    rules = Rules.text(
        "version = 1\n[[rule]]\nid = 'small'\nallow = 'pay'\nwhere.amount = '<= 50'\n"
        "[[rule]]\nid = 'shut'\ndeny = 'pay'\nwhere.amount = 13\nreason = 'unlucky'"
    )
    payer = Payer(store, rules=rules)
    assert payer.said(None) == "success: paid 10" and len(store.list()) == 0


def test_a_run_without_a_thread_is_refused(store: Ledger) -> None:
    with pytest.raises(ValueError, match="thread_id"):
        payer = Payer(store)
        payer.agent.checkpointer = None
        payer.agent.invoke({"messages": [("user", "pay 10")]})
    with pytest.raises(ValueError, match="asks"):
        LedgerMiddleware(store)

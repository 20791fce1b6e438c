"""PydanticAI: what a person has approved runs once, in process, suspended to another process, and under durable engines."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from countersign import Ask, Rules
from countersign.pydantic_ai import ClaimedToolset, Ledger, approvals, results
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, FunctionToolset, ModelRetry, RunContext
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
)
from pydantic_ai.models.function import FunctionModel

Answers = Callable[..., Ask]


def scripted(args: Any) -> FunctionModel:
    """Calls `pay` until it has its result, and repeats that."""

    def model(messages: Any, info: Any) -> ModelResponse:
        for part in messages[-1].parts:
            if isinstance(part, ToolReturnPart) and part.outcome != "retried":
                return ModelResponse(parts=[TextPart(f"{part.outcome}: {part.content}")])
        turn = sum(isinstance(part, ToolReturnPart) for it in messages for part in it.parts)
        return ModelResponse(parts=[ToolCallPart("pay", args, tool_call_id=f"c{turn + 1}")])

    return FunctionModel(model)


class Payer:
    """An agent whose tool `pay` counts how often it has run."""

    def __init__(self, ledger: Ledger, args: Any = None, **more: Any) -> None:
        self.ran: list[Any] = []
        self.body: Callable[[int], Any] = lambda amount: f"paid {amount}"
        tools: ClaimedToolset[None] = ClaimedToolset(ledger, id="money", **more)

        @tools.tool(requires_approval=True)
        async def pay(ctx: RunContext[None], amount: int, currency: str = "EUR") -> Any:
            self.ran.append(amount)
            return self.body(amount)

        self.agent = Agent(
            scripted({"amount": 10} if args is None else args), toolsets=[tools], output_type=[str, DeferredToolRequests]
        )

    def run(self, **more: Any) -> Any:
        return asyncio.run(self.agent.run("pay 10", **more))

    def resume(self, asked: Any, found: DeferredToolResults | None) -> str:
        assert found is not None
        done = asyncio.run(self.agent.run(message_history=asked.all_messages(), deferred_tool_results=found))
        return str(done.output)


def found(ledger: Ledger, asked: Any) -> DeferredToolResults | None:
    return asyncio.run(results(ledger, asked.output))


def test_a_call_waits_in_process_and_runs_once(store: Ledger, answers: Answers) -> None:
    payer = Payer(store, wait=None)

    async def work() -> Any:
        deciding = asyncio.create_task(asyncio.to_thread(answers))
        done = await payer.agent.run("pay 10")
        return done.output, await deciding

    output, ask = asyncio.run(work())
    assert output == "success: paid 10" and payer.ran == [10]
    # The person has seen what runs: validated, with its defaults.
    assert ask.args == {"amount": 10, "currency": "EUR"}


def test_a_no_is_told_to_the_model_and_nothing_runs(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    asked = payer.run()
    answers("deny", message="not today")
    assert payer.resume(asked, found(store, asked)) == "denied: not today" and payer.ran == []


def test_a_suspended_run_is_resumed_by_two_workers_and_runs_once(store: Ledger, answers: Answers) -> None:
    asked = Payer(store).run()
    assert isinstance(asked.output, DeferredToolRequests)
    assert found(store, asked) is None, "no one has decided"
    answers()
    workers = [Payer(store), Payer(store)]
    stored = ModelMessagesTypeAdapter.validate_json(asked.all_messages_json())
    assert len(stored) == len(asked.all_messages()), "the JSON of PydanticAI is as it was"
    for worker in workers:
        assert worker.resume(asked, found(store, asked)) == "success: paid 10"
    assert [worker.ran for worker in workers] == [[10], []]


def test_an_approval_that_a_client_made_up_approves_nothing(store: Ledger) -> None:
    payer = Payer(store)
    asked = payer.run()
    forged = asyncio.run(
        payer.agent.run(message_history=asked.all_messages(), deferred_tool_results=DeferredToolResults(approvals={"c1": True}))
    )
    assert isinstance(forged.output, DeferredToolRequests) and payer.ran == []


def test_a_no_that_is_flipped_by_a_client_runs_nothing(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    asked = payer.run()
    answers("deny", message="no")
    assert payer.resume(asked, DeferredToolResults(approvals={"c1": True})) == "failed: no" and payer.ran == []


def test_arguments_that_were_edited_in_the_stored_state_run_nothing(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    asked = payer.run()
    answers()
    state = json.loads(asked.all_messages_json())
    for message in state:
        for part in message["parts"]:
            if part.get("tool_call_id") == "c1":
                part["args"] = {"amount": 9999}
    history = ModelMessagesTypeAdapter.validate_python(state)
    done = asyncio.run(payer.agent.run(message_history=history, deferred_tool_results=found(store, asked)))
    assert "other arguments" in str(done.output) and payer.ran == []


def test_an_edit_of_the_person_is_what_runs(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    asked = payer.run()
    answers(args={"amount": 5, "currency": "EUR"})
    # Also where the program passes a bare yes.
    assert payer.resume(asked, DeferredToolResults(approvals={"c1": True})) == "success: paid 5"
    assert payer.resume(asked, found(store, asked)) == "success: paid 5"
    assert payer.ran == [5]


def test_a_body_that_fails_is_not_repeated(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    asked = payer.run()
    answers()

    def late(amount: int) -> str:
        raise TimeoutError("the bank did not answer")

    payer.body = late
    with pytest.raises(TimeoutError):
        payer.resume(asked, found(store, asked))
    assert "may have had an effect" in payer.resume(asked, found(store, asked)) and payer.ran == [10]


def test_a_retry_that_the_tool_asks_for_is_another_call(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    asked = payer.run()
    answers()

    def retry(amount: int) -> str:
        raise ModelRetry("another amount, please")

    payer.body = retry
    done = asyncio.run(
        payer.agent.run(message_history=asked.all_messages(), deferred_tool_results=found(store, asked))
    )
    # The model calls again, as another call, which is asked about.
    assert isinstance(done.output, DeferredToolRequests) and done.output.approvals[0].tool_call_id == "c2"
    assert payer.ran == [10] and len(store.list("pending")) == 1


def test_a_result_with_content_is_the_same_when_it_is_given_again(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    asked = payer.run()
    answers()
    payer.body = lambda amount: ToolReturn({"paid": amount}, content="the receipt", metadata={"id": 7})
    first, second = (payer.resume(asked, found(store, asked)) for _ in range(2))
    assert first == second and payer.ran == [10]


def test_rules_decide_about_each_call(store: Ledger) -> None:
    rules = Rules.text(
        "version = 1\n[[rule]]\nid = 'small'\nallow = 'pay'\nwhere.amount = '<= 50'\n"
        "[[rule]]\nid = 'huge'\ndeny = 'pay'\nwhere.amount = '> 1000'\nreason = 'too much'"
    )

    def outcome(amount: int) -> tuple[Any, list[Any]]:
        ran: list[Any] = []
        tools: ClaimedToolset[None] = ClaimedToolset(store, id="money", rules=rules)

        @tools.tool
        def pay(ctx: RunContext[None], amount: int) -> str:
            ran.append(amount)
            return "paid"

        agent = Agent(scripted({"amount": amount}), toolsets=[tools], output_type=[str, DeferredToolRequests])
        return asyncio.run(agent.run("pay")).output, ran

    assert outcome(50) == ("success: paid", [50])
    assert outcome(5000) == ("failed: too much", [])
    asked, ran = outcome(500)
    assert isinstance(asked, DeferredToolRequests) and ran == []


def test_several_toolsets_are_answered_together_within_the_run(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    agent = Agent(
        scripted({"amount": 10}),
        toolsets=payer.agent.toolsets,
        output_type=[str, DeferredToolRequests],
        capabilities=[approvals(store, wait=None)],
    )

    async def work() -> Any:
        deciding = asyncio.create_task(asyncio.to_thread(answers))
        done = await agent.run("pay 10")
        await deciding
        return done.output

    assert asyncio.run(work()) == "success: paid 10" and payer.ran == [10]


def test_tools_of_another_toolset_get_claims(store: Ledger, answers: Answers) -> None:
    ran: list[int] = []
    plain: FunctionToolset[None] = FunctionToolset(id="money")

    @plain.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        ran.append(amount)
        return "paid"

    agent = Agent(
        scripted({"amount": 10}), toolsets=[ClaimedToolset.of(plain, store)], output_type=[str, DeferredToolRequests]
    )
    asked = asyncio.run(agent.run("pay"))
    answers()
    for _ in range(2):
        asyncio.run(agent.run(message_history=asked.all_messages(), deferred_tool_results=found(store, asked)))
    assert ran == [10]


# Issue 5536 of pydantic-ai: an ordinary retry of a durable tool activity runs an approved tool again.
REPRODUCTION = """
import asyncio, sys
from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.durable_exec.temporal import TemporalRunContext
from pydantic_ai.durable_exec.temporal._function_toolset import temporalize_function_toolset
from pydantic_ai.durable_exec.temporal._toolset import CallToolParams
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage
from temporalio.testing import ActivityEnvironment

toolset = FunctionToolset(id="money")
ran = []

@toolset.tool(requires_approval=True)
async def pay(ctx: RunContext[None], amount: int) -> str:
    ran.append(amount)
    if len(ran) == 1:
        raise TimeoutError("the answer of the bank did not arrive in time")   # after the effect
    return "paid"

async def main():
    activity = temporalize_function_toolset(
        toolset, activity_name_prefix="agent__a", activity_config={}, tool_activity_config={}, deps_type=type(None),
    ).durable_registrations[0]
    ctx = RunContext(deps=None, model=TestModel(), usage=RunUsage(), run_id="run-1", tool_name="pay", tool_call_id="c1",
                     tool_call_approved=True)
    tool = (await toolset.get_tools(ctx))["pay"]
    params = CallToolParams(name="pay", tool_args={"amount": 10}, tool_def=tool.tool_def,
                            serialized_run_context=TemporalRunContext.serialize_run_context(ctx))
    for attempt in (1, 2, 3):
        try:
            print(await ActivityEnvironment().run(activity, params, None))
            break
        except TimeoutError:
            pass    # Temporal tries again by default.
asyncio.run(main())
print("ran", len(ran))
"""

# Three added lines: an import, the ledger, and the toolset in place of the other one.
ADDED = """
from countersign.pydantic_ai import ClaimedToolset, Ledger
ledger = Ledger.open(sys.argv[1])
toolset = ClaimedToolset(ledger, id="money", danger_trust_approvals=True)
"""


def ran(program: str, *args: str) -> str:
    done = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_issue_5536_fails_as_it_is_and_holds_with_three_added_lines(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("temporalio")
    assert ran(REPRODUCTION).endswith("ran 2\n")
    repaired = REPRODUCTION.replace('toolset = FunctionToolset(id="money")\n', ADDED)
    added = set(repaired.splitlines()) - set(REPRODUCTION.splitlines())
    assert len(added) == 3
    assert ran(repaired, f"sqlite://{tmp_path}/asks.db").endswith("ran 1\n")


DURABLE = """
import asyncio, os, sys
from dbos import DBOS, SetWorkflowID
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from countersign.pydantic_ai import ClaimedToolset, Ledger, results

folder, crash = sys.argv[1], sys.argv[2] == "crash"
ledger = Ledger.open(f"sqlite://{folder}/asks.db")
tools = ClaimedToolset(ledger, id="money", lease=1)

@tools.tool(requires_approval=True)
async def pay(ctx: RunContext, amount: int) -> str:
    with open(f"{folder}/effects", "a") as file:
        file.write(f"pay {amount}\\n"); file.flush(); os.fsync(file.fileno())
    if crash:
        os._exit(9)
    return "paid"

def model(messages, info):
    got = [p for m in messages for p in m.parts if isinstance(p, ToolReturnPart)]
    return ModelResponse(parts=[TextPart(f"{got[-1].outcome}: {got[-1].content}") if got else ToolCallPart("pay", {"amount": 10}, tool_call_id="c1")])

agent = Agent(FunctionModel(model), name="payer", toolsets=[tools], output_type=[str, DeferredToolRequests], capabilities=[DBOSDurability()])

@DBOS.workflow()
async def run() -> str:
    asked = await agent.run("pay 10")
    # A person decides.
    ask = (await ledger.aio.list(run="dbos:wf-1"))[0]
    await ledger.aio.decide(ask, "approve", by="ann")
    found = await results(ledger, asked.output)
    done = await agent.run(message_history=asked.all_messages(), deferred_tool_results=found)
    return str(done.output)

DBOS(config={"name": "claimed-test", "application_version": "1", "executor_id": "w", "run_admin_server": False,
             "log_level": "ERROR", "system_database_url": f"sqlite:///{folder}/dbos.sqlite"})
DBOS.launch()   # recovers what this executor left pending
if crash:
    async def go():
        with SetWorkflowID("wf-1"):
            return await run()
    asyncio.run(go())
else:
    print(DBOS.retrieve_workflow("wf-1").get_result())
DBOS.destroy()
"""


def test_a_durable_engine_that_recovers_a_dead_worker_does_not_run_the_tool_again(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("dbos")
    first = subprocess.run([sys.executable, "-c", DURABLE, str(tmp_path), "crash"], capture_output=True, text=True)
    assert first.returncode == 9, first.stderr
    recovered = ran(DURABLE, str(tmp_path), "recover")
    assert "may have run" in recovered, recovered
    assert (tmp_path / "effects").read_text() == "pay 10\n"
    assert os.path.exists(tmp_path / "dbos.sqlite")

"""OpenAI Agents: what a person has approved runs once, whatever the stored state says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import Agent, Runner, RunState, WebSearchTool, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from countersign import Ask, Rules
from countersign.openai_agents import Ledger, claimed, decide

set_tracing_disabled(True)
Answers = Callable[..., Ask]


class Payer:
    """An agent whose tool `pay` counts how often it has run."""

    def __init__(self, ledger: Ledger, *, run: Any = "order-1", body: Any = None, **more: Any) -> None:
        self.ran: list[int] = []

        @function_tool(failure_error_function=None)
        def pay(amount: int) -> str:
            """Pays."""
            self.ran.append(amount)
            return body(amount) if body else f"paid {amount}"

        self.tool = claimed(pay, ledger, run=run, **more)

    def agent(self, *steps: Any) -> Agent[Any]:
        return Agent("payer", model=ScriptedModel([[step] for step in steps]), tools=[self.tool])

    def first(self, args: Any = None) -> Any:
        call = function_call("pay", {"amount": 10} if args is None else args, call_id="c1")
        return asyncio.run(Runner.run(self.agent(call, assistant_message("done")), "pay 10"))

    def state(self, stored: str) -> RunState[Any, Any]:
        state: RunState[Any, Any] = asyncio.run(RunState.from_string(self.agent(assistant_message("done")), stored))
        return state

    def resume(self, state: RunState[Any, Any]) -> list[Any]:
        done = asyncio.run(Runner.run(self.agent(assistant_message("done")), state))
        return outputs(done)


def outputs(done: Any) -> list[Any]:
    return [item.output for item in done.new_items if item.type == "tool_call_output_item"]


def stored(asked: Any) -> str:
    assert len(asked.interruptions) == 1
    return str(asked.to_state().to_string())


def test_a_suspended_run_is_resumed_by_two_workers_and_runs_once(store: Ledger, answers: Answers) -> None:
    text = stored(Payer(store).first())
    workers = [Payer(store), Payer(store)]
    assert not asyncio.run(decide(store, workers[0].state(text), run="order-1"))
    answers()
    for worker in workers:
        state = worker.state(text)
        assert asyncio.run(decide(store, state, run="order-1"))
        assert worker.resume(state) == ["paid 10"]
    assert [worker.ran for worker in workers] == [[10], []]


def test_a_call_waits_in_process(store: Ledger, answers: Answers) -> None:
    payer = Payer(store, wait=None)

    async def work() -> Any:
        deciding = asyncio.create_task(asyncio.to_thread(answers))
        agent = payer.agent(function_call("pay", {"amount": 10}, call_id="c1"), assistant_message("done"))
        done = await Runner.run(agent, "pay 10")
        await deciding
        return outputs(done)

    assert asyncio.run(work()) == ["paid 10"] and payer.ran == [10]


def test_an_approval_in_the_stored_state_approves_nothing(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    text = stored(payer.first())
    state = payer.state(text)
    state.approve(state.get_interruptions()[0])
    assert "has to approve" in payer.resume(state)[0] and payer.ran == []
    answers("deny", message="no")
    flipped = payer.state(text)
    flipped.approve(flipped.get_interruptions()[0])
    assert payer.resume(flipped) == ["no"] and payer.ran == []


def test_a_no_is_told_to_the_model(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    text = stored(payer.first())
    answers("deny", message="not today")
    state = payer.state(text)
    assert asyncio.run(decide(store, state, run="order-1"))
    assert payer.resume(state) == ["not today"] and payer.ran == []


def test_an_edit_of_the_person_is_what_runs(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    text = stored(payer.first())
    answers(args={"amount": 5})
    state = payer.state(text)
    asyncio.run(decide(store, state, run="order-1"))
    assert payer.resume(state) == ["paid 5"] and payer.ran == [5]


def test_a_body_that_fails_is_not_repeated(store: Ledger, answers: Answers) -> None:
    def late(amount: int) -> str:
        raise TimeoutError("no answer in time")

    payer = Payer(store, body=late)
    text = stored(payer.first())
    answers()
    state = payer.state(text)
    asyncio.run(decide(store, state, run="order-1"))
    with pytest.raises(Exception, match="no answer in time"):
        payer.resume(state)
    again = payer.state(text)
    asyncio.run(decide(store, again, run="order-1"))
    assert "does not run again" in payer.resume(again)[0] and payer.ran == [10]


def test_arguments_that_two_readers_take_differently_run_nothing(store: Ledger, answers: Answers) -> None:
    payer = Payer(store)
    text = stored(payer.first('{"amount": 10, "amount": 9999}'))
    # The SDK has shown one of them; the ledger sees the text, and takes none.
    answers()
    state = payer.state(text)
    asyncio.run(decide(store, state, run="order-1"))
    assert "read in one way" in payer.resume(state)[0] and payer.ran == []


def test_rules_decide_about_each_call(store: Ledger) -> None:
    rules = Rules.text(
        "version = 1\n[[rule]]\nid = 'small'\nallow = 'pay'\nwhere.amount = '<= 50'\n"
        "[[rule]]\nid = 'huge'\ndeny = 'pay'\nwhere.amount = '> 1000'\nreason = 'too much'"
    )

    def outcome(amount: int) -> Any:
        payer = Payer(store, rules=rules, run=f"order-{amount}")
        done = payer.first({"amount": amount})
        return (outputs(done), payer.ran) if not done.interruptions else "asked"

    assert outcome(50) == (["paid 50"], [50])
    assert outcome(5000) == (["too much"], [])
    assert outcome(500) == "asked"


def test_a_hosted_tool_is_refused(store: Ledger) -> None:
    with pytest.raises(TypeError, match="provider"):
        claimed(WebSearchTool(), store, run="order-1")  # type: ignore[arg-type]

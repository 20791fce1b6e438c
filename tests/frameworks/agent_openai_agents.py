"""An OpenAI agent that pays. The state that an application stores is the text of `RunState`."""

from __future__ import annotations

import asyncio
from typing import Any

import common
from agents import Agent, Runner, RunState, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from common import BARE, FOLDER, RUN, URL, step, together, told

set_tracing_disabled(True)


@function_tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pays."""
    return common.pay(amount)


tool: Any = pay
if not BARE:
    from countersign.openai_agents import claimed

    tool = claimed(pay, URL, run=RUN, lease=1)


def agent(*steps: Any) -> Any:
    return Agent("payer", model=ScriptedModel([[it] for it in steps]), tools=[tool])


async def work() -> None:
    state_file = FOLDER / "state.json"
    if step() == "first":
        asked = await Runner.run(agent(function_call("pay", {"amount": 10}, call_id="c1")), "pay 10")
        assert len(asked.interruptions) == 1
        state_file.write_text(asked.to_state().to_string())
        return
    payer = agent(assistant_message("done"), assistant_message("done"))
    state: Any = await RunState.from_string(payer, state_file.read_text())
    (item,) = state.get_interruptions()
    state.approve(item) if step() == "yes" else state.reject(item)
    together()
    done = await Runner.run(payer, state)
    for it in done.new_items:
        if it.type == "tool_call_output_item":
            told(it.output)


asyncio.run(work())

"""The ledger around the function tools of the OpenAI Agents SDK.

::

    from countersign.openai_agents import Ledger, claimed, decide

    ledger = Ledger.open()                                 # the store that `countersign inbox` shows
    pay = claimed(pay, ledger, run="order-4711")           # a copy of the FunctionTool
    agent = Agent("payer", tools=[pay])

    result = await Runner.run(agent, "pay 10")             # interrupted: the call of `pay` is parked
    stored = result.to_state().to_string()
    ...                                                    # a person decides in the inbox
    state = await RunState.from_string(agent, stored)      # in any process
    if await decide(ledger, state):                        # False: not all are decided yet
        await Runner.run(agent, state)                     # `pay` runs once, or the model is told the no

The ledger decides when the tool is invoked. ``state.approve(item)`` only lets the run come to that place: what it says is in a
text that each program which stores the state can write, and it approves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agents import FunctionTool, RunContextWrapper, RunState
from agents.tool_context import ToolContext

from ._asks import Ask
from ._countersign import CallChanged, Decision, NotAsked, Rules, same_json
from ._ledger import LEASE, AsyncLedger, Ledger
from ._once import AskAgain, NotRun, denial

RunKey = str | Callable[[RunContextWrapper[Any]], str]
"""The run that a call belongs to: a text, or a function of the run's context. The SDK has no id of a run that a resumed one
has again: give that of the order, the ticket or the conversation."""


class _ClaimedTool:
    """What `claimed` puts into the copy of a tool."""

    def __init__(
        self,
        tool: FunctionTool,
        ledger: AsyncLedger,
        run: RunKey,
        rules: Rules | None,
        wait: float | None,
        requester: str | None,
        lease: float,
    ) -> None:
        self.tool, self.ledger, self.run, self.rules = tool, ledger, run, rules
        self.wait, self.requester, self.lease = wait, requester, lease

    def decided(self, args: Any) -> Decision | None:
        return None if self.rules is None else self.rules.decide(self.tool.name, args)

    async def park(self, context: RunContextWrapper[Any], call: str, args: Any) -> Ask:
        decision = self.decided(args)
        return await self.ledger.park(
            self.run if isinstance(self.run, str) else self.run(context),
            call,
            self.tool.name,
            args,
            decision=decision if decision is not None and decision.decision == "ask" else None,
            reason=f"`{self.tool.name}` needs an approval",
            requester=self.requester,
        )

    async def needs_approval(self, context: RunContextWrapper[Any], args: dict[str, Any], call: str) -> bool:
        """Whether the run has to stop for a person. A call that was decided comes to `invoke`, whatever the decision is."""
        decision = self.decided(args)
        if decision is not None and decision.decision != "ask":
            return False
        try:
            ask = await self.park(context, call, args)
        except (CallChanged, NotAsked):
            return False
        if ask.is_pending and self.wait != 0:
            ask = await self.ledger.wait(ask, self.wait)
        return ask.is_pending

    async def invoke(self, context: ToolContext[Any], text: str) -> Any:
        """Runs the call with a claim."""
        # Through the strict reader: what it refuses, no person has approved.
        args: Any = text or "{}"
        try:
            decision = self.decided(args)
            if decision is not None and decision.decision == "deny":
                return "; ".join(decision.reasons) or "The tool call was denied."
            if decision is not None and decision.decision == "allow":
                return await self.tool.on_invoke_tool(context, text)
            ask = await self.park(context, context.tool_call_id, args)
            entered = self.ledger.execution(ask, lease=self.lease)
            execution = await entered.__aenter__()
        except AskAgain as error:
            await self.park(context, context.tool_call_id, args)
            return f"{error} A person is asked again: call the tool again later, with an id of its own."
        except (NotRun, CallChanged, NotAsked) as error:
            return str(error)
        except ValueError as error:
            return f"The arguments cannot be read in one way only, and the call was not run: {error}"
        try:
            if execution.is_over:
                try:
                    return execution.replay()
                except NotRun as error:
                    return str(error)
            if not same_json(execution.args, args):
                text = json.dumps(execution.args)
            return await execution.arun(lambda: self.tool.on_invoke_tool(context, text))
        finally:
            await entered.__aexit__(None, None, None)


def claimed(
    tool: FunctionTool,
    ledger: Ledger | AsyncLedger | str,
    *,
    run: RunKey,
    rules: Rules | None = None,
    wait: float | None = 0.0,
    requester: str | None = None,
    lease: float = LEASE,
) -> FunctionTool:
    """A copy of a function tool whose calls are parked, decided in the ledger, and run with a claim.

    :param tool: a ``FunctionTool``, as ``@function_tool`` makes it. Its ``needs_approval`` is replaced.
    :param ledger: the ledger, or its URL.
    :param run: the run that a call belongs to. A resumed run has to have the same one.
    :param rules: `Rules` that decide: what they allow runs unasked, and what they deny does not run. Without them each call is
        asked about.
    :param wait: how long a call waits for a person before the run is interrupted, in seconds; ``None`` for ever. By default
        not at all.
    :param requester: the person that the calls are made for.
    :param lease: how long a claim lasts after its worker has died, in seconds.
    """
    if not isinstance(tool, FunctionTool):
        raise TypeError(
            f"{tool!r} is no FunctionTool: hosted tools run at the provider, where no claim can be made"
        )
    opened = Ledger.open(ledger) if isinstance(ledger, str) else ledger
    aio = opened.aio if isinstance(opened, Ledger) else opened
    within = _ClaimedTool(tool, aio, run, rules, wait, requester, lease)
    return replace(tool, on_invoke_tool=within.invoke, needs_approval=within.needs_approval)


async def decide(
    ledger: Ledger | AsyncLedger,
    state: RunState[Any, Any],
    *,
    run: str,
    wait: float | None = 0.0,
) -> bool:
    """Lets a state continue whose interruptions were decided in the ledger; ``False`` while one of them is pending.

    :param run: the run key that `claimed` had.
    :param wait: how long to wait for people, in seconds; ``None`` for ever.
    """
    aio = ledger.aio if isinstance(ledger, Ledger) else ledger
    asks = {ask.call: ask for ask in reversed(await aio.list(run=run, limit=10_000))}
    for item in state.get_interruptions():
        ask = asks.get(item.call_id or "")
        if ask is None:
            raise LookupError(f"the call {item.call_id} is not in the ledger under the run {run!r}")
        if ask.is_pending and wait != 0:
            ask = await aio.wait(ask, wait)
        if ask.is_pending:
            return False
        if ask.is_approved:
            state.approve(item)
        else:
            state.reject(item, rejection_message=denial(ask))
    return True


__all__ = ["Ledger", "Rules", "claimed", "decide"]

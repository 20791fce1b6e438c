"""The ledger around the tools of PydanticAI.

::

    from countersign.pydantic_ai import ClaimedToolset, Ledger

    ledger = Ledger.open()                                  # the store that `countersign inbox` shows
    tools = ClaimedToolset(ledger, id="money", wait=3600)   # in place of FunctionToolset

    @tools.tool(requires_approval=True)
    async def pay(ctx: RunContext, amount: int) -> str: ...

    agent = Agent(model, toolsets=[tools], output_type=[str, DeferredToolRequests])

A call of ``pay`` is parked with its arguments, and runs with a claim: once, whatever repeats it. The claim lies directly
around the body. That is inside the durable unit of Temporal, Prefect and DBOS: their retries come through the toolset again,
and find the outcome. A wrapper around the toolset would be outside of it.

Where no person decides within ``wait`` seconds, the call is deferred as PydanticAI defers calls, and the run ends with
``DeferredToolRequests``. Later, in any process, `results` makes the ``DeferredToolResults`` from the ledger. They are a way to
continue the run and no approval: when the call comes back, the ledger decides.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Generic, Literal, TypeVar

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.messages import ToolReturn
from pydantic_ai.tools import (
    AgentDepsT,
    DeferredToolRequests,
    DeferredToolResults,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.toolsets import ToolsetTool
from pydantic_ai.toolsets.function import FunctionToolsetTool
from pydantic_core import to_jsonable_python

from ._asks import Ask, Outcome
from ._countersign import CallChanged, Decision, NotAsked, Rules, same_json
from ._ledger import LEASE, AsyncLedger, Ledger
from ._once import JSON, AskAgain, Codec, NotRun, Pending, denial

T = TypeVar("T")

RunKey = str | Callable[[RunContext[Any]], str]
"""The run that a call belongs to: a text, or a function of the context of the call."""

ASK = "countersign_ask"
"""The key of the ask's id in the metadata of a deferred call. It only finds the ask: an id that a client has exchanged finds
another one, and the call is still decided by its own."""


def run_of(ctx: RunContext[Any]) -> str:
    """The default run key: the workflow of DBOS or Temporal where the call is made in one, else the conversation.

    A conversation id is stable over a suspension, as PydanticAI finds it in the message history. Where clients can write
    that history, give a key of your own: with a changed one no ask is found, and nothing runs.
    """
    if "dbos" in sys.modules:
        from dbos import DBOS

        if DBOS.workflow_id is not None:
            return f"dbos:{DBOS.workflow_id}"
    if "temporalio.activity" in sys.modules:
        from temporalio import activity

        if activity.in_activity() and activity.info().workflow_id:
            return f"temporal:{activity.info().workflow_id}"
    if ctx.conversation_id:
        return ctx.conversation_id
    if ctx.run_id:
        return ctx.run_id
    raise RuntimeError("the run has no id: give `run=`, a text or a function of the context")


class _Values(Codec):
    """Values as PydanticAI writes them; its own errors keep their meaning."""

    def encode(self, value: Any) -> tuple[JSON, JSON]:
        if isinstance(value, ToolReturn):
            content = to_jsonable_python(value.content, fallback=str)
            metadata = to_jsonable_python(value.metadata, fallback=str)
            kept = {"pydantic_ai": "ToolReturn", "content": content, "metadata": metadata}
            return to_jsonable_python(value.return_value, fallback=str), kept
        return to_jsonable_python(value, fallback=str), None

    def decode(self, value: JSON, metadata: JSON) -> Any:
        if isinstance(metadata, dict) and metadata.get("pydantic_ai") == "ToolReturn":
            return ToolReturn(value, content=metadata["content"], metadata=metadata["metadata"])
        return value

    def ends(self, error: Exception) -> tuple[Literal["failed", "retry", "released"], str]:
        if isinstance(error, (ApprovalRequired, CallDeferred)):
            return "released", ""
        if isinstance(error, ModelRetry):
            return "retry", error.message
        if isinstance(error, ToolFailed):
            return "failed", error.message
        return "failed", f"{type(error).__name__}: {error}"

    def raises(self, ask: Ask, outcome: Outcome) -> Exception:
        if outcome.kind == "retry":
            return ModelRetry(str(outcome.value))
        return ToolFailed(
            f"The call was started before and has failed; it may have had an effect, and is not run again: {outcome.value}"
        )


class ClaimedToolset(FunctionToolset[AgentDepsT], Generic[AgentDepsT]):
    """A ``FunctionToolset`` whose tools run with a claim.

    Calls of tools with ``requires_approval=True``, and those that the rules ask about, are parked in the ledger. The others
    run as ever. A call that the rules deny does not run, and the model is told why.

    :param ledger: the ledger, or its URL.
    :param rules: `Rules` that decide about each call of this toolset; a tool with ``requires_approval=True`` is asked about
        even where they allow it.
    :param run: the run that a call belongs to; by default `run_of`. A resumed run has to have the same one.
    :param wait: how long a call waits for a person before it is deferred, in seconds; ``None`` for ever. By default not at
        all. The run stands still meanwhile.
    :param requester: the person that the calls are made for, or a function of the context.
    :param lease: how long a claim lasts after its worker has died, in seconds.
    :param danger_trust_approvals: whether an approval in ``DeferredToolResults`` counts where the ledger has none. Then each
        approval still runs one call, with the arguments of its first attempt, but the approval itself is as good as the
        program that stores and passes it: a client that can write it approves.

    The other parameters are those of ``FunctionToolset``.
    """

    def __init__(
        self,
        ledger: Ledger | AsyncLedger | str,
        tools: Sequence[Any] = (),
        *,
        rules: Rules | None = None,
        run: RunKey | None = None,
        wait: float | None = 0.0,
        requester: str | Callable[[RunContext[AgentDepsT]], str] | None = None,
        lease: float = LEASE,
        danger_trust_approvals: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(tools, **more)
        self._configure(ledger, rules, run, wait, requester, lease, danger_trust_approvals)

    @classmethod
    def of(
        cls,
        toolset: FunctionToolset[AgentDepsT],
        ledger: Ledger | AsyncLedger | str,
        *,
        rules: Rules | None = None,
        run: RunKey | None = None,
        wait: float | None = 0.0,
        requester: str | Callable[[RunContext[AgentDepsT]], str] | None = None,
        lease: float = LEASE,
        danger_trust_approvals: bool = False,
    ) -> ClaimedToolset[AgentDepsT]:
        """The tools of a ``FunctionToolset`` that is there already, with claims. The toolset itself is not changed."""
        claimed = cls.__new__(cls)
        claimed.__dict__.update(toolset.__dict__)
        claimed._configure(ledger, rules, run, wait, requester, lease, danger_trust_approvals)
        return claimed

    def _configure(
        self,
        ledger: Ledger | AsyncLedger | str,
        rules: Rules | None,
        run: RunKey | None,
        wait: float | None,
        requester: Any,
        lease: float,
        danger_trust_approvals: bool,
    ) -> None:
        opened = Ledger.open(ledger) if isinstance(ledger, str) else ledger
        self._ledger: AsyncLedger = opened.aio if isinstance(opened, Ledger) else opened
        self._rules, self._run, self._wait, self._requester = rules, run, wait, requester
        self._lease, self._trusts = lease, danger_trust_approvals

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """The tools; those that need an approval come to `call_tool` before they have it, which parks them."""
        found = await super().get_tools(ctx)
        return {
            name: replace(tool, tool_def=replace(tool.tool_def, kind="function"))
            if tool.tool_def.kind == "unapproved"
            else tool
            for name, tool in found.items()
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[AgentDepsT],
        tool: ToolsetTool[AgentDepsT],
    ) -> Any:
        """Parks the call where it needs an approval, and runs it with a claim."""
        args = to_jsonable_python(tool_args)
        decision = None if self._rules is None else self._rules.decide(name, args)
        if decision is not None and decision.decision == "deny":
            raise ToolFailed("; ".join(decision.reasons) or "The tool call was denied.")
        asks = decision is not None and decision.decision == "ask"
        if not asks and not self._needs_approval(name, tool) and not ctx.tool_call_approved:
            return await super().call_tool(name, tool_args, ctx, tool)
        _refuse_in_workflow()
        if ctx.tool_call_id is None:
            raise RuntimeError(f"the call of `{name}` has no id, by which its approval could be found")
        try:
            ask = await self._park(name, args, ctx, decision if asks else None)
            if ask.is_pending:
                raise ApprovalRequired({ASK: ask.id})
            async with AsyncExitStack() as stack:
                try:
                    entering = self._ledger.execution(ask, lease=self._lease, codec=_Values())
                    execution = await stack.enter_async_context(entering)
                except AskAgain:
                    ask = await self._park(name, args, ctx, decision if asks else None)
                    raise ApprovalRequired({ASK: ask.id}) from None
                except Pending:
                    raise ApprovalRequired({ASK: ask.id}) from None
                if execution.is_over:
                    return execution.replay()
                if not same_json(execution.args, args):
                    tool_args = tool.args_validator.validate_python(execution.args)
                base = super().call_tool
                return await execution.arun(lambda: base(name, tool_args, ctx, tool))
        except (NotRun, CallChanged, NotAsked) as error:
            raise ToolFailed(str(error)) from error

    async def _park(
        self, name: str, args: Any, ctx: RunContext[AgentDepsT], decision: Decision | None
    ) -> Ask:
        return await _step(self._parked, name, args, ctx, decision)

    async def _parked(
        self, name: str, args: Any, ctx: RunContext[AgentDepsT], decision: Decision | None
    ) -> Ask:
        run = self._run or run_of
        requester = self._requester
        ask = await self._ledger.park(
            run if isinstance(run, str) else run(ctx),
            str(ctx.tool_call_id),
            name,
            args,
            decision=decision,
            reason=f"`{name}` needs an approval",
            requester=requester(ctx) if callable(requester) else requester,
        )
        if ask.is_pending and ctx.tool_call_approved and self._trusts:
            await self._ledger.decide(ask, "approve", by="pydantic-ai")
            return await self._ledger.get(ask)
        if ask.is_pending and self._wait != 0:
            return await self._ledger.wait(ask, self._wait)
        return ask

    def _needs_approval(self, name: str, tool: ToolsetTool[AgentDepsT]) -> bool:
        original = tool.original_name if isinstance(tool, FunctionToolsetTool) else name
        known = self.tools.get(original or name)
        return tool.tool_def.kind == "unapproved" or (known is not None and known.requires_approval)


async def _step(look: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Looks into the ledger. Within a workflow of DBOS that is a step, so that a workflow that is replayed takes the same way,
    whatever people have decided since."""
    if "dbos" in sys.modules:
        from dbos import DBOS

        if DBOS.workflow_id is not None:
            step: Any = DBOS.run_step_async
            found: T = await step({"name": "countersign"}, look, *args)
            return found
    return await look(*args)


def _refuse_in_workflow() -> None:
    """A claim in the code of a Temporal workflow would be replayed, and is not around the body."""
    if "temporalio.workflow" in sys.modules:
        from temporalio import workflow

        if workflow.in_workflow():
            raise RuntimeError(
                "a claim belongs into the activity of the tool, and this one is in the code of the workflow: give the tool an "
                "activity (no `activity_config=False`)"
            )


async def results(
    ledger: Ledger | AsyncLedger, requests: DeferredToolRequests, *, wait: float | None = 0.0
) -> DeferredToolResults | None:
    """The results with which a run continues that has ended with these requests, by what people have decided in the ledger.

    ``None`` while a person has not decided about one of them; ``wait`` is how long to wait for that, in seconds, and ``None``
    for ever. Calls that are executed elsewhere (``requests.calls``) are yours to add.

    :raises LookupError: a call was deferred by something else than a `ClaimedToolset`.
    """
    asks = await _step(_looked_up, _aio(ledger), _ids(requests), wait)
    if any(ask.is_pending for ask in asks.values()):
        return None
    found: dict[str, bool | ToolApproved | ToolDenied]
    found = {call: _result_of(ask) for call, ask in asks.items()}
    return DeferredToolResults(approvals=found)


def approvals(ledger: Ledger | AsyncLedger, *, wait: float | None = 0.0) -> HandleDeferredToolCalls[Any]:
    """A capability that answers deferred calls within the run, by what people decide in the ledger: for agents with several
    toolsets, whose calls are then waited for together.

    What is not decided within ``wait`` seconds (``None``: for ever) ends the run as ``DeferredToolRequests``.
    """

    async def handle(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults | None:
        own = {call.tool_call_id for call in requests.approvals if ASK in requests.metadata.get(call.tool_call_id, {})}
        asks = await _step(_looked_up, _aio(ledger), _ids(requests, own), wait)
        found: dict[str, bool | ToolApproved | ToolDenied]
        found = {call: _result_of(ask) for call, ask in asks.items() if not ask.is_pending}
        return DeferredToolResults(approvals=found) if found else None

    return HandleDeferredToolCalls(handler=handle)


def _aio(ledger: Ledger | AsyncLedger) -> AsyncLedger:
    return ledger.aio if isinstance(ledger, Ledger) else ledger


def _ids(requests: DeferredToolRequests, own: Collection[str] | None = None) -> dict[str, str]:
    """The asks of deferred calls."""
    found = {}
    for call in requests.approvals:
        id = requests.metadata.get(call.tool_call_id, {}).get(ASK)
        if own is not None and call.tool_call_id not in own:
            continue
        if not isinstance(id, str):
            raise LookupError(
                f"the call {call.tool_call_id} was deferred by something else than a ClaimedToolset: answer it yourself"
            )
        found[call.tool_call_id] = id
    return found


async def _looked_up(ledger: AsyncLedger, ids: dict[str, str], wait: float | None) -> dict[str, Ask]:
    asks = {call: await ledger.get(id) for call, id in ids.items()}
    for call, ask in asks.items():
        if ask.is_pending and wait != 0:
            asks[call] = await ledger.wait(ask, wait)
    return asks


def _result_of(ask: Ask) -> ToolApproved | ToolDenied:
    if ask.is_approved and ask.state not in ("cancelled", "closed"):
        edited = not same_json(ask.args, ask.args_to_run)
        return ToolApproved(override_args=ask.args_to_run if edited else None)
    return ToolDenied(denial(ask))


__all__ = ["ASK", "ClaimedToolset", "Ledger", "Rules", "approvals", "results", "run_of"]

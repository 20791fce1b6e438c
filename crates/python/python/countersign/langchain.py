"""The ledger around the tools of LangChain agents, as a middleware.

::

    from countersign.langchain import Ledger, LedgerMiddleware

    ledger = Ledger.open()                                        # the store that `countersign inbox` shows
    agent = create_agent(model, tools, middleware=[LedgerMiddleware(ledger, asks=["pay"])], checkpointer=saver)

    config = {"configurable": {"thread_id": "t1"}}
    agent.invoke({"messages": [("user", "pay 10")]}, config)      # interrupted: `pay` is parked
    ...                                                           # a person decides in the inbox
    agent.invoke(Command(resume=True), config)                    # in any process: runs once, or is told the no

The answer to the interrupt is not read: the ledger decides, and a client that resumes with an approval approves nothing. The
claim lies around the tool itself, so the place of the middleware in the list does not matter: a retry further in comes to the
claim again, and finds the outcome; and a call that another middleware sends to the tools after a no finds the no.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Literal

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, interrupt

from ._asks import Ask, Outcome
from ._countersign import CallChanged, CountersignError, Decision, NotAsked, Rules, same_json
from ._ledger import LEASE, Ledger
from ._once import JSON, Codec, FailedBefore, NotRun

RunKey = str | Callable[[ToolCallRequest], str]
"""The run that a call belongs to: a text, or a function of the request."""


def run_of(request: ToolCallRequest) -> str:
    """The default run key: the thread of the checkpointer. A branch of a thread is the same run, as it is the same call that
    a person was asked about; a thread that is copied to another id is another one."""
    config = getattr(request.runtime, "config", None) or {}
    thread = config.get("configurable", {}).get("thread_id")
    if not thread:
        raise ValueError(
            "the run has no `thread_id`, by which approvals are found: set it in `config`, or give `run=` to LedgerMiddleware"
        )
    return str(thread)


class _Messages(Codec):
    """Tool messages, without the id of their call, which a repeated call has as well."""

    def __init__(self, call: str) -> None:
        self._call = call

    def encode(self, value: Any) -> tuple[JSON, JSON]:
        if isinstance(value, ToolMessage):
            kept = {"langchain": "ToolMessage", "name": value.name, "status": value.status}
            return value.content, kept
        return _text(value), {"langchain": type(value).__name__}

    def decode(self, value: JSON, metadata: JSON) -> Any:
        known = metadata if isinstance(metadata, dict) else {}
        if known.get("langchain") in ("Command", "list"):
            text = "The call has run before, and is not run again. What it changed in the state of the graph is not repeated."
            return ToolMessage(text, tool_call_id=self._call)
        content = value if isinstance(value, (str, list)) else str(value)
        status = "error" if known.get("status") == "error" else "success"
        return ToolMessage(content, tool_call_id=self._call, name=known.get("name"), status=status)

    def ends(self, error: Exception) -> tuple[Literal["failed", "retry", "released"], str]:
        # An interrupt of the tool itself: the graph comes back to it, and a person is asked again before it runs again.
        if isinstance(error, GraphBubbleUp):
            return "released", ""
        return "failed", f"{type(error).__name__}: {error}"

    def raises(self, ask: Ask, outcome: Outcome) -> Exception:
        return FailedBefore(
            ask,
            f"The call was started before and has failed; it may have had an effect, and is not run again: {outcome.value}",
        )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


class LedgerMiddleware(AgentMiddleware[Any, Any, Any]):
    """A middleware for ``create_agent`` by which calls of tools are parked, decided in the ledger, and run with a claim.

    :param ledger: the ledger, or its URL.
    :param asks: the names of the tools whose calls need an approval.
    :param rules: `Rules` that decide about each call; a tool in ``asks`` is asked about even where they allow it.
    :param run: the run that a call belongs to; by default `run_of`.
    :param wait: how long a call waits for a person before the graph is interrupted, in seconds; ``None`` for ever. By default
        not at all.
    :param requester: the person that the calls are made for.
    :param lease: how long a claim lasts after its worker has died, in seconds.
    """

    def __init__(
        self,
        ledger: Ledger | str,
        *,
        asks: Collection[str] = (),
        rules: Rules | None = None,
        run: RunKey | None = None,
        wait: float | None = 0.0,
        requester: str | None = None,
        lease: float = LEASE,
    ) -> None:
        super().__init__()
        if isinstance(asks, str) or (not asks and rules is None):
            raise ValueError("name the tools that need an approval in `asks`, a list, or give `rules`")
        self._ledger = Ledger.open(ledger) if isinstance(ledger, str) else ledger
        self._asks, self._rules, self._run = frozenset(asks), rules, run or run_of
        self._wait, self._requester, self._lease = wait, requester, lease

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Parks the call, interrupts the graph while no person has decided, and lets it run with a claim."""
        asked = self._asked(request)
        if asked is None or isinstance(asked, ToolMessage):
            return handler(request) if asked is None else asked
        try:
            ask = asked.park(self._ledger)
            if ask.is_pending and self._wait != 0:
                ask = self._ledger.wait(ask, self._wait)
            if not ask.is_pending and _was_interrupted(request):
                interrupt(_shown(ask))
            while ask.is_pending:
                interrupt(_shown(ask))
                ask = asked.park(self._ledger)
        except (CallChanged, NotAsked) as error:
            return asked.message(error)
        return handler(self._claiming(request, asked, ask))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """The same in an event loop."""
        asked = self._asked(request)
        if asked is None or isinstance(asked, ToolMessage):
            return await handler(request) if asked is None else asked
        try:
            ask = await asked.apark(self._ledger)
            if ask.is_pending and self._wait != 0:
                ask = await self._ledger.aio.wait(ask, self._wait)
            if not ask.is_pending and _was_interrupted(request):
                interrupt(_shown(ask))
            while ask.is_pending:
                interrupt(_shown(ask))
                ask = await asked.apark(self._ledger)
        except (CallChanged, NotAsked) as error:
            return asked.message(error)
        return await handler(self._claiming(request, asked, ask))

    def _asked(self, request: ToolCallRequest) -> _AskedCall | ToolMessage | None:
        """The call as it is asked about; a message where the rules deny it; ``None`` where it may run as ever."""
        call, tool = request.tool_call, request.tool
        if tool is None:
            return None
        args = _own_args(tool, call["args"])
        decision = None if self._rules is None else self._rules.decide(call["name"], args)
        if decision is not None and decision.decision == "deny":
            text = "; ".join(decision.reasons) or "The tool call was denied."
            return ToolMessage(text, tool_call_id=str(call["id"]), name=call["name"], status="error")
        asks = decision is not None and decision.decision == "ask"
        if not asks and call["name"] not in self._asks:
            return None
        if not call["id"]:
            raise ValueError(f"the call of `{call['name']}` has no id, by which its approval could be found")
        run = self._run if isinstance(self._run, str) else self._run(request)
        return _AskedCall(run, call["id"], call["name"], args, decision if asks else None, self._requester)

    def _claiming(self, request: ToolCallRequest, asked: _AskedCall, ask: Ask) -> ToolCallRequest:
        assert request.tool is not None
        call = request.tool_call
        if not same_json(ask.args_to_run, asked.args):
            call = {**call, "args": ask.args_to_run}
        tool = _claimed(request.tool, self._ledger, asked, self._lease)
        return request.override(tool=tool, tool_call=call)


class _AskedCall:
    """A call that needs an approval."""

    def __init__(
        self, run: str, call: str, tool: str, args: Any, decision: Decision | None, requester: str | None
    ) -> None:
        self.call, self.args = call, args
        self._run, self._tool, self._decision, self._requester = run, tool, decision, requester

    def _words(self) -> dict[str, Any]:
        reason = f"`{self._tool}` needs an approval"
        return {"decision": self._decision, "reason": reason, "requester": self._requester}

    def park(self, ledger: Ledger, args: Any = None) -> Ask:
        args = self.args if args is None else args
        return ledger.park(self._run, self.call, self._tool, args, **self._words())

    async def apark(self, ledger: Ledger, args: Any = None) -> Ask:
        args = self.args if args is None else args
        return await ledger.aio.park(self._run, self.call, self._tool, args, **self._words())

    def message(self, error: CountersignError) -> ToolMessage:
        return ToolMessage(str(error), tool_call_id=self.call, name=self._tool, status="error")


def _own_args(tool: BaseTool, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the model: what LangChain adds (state, store, runtime) is no part of a call."""
    known = set(tool.args)
    return {name: value for name, value in args.items() if name in known}


def _claimed(tool: BaseTool, ledger: Ledger, asked: _AskedCall, lease: float) -> BaseTool:
    """A copy of the tool for one call, whose body runs with a claim."""
    body, abody, codec = tool.invoke, tool.ainvoke, _Messages(asked.call)

    def invoke(input: Any, config: Any = None, **more: Any) -> Any:
        try:
            ask = asked.park(ledger, _own_args(tool, input["args"]))
            entered = ledger.execution(ask, lease=lease, codec=codec)
            execution = entered.__enter__()
        except (NotRun, CallChanged, NotAsked) as error:
            return asked.message(error)
        with _Entered(entered):
            if not execution.is_over:
                return execution.run(lambda: body(input, config, **more))
            try:
                return execution.replay()
            except FailedBefore as error:
                return asked.message(error)

    async def ainvoke(input: Any, config: Any = None, **more: Any) -> Any:
        try:
            ask = await asked.apark(ledger, _own_args(tool, input["args"]))
            entered = ledger.aio.execution(ask, lease=lease, codec=codec)
            execution = await entered.__aenter__()
        except (NotRun, CallChanged, NotAsked) as error:
            return asked.message(error)
        async with _Entered(entered):
            if not execution.is_over:
                return await execution.arun(lambda: abody(input, config, **more))
            try:
                return execution.replay()
            except FailedBefore as error:
                return asked.message(error)

    claimed: BaseTool = tool.model_copy()
    # A model of pydantic takes no attributes that are no fields; these two stand before the methods of its class.
    object.__setattr__(claimed, "invoke", invoke)
    object.__setattr__(claimed, "ainvoke", ainvoke)
    return claimed


class _Entered:
    """Leaves a context that was entered, so that only the entering is within the `try` around it."""

    def __init__(self, entered: Any) -> None:
        self._entered = entered

    def __enter__(self) -> None: ...

    def __exit__(self, *error: Any) -> Any:
        return self._entered.__exit__(*error)

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *error: Any) -> Any:
        return await self._entered.__aexit__(*error)


def _was_interrupted(request: ToolCallRequest) -> bool:
    """Whether this task runs again after an interrupt of this call, and its answer was not taken yet. LangGraph gives the answers
    in the order of the interrupts: one that is left out when the task runs again would leave its answer to an interrupt of the
    tool itself."""
    configurable = (getattr(request.runtime, "config", None) or {}).get("configurable", {})
    scratchpad = configurable.get("__pregel_scratchpad")
    # A retry of another middleware comes again within the same run of the task.
    taken = configurable.setdefault("__countersign_taken", set())
    if scratchpad is None or request.tool_call["id"] in taken:
        return False
    taken.add(request.tool_call["id"])
    return bool(scratchpad.resume) or scratchpad.get_null_resume(False) is not None


def _shown(ask: Ask) -> dict[str, Any]:
    """The value of the interrupt: which ask a person has to decide."""
    return {
        "type": "countersign",
        "ask": ask.id,
        "tool": ask.tool,
        "args": ask.args,
        "reasons": list(ask.reasons),
    }


__all__ = ["Ledger", "LedgerMiddleware", "Rules", "run_of"]

"""The ledger: the class `Ledger`, and `AsyncLedger` for programs with an event loop."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal, TypeVar

from . import _countersign as native
from ._asks import (
    Ask,
    Asks,
    Claim,
    Decided,
    Settled,
    State,
    Verified,
    ask_of,
    claim_of,
    decided_of,
    settled_of,
)
from ._once import JSON, Codec, Execution
from ._countersign import CountersignError, Decision

T = TypeVar("T")

Args = Mapping[str, Any] | str
"""The arguments of a call: a mapping with JSON values, or the JSON text of an object, which has to be readable in one way
only (no repeated key, no number that two readers take differently)."""

LEASE = 30.0
"""How long a claim lasts after its worker has died, in seconds. It is renewed while the body runs."""


class Broken(CountersignError):
    """A log, or a row beside it, is not as a ledger wrote it. Keep the store as it is, and compare it with an export or a
    backup. ``run`` is the run of the log."""

    def __init__(self, run: str, text: str) -> None:
        super().__init__(text)
        self.run = run


class NoSuchAsk(CountersignError, LookupError):
    """There is no ask with this id in this ledger: look at the URL of the store."""


def _id(ask: Ask | str) -> str:
    return ask if isinstance(ask, str) else ask.id


class _Opened:
    """A native ledger with what it was opened with, so that a handle can be pickled by its URL."""

    def __init__(self, url: str | None, audit_key: bytes | None, session: str | None) -> None:
        self.asked_for = url
        self.has_key = audit_key is not None
        self.session = session
        self.native = native.Ledger.open(url, audit_key, session)

    def reduced(self) -> tuple[str | None, str | None]:
        if self.has_key:
            raise TypeError(
                "a ledger with an audit key is not pickled, as the key would be in the pickle: open it in the other process"
            )
        if self.native.url == "memory:":
            raise TypeError("a ledger in memory is not pickled: no other process can open it")
        return self.asked_for, self.session


class Ledger:
    """A ledger of calls that people approve: parked, decided once, claimed once, settled.

    All handles over one store, in all processes and languages, are one ledger. Each method is safe to repeat: a request
    whose response was lost returns what was recorded. Handles can be shared by threads. After ``fork`` a process opens its
    own.

    ::

        ledger = Ledger.open("sqlite:asks.db")
        ask = ledger.park("run-1", "call-1", "pay", {"amount": 10}, reason="moves money")
        ask = ledger.wait(ask)
        ledger.once(ask, pay)       # pay(amount=10), once over all processes
    """

    def __init__(self, opened: _Opened) -> None:
        self._opened = opened
        self._native = opened.native

    @classmethod
    def open(
        cls, url: str | None = None, *, audit_key: bytes | None = None, session: str | None = None
    ) -> Ledger:
        """Opens the store that the program ``countersign --store URL`` opens, and without a URL the one of this user, which
        the inbox shows. Groups, the audit key and other settings are those of the user's configuration file.

        :param url: ``memory:``, ``sqlite:PATH`` (``sqlite:///absolute/path``) or ``postgres://…``. A file that does not exist
            is created, for this account alone.
        :param audit_key: the key of the log, in place of the one that the configuration names. 32 random bytes.
        :param session: the session in which the calls are made; a person may then allow such calls "in this session". An id
            that no model can choose.
        :raises ConfigRefused: the URL or the configuration cannot be used.
        :raises LedgerRefused: the store has another audit key.
        :raises StoreUnavailable: the store cannot be reached; try again.
        """
        return cls(_Opened(url, audit_key, session))

    @property
    def url(self) -> str:
        """The URL of the store, without a password."""
        return self._native.url

    @property
    def aio(self) -> AsyncLedger:
        """The same ledger for an event loop: each method is awaited."""
        return AsyncLedger(self._opened)

    def park(
        self,
        run: str,
        call: str,
        tool: str,
        args: Args,
        *,
        reason: str | None = None,
        decision: Decision | None = None,
        agent: str = "root",
        requester: str | None = None,
        idempotent: bool = False,
        approvals: int = 1,
        not_the_requester: bool = False,
        expires_in: float | None = None,
        valid_for: float | None = None,
    ) -> Ask:
        """Records a call that needs an approval, before any person is asked. Parking the same call again gives the same ask,
        in whatever state it is; one whose approval cannot be used any more (too old, given back) is asked about again.

        :param run: the id of the run, conversation or workflow. Choose one that a resumed run has again, and that no model
            and no client can choose.
        :param call: the id of the call within the run.
        :param tool: the name of the tool, for people and for grants.
        :param args: the arguments. The approval is bound to them.
        :param reason: why a person is asked, for people.
        :param decision: the decision of `Rules` in place of a reason: the ask is bound to the rules that asked.
        :param agent: the path of the agent that makes the call.
        :param requester: the person that the call is made for.
        :param idempotent: whether running the call twice is as good as once: then it runs again when its worker died.
        :param approvals: how many people have to approve.
        :param not_the_requester: whether the requester may not be one of them.
        :param expires_in: how long the ask may be pending, in seconds; by default for ever.
        :param valid_for: how long an approval may wait for its claim, in seconds; by default 24 hours.
        :raises CallChanged: this call was asked about with another tool or other arguments. Nothing has run.
        :raises NotAsked: no person is asked, as too many calls are pending; the text is for the model.
        :raises ValueError: the arguments have no exact form in JSON; the text names the place.
        """
        return ask_of(
            self._native.park(
                True,
                run=run,
                agent=agent,
                call=call,
                tool=tool,
                args=args,
                reason=reason,
                decision=decision,
                requester=requester,
                idempotent=idempotent,
                approvals=approvals,
                not_the_requester=not_the_requester,
                expires_in=expires_in,
                valid_for=valid_for,
            )
        )

    def get(self, ask: Ask | str) -> Ask:
        """The ask as it is now, by its id or an earlier value of it.

        :raises NoSuchAsk: there is none.
        """
        return _there(self._native.get(True, _id(ask)))

    def wait(self, ask: Ask | str, timeout: float | None = None) -> Ask:
        """Waits until the ask is not pending any more, or the time is over, and returns it as it is then.

        :param timeout: in seconds; by default for ever. Ctrl-C ends the waiting.
        """
        return _there(self._native.wait(True, _id(ask), timeout))

    def decide(
        self,
        ask: Ask,
        answer: Literal["approve", "deny"],
        *,
        by: str,
        args: Args | None = None,
        message: str | None = None,
    ) -> Decided:
        """Decides an ask. The first decision counts; a later one is told which.

        :param ask: the ask *as it was shown to the person*: the decision counts for its fingerprint alone.
        :param by: the name of the person. You vouch for it: take it from a login, never from what was posted.
        :param args: other arguments to run with, for an approval. Several people have to agree on the same ones.
        :param message: why not, for the model.
        """
        return decided_of(self._native.decide(True, ask.id, ask.fingerprint, answer, by, args, message))

    def cancel(self, ask: Ask | str, *, by: str) -> Literal["cancelled", "too_late", "unknown_ask"]:
        """Cancels an ask that is pending, or approved and not claimed: its call will not run."""
        result: Literal["cancelled", "too_late", "unknown_ask"]
        result = self._native.cancel(True, _id(ask), by)["result"]
        return result

    def claim(self, ask: Ask | str, *, worker: str | None = None, lease: float = LEASE) -> Claim:
        """Claims the execution of an approved call. Of any number of workers one gets it.

        Use `once` or `claimed`, unless you write a worker of your own: they renew and settle.

        :param worker: the name of the worker, for people; by default the host and the process.
        :param lease: how long the claim lasts when it is not renewed, in seconds.
        """
        return claim_of(self._native.claim(True, _id(ask), worker, lease))

    def renew(self, ask: Ask | str, token: int, lease: float = LEASE) -> bool:
        """Extends the lease of a claim to this many seconds from now. False when a later claim has superseded this one."""
        return bool(self._native.renew(True, _id(ask), token, lease)["result"] == "renewed")

    def settle(self, ask: Ask | str, token: int, value: JSON) -> Settled:
        """Records what a claimed call has returned. The first outcome counts."""
        return settled_of(self._native.settle(True, _id(ask), token, "returned", value, None))

    def settle_failed(self, ask: Ask | str, token: int, message: str) -> Settled:
        """Records that a claimed call has failed, with the text for the model. The approval is spent."""
        return settled_of(self._native.settle(True, _id(ask), token, "failed", message, None))

    def release(self, ask: Ask | str, token: int) -> bool:
        """Gives a claim back whose body has not begun. The call is asked about again when it is parked again."""
        return bool(self._native.release(True, _id(ask), token) == "settled")

    def list(self, state: State | None = None, *, run: str | None = None, limit: int = 100) -> Asks:
        """The asks in a state, or of a run, newest first."""
        found = self._native.list(True, state, run, limit)
        return Asks([ask_of(it) for it in found["asks"]], [(id, why) for id, why in found["refused"]])

    def verify(self, earlier: Mapping[str, tuple[int, str]] | None = None) -> Verified:
        """Replays all logs, and compares them with the asks.

        :param earlier: the ``heads`` of an earlier verification, kept elsewhere: a log that was cut or written anew does not
            have them.
        :raises Broken: a log or a row is not as a ledger wrote it.
        """
        return _verified(self._native.verify(True, dict(earlier or {})))

    def expire(self) -> builtins.list[str]:
        """Applies all deadlines and leases that are over, so that lists show it, and returns the ids. Call it from time to
        time; deciding and claiming do this for their ask by themselves."""
        return list(self._native.expire(True))

    def once(
        self,
        ask: Ask,
        body: Callable[..., T],
        *,
        worker: str | None = None,
        lease: float = LEASE,
        codec: Codec | None = None,
    ) -> T:
        """Runs ``body(**ask.args_to_run)``: once, over all processes, retries and crashes.

        A second call returns what the first has returned (its JSON form). While another worker runs the call, this waits for
        its end. A body that raises spends the approval: the error is recorded and raised, and a second call raises
        `FailedBefore`.

        :raises Pending: there is no decision yet.
        :raises Denied: a person or a rule said no, the ask has expired, or was cancelled.
        :raises AskAgain: the approval cannot be used any more: park the call again.
        :raises MayHaveRun: a worker has begun the call, and its end was not seen. It does not run again.
        """
        with self.execution(ask, worker=worker, lease=lease, codec=codec) as execution:
            if execution.is_over:
                known: T = execution.replay()
                return known
            value: T = execution.run(lambda: body(**execution.args))
            return value

    @contextmanager
    def execution(
        self,
        ask: Ask,
        *,
        worker: str | None = None,
        lease: float = LEASE,
        codec: Codec | None = None,
    ) -> Iterator[Execution]:
        """A claim around a body, for adapters: see `Execution`. `once` is the short form."""
        execution = Execution(self._native, codec)
        while True:
            claim = self.claim(ask, worker=worker, lease=lease)
            if claim.result != "held":
                break
            # Its end, or the end of its lease: the outcome is known then, or unknown.
            self._native.wait_for_end(True, ask.id, None)
        execution.begin(claim, lease)
        try:
            yield execution
        finally:
            execution.end()

    def __reduce__(self) -> tuple[Any, ...]:
        url, session = self._opened.reduced()
        return _reopened, (type(self), url, session)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"


class AsyncLedger:
    """`Ledger` for an event loop: the same methods, awaited. A cancelled ``await`` loses the answer and never the work: a
    claim that no caller got is given back, and a parked ask is parked.
    """

    def __init__(self, opened: _Opened) -> None:
        self._opened = opened
        self._native = opened.native

    @classmethod
    async def open(
        cls, url: str | None = None, *, audit_key: bytes | None = None, session: str | None = None
    ) -> AsyncLedger:
        """Opens a ledger, as `Ledger.open` does."""
        return cls(await asyncio.to_thread(_Opened, url, audit_key, session))

    @property
    def url(self) -> str:
        """The URL of the store, without a password."""
        return self._native.url

    @property
    def sync(self) -> Ledger:
        """The same ledger for threads without an event loop."""
        return Ledger(self._opened)

    async def park(
        self,
        run: str,
        call: str,
        tool: str,
        args: Args,
        *,
        reason: str | None = None,
        decision: Decision | None = None,
        agent: str = "root",
        requester: str | None = None,
        idempotent: bool = False,
        approvals: int = 1,
        not_the_requester: bool = False,
        expires_in: float | None = None,
        valid_for: float | None = None,
    ) -> Ask:
        """See `Ledger.park`."""
        return ask_of(
            await self._native.park(
                False,
                run=run,
                agent=agent,
                call=call,
                tool=tool,
                args=args,
                reason=reason,
                decision=decision,
                requester=requester,
                idempotent=idempotent,
                approvals=approvals,
                not_the_requester=not_the_requester,
                expires_in=expires_in,
                valid_for=valid_for,
            )
        )

    async def get(self, ask: Ask | str) -> Ask:
        """See `Ledger.get`."""
        return _there(await self._native.get(False, _id(ask)))

    async def wait(self, ask: Ask | str, timeout: float | None = None) -> Ask:
        """See `Ledger.wait`."""
        return _there(await self._native.wait(False, _id(ask), timeout))

    async def decide(
        self,
        ask: Ask,
        answer: Literal["approve", "deny"],
        *,
        by: str,
        args: Args | None = None,
        message: str | None = None,
    ) -> Decided:
        """See `Ledger.decide`."""
        decided = self._native.decide(False, ask.id, ask.fingerprint, answer, by, args, message)
        return decided_of(await decided)

    async def cancel(self, ask: Ask | str, *, by: str) -> Literal["cancelled", "too_late", "unknown_ask"]:
        """See `Ledger.cancel`."""
        result: Literal["cancelled", "too_late", "unknown_ask"]
        result = (await self._native.cancel(False, _id(ask), by))["result"]
        return result

    async def claim(self, ask: Ask | str, *, worker: str | None = None, lease: float = LEASE) -> Claim:
        """See `Ledger.claim`. A claim whose ``await`` was cancelled is given back."""
        future = self._native.claim(False, _id(ask), worker, lease)
        try:
            return claim_of(await future)
        except asyncio.CancelledError:
            # The answer may have come in the moment of the cancellation; one that comes later is given back natively.
            if future.done() and not future.cancelled() and future.exception() is None:
                claim = claim_of(future.result())
                if claim.is_claimed:
                    self._native.give_back(_id(ask), claim.token)
            raise

    async def renew(self, ask: Ask | str, token: int, lease: float = LEASE) -> bool:
        """See `Ledger.renew`."""
        return bool((await self._native.renew(False, _id(ask), token, lease))["result"] == "renewed")

    async def settle(self, ask: Ask | str, token: int, value: JSON) -> Settled:
        """See `Ledger.settle`."""
        return settled_of(await self._native.settle(False, _id(ask), token, "returned", value, None))

    async def settle_failed(self, ask: Ask | str, token: int, message: str) -> Settled:
        """See `Ledger.settle_failed`."""
        return settled_of(await self._native.settle(False, _id(ask), token, "failed", message, None))

    async def release(self, ask: Ask | str, token: int) -> bool:
        """See `Ledger.release`."""
        return bool(await self._native.release(False, _id(ask), token) == "settled")

    async def list(
        self, state: State | None = None, *, run: str | None = None, limit: int = 100
    ) -> Asks:
        """See `Ledger.list`."""
        found = await self._native.list(False, state, run, limit)
        return Asks([ask_of(it) for it in found["asks"]], [(id, why) for id, why in found["refused"]])

    async def verify(self, earlier: Mapping[str, tuple[int, str]] | None = None) -> Verified:
        """See `Ledger.verify`."""
        return _verified(await self._native.verify(False, dict(earlier or {})))

    async def expire(self) -> builtins.list[str]:
        """See `Ledger.expire`."""
        return list(await self._native.expire(False))

    async def once(
        self,
        ask: Ask,
        body: Callable[..., Awaitable[T]],
        *,
        worker: str | None = None,
        lease: float = LEASE,
        codec: Codec | None = None,
    ) -> T:
        """See `Ledger.once`; the body is awaited. Where the task is cancelled while the body runs, the call may have run, and
        it does not run again: people see it as *may have run* at once."""
        async with self.execution(ask, worker=worker, lease=lease, codec=codec) as execution:
            if execution.is_over:
                known: T = execution.replay()
                return known
            value: T = await execution.arun(lambda: body(**execution.args))
            return value

    @asynccontextmanager
    async def execution(
        self,
        ask: Ask,
        *,
        worker: str | None = None,
        lease: float = LEASE,
        codec: Codec | None = None,
    ) -> AsyncIterator[Execution]:
        """See `Ledger.execution`."""
        execution = Execution(self._native, codec)
        while True:
            claim = await self.claim(ask, worker=worker, lease=lease)
            if claim.result != "held":
                break
            await self._native.wait_for_end(False, ask.id, None)
        # No `await` between the claim and the execution that has to end it.
        execution.begin(claim, lease)
        try:
            yield execution
        finally:
            execution.end()

    def __reduce__(self) -> tuple[Any, ...]:
        url, session = self._opened.reduced()
        return _reopened, (type(self), url, session)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"


def _reopened(of: type[Ledger] | type[AsyncLedger], url: str | None, session: str | None) -> Any:
    return of(_Opened(url, None, session))


def _there(it: Mapping[str, Any] | None) -> Ask:
    if it is None:
        raise NoSuchAsk("there is no ask with this id in this ledger: look at the URL of the store")
    return ask_of(it)


def _verified(it: Mapping[str, Any]) -> Verified:
    if it["broken"] is not None:
        raise Broken(it["broken"]["run"], it["broken"]["text"])
    heads = {run: (seq, hash) for run, (seq, hash) in it["heads"].items()}
    return Verified(it["entries"], heads, it["ran_unapproved"])

"""A claim around the body of a call: it begins once, and each way in which it can end is recorded.

::

    claim ──► claimed ──► the body ──► returned ──► settled
                │            ├── raises ──────────► settled as failed: the approval is spent
                │            ├── asks anew ───────► given back (the framework's own deferral)
                │            └── is cancelled ────► may have run, at once
                └── no body has begun ───────────► given back
"""

from __future__ import annotations

import json
import logging
import time
from asyncio import sleep
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from . import _countersign as native
from ._asks import Ask, Claim, Outcome
from ._countersign import CountersignError, StoreUnavailable

T = TypeVar("T")
JSON = Any
"""``None``, a ``bool``, an ``int`` of 64 bits, a finite ``float``, a ``str``, or a list or mapping of them."""

_log = logging.getLogger("countersign")

_PAUSES = (0.05, 0.2, 1.0, 3.0)
"""How long an outcome is kept for a store that is away for a moment, in seconds between the attempts."""


class NotRun(CountersignError):
    """The call was not run by this attempt. The text says why, for the model; ``ask`` is the ask as it is."""

    def __init__(self, ask: Ask, text: str) -> None:
        super().__init__(text)
        self.ask = ask


class Pending(NotRun):
    """A person has not decided about the call yet. Wait, or come back later: nothing has run."""


class Denied(NotRun):
    """The call does not run: it was denied, no person has answered in time, or it was cancelled."""


class AskAgain(NotRun):
    """The approval cannot be used any more: it is too old, or its grant or an approver is gone. Park the call again."""


class MayHaveRun(NotRun):
    """A worker has begun the call, and its end was not seen. It does not run again by itself: find out what it has done."""


class FailedBefore(NotRun):
    """The call has run and has failed, with this text. Its approval is spent."""


class Codec:
    """How the values and errors of bodies are stored, and given back when the call is repeated. Adapters have their own."""

    def encode(self, value: Any) -> tuple[JSON, JSON]:
        """The JSON form of a value, and metadata for `decode`. What has no form in JSON is stored as its text."""
        try:
            native.check_json(value)
        except (ValueError, TypeError):
            return str(value), {"python": type(value).__qualname__}
        return value, None

    def decode(self, value: JSON, metadata: JSON) -> Any:
        """The value for a repeated call: the JSON form."""
        return value

    def ends(self, error: Exception) -> tuple[Literal["failed", "retry", "released"], str]:
        """How a body has ended that raised: ``released`` means that it has asked anew before it did anything."""
        return "failed", f"{type(error).__name__}: {error}"

    def raises(self, ask: Ask, outcome: Outcome) -> Exception:
        """The error for a repeated call that did not return."""
        return FailedBefore(ask, f"The call has run before, and it does not run again. It has failed: {outcome.value}")


def refused(claim: Claim) -> NotRun | None:
    """Why a claim lets nothing run; ``None`` where it does, or where the outcome is there."""
    ask = claim.ask
    if ask is None:
        return None
    words = claim.details
    ran = " An earlier execution of it may have run." if words.get("may_have_run") else ""
    if claim.result == "not_decided":
        return Pending(ask, "A person has to approve this call first. Nothing has run.")
    if claim.result == "denied":
        return Denied(ask, denial(ask))
    if claim.result == "unknown_outcome":
        return MayHaveRun(
            ask,
            "The call was started before, and its end was not seen: it may have run. It is not run again. Find out what it "
            "has done before you continue.",
        )
    if claim.result in ("aged", "void", "outvoted"):
        why = {
            "aged": "is too old",
            "void": "was given in advance, and that was taken back or has expired",
            "outvoted": "is by people who may not approve it any more",
        }[claim.result]
        return AskAgain(ask, f"The approval of this call {why}: it has to be asked about again. Nothing has run.{ran}")
    return None


def denial(ask: Ask) -> str:
    """Why a call does not run, for the model."""
    decision = ask.decision
    if decision is not None and decision.answer == "deny":
        return decision.message or "The tool call was denied."
    words = {
        "expired": "No person has answered in time. The call was not run.",
        "cancelled": "The request for an approval was cancelled. The call was not run.",
        "closed": "The call was closed: it got its result without running, or it ran unapproved.",
        "released": "The claim on this call was given back: it has to be asked about again. Nothing has run.",
    }
    return words.get(ask.state, "The call was not run.")


class Execution:
    """One attempt at a call, around its body.

    ``args`` are the arguments to run with. Where ``is_over``, the call has run before: `replay` gives its value or raises
    its error. Otherwise call `run` (or await `arun`) with the body, once. An execution that ends without a body gives its
    claim back.
    """

    def __init__(self, of: native.Ledger, codec: Codec | None) -> None:
        self._native = of
        self._codec = codec or Codec()
        self._token = 0
        self._is_open = False
        self._keeper: native.ClaimKeeper | None = None

    def begin(self, claim: Claim, lease: float) -> None:
        """Takes the claim; raises a `NotRun` where it lets nothing run."""
        if claim.ask is None:
            raise CountersignError("there is no ask with this id in this ledger: look at the URL of the store")
        error = refused(claim)
        if error is not None:
            raise error
        self.ask = claim.ask
        self.args = dict(claim.ask.args_to_run)
        self._outcome = claim.outcome
        if claim.is_claimed:
            self._token, self._is_open = claim.token, True
            self._keeper = self._native.keep(self.ask.id, claim.token, lease)

    @property
    def is_over(self) -> bool:
        """Whether the call has run before."""
        return self._outcome is not None

    def replay(self) -> Any:
        """What the call has returned before; raises what it has raised."""
        outcome = self._outcome
        assert outcome is not None, "the call has not run yet"
        if outcome.kind == "returned":
            return self._codec.decode(outcome.value, outcome.metadata)
        raise self._codec.raises(self.ask, outcome)

    def run(self, body: Callable[[], T]) -> T:
        """Runs the body, and records how it has ended."""
        self._begin_body()
        try:
            value = body()
        except Exception as error:
            self._store(*self._ended(error))
            raise
        except BaseException:
            self._native.abandon(self.ask.id, self._token)
            raise
        self._store("returned", *self._encoded(value))
        return value

    async def arun(self, body: Callable[[], Awaitable[T]]) -> T:
        """Awaits the body, and records how it has ended."""
        self._begin_body()
        try:
            value = await body()
        except Exception as error:
            await self._astore(*self._ended(error))
            raise
        except BaseException:
            self._native.abandon(self.ask.id, self._token)
            raise
        await self._astore("returned", *self._encoded(value))
        return value

    def end(self) -> None:
        """Ends the attempt: a claim without a body is given back."""
        if self._keeper is not None:
            self._keeper.stop()
            self._keeper = None
        if self._is_open:
            self._is_open = False
            self._native.give_back(self.ask.id, self._token)

    def _begin_body(self) -> None:
        if not self._is_open:
            raise RuntimeError("an execution runs one body, once")
        self._is_open = False

    def _ended(self, error: Exception) -> tuple[str, JSON, JSON]:
        kind, text = self._codec.ends(error)
        return kind, text.encode("utf-8", "replace").decode(), None

    def _encoded(self, value: Any) -> tuple[JSON, JSON]:
        # The body has run: whatever its value is, the outcome has to be recorded.
        try:
            encoded, metadata = self._codec.encode(value)
            native.check_json(encoded)
            native.check_json(metadata)
        except Exception as error:
            try:
                text = json.dumps(value, default=str)
            except Exception:
                text = f"a {type(value).__qualname__}, which has no text"
            _log.warning("the result of %s has no form in JSON (%s): its text is stored", self.ask.tool, error)
            return text.encode("utf-8", "replace").decode(), {"python": type(value).__qualname__}
        return encoded, metadata

    def _store(self, kind: str, value: JSON, metadata: JSON) -> None:
        for pause in (*_PAUSES, None):
            try:
                if kind == "released":
                    self._native.release(True, self.ask.id, self._token)
                else:
                    self._native.settle(True, self.ask.id, self._token, kind, value, metadata)
                return
            except StoreUnavailable as error:
                if pause is None:
                    self._unstored(error)
                else:
                    time.sleep(pause)
            except CountersignError as error:
                self._unstored(error)
                return

    async def _astore(self, kind: str, value: JSON, metadata: JSON) -> None:
        for pause in (*_PAUSES, None):
            try:
                if kind == "released":
                    await self._native.release(False, self.ask.id, self._token)
                else:
                    await self._native.settle(False, self.ask.id, self._token, kind, value, metadata)
                return
            except StoreUnavailable as error:
                if pause is None:
                    self._unstored(error)
                else:
                    await sleep(pause)
            except CountersignError as error:
                self._unstored(error)
                return

    def _unstored(self, error: CountersignError) -> None:
        # The caller gets the value, as it is true. The ledger says "may have run", which is true as well.
        _log.error("the outcome of %s (ask %s) was not recorded: %s", self.ask.tool, self.ask.id, error)


__all__ = [
    "AskAgain",
    "Codec",
    "Denied",
    "Execution",
    "FailedBefore",
    "JSON",
    "MayHaveRun",
    "NotRun",
    "Pending",
    "denial",
    "refused",
]

"""What the ledger returns: asks, decisions, claims and outcomes, as values that do not change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

State = Literal[
    "pending", "decided", "claimed", "executed", "unknown", "released", "expired", "cancelled", "closed"
]


@dataclass(frozen=True)
class Outcome:
    """How a call has ended.

    ``kind`` is ``"returned"``, ``"failed"``, ``"retry"``, ``"denied"`` or ``"unknown"``; ``value`` is the JSON value that
    was returned, or the text for the model.
    """

    kind: str
    value: Any
    metadata: Any = None


@dataclass(frozen=True)
class AskDecision:
    """The decision on an ask: ``answer`` is ``"approve"``, ``"deny"`` or ``"result"``.

    ``args`` are the edited arguments of an approval, ``message`` is the text of a denial, ``by`` are the people, ``at`` is
    in milliseconds since 1970 by the store's clock, and ``grant`` is the id of the grant that has answered in advance.
    """

    answer: str
    by: tuple[str, ...]
    at: int
    args: dict[str, Any] | None = None
    message: str | None = None
    grant: str | None = None


@dataclass(frozen=True)
class Ask:
    """A call that a person is asked about, as the ledger has it at one moment.

    ``id`` has 32 hexadecimal digits, and is the same whenever the same call is parked. ``fingerprint`` covers the run, the
    call, the tool, the arguments and the questions: a decision counts for this fingerprint alone. ``args`` are those that
    were asked about, ``args_to_run`` those that the call runs with (an approval may edit them). Times are in milliseconds
    since 1970, by the store's clock.
    """

    id: str
    fingerprint: str
    run: str
    agent: str
    call: str
    tool: str
    args: dict[str, Any]
    args_to_run: dict[str, Any]
    state: State
    reasons: tuple[str, ...]
    parked_at: int
    changed_at: int
    requester: str | None = None
    approvals_needed: int = 1
    votes: tuple[str, ...] = ()
    decision: AskDecision | None = None
    cancelled_by: str | None = None
    claimed_by: str | None = None
    outcome: Outcome | None = None
    expires_at: int | None = None

    @property
    def is_pending(self) -> bool:
        """Whether no decision was made, and none is too late."""
        return self.state == "pending"

    @property
    def is_approved(self) -> bool:
        """Whether the call was approved. It runs only with a claim: the approval may have been used since."""
        return self.decision is not None and self.decision.answer == "approve"

    @property
    def is_denied(self) -> bool:
        """Whether a person or a policy has said no."""
        return self.decision is not None and self.decision.answer == "deny"

    def __repr__(self) -> str:
        # Names and no values: arguments may be secrets.
        return f"<Ask {self.id} {self.tool} of {self.run}: {self.state}>"


@dataclass(frozen=True)
class Decided:
    """What became of an answer.

    ``result`` is ``"won"`` (it is the decision), ``"recorded"`` (a vote; more are needed), ``"lost"`` (another decision was
    first, ``winner`` says which), ``"expired"``, ``"cancelled"``, ``"mismatch"`` (the ask has another fingerprint than the
    one that was shown), ``"not_allowed"``, ``"blank_name"``, ``"others_decide"``, ``"unapprovable"`` or ``"unknown_ask"``.
    """

    result: str
    again: bool = False
    winner: AskDecision | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """Whether the answer is the decision, or one of the votes for it."""
        return self.result in ("won", "recorded")


@dataclass(frozen=True)
class Claim:
    """The result of a claim.

    ``result`` is ``"claimed"`` (run the call, and settle with ``token``), ``"settled"`` (it has run: ``outcome``),
    ``"not_decided"``, ``"denied"``, ``"held"`` (by the worker ``held_by``), ``"unknown_outcome"`` (it may have run),
    ``"aged"``, ``"void"``, ``"outvoted"`` (the approval cannot be used: ask again) or ``"unknown_ask"``. ``ask`` is the ask
    after the claim, with the arguments to run with.
    """

    result: str
    ask: Ask | None = None
    token: int = 0
    outcome: Outcome | None = None
    held_by: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_claimed(self) -> bool:
        """Whether this caller, and no other one, runs the call now."""
        return self.result == "claimed"


@dataclass(frozen=True)
class Settled:
    """The result of settling a claim: ``result`` is ``"settled"`` (``again``: an outcome was there before, and counts),
    ``"stale_token"`` (a later claim has superseded this one) or ``"unknown_ask"``."""

    result: str
    outcome: Outcome | None = None
    again: bool = False


class Asks(Sequence[Ask]):
    """A list of asks, newest first. ``refused`` has the rows that were changed outside of the ledger, or that another
    version has written, as pairs of an id and the reason: they are not decided and do not run, and people should see them."""

    def __init__(self, asks: Sequence[Ask], refused: Sequence[tuple[str, str]]) -> None:
        self._asks = tuple(asks)
        self.refused = tuple(refused)

    def __len__(self) -> int:
        return len(self._asks)

    @overload
    def __getitem__(self, index: int) -> Ask: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Ask, ...]: ...
    def __getitem__(self, index: int | slice) -> Ask | tuple[Ask, ...]:
        return self._asks[index]

    def __iter__(self) -> Iterator[Ask]:
        return iter(self._asks)

    def __repr__(self) -> str:
        return f"<{len(self._asks)} asks, {len(self.refused)} refused>"


@dataclass(frozen=True)
class Verified:
    """The result of a verification: the number of log ``entries``, the ``heads`` (run to place and hash of its last entry)
    to keep elsewhere for the next verification, and how many calls ``ran_unapproved``."""

    entries: int
    heads: dict[str, tuple[int, str]]
    ran_unapproved: int


def outcome_of(it: Mapping[str, Any] | None) -> Outcome | None:
    return None if it is None else Outcome(it["kind"], it["value"], it["metadata"])


def decision_of(it: Mapping[str, Any] | None) -> AskDecision | None:
    if it is None:
        return None
    return AskDecision(it["answer"], tuple(it["by"]), it["at"], it["args"], it["message"], it["grant"])


def ask_of(it: Mapping[str, Any]) -> Ask:
    known = dict(it)
    known["reasons"] = tuple(it["reasons"])
    known["votes"] = tuple(it["votes"])
    known["decision"] = decision_of(it["decision"])
    known["outcome"] = outcome_of(it["outcome"])
    return Ask(**known)


def decided_of(it: Mapping[str, Any]) -> Decided:
    winner = None
    if it["result"] == "lost":
        verdict = it["decision"]
        answer = {"approve": "approve", "deny": "deny"}.get(verdict["verdict"], "result")
        winner = AskDecision(
            answer, tuple(it["by"]), it["at"], verdict.get("args"), verdict.get("message")
        )
    return Decided(it["result"], bool(it.get("again", False)), winner, dict(it))


def claim_of(it: Mapping[str, Any]) -> Claim:
    ask = None if it["ask"] is None else ask_of(it["ask"])
    return Claim(
        it["result"], ask, it.get("token", 0), outcome_of(it.get("outcome")), it.get("by"), dict(it)
    )


def settled_of(it: Mapping[str, Any]) -> Settled:
    return Settled(it["result"], outcome_of(it.get("outcome")), bool(it.get("again", False)))

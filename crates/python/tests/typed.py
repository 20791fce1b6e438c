"""What a type checker knows about the package: `mypy --strict` reads this file, and nothing runs it."""

from __future__ import annotations

from typing import Any

from countersign import Ask, AsyncLedger, Claim, Decided, Ledger, Rules
from typing_extensions import assert_type


def pay(amount: int) -> str:
    return f"paid {amount}"


async def apay(amount: int) -> int:
    return amount


def sync(ledger: Ledger) -> None:
    ask = ledger.park("run-1", "c1", "pay", {"amount": 10}, reason="moves money")
    assert_type(ask, Ask)
    assert_type(ask.args_to_run, dict[str, Any])
    assert_type(ledger.decide(ask, "approve", by="ann"), Decided)
    assert_type(ledger.claim(ask), Claim)
    assert_type(ledger.once(ask, pay), str)
    ledger.decide(ask, "maybe", by="ann")  # type: ignore[arg-type]
    ledger.park("run-1", "c1", "pay", 10)  # type: ignore[arg-type]


async def asynchronous(ledger: AsyncLedger) -> None:
    ask = await ledger.park("run-1", "c1", "pay", '{"amount": 10}')
    assert_type(await ledger.once(ask, apay), int)
    assert_type((await ledger.list("pending"))[0], Ask)


def rules() -> None:
    decision = Rules.preset("developer").decide("shell", {"command": "ls"})
    if decision.decision == "allow":
        return
    assert_type(decision.reasons, list[str])
    Rules.preset("admin")  # type: ignore[arg-type]

"""The ledger in an event loop: nothing blocks it, and what is cancelled loses an answer and never the work (rule L2)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest
from countersign import Ask, AsyncLedger, Ledger, MayHaveRun

PAY = {"amount": 10}


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def approved(ledger: AsyncLedger, call: str = "c1") -> Ask:
    ask = await ledger.park("run-1", call, "pay", PAY, reason="moves money")
    assert (await ledger.decide(ask, "approve", by="ann")).result == "won"
    return ask


async def state(ledger: AsyncLedger, ask: Ask, *states: str) -> str:
    """The state of the ask, once it is one of these."""
    while (found := (await ledger.get(ask)).state) not in states:
        await asyncio.sleep(0.01)
    return found


def test_a_call_runs_once_among_concurrent_tasks(ledger: Ledger) -> None:
    async def work() -> None:
        ask, ran = await approved(ledger.aio), []

        async def pay(amount: int) -> str:
            ran.append(amount)
            await asyncio.sleep(0.01)
            return "paid"

        got = await asyncio.gather(*(ledger.aio.once(ask, pay) for _ in range(8)))
        assert got == ["paid"] * 8 and ran == [10]

    run(work())


def test_waiting_for_a_person_leaves_the_loop_alone(ledger: Ledger) -> None:
    async def work() -> None:
        ask = await ledger.aio.park("run-1", "c1", "pay", PAY)
        waiting = asyncio.create_task(ledger.aio.wait(ask))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        # A thread without a loop decides, while this one runs.
        await asyncio.to_thread(ledger.decide, ask, "approve", by="ann")
        assert (await waiting).is_approved
        assert (await ledger.aio.wait(await ledger.aio.park("run-1", "c2", "pay", PAY), timeout=0)).is_pending

    run(work())


def test_waiting_in_the_thread_of_a_loop_is_refused(ledger: Ledger) -> None:
    async def work() -> None:
        ask = await ledger.aio.park("run-1", "c1", "pay", PAY)
        with pytest.raises(RuntimeError, match="ledger.aio"):
            ledger.wait(ask)

    run(work())


def test_a_cancelled_claim_is_given_back_and_never_lost(ledger: Ledger) -> None:
    async def work() -> None:
        for number in range(60):
            ask = await approved(ledger.aio, f"c{number}")
            claiming = asyncio.create_task(ledger.aio.claim(ask))
            # At any moment: before it begins, while the store works, and after its answer has come.
            for _ in range(number % 6):
                await asyncio.sleep(0)
            if number % 3 == 0:
                await asyncio.sleep(0.0005 * (number % 7))
            claiming.cancel()
            try:
                claim = await claiming
            except asyncio.CancelledError:
                assert await state(ledger.aio, ask, "decided", "released") in ("decided", "released")
                # A claim that is under way at this moment is given back as well.
                await asyncio.sleep(0.02)
                assert await state(ledger.aio, ask, "decided", "released") != "claimed"
            else:
                assert claim.is_claimed and (await ledger.aio.get(ask)).state == "claimed"

    run(work())


def test_a_body_that_is_cancelled_may_have_run_and_does_not_run_again(ledger: Ledger) -> None:
    async def work() -> None:
        ask = await approved(ledger.aio)
        began = asyncio.Event()

        async def pay(amount: int) -> str:
            began.set()
            await asyncio.sleep(3600)
            return "paid"

        paying = asyncio.create_task(ledger.aio.once(ask, pay))
        await began.wait()
        paying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await paying
        assert await state(ledger.aio, ask, "unknown") == "unknown"
        with pytest.raises(MayHaveRun):
            await ledger.aio.once(ask, pay)

    run(work())


def test_a_loop_that_is_closed_loses_no_work(ledger: Ledger) -> None:
    async def leave() -> None:
        asyncio.ensure_future(ledger.aio.park("run-1", "left", "pay", PAY))
        await asyncio.sleep(0)

    run(leave())
    while not len(ledger.list(run="run-1")):
        pass


def test_a_long_body_keeps_its_claim_while_python_is_busy(ledger: Ledger) -> None:
    async def work() -> None:
        ask = await approved(ledger.aio)

        async def pay(amount: int) -> str:
            # Blocks the loop for several leases: the claim is renewed outside of Python.
            threading.Event().wait(1.0)
            return "paid"

        assert await ledger.aio.once(ask, pay, lease=0.3) == "paid"
        done = await ledger.aio.get(ask)
        assert done.state == "executed"

    run(work())


def test_threads_and_loops_share_a_ledger_without_a_deadlock(ledger: Ledger) -> None:
    def in_thread(number: int) -> None:
        async def work() -> None:
            calls = (ledger.aio.park(f"run-{number}", f"c{at}", "pay", PAY) for at in range(20))
            asks = await asyncio.gather(*calls)
            await asyncio.gather(*(ledger.aio.decide(ask, "approve", by="ann") for ask in asks))

        asyncio.run(work())

    threads = [threading.Thread(target=in_thread, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for number in range(20):
        ledger.park("run-main", f"c{number}", "pay", PAY)
    for thread in threads:
        thread.join()
    assert len(ledger.list("decided", limit=1000)) == 80

"""The ledger, as a program without an event loop uses it."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import pytest
from countersign import (
    Ask,
    AskAgain,
    Broken,
    CallChanged,
    Denied,
    FailedBefore,
    Forked,
    Ledger,
    LedgerRefused,
    MayHaveRun,
    NoSuchAsk,
    Pending,
    Rules,
)

PAY = {"amount": 10}
Start = Callable[..., "subprocess.Popen[str]"]


def parked(ledger: Ledger, call: str = "c1", **more: Any) -> Ask:
    return ledger.park("run-1", call, "pay", PAY, reason="moves money", **more)


def approved(ledger: Ledger, call: str = "c1", **more: Any) -> Ask:
    ask = parked(ledger, call, **more)
    assert ledger.decide(ask, "approve", by="ann").result == "won"
    return ask


def test_an_approved_call_runs_once_and_a_second_request_gets_its_value(ledger: Ledger) -> None:
    ask, ran = approved(ledger), []

    def pay(amount: int) -> dict[str, int]:
        ran.append(amount)
        return {"paid": amount}

    assert ledger.once(ask, pay) == {"paid": 10}
    assert ledger.once(ask, pay) == {"paid": 10}
    assert ran == [10]
    done = ledger.get(ask)
    assert done.state == "executed" and done.outcome is not None and done.outcome.value == {"paid": 10}


def test_nothing_runs_without_a_decision_or_after_a_no(ledger: Ledger) -> None:
    ask = parked(ledger)
    with pytest.raises(Pending):
        ledger.once(ask, lambda amount: pytest.fail("it ran"))
    assert ledger.decide(ask, "deny", by="ann", message="not today").counts
    with pytest.raises(Denied, match="not today"):
        ledger.once(ask, lambda amount: pytest.fail("it ran"))
    # The first decision counts, and a later one is told which.
    late = ledger.decide(ask, "approve", by="bob")
    assert late.result == "lost" and late.winner is not None and late.winner.by == ("ann",)


def test_an_edit_of_an_approval_is_what_runs(ledger: Ledger) -> None:
    ask = parked(ledger)
    ledger.decide(ask, "approve", by="ann", args={"amount": 5})
    assert ledger.once(ask, lambda amount: amount) == 5
    # The call is found again with either form of its arguments.
    assert ledger.park("run-1", "c1", "pay", {"amount": 5}, reason="moves money").id == ask.id


def test_a_call_that_has_changed_is_refused(ledger: Ledger) -> None:
    ask = approved(ledger)
    for tool, args in [("pay", {"amount": 9999}), ("pay", {"amount": 10.5}), ("refund", PAY)]:
        with pytest.raises(CallChanged, match=ask.id):
            ledger.park("run-1", "c1", tool, args, reason="moves money")
    assert ledger.get(ask).state == "decided", "the approval is for the call that was shown"


def test_a_decision_counts_for_what_was_shown_alone(ledger: Ledger) -> None:
    ask = parked(ledger)
    other = parked(ledger, "c2")
    shown = Ask(**{**vars(ask), "fingerprint": other.fingerprint})
    assert ledger.decide(shown, "approve", by="ann").result == "mismatch"
    assert ledger.get(ask).is_pending


def test_a_body_that_raises_spends_the_approval(ledger: Ledger) -> None:
    ask = approved(ledger)

    def pay(amount: int) -> str:
        raise TimeoutError("no answer in time")

    with pytest.raises(TimeoutError):
        ledger.once(ask, pay)
    with pytest.raises(FailedBefore, match="no answer in time"):
        ledger.once(ask, lambda amount: pytest.fail("it ran again"))


def test_a_body_that_is_interrupted_may_have_run(ledger: Ledger) -> None:
    ask = approved(ledger)

    def pay(amount: int) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.once(ask, pay)
    with pytest.raises(MayHaveRun):
        ledger.once(ask, lambda amount: pytest.fail("it ran again"))


def test_a_value_without_a_form_in_json_is_recorded_as_its_text(ledger: Ledger) -> None:
    ask = approved(ledger)
    first = ledger.once(ask, lambda amount: {1, 2} if amount else None)
    assert first == {1, 2}
    assert ledger.once(ask, lambda amount: pytest.fail("it ran again")) == "{1, 2}"


def test_a_claim_without_a_body_is_given_back_and_asked_about_again(ledger: Ledger) -> None:
    ask = approved(ledger)
    with pytest.raises(ZeroDivisionError), ledger.execution(ask):
        1 / 0
    while ledger.get(ask).state == "claimed":
        pass
    again = parked(ledger)
    assert again.id != ask.id and again.is_pending


def test_an_old_approval_is_not_used_and_the_call_is_asked_about_again(ledger: Ledger) -> None:
    ask = approved(ledger, valid_for=0)
    with pytest.raises(AskAgain):
        ledger.once(ask, lambda amount: pytest.fail("it ran"))
    again = parked(ledger)
    assert again.is_pending and again.id != ask.id
    ledger.decide(again, "approve", by="ann")
    assert ledger.once(again, lambda amount: "paid") == "paid"


def test_an_ask_that_expires_is_no_approval(ledger: Ledger) -> None:
    ask = parked(ledger, expires_in=0)
    assert ledger.wait(ask).state == "expired"
    assert ledger.decide(ask, "approve", by="ann").result == "expired"
    with pytest.raises(Denied, match="in time"):
        ledger.once(ask, lambda amount: pytest.fail("it ran"))


def test_several_people_have_to_agree(ledger: Ledger) -> None:
    ask = parked(ledger, approvals=2, not_the_requester=True, requester="ann")
    assert ledger.decide(ask, "approve", by="Ann").result == "not_allowed"
    assert ledger.decide(ask, "approve", by="bob").result == "recorded"
    with pytest.raises(Pending):
        ledger.once(ask, lambda amount: pytest.fail("it ran"))
    assert ledger.decide(ask, "approve", by="eve").result == "won"


def test_other_questions_of_the_rules_are_asked_anew(ledger: Ledger) -> None:
    def rules(limit: int) -> Rules:
        return Rules.text(f"version = 1\n[[rule]]\nid = 'big'\nask = 'pay'\nwhere.amount = '> {limit}'")

    def ask(limit: int) -> Ask:
        return ledger.park("run-1", "c1", "pay", PAY, decision=rules(limit).decide("pay", PAY))

    first = ask(5)
    ledger.decide(first, "approve", by="ann")
    assert ask(5).id == first.id
    second = ask(6)
    assert second.id != first.id and second.is_pending
    assert ledger.get(first).state == "cancelled", "the approval was for another question"


def test_ids_of_calls_never_collide(ledger: Ledger) -> None:
    first = approved(ledger, "c#2", valid_for=0)
    with pytest.raises(AskAgain):
        ledger.once(first, lambda amount: None)
    again, other = parked(ledger, "c#2"), parked(ledger, "c##2")
    assert len({first.id, again.id, other.id, parked(ledger, "c").id}) == 4
    assert [first.call, again.call, other.call] == ["c#2", "c#2", "c##2"]


def test_threads_that_claim_one_call_run_it_once(ledger: Ledger) -> None:
    ask, ran, got = approved(ledger), [], []
    barrier = threading.Barrier(8)

    def pay(amount: int) -> str:
        ran.append(amount)
        return "paid"

    def work() -> None:
        barrier.wait()
        got.append(ledger.once(ask, pay))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ran == [10] and got == ["paid"] * 8


WORKER = """
import sys, os
from countersign import Ledger
ledger = Ledger.open(sys.argv[1])
ask = ledger.get(sys.argv[2])
def pay(amount):
    print("began", flush=True)
    os._exit(9)
ledger.once(ask, pay, lease=0.5)
"""


def test_a_call_whose_worker_died_does_not_run_again(url: str, process: Start) -> None:
    ledger = Ledger.open(url)
    ask = approved(ledger)
    worker = process(WORKER, url, ask.id)
    assert worker.wait() == 9
    with pytest.raises(MayHaveRun):
        ledger.once(ask, lambda amount: pytest.fail("it ran again"))


def test_an_idempotent_call_whose_worker_died_runs_again(url: str, process: Start) -> None:
    ledger = Ledger.open(url)
    ask = approved(ledger, idempotent=True)
    assert process(WORKER, url, ask.id).wait() == 9
    assert ledger.once(ask, lambda amount: "paid") == "paid"


# A shell ignores SIGINT in what it starts behind `&`, and Python leaves it so: the waiter sets its own handler.
WAITER = """
import signal, sys
from countersign import Ledger
signal.signal(signal.SIGINT, signal.default_int_handler)
print("waits", flush=True)
Ledger.open(sys.argv[1]).wait(sys.argv[2])
"""


def test_ctrl_c_ends_the_waiting_for_a_person(url: str, process: Start) -> None:
    ask = parked(Ledger.open(url))
    waiter = process(WAITER, url, ask.id)
    assert waiter.stdout is not None and waiter.stdout.readline() == "waits\n"
    waiter.send_signal(signal.SIGINT)
    out, err = waiter.communicate()
    assert waiter.returncode != 0 and "KeyboardInterrupt" in err


def test_a_decision_of_another_process_ends_the_waiting(url: str, process: Start) -> None:
    ask = parked(Ledger.open(url))
    waiter = process(WAITER, url, ask.id)
    assert waiter.stdout is not None and waiter.stdout.readline() == "waits\n"
    Ledger.open(url).decide(ask, "deny", by="ann")
    assert waiter.wait() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_after_fork_a_process_opens_its_own_ledger(url: str) -> None:
    ledger = Ledger.open(url)
    ask = parked(ledger)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            try:
                ledger.get(ask)
            except Forked:
                found = Ledger.open(url).get(ask)
                del ledger
                status = 0 if found.id == ask.id else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ledger.get(ask).is_pending


def test_a_ledger_is_pickled_as_its_url(url: str) -> None:
    ask = parked(Ledger.open(url))
    assert pickle.loads(pickle.dumps(Ledger.open(url))).get(ask).id == ask.id
    with pytest.raises(TypeError, match="memory"):
        pickle.dumps(Ledger.open("memory:"))
    with pytest.raises(TypeError, match="key"):
        pickle.dumps(Ledger.open("memory:", audit_key=b"k" * 32))


def test_lists_and_verification(url: str, tmp_path: Any) -> None:
    ledger = Ledger.open(url)
    ask = approved(ledger)
    parked(ledger, "c2")
    assert [it.call for it in ledger.list()] == ["c2", "c1"]
    assert [it.id for it in ledger.list("decided")] == [ask.id]
    assert len(ledger.list(run="run-2")) == 0
    heads = ledger.verify().heads
    parked(ledger, "c3")
    assert ledger.verify(heads).entries == 4
    with pytest.raises(Broken):
        ledger.verify({"run-1": (1, "0" * 64)})
    with pytest.raises(NoSuchAsk):
        ledger.get("0" * 32)
    with pytest.raises(ValueError, match="pending"):
        ledger.list("waiting")  # type: ignore[arg-type]


def test_a_store_with_a_key_is_refused_without_it(url: str) -> None:
    Ledger.open(url, audit_key=b"k" * 32).park("run-1", "c1", "pay", PAY)
    with pytest.raises(LedgerRefused, match="key"):
        Ledger.open(url)


def test_the_store_of_the_user_is_the_one_of_the_program(home: Any) -> None:
    ledger = Ledger.open()
    parked(ledger)
    assert (home / ".local/state/countersign/asks.db").exists()
    with pytest.raises(ValueError, match="postgres://"):
        Ledger.open("mysql://db")

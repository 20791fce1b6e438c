"""An agent asks, a person approves in the inbox, and another process runs the call: once.

    pip install dist/countersign-*.whl   # docs/python/start.md says how the wheel is built
    python refunds.py ask          # the agent: parks the refund, and ends
    countersign inbox              # a person: opens the page, and approves
    python refunds.py work         # a worker: waits for the decision, and pays once

Run the last one twice, or kill it while it pays: the refund is never paid again.
"""

import sys
import time

from countersign import Denied, Ledger, MayHaveRun, Rules

# In a file in your project: what is unasked, and what no one may approve.
RULES = Rules.text("""
version = 1

[[rule]]
id = "small"
allow = "refund"
where.amount = "<= 50"

[[rule]]
id = "large"
ask = "refund"
where.amount = "> 50"
reason = "a refund of {amount} euros to {customer}"

[[rule]]
id = "absurd"
deny = "refund"
where.amount = "> 10000"
reason = "refunds of more than 10 000 euros are made by the bank"
""")

CALL = {"customer": "ann", "amount": 120}


def refund(customer: str, amount: int) -> str:
    """The tool."""
    time.sleep(1)
    return f"refunded {amount} euros to {customer}"


def main() -> None:
    # The store that `countersign inbox` shows.
    ledger = Ledger.open()
    decision = RULES.decide("refund", CALL)
    if decision.decision == "deny":
        sys.exit(f"not run: {decision}")
    if decision.decision == "allow":
        sys.exit(refund(**CALL))
    # The run and the call are found again by their ids: a second `ask` parks nothing new.
    ask = ledger.park("ticket-4711", "call-1", "refund", CALL, decision=decision)
    if sys.argv[1:] == ["ask"]:
        print(f"{ask.reasons[0]}: {ask.state}. Decide it with `countersign inbox`")
        return
    print("waits for a person …", flush=True)
    ask = ledger.wait(ask)
    try:
        print(ledger.once(ask, refund))
    except Denied as no:
        print(f"not run: {no}")
    except MayHaveRun as unknown:
        print(unknown)


if __name__ == "__main__":
    main()

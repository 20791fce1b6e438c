"""What was approved is what runs: at most once, and never silently.

A ledger of approvals, and an engine of rules, for the tools of LLM agents. The same store is used by the program
``countersign`` (the inbox where people decide), by hooks of coding agents, and by programs in Rust.

- `Ledger` (and `AsyncLedger`): calls are parked, decided once, claimed once, settled.
- `Rules`: permissions as a file, or a preset; `Rules.decide` gives a `Decision`.
- ``countersign.pydantic_ai``, ``countersign.langchain``, ``countersign.openai_agents``: both around the tools of an agent.

::

    from countersign import Ledger, Rules

    rules = Rules.preset("developer")
    ledger = Ledger.open()                                    # the store that `countersign inbox` shows
    decision = rules.decide("shell", {"command": "git push"})
    if decision.decision == "ask":
        ask = ledger.park("run-1", "call-1", "shell", {"command": "git push"}, decision=decision)
        ask = ledger.wait(ask)                                # a person decides in the inbox
        output = ledger.once(ask, shell)                      # shell(command="git push"), once
"""

from ._asks import Ask, AskDecision, Asks, Claim, Decided, Outcome, Settled, Verified
from ._countersign import (
    CallChanged,
    ConfigRefused,
    CountersignError,
    Decision,
    Forked,
    LedgerRefused,
    NotAsked,
    Rules,
    RulesRefused,
    StoreUnavailable,
    __version__,
)
from ._ledger import AsyncLedger, Broken, Ledger, NoSuchAsk
from ._once import (
    AskAgain,
    Codec,
    Denied,
    Execution,
    FailedBefore,
    MayHaveRun,
    NotRun,
    Pending,
)

__all__ = [
    "Ask",
    "AskAgain",
    "AskDecision",
    "Asks",
    "AsyncLedger",
    "Broken",
    "CallChanged",
    "Claim",
    "Codec",
    "ConfigRefused",
    "CountersignError",
    "Decided",
    "Decision",
    "Denied",
    "Execution",
    "FailedBefore",
    "Forked",
    "Ledger",
    "LedgerRefused",
    "MayHaveRun",
    "NoSuchAsk",
    "NotAsked",
    "NotRun",
    "Outcome",
    "Pending",
    "Rules",
    "RulesRefused",
    "Settled",
    "StoreUnavailable",
    "Verified",
    "__version__",
]

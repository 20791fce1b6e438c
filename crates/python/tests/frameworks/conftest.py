"""What the tests of adapters share: people who decide while an agent runs."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable
from typing import Any

import pytest
from countersign import Ask, Ledger


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Ledger:
    return Ledger.open(f"sqlite://{tmp_path}/asks.db")


@pytest.fixture
def answers(store: Ledger) -> Callable[..., Ask]:
    """A person who decides about the newest ask, once there is one."""

    def answer(verdict: Any = "approve", **more: Any) -> Ask:
        while not (asks := store.list("pending")):
            time.sleep(0.01)
        ask: Ask = asks[0]
        assert store.decide(ask, verdict, by="ann", **more).result == "won"
        return ask

    return answer

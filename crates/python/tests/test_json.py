"""Arguments are read once and strictly: what has no exact form in JSON is an error, and never a text of it."""

from __future__ import annotations

import math
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest
from countersign import Ledger

DEEP: Any = 1
for _ in range(70):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "args",
    [
        {"x": 2**63 - 1, "y": -(2**63), "z": 2**64 - 1},
        {"x": 0.1, "y": 1e300, "z": -0.5},
        {"x": True, "y": None, "z": [1, [2, {"a": "ü\u0000\U0001f600"}]]},
        OrderedDict(b=1, a=(1, 2)),
        MappingProxyType({"a": MappingProxyType({"b": 1})}),
        {},
    ],
)
def test_what_goes_in_comes_out(args: Any) -> None:
    ask = Ledger.open("memory:").park("r", "c", "tool", args)
    plain = {
        key: dict(value) if isinstance(value, MappingProxyType) else list(value) if isinstance(value, tuple) else value
        for key, value in args.items()
    }
    assert ask.args == plain
    assert [type(value) for value in ask.args.values()] == [type(plain[key]) for key in ask.args]


@pytest.mark.parametrize(
    ("args", "place"),
    [
        ({"a": [0, {"b": math.nan}]}, r"value\.a\[1\]\.b"),
        ({"a": math.inf}, r"value\.a"),
        ({"a": 2**64}, "64 bits"),
        ({"a": {1: "x"}}, "keys of JSON are texts"),
        ({"a": b"x"}, "bytes"),
        ({"a": {1, 2}}, "set"),
        ({"a": "\ud800"}, "surrogate"),
        ({"a": DEEP}, "64 levels"),
        ({"$serde_json::private::Number": "5"}, "key"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": 1e400}', "1e400|number"),
        ("[1]", "object"),
        ("{", "JSON"),
    ],
)
def test_what_two_readers_would_take_differently_is_refused(args: Any, place: str) -> None:
    ledger = Ledger.open("memory:")
    with pytest.raises(ValueError, match=place):
        ledger.park("r", "c", "tool", args)
    assert len(ledger.list()) == 0


def test_a_list_is_no_arguments() -> None:
    with pytest.raises(TypeError, match="mapping"):
        Ledger.open("memory:").park("r", "c", "tool", [1])  # type: ignore[arg-type]


def test_true_is_not_one() -> None:
    ledger = Ledger.open("memory:")
    one, true = ledger.park("r", "c1", "t", {"x": 1}), ledger.park("r", "c2", "t", {"x": True})
    assert one.args["x"] is not True and true.args["x"] is True


def test_a_text_and_a_mapping_are_one_call() -> None:
    ledger = Ledger.open("memory:")
    assert ledger.park("r", "c", "t", '{"b": 1.0, "a": "x"}').id == ledger.park("r", "c", "t", {"a": "x", "b": 1.0}).id

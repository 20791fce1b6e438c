"""Rules as a policy engine."""

from __future__ import annotations

import pathlib

import pytest
from countersign import Ledger, Rules, RulesRefused

SHOP = """
version = 1
[[rule]]
id = "small"
allow = "refund"
where.amount = "<= 50"
[[rule]]
id = "large"
ask = "refund"
where.amount = "> 50"
reason = "a refund of {amount}"
[[rule]]
id = "never"
deny = "drop_tables"
reason = "tables stay"
"""


def test_a_preset_decides_about_commands(tmp_path: pathlib.Path) -> None:
    rules = Rules.preset("developer", root=tmp_path)
    assert rules.decide("shell", {"command": "git status"}).decision == "allow"
    pushed = rules.decide("shell", {"command": "git push origin main"})
    assert pushed.decision == "ask" and "remote" in pushed.reasons[0]
    assert rules.decide("shell", {"command": "rm -rf /"}).decision != "allow"
    assert rules.decide("write_file", {"path": ".git/config", "content": "x"}).every_time
    with pytest.raises(ValueError, match="developer"):
        Rules.preset("admin")  # type: ignore[arg-type]


def test_a_text_decides_and_explains() -> None:
    rules = Rules.text(SHOP, name="shop.toml")
    assert rules.decide("refund", {"amount": 50}).decision == "allow"
    large = rules.decide("refund", '{"amount": 51}')
    assert (large.decision, large.reasons, large.rules) == ("ask", ["a refund of 51"], ["large"])
    denied = rules.decide("drop_tables")
    assert str(denied) == "deny: tables stay (never)"
    unknown = rules.decide("unknown")
    assert (unknown.decision, unknown.reasons) == ("ask", []) and "no rule" in str(unknown)
    explained = rules.explain("refund", {"amount": 51})
    assert explained["decision"] == "ask"
    assert [it["rule"] for it in explained["by"]] == ["large"]
    assert [it["rule"] for it in explained["near"]] == ["small"]


def test_a_file_loads_as_a_whole_or_not_at_all(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(SHOP)
    rules = Rules.load(path, root=tmp_path)
    assert rules.files == [(str(path), 3, 0)]
    path.write_text("version = 1\n[[rule]]\nid = 'a'\nallow = 'x'\nwher.path = 'y'\n")
    with pytest.raises(RulesRefused, match="rules.toml:5:1.*where"):
        Rules.load(path)
    with pytest.raises(RulesRefused):
        rules.reload()
    assert rules.decide("refund", {"amount": 1}).decision == "allow", "the last good rules stay in force"


def test_no_reload_widens_by_itself(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("version = 1\n[[rule]]\nid = 'a'\ndeny = 'pay'")
    rules = Rules.load(path)
    path.write_text("version = 1\n[[rule]]\nid = 'a'\nallow = 'pay'")
    reload = rules.reload()
    assert reload["needs_accepting"] and rules.decide("pay").decision == "deny"
    assert rules.accept(reload["digest"]) and rules.decide("pay").decision == "allow"


def test_an_ask_has_the_reasons_of_the_rules_and_offers(tmp_path: pathlib.Path) -> None:
    rules = Rules.preset("developer", root=tmp_path)
    call = {"command": "npm publish"}
    decision = rules.decide("shell", call)
    ask = Ledger.open("memory:").park("r", "c", "shell", call, decision=decision)
    assert list(ask.reasons) == decision.reasons
    for offer in decision.offers:
        assert set(offer) == {"name", "says", "fields", "examples"} and offer["says"]

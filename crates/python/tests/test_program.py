"""The program in the wheel: the inbox decides the asks of Python, and a hook outlives the virtual environment."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
from typing import Any
from urllib.parse import urlsplit

import countersign
import pytest
from countersign import Ledger

PROGRAM = pathlib.Path(sysconfig.get_path("scripts")) / "countersign"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the package was not installed from a wheel")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True)


def test_the_program_is_native_and_of_the_same_version() -> None:
    assert PROGRAM.read_bytes()[:4] == b"\x7fELF"
    assert run("--version").stdout == f"countersign {countersign.__version__}\n"
    module = subprocess.run([sys.executable, "-m", "countersign", "--version"], capture_output=True, text=True)
    assert module.stdout == run("--version").stdout


class Page:
    """A browser at the inbox."""

    def __init__(self, url: str, home: pathlib.Path) -> None:
        self.place = urlsplit(url)
        self.headers: dict[str, str] = {}
        secret = (home / ".local/state/countersign/inbox.secret").read_text().strip()
        reply, body = self.post("api/session", {"secret": secret})
        cookie = reply.getheader("set-cookie") or ""
        self.headers = {"cookie": cookie.split(";")[0], "countersign-session": body["session"]}

    def post(self, path: str, body: Any) -> tuple[http.client.HTTPResponse, Any]:
        connection = http.client.HTTPConnection(str(self.place.hostname), self.place.port)
        headers = {"content-type": "application/json", **self.headers}
        connection.request("POST", f"{self.place.path}{path}", json.dumps(body), headers)
        reply = connection.getresponse()
        text = reply.read()
        assert reply.status == 200, text
        return reply, json.loads(text)


def test_the_inbox_decides_the_asks_of_python_without_any_configuration(home: pathlib.Path) -> None:
    ledger = Ledger.open()
    ask = ledger.park("run-1", "c1", "pay", {"amount": 10}, reason="moves money")
    inbox = subprocess.Popen([PROGRAM, "inbox", "--principal", "ann"], stdout=subprocess.PIPE, text=True)
    try:
        assert inbox.stdout is not None
        page = Page(inbox.stdout.readline().strip(), home)
        page.post(f"api/asks/{ask.id}/decision", {"verdict": "approve", "fingerprint": ask.fingerprint})
        decided = ledger.wait(ask)
        assert decided.decision is not None and decided.decision.by == ("ann",)
        assert ledger.once(decided, lambda amount: f"paid {amount}") == "paid 10"
        shown = json.loads(run("--json", "asks", "show", ask.id).stdout)
        assert shown["state"] == "executed"
    finally:
        inbox.kill()
        inbox.wait()


def test_a_hook_that_is_installed_from_a_virtual_environment_outlives_it(home: pathlib.Path) -> None:
    installed = run("hook", "install", "claude")
    assert installed.returncode == 0, installed.stderr
    command = json.loads((home / ".claude/settings.json").read_text())
    words = json.dumps(command)
    own = home / ".local/state/countersign/bin/countersign"
    assert str(own) in words and str(PROGRAM) not in words
    assert own.stat().st_mode & 0o777 == 0o700 and os.access(own, os.X_OK)

"""What the tests share: a home directory of their own, and a store in a file."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from countersign import Ledger


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """No test reads or writes the files of the person who runs it."""
    home = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith(("COUNTERSIGN_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    return f"sqlite://{tmp_path}/asks.db"


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, url: str) -> Iterator[Ledger]:
    yield Ledger.open("memory:" if request.param == "memory" else url)


@pytest.fixture
def process(tmp_path: pathlib.Path) -> Callable[..., subprocess.Popen[str]]:
    """Runs a program in a process of its own."""

    def start(program: str, *args: str) -> subprocess.Popen[str]:
        path = tmp_path / f"program-{abs(hash(program))}.py"
        path.write_text(program)
        command = [sys.executable, str(path), *args]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start

"""What the experiments share: a tool with an effect that can be counted from outside, and workers as processes."""

from __future__ import annotations

import os
import pathlib
import sys
import time

FOLDER = pathlib.Path(os.environ.get("EXPERIMENT", "."))
BARE = os.environ.get("MODE") == "bare"
URL = f"sqlite://{FOLDER.resolve()}/asks.db"
RUN = "order-1"


def pay(amount: int) -> str:
    """The effect: one line in a file, on disk before the tool returns."""
    with open(FOLDER / "effects", "a") as file:
        file.write(f"{amount}\n")
        file.flush()
        os.fsync(file.fileno())
    if os.environ.get("CRASH"):
        os._exit(9)
    if os.environ.get("RACE"):
        time.sleep(0.3)
    return f"paid {amount}"


def together() -> None:
    """In a race both workers have loaded everything, and start at one moment."""
    if os.environ.get("RACE"):
        (FOLDER / f"{os.getpid()}.ready").touch()
        while len(list(FOLDER.glob("*.ready"))) < 2:
            time.sleep(0.001)


def step() -> str:
    """What this worker has to do: `first`, or `yes`, `no` for a client that answers so."""
    return sys.argv[1]


def told(text: object) -> None:
    """What the model was told, for the judgement of the experiment."""
    with open(FOLDER / "told", "a") as file:
        file.write(f"{text}\n")

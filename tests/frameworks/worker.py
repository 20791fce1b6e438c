"""A worker in Python over a store that workers in Rust use, too: `worker.py URL FOLDER NAME`, until the file `stop` is there."""

from __future__ import annotations

import os
import pathlib
import sys
import time

from countersign import Ledger, NotRun

url, folder, name = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
ledger = Ledger.open(url)
while not (folder / "stop").exists():
    asks = ledger.list("decided", limit=20)
    if not asks:
        time.sleep(0.02)
    for ask in asks:

        def body(number: int) -> str:
            # A while in which it can die, before the effect and behind it.
            time.sleep(0.015)
            with open(folder / "effects", "a") as file:
                file.write(f"{ask.id} {name}\n")
                file.flush()
                os.fsync(file.fileno())
            time.sleep(0.015)
            return name

        try:
            # Another worker may run it: this one does not wait for that, so that more calls are under way.
            if ledger.get(ask).state == "decided":
                ledger.once(ask, body, worker=name, lease=2)
        except NotRun:
            pass

"""Workers in Python and in Rust over one store, each killed at any moment: `storm.py RUST_WORKER --kills N [--postgres]`.

Every call was approved once. Afterwards each has at most one effect, and each ended as executed, with its one effect, or its caller
is told that it may have run. None is lost, and the log verifies.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator

from countersign import Ledger, MayHaveRun

HERE = pathlib.Path(__file__).parent
SERVER = HERE.parent / "it/support/postgres.sh"


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """A server of its own, by the script that the tests in Rust use."""
    account = subprocess.run(["id", "postgres"], capture_output=True).returncode == 0
    as_root = subprocess.run(["id", "-u"], capture_output=True, text=True).stdout == "0\n"
    account_name = "postgres" if account else "nobody"
    command = ["runuser", "-u", account_name, "--"] if as_root else []
    script = subprocess.Popen(
        [*command, "sh", "-c", SERVER.read_text()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PG_OPTIONS": "-c fsync=off -c max_connections=200"},
    )
    assert script.stdin is not None and script.stdout is not None
    folder = script.stdout.readline().strip()
    script.stdin.write("start\n")
    script.stdin.flush()
    assert script.stdout.readline() == "done\n"
    try:
        yield f"postgres://postgres@{folder.replace('/', '%2F')}/postgres"
    finally:
        script.stdin.close()
        script.wait()


def start(rust: str, url: str, folder: pathlib.Path, number: int) -> subprocess.Popen[bytes]:
    language = "rust" if number % 2 else "python"
    name = f"{language}-{number}"
    args = [url, str(folder), name]
    command = [rust, *args] if language == "rust" else [sys.executable, str(HERE / "worker.py"), *args]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def storm(rust: str, url: str, kills: int, seed: int) -> dict[str, int]:
    """Kills this many workers, and counts how the calls have ended."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="storm-"))
    folder.chmod(0o777)
    chance, ledger = random.Random(seed), Ledger.open(url)
    asks = []

    def more(count: int) -> None:
        for _ in range(count):
            ask = ledger.park(f"storm-{seed}", f"c{len(asks)}", "pay", {"number": len(asks)}, reason="moves money")
            assert ledger.decide(ask, "approve", by="ann").result == "won"
            asks.append(ask)

    more(40)
    workers = [start(rust, url, folder, number) for number in range(4)]
    for killed in range(kills):
        time.sleep(chance.uniform(0.05, 0.25))
        victim = chance.randrange(len(workers))
        workers[victim].kill()
        workers[victim].wait()
        workers[victim] = start(rust, url, folder, victim)
        # There are always calls to die in.
        if len(ledger.list("decided", limit=10)) < 10:
            more(20)
    while ledger.list("decided", limit=1) or ledger.list("claimed", limit=1):
        ledger.expire()
        time.sleep(0.05)
    (folder / "stop").touch()
    for worker in workers:
        worker.wait()
    return judge(ledger, asks, folder)


def judge(ledger: Ledger, asks: list[object], folder: pathlib.Path) -> dict[str, int]:
    effects = Counter(line.split()[0] for line in (folder / "effects").read_text().splitlines())
    by = Counter(line.split()[1].split("-")[0] for line in (folder / "effects").read_text().splitlines())
    ended: Counter[str] = Counter()
    for parked in asks:
        ask = ledger.get(parked)  # type: ignore[arg-type]
        ran = effects[ask.id]
        assert ran <= 1, f"{ask} ran {ran} times"
        if ask.state == "executed":
            assert ran == 1, f"{ask} was executed and has no effect"
        else:
            # No loss: its caller is told that it may have run, and nothing runs again.
            assert ask.state == "unknown", f"{ask} was lost"
            try:
                ledger.once(ask, lambda number: sys.exit("it ran again"))
            except MayHaveRun:
                pass
        ended[ask.state] += 1
    ledger.verify()
    return {"calls": len(asks), **ended, "python": by["python"], "rust": by["rust"], "twice": 0}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rust")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print("sqlite", options.kills, "kills", storm(options.rust, f"sqlite://{folder}/asks.db", options.kills, options.seed))
    with postgres() as url:
        print("postgres", options.kills, "kills", storm(options.rust, url, options.kills, options.seed))


if __name__ == "__main__":
    main()

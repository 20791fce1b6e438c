"""The six experiments for each framework, bare and with the ledger, and the page that they make.

`python run.py` runs those with the ledger, and fails where something ran twice or was lost, or where the page says something else.
`--write` runs all of them, and makes the page.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from countersign import Ask, Ledger

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parent.parent / "docs/python/frameworks.md"
BEGIN, END = "<!-- made by tests/frameworks/run.py -->\n", "<!-- end -->\n"

FRAMEWORKS = {
    "PydanticAI": ("agent_pydantic_ai.py", "pydantic-ai-slim"),
    "LangChain": ("agent_langchain.py", "langchain"),
    "OpenAI Agents": ("agent_openai_agents.py", "openai-agents"),
}


@dataclass
class Trial:
    """One experiment with one framework."""

    script: str
    bare: bool
    folder: pathlib.Path = field(default_factory=lambda: pathlib.Path(tempfile.mkdtemp(prefix="frameworks-")))

    def worker(self, step: str, **environment: str) -> subprocess.Popen[str]:
        known = {**os.environ, "EXPERIMENT": str(self.folder), "MODE": "bare" if self.bare else "ledger"}
        return subprocess.Popen(
            [sys.executable, str(HERE / self.script), step],
            env={**known, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def do(self, step: str, **environment: str) -> int:
        """Runs a worker to its end. A framework may refuse by an error: that is no failure of the experiment."""
        worker = self.worker(step, **environment)
        _, err = worker.communicate()
        with open(self.folder / "errors", "a") as file:
            file.write(err[-2000:])
        return worker.returncode

    def first(self) -> None:
        status = self.do("first")
        assert status == 0, (self.folder / "errors").read_text()

    def mark(self, name: str) -> None:
        (self.folder / name).touch()

    @property
    def ledger(self) -> Ledger:
        return Ledger.open(f"sqlite://{self.folder.resolve()}/asks.db")

    def person(self, verdict: Any) -> str:
        """A person answers in the ledger; without one there is nothing to answer in but the application."""
        if self.bare:
            return ""
        return self.ledger.decide(self.ask, verdict, by="ann", message=None if verdict == "approve" else "no").result

    @property
    def ask(self) -> Ask:
        (ask,) = self.ledger.list()
        return ask

    @property
    def effects(self) -> list[str]:
        path = self.folder / "effects"
        return path.read_text().split() if path.exists() else []

    @property
    def told(self) -> str:
        path = self.folder / "told"
        return path.read_text() if path.exists() else ""


def approve_twice(it: Trial) -> int:
    it.first()
    it.mark("from-checkpoint")
    for _ in range(2):
        it.person("approve")
        it.do("yes")
    return 1


def two_workers(it: Trial) -> int:
    it.first()
    it.person("approve")
    workers = [it.worker("yes", RACE="1") for _ in range(2)]
    for worker in workers:
        worker.communicate()
    return 1


def stale_approval(it: Trial) -> int:
    it.first()
    if not it.bare:
        it.ledger.cancel(it.ask, by="ann")
        assert it.person("approve") == "cancelled"
    it.do("yes")
    return 0


def reject_then_flip(it: Trial) -> int:
    it.first()
    it.person("deny")
    it.do("no")
    it.mark("branch")
    if not it.bare:
        assert it.person("approve") == "lost"
    it.do("yes")
    return 0


def crash_inside(it: Trial) -> int:
    it.first()
    it.person("approve")
    assert it.do("yes", CRASH="1") == 9, (it.folder / "errors").read_text()
    it.mark("restarts")
    it.do("yes")
    return 1


def edited_state(it: Trial) -> int:
    it.first()
    it.person("approve")
    path = it.folder / "state.json"
    if path.exists():
        text = path.read_text()
        edited = text.replace('"amount":10', '"amount":9999').replace('\\"amount\\":10', '\\"amount\\":9999')
        edited = edited.replace('\\"amount\\": 10', '\\"amount\\": 9999').replace('"amount": 10', '"amount": 9999')
        assert edited != text
        path.write_text(edited)
    else:
        assert it.do("edit") == 0
    it.do("yes")
    return 0


EXPERIMENTS = {
    "approve twice, from the state that was shown": approve_twice,
    "two workers at one moment": two_workers,
    "a withdrawn request is approved": stale_approval,
    "reject, then flip": reject_then_flip,
    "crash inside the tool, restart": crash_inside,
    "state edited after the yes": edited_state,
}


def judge(it: Trial, experiment: str, allowed: int) -> tuple[bool, str]:
    """Whether nothing ran that was not allowed and nothing was lost, and the words for it."""
    effects = it.effects
    if "9999" in effects:
        return False, "**ran with 9999 in place of 10**"
    if len(effects) > allowed:
        return False, f"**ran {len(effects)}×**" if allowed else "**ran after the no**"
    if len(effects) < allowed:
        return False, "**lost**"
    if it.bare:
        return True, "once" if allowed else "nothing ran"
    state = it.ask.state
    if experiment.startswith("crash"):
        known = "may have run" in it.told
        return known and state == "unknown", "once; the model is told that it may have run"
    if allowed:
        return state == "executed", "once"
    return True, "nothing ran"


def tried(framework: str, name: str, bare: bool) -> tuple[bool, str]:
    trial = Trial(FRAMEWORKS[framework][0], bare)
    fine, words = judge(trial, name, EXPERIMENTS[name](trial))
    print(f"{framework:14} {'bare' if bare else 'with the ledger':16} {name:46} {words}", flush=True)
    if not bare and not fine:
        print(f"in {trial.folder}\n{(trial.folder / 'errors').read_text()}", file=sys.stderr)
    return fine or bare, words


def columns() -> list[tuple[str, bool]]:
    return [(framework, bare) for framework in FRAMEWORKS for bare in (True, False)]


def page(words: dict[tuple[str, str, bool], str]) -> str:
    names = [f"{framework} {version(package)}" for framework, (_, package) in FRAMEWORKS.items()]
    lines = [f"| experiment | {' | '.join(f'{name}, bare | with the ledger' for name in names)} |"]
    lines.append("|---|" + "---|" * len(columns()))
    for name in EXPERIMENTS:
        cells = [words[framework, name, bare] for framework, bare in columns()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def main() -> int:
    writes = "--write" in sys.argv
    kinds = (True, False) if writes else (False,)
    wanted = [(framework, name, bare) for framework in FRAMEWORKS for name in EXPERIMENTS for bare in kinds]
    with ThreadPoolExecutor(max_workers=2) as pool:
        found = dict(zip(wanted, pool.map(lambda it: tried(*it), wanted)))
    holds = all(fine for fine, _ in found.values())
    words = {it: text for it, (_, text) in found.items()}
    before, rest = PAGE.read_text().split(BEGIN)
    known, after = rest.split(END)
    if writes:
        PAGE.write_text(before + BEGIN + page(words) + END + after)
        return 0 if holds else 1
    # The bare columns are as they were: a framework that is not changed does not become better.
    of_page = cells(known)
    bare = {
        (framework, name, True): of_page[2 + row][1 + 2 * column]
        for row, name in enumerate(EXPERIMENTS)
        for column, framework in enumerate(FRAMEWORKS)
    }
    table = page({**words, **bare})
    if table != known:
        print(f"{PAGE.name} says something else: run `run.py --write`\n{table}", file=sys.stderr)
    return 0 if holds and table == known else 1


if __name__ == "__main__":
    sys.exit(main())

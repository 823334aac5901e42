"""Run specs that fail before their first result, change or shrink them, and look whether the store stands in the way.

A store without a finished trial must never block a changed spec. One with finished trials must refuse every change on
which they depend, without a change to the file, and accept it with `fresh`. Fewer subsamples must keep every stored
trial. In all cases, the results must be those of the same spec in a new folder.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from attack_stores import differences, results
from attack_tally import Budget, Tally

from peekbench.errors import PeekbenchError, StoreError
from peekbench.execution.observers import Observers
from peekbench.execution.runner import run
from peekbench.records.runs import TrialFinished
from peekbench.report import report_of_run
from peekbench.spec.experiment import ExperimentSpec, make_spec
from peekbench.store.reader import Store

BROKEN = "def fit(unlabeled, train, task):\n    raise ValueError('broken')\n"
WORKING = "def fit(unlabeled, train, task):\n    return lambda texts: [[0.5, 0.5]] * len(texts)\n"
TASK = {"use": "files", "name": "tickets", "options": {"path": "tickets.csv"}}
LSA, OWN = "classic.lsa", {"use": "own.py:fit", "name": "own"}
DESIGN = {"num_train": 8, "num_test": 15, "num_subsamples": 2}
FAILURES: Mapping[str, Mapping[str, Any]] = {
    "a method that always fails": {"methods": [OWN]},
    "a model that does not exist": {"methods": [{"use": "finetune.tapt", "options": {"model": "./gone"}}]},
    "a file that does not exist": {"tasks": [{**TASK, "options": {"path": "gone.csv"}}]},
    "a design that does not fit": {"design": {**DESIGN, "num_test": 500}},
    "an option of an analysis": {"analyses": [{"use": "summary.selection", "options": {"arm": "mix-0.5"}}]},
    "an interrupt before the first trial": {},
}
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "another method": {"methods": ["controls.null"]},
    "another option": {"methods": [{"use": LSA, "options": {"num_components": 3}}]},
    "another label column": {"tasks": [{**TASK, "options": {"path": "tickets.csv", "label": "color"}}]},
    "another seed": {"seed": 5},
    "other sizes": {"design": {**DESIGN, "num_train": 10, "num_test": 12}},
    "other arms": {"arms": ["extra", "test"]},
    "another name of the task": {"tasks": [{**TASK, "name": "renamed"}]},
}


class Interrupt:
    """Interrupts a run after a number of trials; before the first one if it is 0."""

    def __init__(self, trials: int) -> None:
        self.left = trials

    def run_started(self, run: object) -> None:
        self._count(0)

    def trial_finished(self, event: TrialFinished) -> None:
        self._count(1)

    def _count(self, trials: int) -> None:
        self.left -= trials
        if self.left <= 0:
            raise KeyboardInterrupt


def spec_in(folder: Path, **parts: Any) -> ExperimentSpec:
    """Return a small spec, and write its data."""
    rows = [f"ticket {row} word{row % 7} tone{row % 3},{row % 2},{'red' if row % 3 else 'blue'}" for row in range(60)]
    (folder / "tickets.csv").write_text("\n".join(["text,label,color", *rows]), encoding="utf-8")
    raw = {"name": "blocked", "tasks": [TASK], "methods": [LSA], "design": DESIGN, "analyses": ["summary"]}
    executor = {"use": "local", "options": {"in_process": True}}
    return make_spec({**raw, "executor": executor, **parts}, folder=folder)


def _compare(store: Path, spec: ExperimentSpec) -> list[str]:
    """Compare a store with a run of the same spec in a new store."""
    other = store.with_name("new.sqlite")
    other.unlink(missing_ok=True)
    run(spec, store=other)
    return differences(store, results(other))


def _fail(folder: Path, failure: str, store: Path) -> list[str]:
    """Make a run fail before its first result."""
    (folder / "own.py").write_text(BROKEN)
    display = Interrupt(0) if failure.startswith("an interrupt") else None
    with suppress(PeekbenchError, KeyboardInterrupt):
        if run(spec_in(folder, **FAILURES[failure]), store=store, observers=Observers(display)).finished:
            return ["the first run did not fail"]
    (folder / "own.py").write_text(WORKING)
    return []


def _try_blocked(folder: Path, failure: str, change: str) -> list[str]:
    """Correct a run that failed, then change it, also after results."""
    store = folder / "blocked.sqlite"
    if problems := _fail(folder, failure, store):
        return problems
    first = spec_in(folder)
    run(first, store=store)
    problems = _compare(store, first)
    before = store.read_bytes()
    changed = spec_in(folder, **CHANGES[change])
    try:
        run(changed, store=store)
        problems.append("trials of two experiments were mixed")
    except StoreError as error:
        problems += [] if "--fresh" in str(error) else [f"no remedy: {error}"]
    if store.read_bytes() != before:
        problems.append("a refused spec changed the store")
    run(changed, store=store, fresh=True)
    return problems + _compare(store, changed)


def blocked(budget: Budget) -> Tally:
    """Change specs after runs without a result, and after others."""
    tally = Tally("blocked")
    for number in budget:
        failure, change = list(FAILURES)[number % len(FAILURES)], list(CHANGES)[number // 2 % len(CHANGES)]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            tally.examine(f"{failure}, then {change}", partial(_try_blocked, folder, failure, change))
    return tally


def _try_smaller(folder: Path, rng: random.Random) -> list[str]:
    """Interrupt a run, and go on with fewer subsamples."""
    sizes = rng.choice([[15], [10, 15]])
    planned, fewer = rng.randint(6, 30), rng.randint(2, 5)
    tasks: list[dict[str, Any]] = [
        TASK,
        {**TASK, "name": "other", **({"num_subsamples": 4} if rng.random() < 0.3 else {})},
    ]
    parts: dict[str, Any] = {
        "tasks": tasks[: rng.randint(1, 2)],
        "methods": [LSA, "controls.null"][: rng.randint(1, 2)],
    }
    design = {"num_train": 8, "num_test": sizes}
    store = folder / "blocked.sqlite"
    display = None if rng.random() < 0.25 else Interrupt(rng.randint(1, 20))
    first = spec_in(folder, design={**design, "num_subsamples": planned}, **parts)
    with suppress(KeyboardInterrupt):
        run(first, store=store, observers=Observers(display))
    with Store.open(store) as opened:
        before = opened.done()
    is_known = len(before) < sum(1 for _ in first.trials()) and any(  # results of a task that then has fewer
        trial.draw.task == TASK["name"] or "num_subsamples" not in tasks[1] for trial in before
    )
    if rng.random() < 0.5:
        report_of_run(store, allow_incomplete=True)
    if rng.random() < 0.3:
        parts["methods"] = [LSA, "controls.null", {"use": LSA, "name": "more", "options": {"num_components": 3}}]
    for less in (fewer, max(2, fewer - 1)):
        summary = run(spec_in(folder, design={**design, "num_subsamples": less}, **parts), store=store)
    report = report_of_run(store)
    with Store.open(store) as opened:
        lost = before - opened.done()
        is_noted = any(look.get("is_lowering") for look in opened.looks())
    problems = [f"{len(lost)} trials were lost"] * bool(lost)
    problems += ["the report lacks verdicts"] * (not report.verdicts)
    problems += ["lowering is not noted"] * (summary.planned < len(list(before)) or (is_known and not is_noted))
    return problems + _compare(store, summary.spec)


def smaller(budget: Budget) -> Tally:
    """Go on with interrupted and finished runs with fewer subsamples."""
    tally, rng = Tally("smaller"), random.Random(budget.seed)
    for number in budget:
        with tempfile.TemporaryDirectory() as name:
            tally.examine(f"smaller design, number {number}", partial(_try_smaller, Path(name), rng))
    return tally

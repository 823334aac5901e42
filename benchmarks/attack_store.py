"""Damage small stores at random and look whether any damage is accepted.

A damage is refused, changes nothing that is read, or loses trials at the end of the write-ahead log, which the report
of the run refuses as incomplete and the next run computes again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from attack_contents import read_all, without_times
from attack_damages import FINAL, HALF, KILLED, KINDS, OTHER_NAME, OTHER_SEED
from attack_tally import Budget, Tally

from peekbench.errors import PeekbenchError, ResultsError
from peekbench.execution.observers import Progress
from peekbench.execution.runner import run
from peekbench.plugins.work_protocols import Outcome
from peekbench.report import report_of_run
from peekbench.spec.experiment import ExperimentSpec, make_spec
from peekbench.store import writer

DEFECTS = ("accepted", "traceback")
"""Results that must not occur."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One damaged store and its result."""

    kind: str
    result: str
    """'refused', 'equal', 'incomplete', or one of `DEFECTS`."""
    message: str


class _Snapshots(Progress):
    """Copies a store and its write-ahead log during a run, as a kill at this moment would leave them."""

    def __init__(self, store: Path, copies: dict[int, Path]) -> None:
        self.store = store
        self.copies = copies
        self.count = 0

    def advance(self, outcome: Outcome) -> None:
        """Copy the files after some of the trials."""
        self.count += 1
        if self.count in self.copies:
            copy = self.copies[self.count]
            shutil.copy(self.store, copy)
            shutil.copy(f"{self.store}-wal", f"{copy}-wal")


@contextmanager
def _no_checkpoints() -> Iterator[None]:
    before, writer.CHECKPOINT_SECONDS = writer.CHECKPOINT_SECONDS, float("inf")
    try:
        yield
    finally:
        writer.CHECKPOINT_SECONDS = before


def make_stores(spec: ExperimentSpec, folder: Path) -> int:
    """Make a complete store, stores that killed runs left, and logs of other runs. Return the number of trials."""
    folder.mkdir(parents=True)
    variants: dict[str, dict[str, object]] = {
        FINAL: {},
        OTHER_NAME: {"name": f"{spec.name}-other"},
        OTHER_SEED: {"seed": spec.seed + 1},
    }
    num_trials = 0
    with _no_checkpoints():
        for name, changes in variants.items():
            store = folder / f"{name}.made"
            num_trials = num_trials or run(spec, store=folder / "count.made").planned
            killed = folder / (KILLED if name == FINAL else name)
            copies = {num_trials // 2: folder / f"{HALF}.{name}", num_trials: killed}
            run(spec.model_copy(update=changes), store=store, progress=_Snapshots(store, copies))
            if name == FINAL:
                shutil.copy(store, folder / FINAL)
    (folder / f"{HALF}.{FINAL}").rename(folder / HALF)
    Path(f"{folder / HALF}.{FINAL}-wal").rename(f"{folder / HALF}-wal")
    return num_trials


def judge(path: Path, expected: dict[str, Any]) -> tuple[str, str]:
    """Read a damaged store. Return the result and the error, if there is one."""
    try:
        found = read_all(path)
        if without_times(found) == without_times(expected):
            return "equal", ""
        if not _is_earlier(found, expected):
            return "accepted", "other contents were read"
        report = report_of_run(path)
    except ResultsError as error:
        return "incomplete", str(error)
    except PeekbenchError as error:
        return ("refused" if len(str(error)) < 1000 else "traceback"), str(error)
    except Exception as error:  # the defect that this script looks for
        return "traceback", repr(error)
    if report.headline.count(". 0 of ") and not report.verdicts:
        return "incomplete", report.headline
    return "accepted", "a report without trials that were stored"


def _is_earlier(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Return whether a store has some of the expected trials, and nothing else."""
    rows = [set(zip(*without_times(each)["columns"].values(), strict=True)) for each in (found, expected)]
    return (
        rows[0] < rows[1]
        and found["spec"] == expected["spec"]
        and found["predictions"].items() <= expected["predictions"].items()
        and found["failures"] == []
    )


def attack(spec: ExperimentSpec, folder: Path, budget: Budget) -> list[Attempt]:
    """Damage stores of a spec, each kind of damage equally often.

    Parameters
    ----------
    spec
        A small spec without failing trials.
    folder
        Folder to create for the stores.
    budget
        Number and seed of the damages.

    Returns
    -------
    list of Attempt
        One for each damage.
    """
    rng = np.random.default_rng(budget.seed)
    stores = folder / "stores"
    make_stores(spec, stores)
    expected = read_all(stores / FINAL)
    attempts = []
    for position in budget:
        kind, base, damage = KINDS[position % len(KINDS)]
        work = folder / str(position)
        work.mkdir()
        path = work / "damaged.sqlite"
        for suffix in ("", "-wal"):
            if Path(f"{stores / base}{suffix}").exists():
                shutil.copy(f"{stores / base}{suffix}", f"{path}{suffix}")
        damage(path, stores, rng)
        attempts.append(Attempt(kind, *judge(path, expected)))
        shutil.rmtree(work)
    return attempts


def small_spec(folder: Path) -> ExperimentSpec:
    """Return a spec of 8 quick trials, and write its data."""
    rows = [f"ticket {row} word{row % 7},{row % 2}" for row in range(60)]
    (folder / "tickets.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    raw = {
        "name": "attacked",
        "tasks": [{"use": "files", "options": {"path": "tickets.csv"}}],
        "methods": ["controls.null", "classic.lsa"],
        "design": {"num_train": 8, "num_test": 20, "num_subsamples": 4},
        "analyses": ["summary"],
        "executor": {"use": "local", "options": {"workers": 1}},
    }
    return make_spec(raw, folder=folder)


def stores(budget: Budget) -> Tally:
    """Damage stores of a small run."""
    tally = Tally("stores")
    with tempfile.TemporaryDirectory() as name:
        attempts = attack(small_spec(Path(name)), Path(name, "attack"), budget)
    for attempt in attempts:
        problems = [f"{attempt.result}: {attempt.message}"] if attempt.result in DEFECTS else []
        tally.add(attempt.kind, problems, refused=attempt.result == "refused")
    results = Counter(attempt.result for attempt in attempts)
    tally.note = f"survived: {results['equal']} equal, {results['incomplete']} reported as incomplete"
    return tally

"""Damage the files of small stores at random and look whether any damage is accepted.

Changed values in an intact file, also by a defective disk, are not tried: SQLite cannot notice them.

A damage is refused, changes nothing that is read, or loses trials at the end of the write-ahead log, which the report
of the run refuses as incomplete and the next run computes again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from attack_tally import Budget, Tally

from peekbench.errors import PeekbenchError, ResultsError, StoreError
from peekbench.execution.observers import Observers
from peekbench.execution.runner import run
from peekbench.records.runs import TrialFinished
from peekbench.records.trials import Trial
from peekbench.report import report_of_run
from peekbench.spec.experiment import ExperimentSpec, make_spec
from peekbench.store import writer
from peekbench.store.reader import Store


def read_all(path: Path) -> dict[str, Any]:
    """Return everything that reports read from a store, and all labels and predictions, bit by bit."""
    with Store.open(path) as store:
        done = sorted(store.done(), key=str)
        draws = store._connection.execute("SELECT task, num_train, num_test, subsample, test_labels FROM draws")
        return {
            "spec": store.spec(), "tasks": store.tasks(), "texts": store.texts(), "sessions": len(store.sessions()),
            "failures": store.failures(), "columns": store.result_columns(), "majorities": store.majorities(),
            "metrics": store.metrics(), "labels": sorted(draws.fetchall()),
            "predictions": {
                (str(trial), arm): found.numbers.tobytes()
                for trial in done for arm, found in store.predictions(trial).items()
            },
        }  # fmt: skip


def without_times(contents: dict[str, Any]) -> dict[str, Any]:
    """Return contents without the columns of seconds."""
    columns = {name: values for name, values in contents["columns"].items() if not name.endswith("seconds")}
    return {**contents, "columns": columns}


def results(path: Path) -> dict[str, Any]:
    """Return the contents that depend neither on interruptions nor on the number of workers."""
    contents = without_times(read_all(path))
    del contents["sessions"], contents["spec"]["executor"]
    return contents


def differences(path: Path, expected: dict[str, Any]) -> list[str]:
    """Describe in what the contents of a store differ from those expected, which `results` returned."""
    found = results(path)
    return [f"other {name} than without a disturbance" for name in expected if found[name] != expected[name]]


def finished_trials(path: Path) -> set[Trial]:
    """Return the finished trials of a store, which may be missing or still empty."""
    if not path.is_file() or not path.stat().st_size:
        return set()
    try:
        with Store.open(path) as store:
            return store.done()
    except StoreError as error:
        if "still empty" in str(error):
            return set()
        raise


FINAL, KILLED, HALF, OTHER_NAME, OTHER_SEED = "final", "killed", "half", "other_name", "other_seed"
"""Stores that a damage starts from: complete, killed at the end, killed halfway, and two of other runs."""
PAGE = 4096

Damage = Callable[[Path, Path, np.random.Generator], None]
"""Damages a copy of a store, given its path and the folder of all stores."""


def _edit(path: Path, edit: Callable[[bytearray], None]) -> None:
    content = bytearray(path.read_bytes())
    edit(content)
    path.write_bytes(content)


def _truncate(suffix: str = "") -> Damage:
    def damage(path: Path, _: Path, rng: np.random.Generator) -> None:
        file = Path(f"{path}{suffix}")
        _edit(file, lambda content: content.__delitem__(slice(int(rng.integers(len(content))), None)))

    return damage


def _remove_page(path: Path, _: Path, rng: np.random.Generator) -> None:
    def remove(content: bytearray) -> None:
        page = PAGE * int(rng.integers(len(content) // PAGE))
        del content[page : page + PAGE]

    _edit(path, remove)


def _flip_bit_of_log(path: Path, _: Path, rng: np.random.Generator) -> None:
    def flip(content: bytearray) -> None:
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))

    _edit(Path(f"{path}-wal"), flip)


def _take(file: str, log: str) -> Damage:
    """Put the file of one store and the log of another together."""

    def damage(path: Path, stores: Path, rng: np.random.Generator) -> None:
        shutil.copy(stores / file, path)
        shutil.copy(stores / f"{log}-wal", f"{path}-wal")
        if rng.integers(2):  # only a part of the log was copied
            _truncate("-wal")(path, stores, rng)

    return damage


def _delete_log(path: Path, _: Path, __: np.random.Generator) -> None:
    Path(f"{path}-wal").unlink()


def _delete_file(path: Path, _: Path, __: np.random.Generator) -> None:
    path.unlink()


KINDS: tuple[tuple[str, str, Damage], ...] = (
    ("truncated", FINAL, _truncate()),
    ("page removed", FINAL, _remove_page),
    ("log: one bit", KILLED, _flip_bit_of_log),
    ("log: truncated", KILLED, _truncate("-wal")),
    ("log: deleted", KILLED, _delete_log),
    ("log: file deleted", KILLED, _delete_file),
    ("log: an earlier one is left", FINAL, _take(FINAL, HALF)),
    ("log: a later one is left", HALF, _take(HALF, KILLED)),
    ("log: of a run with another name", FINAL, _take(FINAL, OTHER_NAME)),
    ("log: of a run with another seed", FINAL, _take(FINAL, OTHER_SEED)),
    ("log: of half a run with another seed", KILLED, _take(KILLED, f"{HALF}.{OTHER_SEED}")),
)


DEFECTS = ("accepted", "traceback")
"""Results that must not occur."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One damaged store and its result."""

    kind: str
    result: str
    """'refused', 'equal', 'incomplete', or one of `DEFECTS`."""
    message: str


class _Snapshots:
    """Copies a store and its write-ahead log during a run, as a kill at this moment would leave them."""

    def __init__(self, store: Path, copies: dict[int, Path]) -> None:
        self.store = store
        self.copies = copies
        self.count = 0

    def trial_finished(self, event: TrialFinished) -> None:
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
            run(spec.model_copy(update=changes), store=store, observers=Observers(_Snapshots(store, copies)))
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

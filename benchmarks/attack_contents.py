"""Everything that a store contains, to compare it with the store of an undisturbed run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from peekbench.errors import StoreError
from peekbench.records.trials import Trial
from peekbench.store.writer import Store


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
                (str(trial), arm): numbers.tobytes()
                for trial in done for arm, numbers in store.predictions(trial).items()
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

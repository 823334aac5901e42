"""Compares the stores of one experiment that was run in several ways, byte by byte. Exits with 1 if any differ.

Scores, predictions, test labels and test rows are compared. Times are not, and neither are the numbers that methods
record, which may be times. The experiments are the quickstart, and two methods that train a tiny language model.

    python benchmarks/reliability/equal_stores.py [--subsamples 50] [--subsamples-lm 4] [--only quickstart]
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import yaml

sys.path.append(str(Path(__file__).parents[2] / "tests" / "fixtures"))

from ray_nodes import RayNodes

from peekbench.execution.runner import run
from peekbench.spec.experiment import ExperimentSpec, make_spec

ROOT = Path(__file__).parents[2]
CLASSIFICATION = {"epochs": 3, "learning_rate": 2.0e-3, "pooling": "mean"}
TINY = {"model": "builtin:bert-nano", "precision": "fp32", "classification": CLASSIFICATION}

Way: TypeAlias = Callable[[ExperimentSpec, Path], object]


def run_local(workers: int) -> Way:
    """Return a function that runs a spec with a number of worker processes."""
    return lambda spec, store: run(with_executor(spec, "local", workers=workers), store=store)


def run_ray(num_nodes: int) -> Way:
    """Return a function that runs a spec on a cluster of nodes with two cores each."""

    def execute(spec: ExperimentSpec, store: Path) -> None:
        nodes = RayNodes({f"node {number}": 2 for number in range(num_nodes)})
        try:
            run(with_executor(spec, "ray", address=nodes.address), store=store)
        finally:
            nodes.close()

    return execute


def with_executor(spec: ExperimentSpec, use: str, **options: Any) -> ExperimentSpec:
    """Return the same experiment with another executor."""
    raw = spec.model_dump(mode="json")
    return make_spec({**raw, "executor": {"use": use, "options": options}}, folder=spec.folder)


WAYS: dict[str, Way] = {
    "local, 1 worker": run_local(1),
    "local, 2 workers": run_local(2),
    "Ray, 1 node": run_ray(1),
    "Ray, 3 nodes": run_ray(3),
}


def make_experiments(subsamples: int, subsamples_lm: int) -> dict[str, ExperimentSpec]:
    """Return the experiments by name."""
    quickstart = yaml.safe_load((ROOT / "specs" / "quickstart.yaml").read_text(encoding="utf-8"))
    quickstart["design"]["num_subsamples"] = subsamples
    design = {"num_train": 50, "num_test": 100, "num_subsamples": subsamples_lm}
    pretraining = {"epochs": 2, "learning_rate": 1.0e-3}
    raw = {"quickstart": quickstart} | {
        name: {
            "name": name,
            "seed": 18,
            "tasks": ["docstrings.all"],
            "methods": [{"use": f"finetune.{name}", "options": {**TINY, "pretraining": pretraining}}],
            "design": design,
        }
        for name in ("overtrain", "tapt")
    }
    return {name: make_spec(values, folder=ROOT) for name, values in raw.items()}


QUERY = """
SELECT draws.task, num_train, num_test, subsample, test_labels, test_rows, trials.method, trials.error, arms.*, numbers
FROM trials JOIN draws ON draws.id = trials.draw JOIN bases USING (task, method)
JOIN arms ON arms.draw = draws.id AND arms.owner IN (trials.method, bases.key)
JOIN predictions ON predictions.arm = arms.id
ORDER BY draws.task, num_train, num_test, subsample, trials.method, arms.arm
"""
LEFT_OUT = ("id", "draw", "fit_seconds", "predict_seconds", "metrics")
"""Columns that depend on the order of work, or may depend on its time."""

MEASURED = ("_seconds", "_per_second", "_memory_mb")
"""Ends of the names of recorded numbers that depend on the machine."""


def read(store: Path) -> list[dict[str, Any]]:
    """Return what a store keeps about each arm of each trial, without the columns `LEFT_OUT`."""
    with closing(sqlite3.connect(store)) as connection:
        cursor = connection.execute(QUERY)
        names = [description[0] for description in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
    for row in rows:
        recorded = json.loads(row["metrics"])
        row["metrics"] = {name: value for name, value in recorded.items() if not name.endswith(MEASURED)}
    return [{name: value for name, value in row.items() if name not in LEFT_OUT} for row in rows]


def compare(name: str, spec: ExperimentSpec, folder: Path) -> bool:
    """Run an experiment in all ways, print what was compared, and return whether all stores are equal."""
    expected: list[dict[str, Any]] = []
    is_equal = True
    for way, execute in WAYS.items():
        store = folder / f"{name}, {way}.sqlite"
        started = time.perf_counter()
        execute(spec, store)
        seconds = time.perf_counter() - started
        arms = read(store)
        expected = expected or arms
        digest = sha256(repr(arms).encode()).hexdigest()[:16]
        differing = {
            column for one, other in zip(expected, arms, strict=False) for column in one if one[column] != other[column]
        }
        is_same = expected == arms and repr(expected) == repr(arms)
        is_equal &= is_same
        verdict = "equal" if is_same else f"DIFFERENT: {len(arms)} arms, {', '.join(sorted(differing))}"
        size = sum(len(arm["numbers"]) for arm in arms)
        print(
            f"{name:11} {way:18} {len(arms):6,} arms {size:10,} bytes {seconds:6.1f} s  {digest}  {verdict}", flush=True
        )
    return is_equal


def main() -> None:
    """Compare the stores of all experiments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subsamples", type=int, default=50, help="of the quickstart")
    parser.add_argument("--subsamples-lm", type=int, default=4, help="of the language model")
    parser.add_argument("--only", action="append", help="name of an experiment")
    arguments = parser.parse_args()
    experiments = make_experiments(arguments.subsamples, arguments.subsamples_lm)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        chosen = {name: spec for name, spec in experiments.items() if name in (arguments.only or experiments)}
        results = [compare(name, spec, Path(folder)) for name, spec in chosen.items()]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()

"""Measures how time and memory grow with trials: to resume a run, to make its report, to analyze a table of scores.

The stores contain simulated outcomes and are written by the code that runs use. Each measurement is a process of its
own: `peekbench report` of a run with four analyses, `peekbench analyze` of a table with two rows for each trial, and a
run up to the first outcome of a trial that its store lacks. Prints a table in Markdown, asserts nothing.

    python benchmarks/speed/growth.py [--sizes 1000 10000 100000 1000000]
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2] / "tests" / "fixtures"))  # which has the plugin `toy`

import numpy as np
import pandas as pd

from peekbench.cli.app import GARBAGE_THRESHOLD
from peekbench.data.preflight import describe_tasks
from peekbench.execution.fit_plans import group_trials
from peekbench.execution.observers import Observers
from peekbench.execution.runner import run
from peekbench.records.answers import Predicted
from peekbench.records.runs import TrialFinished
from peekbench.records.trials import ArmResult, TrialResult
from peekbench.spec.experiment import ExperimentSpec, load_spec
from peekbench.store.writer import StoreWriter

TASKS, METHODS = 5, 10
NUM_TEST = 20
NUM_MISSING = 500
"""Trials that the store lacks: all methods of several draws."""
BATCH = 1000  # trials per transaction
SPEC = """
name: growth
tasks: [{tasks}]
methods: [{methods}]
design: {{num_train: 20, num_test: {num_test}, num_subsamples: {subsamples}}}
analyses: [summary, permutation, power, consistency]
report: {{allow_incomplete: true}}
executor: {{use: local, options: {{workers: 1, in_process: true}}}}
"""
SESSION: dict[str, Any] = {
    "started": "2026-01-01T00:00:00+00:00", "command": ["peekbench", "run", "growth.yaml"], "peekbench": "0",
    "python": "3", "packages": {}, "git": None,
    "machine": {"processor": "none", "architecture": "none", "cores": 1, "memory": 2**30, "system": "none"},
}  # fmt: skip


class FirstTrial:
    """Ends the process at the first outcome of a trial."""

    def trial_finished(self, event: TrialFinished) -> None:
        """End the process."""
        os._exit(0)


def write_spec(path: Path, num_trials: int) -> None:
    """Write the spec of a run."""
    tasks = [
        f"{{use: toy.words, name: task{number}, options: {{num_classes: 2, num_rows: 2000}}}}"
        for number in range(TASKS)
    ]
    methods = [f"{{use: toy.constant, name: method{number}}}" for number in range(METHODS)]
    parts = {"tasks": ", ".join(tasks), "methods": ", ".join(methods)}
    path.write_text(SPEC.format(num_test=NUM_TEST, subsamples=num_trials // (TASKS * METHODS), **parts))


def fill(spec: ExperimentSpec, number: int) -> None:
    """Store simulated outcomes of the first trials of a spec, in the form that workers return."""
    outcomes = islice(_outcomes(spec), number)
    with StoreWriter.for_run(spec.folder / "growth.sqlite", spec, describe_tasks(spec)) as store:
        store.add_session(SESSION, "here")
        while batch := list(islice(outcomes, BATCH)):
            store.save(*batch)


def _outcomes(spec: ExperimentSpec) -> Iterator[TrialResult]:
    rng = np.random.default_rng(0)
    effects = {method.name: 0.01 * number for number, method in enumerate(spec.methods)}
    labels, rows = np.arange(NUM_TEST, dtype=np.int64) % 2, np.arange(NUM_TEST)
    for item in group_trials(spec.trials(), spec.base_keys(), set()):
        for position, trial in enumerate(item.trials):
            arms = ("base", "extra", "test") if position == 0 else ("extra", "test")
            yield TrialResult(trial, labels, rows, tuple(_arm(rng, arm, effects[trial.method]) for arm in arms))


def _arm(rng: np.random.Generator, arm: str, effect: float) -> ArmResult:
    accuracy = 0.6 + 0.05 * (arm != "base") + effect * (arm == "test")
    correct = int(rng.binomial(NUM_TEST, accuracy))
    scores = {"num_correct": correct, "score": correct / NUM_TEST, "log_loss": 0.69, "brier": 0.5,
              "macro_f1": accuracy, "bits_per_byte": None}  # fmt: skip
    predicted = Predicted(np.full((NUM_TEST, 2), 0.5, dtype=np.float32), np.zeros(NUM_TEST, dtype=np.int64))
    return ArmResult(arm, scores, 0.1, 0.01, {"loss": float(rng.normal(2, 0.1))}, predicted)


def make_table(num_rows: int) -> pd.DataFrame:
    """Return a table of scores of 10 methods on 25 tasks with one row for each arm of each trial."""
    parts = np.indices((10, 25, num_rows // 750, 3))
    methods, tasks, subsamples, arms = (part.ravel() for part in parts)
    scores = np.random.default_rng(0).binomial(200, 0.7, len(arms)) / 200
    columns = {
        "task": np.array([f"task {number}" for number in range(25)])[tasks],
        "method": np.array([f"method {number}" for number in range(10)])[methods],
        "num_train": 50, "num_test": 200, "subsample": subsamples,
        "arm": np.array(["base", "extra", "test"])[arms], "score": scores,
    }  # fmt: skip
    return pd.DataFrame(columns)


def measure(command: Sequence[str], folder: Path) -> str:
    """Run a command in a folder and return its seconds and its memory.

    Linux counts the memory of this process at the start of the command as the command's, so this one stays small.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, os.environ.get("PYTHONPATH")]))}
    started = time.perf_counter()
    with (folder / "output.txt").open("wb") as output:
        outputs = [(os.POSIX_SPAWN_DUP2, output.fileno(), number) for number in (1, 2)]
        child = os.posix_spawn(command[0], list(command), environment, file_actions=outputs)
        _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - started
    if status:
        raise SystemExit(f"{command} failed:\n{(folder / 'output.txt').read_text()}")
    processor = usage.ru_utime + usage.ru_stime
    return f"{seconds:.1f} s, {processor:.1f} s of the processor, {usage.ru_maxrss / 2**20:.2f} GB"


def measure_size(num_trials: int, folder: Path) -> list[str]:
    """Return the costs of all operations for one number of trials."""
    this, peekbench = [sys.executable, __file__], str(Path(sys.executable).with_name("peekbench"))
    spec, table, reports = folder / "growth.yaml", folder / "scores.csv", ["--reports", str(folder / "reports")]
    write_spec(spec, num_trials)
    measure([*this, "--fill", str(spec), str(num_trials)], folder)
    measure([*this, "--table", str(table), str(2 * num_trials)], folder)
    return [
        measure([*this, "--resume", str(spec)], folder),
        measure([peekbench, "report", str(folder / "growth.sqlite"), *reports], folder),
        measure([peekbench, "analyze", str(table), *reports], folder),
    ]


def main() -> None:
    """Measure all sizes, or do the step of one process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--fill", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--resume", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--table", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fill:
        number = int(arguments.fill[1])
        fill(load_spec(Path(arguments.fill[0])), number - min(NUM_MISSING, number // 2))
    elif arguments.table:
        make_table(int(arguments.table[1])).to_csv(arguments.table[0], index=False)
    elif arguments.resume:
        gc.set_threshold(GARBAGE_THRESHOLD)  # as commands do
        run(
            load_spec(arguments.resume),
            store=arguments.resume.with_suffix(".sqlite"),
            observers=Observers(FirstTrial()),
        )
    else:
        print("| trials | resume a run | `peekbench report` | `peekbench analyze` |\n|---|---|---|---|")
        for size in arguments.sizes:
            with tempfile.TemporaryDirectory() as folder:
                print(f"| {size:,} | {' | '.join(measure_size(size, Path(folder).resolve()))} |", flush=True)


if __name__ == "__main__":
    main()

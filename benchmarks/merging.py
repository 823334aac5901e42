"""Measures `peekbench merge`: time and memory for shards with many trials. Prints results, asserts nothing.

The outcomes are made up, of seven classes and 100 test texts, so that only the stores are measured.

    python benchmarks/merging.py [--trials 100000] [--shards 100]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np

from peekbench.data.loading import make_task
from peekbench.data.preflight import describe_tasks
from peekbench.execution.arms import compute_scores
from peekbench.execution.provenance import describe_session
from peekbench.execution.shards import merge, shard_items
from peekbench.records.trials import ArmResult, TrialResult
from peekbench.spec.experiment import ExperimentSpec, parse_spec
from peekbench.store.merging import Shard, ShardStore

SPEC = """
name: merging
tasks: [docstrings.stdlib]
methods: [controls.null, {{use: controls.null, name: second}}]
design: {{num_train: 7, num_test: 100, num_subsamples: {subsamples}}}
"""
SHARDS = Path("shards")


def write_shards(spec: ExperimentSpec, num_shards: int) -> None:
    """Write the outcomes of all shards."""
    rng = np.random.default_rng(0)
    tasks = describe_tasks(spec)
    session = describe_session(spec.folder)
    task = make_task(spec, spec.tasks[0])
    labels = np.arange(100) % task.num_classes
    items = sorted(shard_items(spec, num_shards), key=itemgetter(0))
    for number, of_shard in groupby(items, key=itemgetter(0)):
        with ShardStore.create(SHARDS, Shard(number, num_shards), spec, tasks, session, "node") as store:
            for _, item in of_shard:
                for position, trial in enumerate(item.trials):
                    predictions = rng.random((100, task.num_classes), dtype=np.float32)
                    predictions /= predictions.sum(axis=1, keepdims=True)
                    scores = compute_scores(predictions, labels, task)
                    names = ("base", "extra", "test") if position == 0 else ("extra", "test")
                    arms = tuple(ArmResult(name, scores, 0.1, 0.1, {}, predictions) for name in names)
                    store.save(TrialResult(trial, labels, np.arange(100), arms, "node"))


def measure_merge(spec: ExperimentSpec) -> None:
    """Merge in this process, and print time and memory."""
    started = time.perf_counter()
    summary = merge(spec, [SHARDS])
    seconds = time.perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    counts = summary.counts
    print(
        f"merged: {counts.added:,} trials added, {counts.repeated:,} compared: {seconds:.1f} s, "
        f"{1000 * seconds / summary.planned:.2f} ms per trial, peak memory {memory:.0f} MB",
        flush=True,
    )


def main() -> None:
    """Write shards, and merge them twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--shards", type=int, default=100)
    parser.add_argument("--merge", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    spec = parse_spec(SPEC.format(subsamples=arguments.trials // 2), folder=Path.cwd())
    if arguments.merge:
        measure_merge(spec)
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        started = time.perf_counter()
        write_shards(spec, arguments.shards)
        seconds = time.perf_counter() - started
        size = sum(path.stat().st_size for path in SHARDS.iterdir())
        print(f"written: {arguments.trials:,} trials, {size / 1e6:,.0f} MB, {seconds:.1f} s", flush=True)
        for _ in range(2):
            subprocess.run([sys.executable, __file__, *sys.argv[1:], "--merge"], check=True)
        print(f"store: {Path('runs/merging.sqlite').stat().st_size / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()

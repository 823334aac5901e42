"""Measures `peekbench merge`: time and memory for fragments with many trials. Prints results, asserts nothing.

The outcomes are made up, of seven classes and 100 test texts, so that only fragments and store are measured.

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
from peekbench.execution.fragment_checks import describe_job
from peekbench.execution.merging import merge
from peekbench.execution.scoring import compute_scores
from peekbench.execution.shards import shard_items
from peekbench.records.trials import ArmResult, TrialResult
from peekbench.spec.compatibility import Experiment
from peekbench.spec.experiment import ExperimentSpec, parse_spec
from peekbench.store.fragments import FragmentWriter, Header, Shard

SPEC = """
name: merging
tasks: [docstrings.stdlib]
methods: [controls.null, {{use: controls.null, name: second}}]
design: {{num_train: 7, num_test: 100, num_subsamples: {subsamples}}}
"""
FRAGMENTS = Path("fragments")


def write_fragments(spec: ExperimentSpec, num_shards: int) -> None:
    """Write the outcomes of all shards."""
    rng = np.random.default_rng(0)
    tasks = describe_tasks(spec)
    session = {**describe_job(spec), "methods": {}}
    task = make_task(spec, spec.tasks[0])
    labels = np.arange(100) % task.num_classes
    items = sorted(shard_items(spec, num_shards), key=itemgetter(0))
    for number, of_shard in groupby(items, key=itemgetter(0)):
        header = Header(Shard(number, num_shards), Experiment.of(spec, tasks), "node", session)
        with FragmentWriter.create(FRAGMENTS, header) as writer:
            for _, item in of_shard:
                for position, trial in enumerate(item.trials):
                    predictions = rng.random((100, task.num_classes), dtype=np.float32)
                    predictions /= predictions.sum(axis=1, keepdims=True)
                    scores = compute_scores(predictions, labels, task)
                    names = ("base", "extra", "test") if position == 0 else ("extra", "test")
                    arms = tuple(ArmResult(name, scores, 0.1, 0.1, {}, predictions) for name in names)
                    writer.save(TrialResult(trial, labels, np.arange(100), arms, "node"))


def measure_merge(spec: ExperimentSpec) -> None:
    """Merge in this process, and print time and memory."""
    started = time.perf_counter()
    summary = merge(spec, [FRAGMENTS])
    seconds = time.perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    counts = summary.counts
    print(
        f"merged: {counts.added:,} trials added, {counts.repeated:,} compared: {seconds:.1f} s, "
        f"{1000 * seconds / summary.planned:.2f} ms per trial, peak memory {memory:.0f} MB",
        flush=True,
    )


def main() -> None:
    """Write fragments, and merge them twice."""
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
        write_fragments(spec, arguments.shards)
        seconds = time.perf_counter() - started
        size = sum(path.stat().st_size for path in FRAGMENTS.iterdir())
        print(f"written: {arguments.trials:,} trials, {size / 1e6:,.0f} MB, {seconds:.1f} s", flush=True)
        for _ in range(2):
            subprocess.run([sys.executable, __file__, *sys.argv[1:], "--merge"], check=True)
        print(f"store: {Path('runs/merging.sqlite').stat().st_size / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()

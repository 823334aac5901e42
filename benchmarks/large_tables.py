"""Measures the time and memory to analyze a large table of scores, by step. Prints results, asserts nothing.

The digests identify the results: they must not change if a step becomes faster.

    python benchmarks/large_tables.py [--rows 2000000]
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from peekbench import Analysis
from peekbench.report import report_of_table
from peekbench.results import load_results
from peekbench.results.analyze import analyze, find_gaps
from peekbench.results.paired_effects import paired_scores

NUM_TEST = 200
ARMS = ("base", "extra", "test")
T = TypeVar("T")


def make_table(num_rows: int, num_methods: int = 10, num_tasks: int = 25) -> pd.DataFrame:
    """Return a table of scores with one row for each arm of each trial."""
    generator = np.random.default_rng(0)
    num_subsamples = num_rows // (len(ARMS) * num_methods * num_tasks)
    shape = (num_methods, num_tasks, num_subsamples, len(ARMS))
    methods, tasks, subsamples, arms = (part.ravel() for part in np.indices(shape))
    return pd.DataFrame(
        {
            "task": np.array([f"task {number}" for number in range(num_tasks)])[tasks],
            "method": np.array([f"method {number}" for number in range(num_methods)])[methods],
            "num_train": 50,
            "num_test": NUM_TEST,
            "subsample": subsamples,
            "arm": np.array(ARMS)[arms],
            "score": generator.binomial(NUM_TEST, 0.7, len(arms)) / NUM_TEST,
        }
    )


def measure(name: str, step: Callable[[], T]) -> T:
    """Do a step and print its seconds and the peak memory so far."""
    started, processor = time.perf_counter(), time.process_time()
    result = step()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    seconds = f"{time.perf_counter() - started:7.1f} s, {time.process_time() - processor:6.1f} s of the processor"
    print(f"{name:<16} {seconds}, peak memory {memory:4.1f} GB", flush=True)
    return result


def analyze_with(results: pd.DataFrame, name: str) -> Analysis:
    """Run one analysis."""
    (analysis,) = analyze(results, [name])
    return analysis


def digest(text: str) -> str:
    """Return the start of the hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def main() -> None:
    """Measure all steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.csv"
        table = make_table(arguments.rows)
        table.to_csv(path, index=False)
        print(f"{len(table):,} rows, {path.stat().st_size / 1e6:.0f} MB")
        del table
        results = measure("load", lambda: load_results(path))
        started = time.perf_counter()
        measure("find gaps", lambda: find_gaps(results))
        measure("pair arms", lambda: paired_scores(results))
        analyses = [measure(name, partial(analyze_with, results, name)) for name in ("summary", "permutation")]
        report = measure("report", lambda: report_of_table(path, results, analyses))
        print(f"all analyses     {time.perf_counter() - started:7.1f} s")
    hashes = pd.util.hash_pandas_object(results).to_numpy().tobytes()
    print(
        f"digests: table {hashlib.sha256(hashes).hexdigest()[:12]}, analyses {digest(repr(analyses))}, "
        f"report {digest(repr(report.tables))}"
    )


if __name__ == "__main__":
    main()

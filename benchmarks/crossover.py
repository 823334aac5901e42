"""Measure how much more precise crossover scoring is than scoring one set, on the same fits. Print a table.

Each trial with crossover scoring of two sets contains the trial with one scored set: the predictions of both fits for
the first set. The ratio of the variances of the two biases, within tasks, is the number of trials that it saves. The
interval is a bootstrap over subsamples.

    python benchmarks/crossover.py [--subsamples 12] [--tasks docstrings.all] [--seed 0]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from peekbench.execution.runner import run
from peekbench.records.data import FloatArray
from peekbench.spec.experiment import make_spec
from peekbench.store.writer import Store

NUM_TRAIN, NUM_TEST = 50, 200
METHODS = [
    {"name": "lsa-10", "use": "classic.lsa", "options": {"num_components": 10}},
    {"name": "lsa-50", "use": "classic.lsa", "options": {"num_components": 50}},
    "classic.self_training",
    "classic.word2vec",
    "transductive.batch_statistics",
    "transductive.class_priors",
    "transductive.label_spreading",
    "transductive.centroids",
    "transductive.bm25",
    "transductive.entropy_minimization",
]
NUM_RESAMPLES = 1000


def biases(store: Store, task: str, method: str) -> FloatArray:
    """Return the bias of each subsample by both designs, shape (n_subsamples, 2): one scored set, and two."""
    answers = store.answers(task, method, NUM_TRAIN, NUM_TEST, ["extra", "test"])
    differences = answers.scores["test"] - answers.scores["extra"]
    return np.column_stack([differences[:, :NUM_TEST].mean(axis=1), differences.mean(axis=1)])


def ratio(tables: FloatArray) -> float:
    """Return the variance of one scored set over that of two, from biases of shape (n_tasks, n_subsamples, 2)."""
    one, two = tables.var(axis=1, ddof=1).mean(axis=0)
    return float(one / two)


def main() -> None:
    """Run the methods and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subsamples", type=int, default=12)
    parser.add_argument("--tasks", nargs="+", default=["docstrings.all"])
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    spec = {
        "name": "crossover",
        "seed": arguments.seed,
        "tasks": arguments.tasks,
        "methods": arguments.methods,
        "design": {"num_train": NUM_TRAIN, "num_test": NUM_TEST, "num_subsamples": arguments.subsamples},
        "executor": {"use": "local", "options": {"workers": arguments.workers}},
    }
    rng = np.random.default_rng(arguments.seed)
    ratios = []
    print("| method | sd of the bias, one set | sd, two sets | ratio of variances (95%) |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        made = make_spec(spec, folder=Path(folder))
        with Store.open(run(made, store=Path(folder) / "crossover.sqlite").store) as store:
            for method in made.methods:
                tables = np.stack([biases(store, task.name, method.name) for task in made.tasks])
                if not tables.any():
                    print(f"| {method.name} | 0 | 0 | - |", flush=True)
                    continue
                draws = rng.integers(tables.shape[1], size=(NUM_RESAMPLES, tables.shape[1]))
                low, high = np.quantile([ratio(tables[:, draw]) for draw in draws], [0.025, 0.975])
                one, two = 100 * np.sqrt(tables.var(axis=1, ddof=1).mean(axis=0))
                ratios.append(ratio(tables))
                print(
                    f"| {method.name} | {one:.2f} | {two:.2f} | {ratios[-1]:.1f} ({low:.1f}-{high:.1f}) |", flush=True
                )
    print(f"\nMedian ratio of {len(ratios)} methods: {np.median(ratios):.1f}")


if __name__ == "__main__":
    main()

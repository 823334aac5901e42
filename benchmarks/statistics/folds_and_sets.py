"""Compare a design with folds with independent extra texts on real tasks. Print a table, assert nothing.

Each task has one fixed train set and a pool of other rows. One design draws two exchangeable test sets of m texts
from the pool; the other divides test sets of n texts from the same pool into K folds, where m = n (K - 1) / K. Both
estimate the bias of adapting to m texts. Intervals are 90%, so two one-sided tests at 5% state that the difference is
smaller than 0.25 points if its interval lies within +-0.25.

    python benchmarks/statistics/folds_and_sets.py NAME=FILE ... [--text text] [--label label] [--num-sets 15]

NAME=FILE is a CSV or Parquet file with texts and labels, in which files can differ: NAME=FILE:TEXT:LABEL.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from scipy.stats import t as student_t

import peekbench as pb
from peekbench.records import FloatArray

NUM_TRAIN, NUM_TEST, FOLDS = 500, 1000, 10
LEVEL = 0.9


def read(argument: str) -> tuple[str, pd.DataFrame]:
    """Return the name and the shuffled rows of a task."""
    name, _, place = argument.partition("=")
    path, text, label = [*place.split(":"), "text", "label"][:3]
    frame = pd.read_parquet(path) if path.endswith(".parquet") else pd.read_csv(path)
    frame = frame[[text, label]].set_axis(["text", "label"], axis=1).astype({"label": str})
    return name, frame.drop_duplicates("text").sample(frac=1, random_state=0, ignore_index=True)


def measure_folds(train: pd.DataFrame, pool: pd.DataFrame, num_sets: int, divisions: int) -> FloatArray:
    """Return the bias on each of some test sets from the pool, in points."""
    biases = []
    for seed in range(num_sets):
        test = pool.sample(NUM_TEST, random_state=seed)
        run = pb.measure(
            "classic.lsa", train=train, test=test, folds=FOLDS, num_subsamples=divisions, seed=seed, progress=False,
            name=f"folds-{pb.__version__}", fresh=True,
        )  # fmt: skip
        biases.append(100 * run.arms["bias"].mean())
    return np.array(biases)


def measure_sets(train: pd.DataFrame, pool: pd.DataFrame, num_subsamples: int) -> FloatArray:
    """Return the bias of each subsample of two sets from the pool, in points."""
    num_test = NUM_TEST - NUM_TEST // FOLDS
    design = {"num_train": len(train), "num_test": num_test, "num_subsamples": num_subsamples, "train": "natural"}
    run = pb.measure(
        "classic.lsa", train=train, test=pool, design=design, progress=False, name="sets", fresh=True,
    )  # fmt: skip
    return 100 * run.arms["bias"].to_numpy()


def main() -> None:
    """Print a row for each task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--num-sets", type=int, default=15)
    parser.add_argument("--divisions", type=int, default=4)
    parser.add_argument("--num-subsamples", type=int, default=200)
    arguments = parser.parse_args()
    print("| task | folds | sets | difference | 90% interval |")
    print("|---|---|---|---|---|")
    for name, frame in map(read, arguments.tasks):
        train, pool = frame[:NUM_TRAIN], frame[NUM_TRAIN : NUM_TRAIN + 2 * NUM_TEST]
        folds = measure_folds(train, pool, arguments.num_sets, arguments.divisions)
        sets = measure_sets(train, pool, arguments.num_subsamples)
        variances = [values.var(ddof=1) / len(values) for values in (folds, sets)]
        difference, half = folds.mean() - sets.mean(), student_t.ppf((1 + LEVEL) / 2, len(folds) - 1)
        half *= np.sqrt(sum(variances))
        means = " | ".join(
            f"{values.mean():+.2f} +- {np.sqrt(variance):.2f}"
            for values, variance in zip((folds, sets), variances, strict=True)
        )
        print(
            f"| {name} | {means} | {difference:+.2f} | [{difference - half:+.2f}, {difference + half:+.2f}] |",
            flush=True,
        )


if __name__ == "__main__":
    main()

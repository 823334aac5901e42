"""Compare the verdicts of designs with folds with their forecast, for a method without bias. Print a table.

The method depends on the unlabeled texts by chance only: their hash is the seed by which it leaves out a share of the
train texts, which is all that varies between its fits of tf-idf and logistic regression. So no text gains from its own
membership; leaving out more texts means more noise. Each repeat has another test set from the rows
of a real task. The forecast is that of `peekbench plan`, from the answers of the first division.

    python benchmarks/statistics/folds_forecast.py NAME=FILE [--repeats 20] [--shares 0.05 0.15]

NAME=FILE is a CSV or Parquet file with texts and labels, in which files can differ: NAME=FILE:TEXT:LABEL.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from folds_and_sets import read
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

import peekbench as pb
from peekbench.records import DesignPoint, PlannedDesign
from peekbench_summary.power import Power
from peekbench_summary.power.forecast import forecast

NUM_TRAIN, NUM_TEST, FOLDS, DIVISIONS = 500, 1000, 5, 10


def make_method(share: float) -> Callable[..., Pipeline]:
    """Return a method that leaves out a share of the train texts."""

    def fit(unlabeled: list[str] | None, train: pb.Labeled) -> Pipeline:
        rng = np.random.default_rng(zlib.crc32("\n".join(sorted(unlabeled or ())).encode()))
        kept = rng.permutation(len(train.labels))[round(share * len(train.labels)) :]
        texts = [train.inputs[position] for position in kept]
        return make_pipeline(TfidfVectorizer(), LogisticRegression(C=10)).fit(texts, train.labels[kept])

    return fit


def forecast_equivalent(run: pb.Run) -> tuple[float, float]:
    """Return the forecast half-width of the interval in points, and the probability of 'equivalent'."""
    answers = run.predictions.to_pandas(subsample=0)
    answers = answers[answers["arm"].isin(["extra", "test"])]
    variance = answers.groupby("row")["correct"].var().mean() * FOLDS / (FOLDS - 1) / NUM_TEST
    size = NUM_TEST - NUM_TEST // FOLDS
    point = DesignPoint(NUM_TRAIN, size, DIVISIONS, ("task",))
    design = PlannedDesign(("fit",), (point,), variances={("fit", NUM_TRAIN, size): variance})
    (table,) = forecast(design, options=Power()).tables
    row: dict[str, Any] = dict(zip((column.name for column in table.columns), table.rows[0], strict=True))
    return 100 * float(row["half-width"]), float(row["equivalent, if 0"])


def main() -> None:
    """Print a row for each share of the train texts that fits leave out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.05, 0.15])
    arguments = parser.parse_args()
    _, frame = read(arguments.task)
    train, pool = frame[:NUM_TRAIN], frame[NUM_TRAIN:]
    print("| left out | half-width: forecast, mean | equivalent: forecast, found | biased |")
    print("|---|---|---|---|")
    for share in arguments.shares:
        forecasts, halves, decisions = [], [], []
        for seed in range(arguments.repeats):
            run = pb.measure(
                {"fit": make_method(share)},
                train=train,
                test=pool.sample(NUM_TEST, random_state=seed),
                folds=FOLDS,
                num_subsamples=DIVISIONS,
                seed=seed,
                progress=False,
                name="forecast",
                fresh=True,
            )
            (verdict,) = run.report(["summary"]).verdicts
            forecasts.append(forecast_equivalent(run))
            halves.append(50 * (verdict.estimate.high - verdict.estimate.low))
            decisions.append(verdict.decision)
        half, equivalent = np.mean(forecasts, axis=0)
        found = pd.Series(decisions)
        print(
            f"| {share:.0%} | {half:.2f}, {np.mean(halves):.2f} | {equivalent:.0%}, "
            f"{(found == 'equivalent').mean():.0%} | {found.str.startswith('biased').mean():.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

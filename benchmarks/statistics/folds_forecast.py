"""Compare the verdicts of designs with folds with their forecast, for a method without bias. Print a table.

The method ignores the unlabeled texts, but depends on them by chance: tf-idf of the train texts, a random projection
whose seed is a hash of the unlabeled texts, and logistic regression. So no text gains from its own membership, and
fits to other folds answer differently; more components mean less noise. Each repeat has another test set from the rows
of a real task. The forecast is that of `peekbench plan`, from the answers of the first division.

    python benchmarks/statistics/folds_forecast.py NAME=FILE [--repeats 20] [--components 30 100 300]

NAME=FILE is a CSV or Parquet file with texts and labels, in which files can differ: NAME=FILE:TEXT:LABEL.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable

import numpy as np
import pandas as pd
from folds_and_sets import read
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.random_projection import GaussianRandomProjection

import peekbench as pb
from peekbench.records import DesignPoint, PlannedDesign
from peekbench_summary.power import Power
from peekbench_summary.power.forecast import forecast

NUM_TRAIN, NUM_TEST, FOLDS, DIVISIONS = 500, 1000, 5, 10


def make_method(num_components: int) -> Callable[..., Pipeline]:
    """Return a method that depends on the unlabeled texts by chance only."""

    def fit(unlabeled: list[str] | None, train: pb.Labeled) -> Pipeline:
        seed = zlib.crc32("\n".join(sorted(unlabeled or ())).encode())
        projection = GaussianRandomProjection(num_components, random_state=seed)
        model = make_pipeline(TfidfVectorizer(), projection, LogisticRegression())
        return model.fit(list(train.inputs), train.labels)

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
    row = dict(zip((column.name for column in table.columns), table.rows[0], strict=True))
    return 100 * float(row["half-width"]), float(row["equivalent, if 0"])


def main() -> None:
    """Print a row for each number of components."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--components", type=int, nargs="+", default=[30, 100, 300])
    arguments = parser.parse_args()
    _, frame = read(arguments.task)
    train, pool = frame[:NUM_TRAIN], frame[NUM_TRAIN:]
    print("| components | half-width: forecast, mean | equivalent: forecast, found | biased |")
    print("|---|---|---|---|")
    for num_components in arguments.components:
        forecasts, halves, decisions = [], [], []
        for seed in range(arguments.repeats):
            run = pb.measure(
                {"fit": make_method(num_components)},
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
            f"| {num_components} | {half:.2f}, {np.mean(halves):.2f} | {equivalent:.0%}, "
            f"{(found == 'equivalent').mean():.0%} | {found.str.startswith('biased').mean():.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

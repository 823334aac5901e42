"""Arms that predict fewer texts together: what predicting texts together adds, for predictors with known effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import peekbench as pb
from peekbench import Estimate
from peekbench.results.read import StoredPredictions
from peekbench.store.reader import Store

NUM_ROWS, NUM_TEST, SHIFT = 120, 20, 3.0
LABELS = np.random.default_rng(0).normal(size=NUM_ROWS)
ROWS = LABELS[:, None] + SHIFT
OPTIONS: dict[str, Any] = {"num_train": 10, "num_test": NUM_TEST, "num_subsamples": 12, "progress": False}
ARMS = ["base", "extra", "test", {"batches": 4}, "alone"]
MSE = "neg_mean_squared_error"


def center(train: Any) -> Any:
    """Return a predictor that moves the mean of the rows that it predicts together to that of the train labels.

    Its error for a row is that of the mean, and for a row alone, the distance of its label from the mean.
    """
    return lambda rows: rows[:, 0] - rows[:, 0].mean() + train.labels.mean()


def mean_squared_errors(labels: Any, train_mean: float, batches: int) -> float:
    """Return the mean squared error of `center` in batches of equal size."""
    return float(np.mean([(train_mean - batch.mean()) ** 2 for batch in np.split(labels, batches)]))


def errors_of(run: pb.Run) -> pd.DataFrame:
    """Return the negative mean squared error of each arm by subsample."""
    results = run.results.assign(error=StoredPredictions(run.store).scores(run.results, MSE))
    return results.pivot(index="subsample", columns="arm", values="error")


@pytest.mark.parametrize("crossover", [False, 3])
def test_the_effect_of_predicting_together_is_exact(crossover: Any) -> None:
    run = pb.measure(center, (ROWS, LABELS), arms=ARMS, crossover=crossover, score=MSE, region=0.1, **OPTIONS)
    scores = errors_of(run)
    with Store.open(run.store) as store:
        for draw in [trial.draw for trial in store.done()]:
            labels, rows = store.test_rows(draw)
            assert labels == pytest.approx(LABELS[rows])
            sets = np.split(labels, crossover or 1)
            gains = [np.var(of_set) for of_set in sets]
            between = [np.var([batch.mean() for batch in np.split(of_set, 4)]) for of_set in sets]
            arms = scores.loc[draw.subsample]
            assert arms["extra"] - arms["alone"] == pytest.approx(np.mean(gains))
            assert arms["extra"] - arms["batches-4"] == pytest.approx(np.mean(between))
            assert arms["base"] == arms["extra"] == arms["test"], "the fits ignore the unlabeled rows"


def test_the_interval_of_the_effect_covers_its_expectation() -> None:
    """In sets of n from a pool, the mean variance is that of the pool, S^2, times (n - 1) / n."""
    run = pb.measure(center, (ROWS, LABELS), arms=ARMS, score=MSE, region=0.1, name="gain", **OPTIONS)
    report = run.report()
    (table,) = (table for table in report.document.tables if table.title.startswith("Boost and bias over"))
    rows = [dict(zip((column.name for column in table.columns), cells, strict=True)) for cells in table.rows]
    (estimate,) = (row["mean"] for row in rows if row["effect"] == "alone - extra")
    assert isinstance(estimate, Estimate)
    expected = np.var(LABELS, ddof=1) * (NUM_TEST - 1) / NUM_TEST
    assert estimate.low < -expected < estimate.high < 0
    biased = (
        f"by {-estimate.mean:.4f} (95% interval +{-estimate.high:.4f} to +{-estimate.low:.4f}) over predicting each"
    )
    shown = str(report)
    assert "Biased? Yes: predicting the test rows together raises" in shown
    assert biased in shown
    assert "What next? Report the score of alone. Each row is predicted by itself" in shown
    assert "must use the unlabeled" not in shown


def test_folds_have_the_arm_alone() -> None:
    train, test = (ROWS[:20], LABELS[:20]), (ROWS[20:60], LABELS[20:60])
    arms = ["base", "extra", "test", "all", "alone"]
    options: dict[str, Any] = {"folds": 4, "num_subsamples": 2, "progress": False, "score": MSE, "region": 0.1}
    run = pb.measure(center, train=train, test=test, arms=arms, **options)
    scores = errors_of(run)
    mean = LABELS[:20].mean()
    assert scores["alone"].tolist() == pytest.approx([-mean_squared_errors(LABELS[20:60], mean, 40)] * 2)
    assert "by a fit that did not see it (alone)" in str(run.report())
    assert scores["all"].tolist() == pytest.approx([-mean_squared_errors(LABELS[20:60], mean, 1)] * 2)

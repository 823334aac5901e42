"""Contract checks of predictors: predictions depend on one input only, and metrics are numbers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np

from peekbench.errors import ContractError, DataError, SpecError
from peekbench.execution.arms import check_metrics, score_texts, take
from peekbench.records.data import FloatArray, Inputs
from peekbench.records.trials import Predictor
from peekbench.testing.attempt import Attempt
from peekbench.testing.case import Case, in_both_arms

# BLAS uses other kernels for other batch sizes, which round differently. Adapting to a batch makes larger differences.
TOLERANCE = 1e-4
LARGE_BATCH = 500  # inputs, the largest usual test set
NUM_SINGLE = 3  # inputs that are predicted one by one
DEPENDS_ON_BATCH = (
    "predictions depend on the inputs that are predicted together, so predict adapts to its batch; "
    "adapt to `unlabeled` in the fit, and predict each input independently"
)


@dataclass(frozen=True, slots=True)
class Observation:
    """What the predictor of one fit returns for the test inputs, and for an empty text."""

    predictions: FloatArray
    empty: Attempt
    """Predictions of an empty text alone, and in a batch; None if the inputs are no texts."""
    texts: Attempt
    """Log-likelihoods of the test inputs, and the predictions afterwards; None if the predictor gives none."""
    metrics: Mapping[str, Any]
    time: float
    """End of the fit, by `time.monotonic`."""


def observe(case: Case, unlabeled: Inputs | None) -> Observation:
    """Fit the method in one arm and observe its predictor; once for all checks."""
    return case.share(f"observation {unlabeled is None}", partial(_observe, case, unlabeled))


def _observe(case: Case, unlabeled: Inputs | None) -> Observation:
    predictor = case.fit(unlabeled)
    end_of_fit = time.monotonic()
    return Observation(
        case.apply(predictor, case.test),
        empty=Attempt(partial(_predict_empty, case, predictor)),
        texts=Attempt(partial(_score_texts, case, predictor, (case.test,))),
        metrics=predictor.metrics,
        time=end_of_fit,
    )


def _predict_empty(case: Case, predictor: Predictor) -> tuple[FloatArray, FloatArray] | None:
    if isinstance(case.test, np.ndarray):
        return None
    return case.apply(predictor, ("",)), case.apply(predictor, ("", *case.test))


def _score_texts(case: Case, predictor: Predictor, batches: Sequence[Inputs]) -> tuple[FloatArray, FloatArray] | None:
    """Return log-likelihoods of batches, and the predictions afterwards."""
    scored = [score_texts(predictor, batch, case.task) for batch in batches]
    values = [texts.values for texts in scored if texts is not None]
    return (np.concatenate(values), case.apply(predictor, case.test)) if values else None


def _halves(inputs: Inputs) -> tuple[Inputs, Inputs]:
    half = len(inputs) // 2
    return inputs[:half], inputs[half:]


def are_equal(first: FloatArray, second: FloatArray, tolerance: float = 0.0) -> bool:
    """Return whether two arrays differ by at most `tolerance` times their largest number, or times 1."""
    scale = max(1.0, float(np.abs(first[np.isfinite(first)]).max(initial=0)))
    return first.shape == second.shape and np.allclose(first, second, rtol=0, atol=tolerance * scale, equal_nan=True)


def predict_batches(case: Case, unlabeled: Inputs | None, *batches: Inputs) -> FloatArray:
    """Fit again, and predict batches one after the other.

    Each form of batches needs a fit of its own: if a method postpones its fit to the first `predict`, only the first
    batch has an effect.
    """
    predictor = case.fit(unlabeled)
    return np.concatenate([case.apply(predictor, batch) for batch in batches])


def predict_halves(case: Case, unlabeled: Inputs | None) -> FloatArray:
    """Fit again, and predict the test inputs in two batches."""
    return predict_batches(case, unlabeled, *_halves(case.test))


def _require_same(case: Case, unlabeled: Inputs | None, found: FloatArray, problem: str) -> None:
    """Refuse predictions of the first test inputs that are other ones in another batch."""
    expected = observe(case, unlabeled).predictions
    if are_equal(expected[: len(found)], found, TOLERANCE):
        return
    if are_equal(expected, case.predict(unlabeled), TOLERANCE):  # otherwise, other checks report that fits differ
        raise ContractError(problem)


@in_both_arms
def check_subset_invariance(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the prediction for an input does not depend on the inputs predicted with it."""
    singles = [case.test[row : row + 1] for row in range(NUM_SINGLE)]
    for found in (predict_halves(case, unlabeled), predict_batches(case, unlabeled, *singles)):
        _require_same(case, unlabeled, found, DEPENDS_ON_BATCH)


@in_both_arms
def check_large_batches(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the prediction for an input does not depend on the size of a large batch."""
    # The test inputs are the first ones. Others follow, which are repeated if there are too few.
    rows = np.fromiter(islice(cycle(case.rows.unseen.tolist()), LARGE_BATCH), dtype=np.int64)
    found = predict_batches(case, unlabeled, take(case.rows.dataset.inputs, rows))
    problem = (
        f"predictions of {len(case.test)} inputs are different in a batch of {LARGE_BATCH}, so predict adapts to "
        "large batches; adapt to `unlabeled` in the fit, and predict each input independently"
    )
    _require_same(case, unlabeled, found[: len(case.test)], problem)


@in_both_arms
def check_order_invariance(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the prediction for an input does not depend on its position."""
    found = predict_batches(case, unlabeled, case.test[::-1])[::-1]
    problem = "predictions depend on the order of the inputs; predict each input independently"
    _require_same(case, unlabeled, found, problem)


@in_both_arms
def check_empty_text(case: Case, unlabeled: Inputs | None) -> str | None:
    """Check that an empty text has a valid prediction, which neither depends on other texts nor changes theirs.

    Returns
    -------
    str or None
        A warning if the method refuses an empty text with an error for users.
    """
    try:
        predicted = observe(case, unlabeled).empty.result()
    except ContractError as error:
        raise ContractError(f"for an empty text, {error}") from error
    except (DataError, SpecError) as error:
        return f"warning: it refuses an empty text: {error}"
    if predicted is None:
        return None
    alone, together = predicted
    expected = np.concatenate([alone, observe(case, unlabeled).predictions])
    if not are_equal(expected, together, TOLERANCE):
        raise ContractError(f"with an empty text in the batch, {DEPENDS_ON_BATCH}")
    return None


@in_both_arms
def check_log_likelihoods(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the log-likelihood of a text does not depend on other texts, and that predictions stay the same."""
    seen = observe(case, unlabeled)
    if (scored := seen.texts.result()) is None:
        return
    together, predictions = scored
    if not are_equal(seen.predictions, predictions, TOLERANCE):
        raise ContractError(
            "predictions are different after `log_likelihoods` was called; restore the state that `predict` needs"
        )
    halves = _score_texts(case, case.fit(unlabeled), _halves(case.test))
    if halves is None or not are_equal(together, halves[0], TOLERANCE):
        raise ContractError(
            "log-likelihoods depend on the texts that are scored together; adapt to `unlabeled` in the fit, and score "
            "each text independently"
        )


@in_both_arms
def check_metrics_are_numbers(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the metrics of a fit are finite numbers."""
    metrics = check_metrics(observe(case, unlabeled).metrics)
    if invalid := [name for name, value in metrics.items() if not np.isfinite(value)]:
        raise ContractError(
            f"metric {invalid[0]!r} is {metrics[invalid[0]]}; return finite numbers, or omit the metric"
        )

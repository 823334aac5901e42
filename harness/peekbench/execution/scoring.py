"""Predictions and labels to scores."""

from __future__ import annotations

from typing import NamedTuple

from peekbench.errors import ContractError
from peekbench.records.data import FloatArray, IntArray, Task

LEAST = 2.0**-23
"""Below it, float32's resolution at 1, no probability counts as smaller."""


class Scores(NamedTuple):
    """How well predictions fit; None where a score has no meaning for the task's kind."""

    num_correct: int | None
    score: float
    """Accuracy as a fraction, or R^2."""
    log_loss: float | None = None
    brier: float | None = None
    macro_f1: float | None = None


def score(predictions: FloatArray, labels: IntArray | FloatArray, task: Task) -> Scores:
    """Score the predictions of one arm.

    Parameters
    ----------
    predictions
        float32 (n, n_classes), or float64 (n,) for regression. Among equal probabilities the first class counts as the
        answer.
    labels
        (n,).

    Notes
    -----
    The log loss is the mean of -ln p of the true class. The Brier score is the mean over texts of the sum over classes
    of (p - 1 or 0)^2, from 0 to 2 (Brier 1950). Macro-F1 is the mean of F1 over the classes that occur among labels or
    answers.

    Raises
    ------
    ContractError
        Where R^2 has no value.
    """
    import numpy as np

    exact = predictions.astype(np.float64)
    if task.kind == "regression":
        return Scores(None, _r_squared(exact, labels))
    rows, truth = np.arange(len(labels)), labels.astype(np.int64)
    answers = exact.argmax(axis=1)
    of_truth = exact[rows, truth]
    right = answers == truth
    true, answered, hits = (
        np.bincount(values, minlength=task.num_classes) for values in (truth, answers, truth[right])
    )
    either = true + answered
    num_correct = int(np.count_nonzero(right))
    return Scores(
        num_correct,
        num_correct / len(labels),
        -float(np.mean(np.log(np.maximum(of_truth, LEAST)))),
        float(np.mean((exact**2).sum(axis=1) - 2 * of_truth + 1)),
        float(np.mean(2 * hits[either > 0] / either[either > 0])),
    )


def _r_squared(predictions: FloatArray, targets: IntArray | FloatArray) -> float:
    import numpy as np

    if targets.min() == targets.max():
        raise ContractError("all test targets are equal, so R^2 has no value; use a larger num_test")
    deviations = targets - targets.mean()
    # Squares of very large or small numbers leave the range of float64. To scale by a power of two changes no digit.
    _, exponent = np.frexp(np.abs(deviations).max())
    with np.errstate(over="ignore"):
        residuals, deviations = (np.ldexp(values, -exponent) for values in (targets - predictions, deviations))
        found = 1 - float(residuals @ residuals) / float(deviations @ deviations)
    if not np.isfinite(found):
        raise ContractError("predictions are so far from the targets that R^2 is no finite number; check their scale")
    return found


SUM_TOLERANCE = 1e-3  # half precision sums to 1 within this


def check_predictions(predictions: object, num_inputs: int, task: Task) -> None:
    """Refuse what cannot be scored.

    Parameters
    ----------
    predictions
        What a predictor returned for `num_inputs` inputs: probabilities (n, n_classes), or (n,) for regression.

    Raises
    ------
    ContractError
        Where it is no array of numbers, has another shape, is not finite, or rows are no probabilities.
    """
    import numpy as np

    shape = (num_inputs, task.num_classes) if task.kind == "classification" else (num_inputs,)
    wanted = "one probability for each class" if task.kind == "classification" else "one number for each input"
    array = np.asarray(predictions)
    if array.dtype.kind not in "fiu":
        raise ContractError(f"predictions are {type(predictions).__name__} of {array.dtype}; return an array of floats")
    if array.shape != shape:
        raise ContractError(f"predictions have shape {array.shape}, wanted is {shape}: {wanted}, in the inputs' order")
    finite = np.isfinite(array) if array.ndim == 1 else np.isfinite(array).all(axis=1)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise ContractError(
            f"predictions hold NaN or infinity in {int((~finite).sum())} of {num_inputs} rows, the first is row {row}; "
            "look for a division by zero or a loss that diverged"
        )
    if task.kind == "regression":
        return
    if array.min() < 0:
        row = int(np.flatnonzero(array.min(axis=1) < 0)[0])
        raise ContractError(f"predictions hold a negative probability in row {row}; return probabilities, not scores")
    off = np.abs(array.sum(axis=1, dtype=np.float64) - 1)
    if off.max() > SUM_TOLERANCE:
        row = int(off.argmax())
        raise ContractError(
            f"predictions in row {row} sum to {float(array[row].sum()):.4g}, not to 1; "
            "return probabilities, over the task's classes and no others"
        )

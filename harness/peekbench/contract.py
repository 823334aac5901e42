"""What predictions must look like, whoever makes them; checked on every arm of every trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench.errors import ContractError

if TYPE_CHECKING:
    from peekbench.records import Task

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

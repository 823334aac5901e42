"""Which rows an arm of a trial sees without labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peekbench.records.data import FloatArray, Inputs, IntArray
from peekbench.records.trials import Subsample

if TYPE_CHECKING:
    from peekbench.spec.arms import Arm


def unlabeled_rows(arm: Arm, subsample: Subsample) -> IntArray | None:
    """Rows whose inputs the arm's fit may see without labels, as many as there are test rows; None in the base arm.

    A dose puts test rows in the place of the first extra rows, so that doses are nested and paired.
    """
    import numpy as np

    if arm.kind == "base":
        return None
    num_peeked = arm.num_peeked(len(subsample.test))
    if num_peeked == 0:
        return subsample.extra
    if num_peeked == len(subsample.test):
        return subsample.test
    return np.concatenate([subsample.test[:num_peeked], subsample.extra[num_peeked:]])


def read_only(array: Any) -> Any:
    """The array, made read-only in place."""
    array.flags.writeable = False
    return array


def take(inputs: Inputs, rows: IntArray) -> Inputs:
    """Inputs of some rows, as a tuple of texts or a read-only array, so that no method can change another's."""
    import numpy as np

    if isinstance(inputs, np.ndarray):
        chosen: FloatArray = read_only(inputs.take(rows, axis=0))
        return chosen
    return tuple([inputs[row] for row in rows.tolist()])

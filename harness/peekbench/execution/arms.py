"""The rows that the fit of an arm sees without labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from peekbench.records.data import FloatArray, Inputs, IntArray
from peekbench.records.trials import Subsample
from peekbench.spec.arms import Arm


def unlabeled_rows(arm: Arm, subsample: Subsample) -> IntArray | None:
    """Return the rows whose inputs the arm's fit sees without labels.

    Returns
    -------
    numpy.ndarray or None
        Shape (n_test,); None for the base arm. A dose replaces the first extra rows by test rows, so doses are nested
        and paired.
    """
    if arm.kind == "base":
        return None
    num_peeked = arm.num_peeked(len(subsample.test))
    if num_peeked == 0:
        return subsample.extra
    if num_peeked == len(subsample.test):
        return subsample.test
    return np.concatenate([subsample.test[:num_peeked], subsample.extra[num_peeked:]])


def read_only(array: Any) -> Any:
    """Make an array read-only in place and return it."""
    array.flags.writeable = False
    return array


def take(inputs: Inputs, rows: IntArray) -> Inputs:
    """Return some inputs as a tuple of texts or a read-only array, so that no method can change another's inputs."""
    if isinstance(inputs, np.ndarray):
        features: FloatArray = read_only(inputs.take(rows, axis=0))
        return features
    return tuple([inputs[row] for row in rows.tolist()])

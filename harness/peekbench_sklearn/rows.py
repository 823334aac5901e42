"""Rows of lists, arrays, sparse matrices and data frames, as the parts of an estimator pass them on."""

from __future__ import annotations

from typing import Any

import numpy as np
from pandas import concat
from scipy.sparse import issparse, vstack


def count_rows(rows: Any) -> int:
    """Return the number of rows."""
    if hasattr(rows, "shape"):
        return int(rows.shape[0])
    return len(rows)


def divide_rows(rows: Any, count: int) -> tuple[Any, Any]:
    """Return the first rows and the others; None if there are no others."""
    if count == count_rows(rows):
        return rows, None
    if hasattr(rows, "tocsr"):
        rows = rows.tocsr()
    rows = getattr(rows, "iloc", rows)
    return rows[:count], rows[count:]


def stack_rows(first: Any, second: Any) -> Any:
    """Return the rows of two lists, arrays, sparse matrices or data frames below each other."""
    if isinstance(first, list):
        return first + second
    if hasattr(first, "iloc"):  # of a step with set_output(transform="pandas")
        return concat([first, second], ignore_index=True)
    rows: Any = [first, second]
    if issparse(first):
        return vstack(rows).tocsr()
    return np.concatenate(rows)


def as_array(values: Any) -> Any:
    """Return values as an array; numpy would make texts of the other values of a list with texts, as of NaN."""
    array = np.asarray(values)
    is_list = array.dtype.kind == "U" and not hasattr(values, "dtype")
    return np.asarray(values, dtype=object) if is_list else array

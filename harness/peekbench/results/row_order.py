"""Brings the rows of a results table into an order that does not depend on the order of a user's file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from peekbench.records.data import IntArray
from peekbench.results.columns import CONFIGURATION, arm_order

MAX_KEY = 2**62


def sort_rows(results: pd.DataFrame, last: Sequence[str] = ()) -> pd.DataFrame | None:
    """Return a results table in natural order of its rows, or None if two rows are the same arm of the same trial.

    Results then do not depend on the order of the rows of a file, not even in their last digit. `last` names columns of
    numbers that also distinguish and order rows.
    """
    arms = {arm: number for number, arm in enumerate(sort_arms(results["arm"].unique()))}
    keys = [rank(results[name]) for name in (*CONFIGURATION, "task")]
    keys += [
        rank_numbers(column.to_numpy().astype(np.int64))
        for column in (results["subsample"], results["arm"].map(arms), *(results[name] for name in last))
    ]
    combined = np.zeros(len(results), dtype=np.int64)
    for key in keys:
        size = int(key.max()) + 1
        if combined.max() >= MAX_KEY // size:
            combined = rank_numbers(combined)
        combined = combined * size + key
    order = np.argsort(combined, kind="stable")
    if (np.diff(combined[order]) == 0).any():
        return None
    is_sorted = bool((np.diff(order) == 1).all())
    return (results if is_sorted else results.iloc[order]).reset_index(drop=True)


def sort_arms(arms: Iterable[str]) -> list[str]:
    """Return base, extra, test, and doses in ascending order."""
    return sorted(arms, key=arm_order)


def rank(cells: pd.Series[Any]) -> IntArray:
    """Return the position of each value in the natural order of the distinct values; missing values come first."""
    codes, values = pd.factorize(cells, use_na_sentinel=True)
    order = sorted(range(len(values)), key=lambda position: natural_key(str(values[position])))
    ranks = np.empty(len(values) + 1, dtype=np.int64)
    ranks[order] = np.arange(1, len(values) + 1)
    ranks[-1] = 0
    return ranks[codes]


def rank_numbers(numbers: IntArray) -> IntArray:
    """Return the position of each number in the sorted distinct numbers."""
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def natural_key(text: str) -> list[str | int]:
    """Return a key that sorts n50 before n100."""
    return [int(part) if number % 2 else part for number, part in enumerate(re.split(r"(\d+)", text))]

"""The table of estimates that exports write."""

from __future__ import annotations

import math
from collections.abc import Iterable

from peekbench import Column, Table
from peekbench.records import ScoreEstimate, Unit

COLUMNS: dict[str, Unit] = {
    "method": "text", "model": "text", "num_train": "count", "num_test": "count", "control": "text", "task": "text",
    "quantity": "text", "metric": "text", "estimate": "number", "low": "number", "high": "number",
    "standard_error": "number", "level": "number", "num_tasks": "count", "num_trials": "count", "decision": "text",
}  # fmt: skip
NUMBERS = {"estimate": "mean", "low": "low", "high": "high", "standard_error": "standard_error", "level": "level"}
"""Columns of the fields of an estimate."""


def estimates_table(estimates: Iterable[ScoreEstimate]) -> Table:
    """Return a table with a column for each field, and for each number of an estimate.

    Parameters
    ----------
    estimates
        The rows.

    Returns
    -------
    Table
        Fractions in full precision.

    Examples
    --------
    >>> from peekbench import Estimate
    >>> score = {"quantity": "extra", "metric": "accuracy", "estimate": Estimate(0.7), "num_trials": 50}
    >>> estimates_table([ScoreEstimate(method="lsa", num_train=50, **score)]).rows[0][:3]
    ('lsa', '', 50)
    """
    rows = []
    for row in estimates:
        cells = {name: getattr(row, name, None) for name in COLUMNS}
        numbers = {name: getattr(row.estimate, part) for name, part in NUMBERS.items()}
        cells |= {name: None if math.isnan(number) else number for name, number in numbers.items()}
        rows.append(tuple(cells.values()))
    return Table(
        "Scores and effects for exports",
        tuple(Column(name, unit) for name, unit in COLUMNS.items()),
        tuple(rows),
        "extra is the uncontaminated score; bias = test - extra; boost = extra - base. Fractions, in full precision. "
        "Rows without a task are averages over tasks.",
    )

"""Estimates for exports: each method's uncontaminated score and effects with their intervals, one row each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from peekbench.records.analysis import Column, Table
from peekbench.records.units import Unit
from peekbench.records.verdicts import ControlOutcome, Decision, Estimate

Quantity: TypeAlias = Literal["extra", "bias", "boost"]
"""'extra' is the score of the arm extra, which is uncontaminated.

Examples
--------
>>> from typing import get_args
>>> get_args(Quantity)
('extra', 'bias', 'boost')
"""

ACCURACY = "accuracy"
"""`ScoreEstimate.metric` of accuracies."""
UNITS: dict[str, Unit] = {
    **dict.fromkeys(("num_train", "num_test", "num_tasks", "num_trials"), "count"),
    **dict.fromkeys(("estimate", "low", "high", "standard_error", "level"), "number"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreEstimate:
    """A score or an effect of one method, on one task or averaged over its tasks.

    Examples
    --------
    >>> score = {"quantity": "extra", "metric": "accuracy", "estimate": Estimate(0.7), "num_trials": 50}
    >>> ScoreEstimate(method="lsa", task="news", **score).is_average
    False
    """

    method: str
    """Label of the method."""
    model: str = ""
    """Language model of the method; empty if it has none."""
    num_train: int | None = None
    """Number of labeled texts for training; None if unknown."""
    num_test: int | None = None
    """Number of test texts; None if unknown."""
    control: str = ""
    """As in the results table: 'negative', 'positive' or empty."""
    task: str = ""
    """Empty for the average over tasks, which all have equal weight."""
    quantity: Quantity
    """The score of an arm, or an effect."""
    metric: str
    """Name of the score in words, such as 'accuracy'. More is always better."""
    estimate: Estimate
    """Value and interval, which is for new subsamples of the same data. The interval of an average bias is that of its
    verdict, which can be adjusted for the number of configurations and for planned looks; `level` is nominal."""
    num_tasks: int = 1
    """Number of tasks behind the estimate."""
    num_trials: int
    """Number of subsamples, of all tasks together."""
    decision: Decision | ControlOutcome | Literal[""] = ""
    """Verdict on the average bias; empty for other quantities."""

    @property
    def is_average(self) -> bool:
        """Whether this is the average over tasks."""
        return not self.task

    @property
    def configuration(self) -> tuple[str, str, int | None, int | None]:
        """Method, model and sizes."""
        return self.method, self.model, self.num_train, self.num_test


NUMBERS = {"estimate": "mean", "low": "low", "high": "high", "standard_error": "standard_error", "level": "level"}
"""Columns of the fields of an estimate."""
OWN = tuple(field.name for field in fields(ScoreEstimate) if field.name != "estimate")
COLUMNS = (*OWN[: OWN.index("metric") + 1], *NUMBERS, *OWN[OWN.index("metric") + 1 :])


def estimates_table(estimates: Iterable[ScoreEstimate]) -> Table:
    """Return the table that an analysis with the role `estimates` has: a column for each field.

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
    >>> score = Estimate(0.7, low=0.69, high=0.71, standard_error=0.005, level=0.95)
    >>> row = ScoreEstimate(method="lsa", quantity="extra", metric="accuracy", estimate=score, num_trials=50)
    >>> read_estimates(estimates_table([row])) == (row,)
    True
    """
    return Table(
        "Scores and effects for exports",
        tuple(Column(name, UNITS.get(name, "text")) for name in COLUMNS),
        tuple(
            tuple(getattr(row, name) if name in OWN else _number(row.estimate, name) for name in COLUMNS)
            for row in estimates
        ),
        "extra is the uncontaminated score; bias = test - extra; boost = extra - base. Fractions, in full precision. "
        "Rows without a task are averages over tasks.",
    )


def _number(estimate: Estimate, column: str) -> float | None:
    value: float = getattr(estimate, NUMBERS[column])
    return None if math.isnan(value) else value


def read_estimates(table: Table) -> tuple[ScoreEstimate, ...]:
    """Return the rows of a table that `estimates_table` made.

    Parameters
    ----------
    table
        The table of an analysis with the role `estimates`.

    Returns
    -------
    tuple of ScoreEstimate
        One for each row.

    Examples
    --------
    >>> read_estimates(estimates_table([]))
    ()
    """
    names = [column.name for column in table.columns]
    estimates = []
    for row in table.rows:
        cells: dict[str, Any] = dict(zip(names, row, strict=True))
        numbers = {NUMBERS[name]: cells.pop(name) for name in NUMBERS}
        known = {name: number for name, number in numbers.items() if number is not None}
        estimates.append(ScoreEstimate(**cells, estimate=Estimate(**known)))
    return tuple(estimates)

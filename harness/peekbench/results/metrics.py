"""Finds the metric of scores. Scores of different metrics have no common average, so no analysis gets them together."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from peekbench.errors import ResultsError
from peekbench.records.data import TableOptions
from peekbench.records.report import ACCURACY
from peekbench.results.cells import mapping, quoted, short
from peekbench.results.columns import METRIC, SCORE_SOURCES, ColumnRoles, is_counted, names_loss

UNSTATED = "an unknown metric"


def find_metric(results: pd.DataFrame, origin: str = "") -> str:
    """Return the metric of scores: accuracy if all are counts of correct answers, or the one that a table states.

    Parameters
    ----------
    results
        The results table; the column `metric`, which only users' tables have, is used if there is one.
    origin
        Name of a user's table, for messages; empty for the results of runs.

    Returns
    -------
    str
        Empty if it is not known.

    Raises
    ------
    ResultsError
        If tasks have different metrics.

    Examples
    --------
    >>> find_metric(pd.DataFrame({"task": ["news"], "num_correct": [70], "score": [0.7], "bits_per_byte": [0.0]}))
    'accuracy'
    """
    tasks: dict[str, list[str]] = {}
    for task, metric in _metrics_by_task(results).items():
        tasks.setdefault(metric, []).append(task)
    if len(tasks) <= 1:
        return next(iter(tasks), "")
    listed = "; ".join(f"{short(metric) or UNSTATED} of {quoted(names)}" for metric, names in tasks.items())
    first = TableOptions(tasks=next(iter(tasks.values())))
    problem = f"the tasks have scores of different metrics, which have no common average: {listed}."
    if not origin:
        raise ResultsError(f"{problem} Analyze one metric at a time: peekbench analyze RUN ", first.argument)
    if {*tasks} == {ACCURACY, ""}:
        problem += " If all scores are accuracies, give num_test for every task."
    raise ResultsError(f"{origin}: {problem} Analyze the tasks of one metric at a time", added=first)


def _metrics_by_task(results: pd.DataFrame) -> Mapping[str, str]:
    of_rows = results["metric"] if METRIC.name in results else pd.Series("", index=results.index)
    is_bits = (results["score"] == -results["bits_per_byte"]) & (of_rows == "")
    of_rows = of_rows.mask(is_bits, "bits per byte")
    of_tasks = of_rows.groupby(results["task"], sort=False).first()
    is_count = results["num_correct"].notna().groupby(results["task"], sort=False).all()
    return {
        str(task): ACCURACY if counted or is_counted(metric) else str(metric)
        for (task, metric), counted in zip(of_tasks.items(), is_count, strict=True)
    }


def refuse_losses(results: pd.DataFrame, metric: str, roles: ColumnRoles, origin: str) -> None:
    """Refuse a metric of which lower is better in columns of scores of which higher is better.

    Negative values of such a metric are scores, and so is 1 minus its value.
    """
    if not names_loss(metric) or metric.startswith("1 - ") or (results["score"] <= 0).all():
        return
    for role, (source, *_) in roles.sources.items():
        if role.column == SCORE_SOURCES[0]:
            target = role._replace(column="loss")
            instead = f" in place of {source}={role}" if source in roles.mapped else ""
            raise ResultsError(
                f"{origin}: lower is better for the metric {short(metric)!r}, but higher is better for the column "
                f"{short(source)!r}; use ",
                mapping(source, target),
                instead,
            )

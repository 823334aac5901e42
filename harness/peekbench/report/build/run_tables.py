"""Tables on a run's tasks and methods: sizes, options, times, recorded metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from peekbench.data.preflight import majority_share
from peekbench.records.analysis import Cell, Column, Table
from peekbench.records.data import Split
from peekbench.report.document import MethodFacts

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.spec.components import MethodSpec
    from peekbench.spec.experiment import ExperimentSpec
    from peekbench.store.reader import StoredMethod


def task_table(tasks: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return a table with the size, classes, version and fingerprint of each task.

    Columns in which no task has a value are left out, such as those of classes if texts are their own labels.

    Parameters
    ----------
    tasks
        Task name to the description that the store keeps of the task's data.
    """
    splits = [split for split in get_args(Split) if any(data["splits"] for data in tasks.values())]
    rows = [
        (name, data["rows"], *(data["splits"].get(split, {}).get("rows") for split in splits),
         len(data["class_names"]) or None, min(data["class_counts"], default=None),
         max(data["class_counts"], default=None), majority_share(data),
         _dropped_rows(data["details"]), _version(data["details"]), data["fingerprint"][:12])
        for name, data in tasks.items()
    ]  # fmt: skip
    names = ("rows", *(f"{split} split" for split in splits), "classes", "smallest class", "largest class")
    counts = [Column(name, "count") for name in names]
    texts = [Column(name) for name in ("dropped rows", "version", "fingerprint")]
    columns = (Column("task"), *counts, Column("majority", "fraction"), *texts)
    kept = [place for place in range(len(columns)) if any(row[place] not in (None, "") for row in rows)]
    note = "The JSON report describes each task and the source of its data."
    if any(data["class_names"] for data in tasks.values()):
        majority = "accuracy of always predicting the largest class" + " of the test split" * bool(splits)
        note = f"Majority: {majority}. {note}"
    return Table(
        "Tasks",
        tuple(columns[place] for place in kept),
        tuple(tuple(row[place] for place in kept) for row in rows),
        note,
    )


def _dropped_rows(details: Mapping[str, Any]) -> str:
    """Return the number of rows that the data source dropped, by reason."""
    return ", ".join(f"{number:,} {reason}" for reason, number in details.get("dropped", {}).items() if number)


def _version(details: Mapping[str, Any]) -> str:
    return str(details.get("version") or details.get("revision", "")[:12])


def describe_methods(spec: ExperimentSpec, stored: Mapping[str, StoredMethod]) -> tuple[MethodFacts, ...]:
    """Describe the methods of a run, in the order of its spec."""
    return tuple(
        MethodFacts(
            method.name,
            method.use,
            options_in_words({**method.raw_options(), **_options_by_task(method)}),
            stored[method.name].summary,
        )
        for method in spec.methods
    )


def _options_by_task(method: MethodSpec) -> dict[str, Any]:
    return {"by_task": method.model_dump(mode="json")["by_task"]} if method.by_task else {}


def options_in_words(options: Mapping[str, Any]) -> str:
    """Return options as text: 'num_components 100, word2vec (epochs 5)'."""
    return ", ".join(
        f"{name} ({options_in_words(value)})" if isinstance(value, Mapping) else f"{name} {value}"
        for name, value in options.items()
    )


def method_table(methods: Sequence[MethodFacts]) -> Table:
    """Return a table with the plugin, the options and the summary of each method."""
    columns = tuple(Column(name) for name in ("method", "use", "options", "description"))
    rows = tuple((method.name, method.use, method.options, method.summary) for method in methods)
    return Table("Methods", columns, rows)


def cost_table(results: pd.DataFrame) -> list[Table]:
    """Return a table with the mean time to fit and predict, in seconds; no table if there are no results."""
    if results.empty:
        return []
    arms = list(results["arm"].unique())
    seconds = (results["fit_seconds"] + results["predict_seconds"]).groupby([results["method"], results["arm"]]).mean()
    rows = [(method, *(_mean(seconds, method, arm) for arm in arms)) for method in results["method"].unique()]
    columns = (Column("method"), *(Column(arm, "seconds") for arm in arms))
    return [Table("Mean time to fit and predict, by arm", columns, tuple(rows))]


def _mean(seconds: pd.Series[float], method: str, arm: str) -> Cell:
    return float(seconds[method, arm]) if (method, arm) in seconds.index else None


def metric_table(
    metrics: Mapping[str, Mapping[str, Mapping[str, float]]], stored: Mapping[str, StoredMethod]
) -> list[Table]:
    """Return a table with the mean of every metric that methods recorded; no table if they recorded none.

    Parameters
    ----------
    metrics
        Method to arm to metric to mean.
    stored
        The methods, whose plugins have described their metrics.
    """
    arms = list(dict.fromkeys(arm for by_arm in metrics.values() for arm in by_arm))
    rows = [
        (method, metric, *(by_arm.get(arm, {}).get(metric) for arm in arms), stored[method].metrics.get(metric, ""))
        for method, by_arm in metrics.items()
        for metric in dict.fromkeys(name for values in by_arm.values() for name in values)
    ]
    columns = (Column("method"), Column("metric"), *(Column(arm, "number") for arm in arms), Column("description"))
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return [Table("Means of the metrics that methods recorded, by arm", columns, tuple(rows))] if rows else []

"""Tables on a run's tasks, texts, methods and looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from peekbench.data.overlap import MAX_CHARACTERS
from peekbench.data.preflight import majority_share
from peekbench.data.texts import SIMILARITY
from peekbench.records.report import Cell, Column, MethodFacts, Table
from peekbench.records.runs import StoredMethod
from peekbench.records.verdicts import Unit

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.spec.experiment import ExperimentSpec

Descriptions: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Names of tasks to descriptions of their data, as the store keeps them."""
Units: TypeAlias = Mapping[str, Unit]
"""Names of columns to their units."""
PAIRS = {
    "test-train": "test in train", "test-test": "within test", "train-train": "within train",
    "test-extra": "test in private extra", "extra-test": "private extra in test",
    "extra-train": "private extra in train", "all-all": "in all rows",
}  # fmt: skip
"""Pairs of places of copies to how tables name them."""


def _make_table(title: str, units: Units, rows: Iterable[Sequence[Cell]], note: str = "") -> Table:
    """Return a table without the columns in which all cells are empty."""
    rows = list(rows)
    kept = [place for place in range(len(units)) if any(row[place] not in (None, "") for row in rows)]
    columns = [Column(name, unit) for name, unit in units.items()]
    cells = tuple(tuple(row[place] for place in kept) for row in rows)
    return Table(title, tuple(columns[place] for place in kept), cells, note)


def data_tables(tasks: Descriptions) -> list[Table]:
    """Return the tables on the data of a run: the tasks, and copies of rows."""
    return [replace(table, topic="data") for table in (task_table(tasks), *copy_tables(tasks))]


def task_table(tasks: Descriptions) -> Table:
    """Tabulate the size, classes, version and fingerprint of each task."""
    units: Units = {
        "task": "text", "rows": "count", "groups": "count", "classes": "count", "majority": "fraction",
        "version": "text", "fingerprint": "text",
    }  # fmt: skip
    rows = [
        (name, data["rows"], data.get("groups"), len(data["class_names"]) or None, majority_share(data),
         str(data["details"].get("version") or data["details"].get("revision", "")[:12]), data["fingerprint"][:12])
        for name, data in tasks.items()
    ]  # fmt: skip
    note = "Majority: accuracy of always predicting the largest class. The JSON report describes each task in full."
    return _make_table("Tasks", units, rows, note)


def describe_methods(spec: ExperimentSpec, stored: Mapping[str, StoredMethod]) -> tuple[MethodFacts, ...]:
    """Describe the methods of a run, in the order of its spec."""
    described = []
    for method in spec.methods:
        options = method.raw_options()
        if method.by_task:
            options = {**options, "by_task": method.model_dump(mode="json")["by_task"]}
        described.append(MethodFacts(method.name, method.use, options_in_words(options), stored[method.name].summary))
    return tuple(described)


def options_in_words(options: Mapping[str, Any]) -> str:
    """Return options as text: 'num_components 100, word2vec (epochs 5)'."""
    words = []
    for name, value in options.items():
        if isinstance(value, Mapping):
            value = f"({options_in_words(value)})"
        words.append(f"{name} {value}")
    return ", ".join(words)


def method_tables(
    methods: Sequence[MethodFacts],
    stored: Mapping[str, StoredMethod],
    results: pd.DataFrame,
    metrics: Mapping[str, Mapping[str, Mapping[str, float]]],
) -> list[Table]:
    """Return tables on the methods: plugins and options, the mean time of each arm, and the metrics that they recorded.

    Parameters
    ----------
    methods
        Descriptions of the methods.
    stored
        The methods, whose plugins have described their metrics.
    results
        Results table; without rows, there is no table of times.
    metrics
        Method to arm to metric to mean; without metrics, there is no table of them.
    """
    facts = [(method.name, method.use, method.options, method.summary) for method in methods]
    tables = [Table("Methods", tuple(map(Column, ("method", "use", "options", "description"))), tuple(facts))]
    if not results.empty:
        seconds = results["fit_seconds"] + results["predict_seconds"]
        means = seconds.groupby([results["method"], results["arm"]], sort=False).mean().unstack("arm")
        means = means.loc[results["method"].unique(), results["arm"].unique()].astype("object")
        means = means.where(means.notna(), None)
        units: dict[str, Unit] = {"method": "text", **dict.fromkeys(map(str, means.columns), "seconds")}
        tables.append(_make_table("Mean time to fit and predict, by arm", units, means.itertuples()))
    if metrics:
        arms = list(dict.fromkeys(arm for by_arm in metrics.values() for arm in by_arm))
        units = {"method": "text", "metric": "text", **dict.fromkeys(arms, "number"), "description": "text"}
        rows = [
            (method, metric, *(by_arm.get(arm, {}).get(metric) for arm in arms), stored[method].metrics.get(metric, ""))
            for method, by_arm in metrics.items()
            for metric in dict.fromkeys(name for values in by_arm.values() for name in values)
        ]
        tables.append(_make_table("Means of the metrics that methods recorded, by arm", units, rows))
    return [replace(table, topic="methods") for table in tables]


def copy_tables(tasks: Descriptions) -> list[Table]:
    """Return a table of the copies of rows; none without copies.

    Parameters
    ----------
    tasks
        Facts about the data of each task, with `copies` as `peekbench.data.overlap.find_copies` returns them.

    Returns
    -------
    list of Table
        One table, or an empty list.

    Examples
    --------
    >>> copies = {"likeness": "near", "rows": {"all": 9}, "pairs": {"all-all": [2, 4]}, "conflicting": 0}
    >>> copy_tables({"news": {"copies": {**copies, "examples": [[0, 7], [1, 3]]}}})[0].rows
    (('news', 'in all rows', 9, 2, 4, 0, '0 and 7; 1 and 3'),)
    """
    rows: list[tuple[Cell, ...]] = []
    for task, copies in ((task, data["copies"]) for task, data in tasks.items()):
        examples = "; ".join(f"{first} and {second}" for first, second in copies["examples"])
        more: tuple[Cell, ...] = (copies["conflicting"], examples)
        for pair, (equal, near) in copies["pairs"].items():
            number = copies["rows"][pair.partition("-")[0]]
            rows.append((task, PAIRS[pair], number, equal, near if copies["likeness"] == "near" else None, *more))
            more = (None, None)
    units: Units = {
        "task": "text", "copies": "text", "rows": "count", "with an equal row": "count",
        "with an equal or near one": "count", "copied texts with different labels": "count", "first copies": "text",
    }  # fmt: skip
    note = (
        "Rows are equal if they differ at most in case and white space, and near if the Jaccard similarity of their "
        f"five-character sequences is at least {SIMILARITY} (prompts: with equal references and numbers); near ones "
        f"are searched for in up to {MAX_CHARACTERS:,} characters. Test texts that are also train texts raise all "
        "scores; those that are also extra texts hide bias. Rows are counted from 0, as the data are loaded. In tasks "
        "of `files`, `hf` and `docstrings`, and in `measure`, the option `drop_duplicates` removes copies."
    )
    table = _make_table("Copies of rows", units, rows, note)
    return [table] if table.rows else []

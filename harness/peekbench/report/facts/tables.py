"""Tables on a run's tasks, texts, methods and looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from peekbench.data.preflight import majority_share
from peekbench.data.texts import SIMILARITY
from peekbench.formatting import pluralize
from peekbench.records.data import Split
from peekbench.records.report import Cell, Column, MethodFacts, Table
from peekbench.records.runs import PlannedLook

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
        where = " of the test split" if splits else ""
        note = f"Majority: accuracy of always predicting the largest class{where}. {note}"
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


PERCENTILES = ("5", "25", "50", "75", "95")
PAIRS = {
    "test-extra": "test in extra",
    "test-train": "test in train",
    "extra-train": "extra in train",
    "test-test": "within test",
    "extra-extra": "within extra",
    "train-train": "within train",
}
"""Key of a share of duplicates to the name of its column."""


def text_tables(descriptions: Mapping[str, Mapping[str, Any]]) -> list[Table]:
    """Return tables on the classes, the lengths and the duplicates of the tasks' texts.

    Parameters
    ----------
    descriptions
        Task name to the description that `describe_texts` returns. Tasks with an empty description are
        left out.

    Returns
    -------
    list of Table
        Empty if no task has texts.

    Examples
    --------
    >>> text_tables({"a table of numbers": {}})
    []
    """
    described = {task: texts for task, texts in descriptions.items() if texts}
    if not described:
        return []
    classified = {task: texts for task, texts in described.items() if texts["classes"]}
    tables = [*([_class_table(classified)] if classified else []), _length_table(described)]
    if any(map(_has_duplicates, described.values())):
        tables.append(_duplicate_table(described))
    # Runs whose texts were described earlier have no such entry.
    if repeated := {
        task: texts["repeated"] for task, texts in described.items() if texts.get("repeated", {}).get("texts")
    }:
        tables.append(_repeated_table(repeated))
    return [*tables, _token_table(described)] if any(texts["tokens"] for texts in described.values()) else tables


def _class_table(described: Mapping[str, Mapping[str, Any]]) -> Table:
    splits = [split for split in get_args(Split) if any(texts["splits"] for texts in described.values())]
    rows = [
        (task, name, count, count / sum(texts["classes"].values()),
         *(texts["splits"].get(split, {}).get(name) for split in splits))
        for task, texts in described.items()
        for name, count in texts["classes"].items()
    ]  # fmt: skip
    columns = (
        Column("task"),
        Column("class"),
        Column("rows", "count"),
        Column("share", "fraction"),
        *(Column(f"{split} split", "count") for split in splits),
    )
    is_balanced = next(iter(described.values()))["train"] == "balanced"
    train = "Training sets are balanced over classes; extra" if is_balanced else "Training, extra"
    note = f"In the whole data set. {train} and test sets are sampled at random."
    if splits:
        note += " With official splits, training sets come from the train split, the others from the test split."
    return Table("Classes", columns, tuple(rows), note)


def _length_table(described: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [(task, texts["num_texts"], *_lengths(texts["characters"])) for task, texts in described.items()]
    columns = (Column("task"), Column("texts", "count"), *(Column(f"{share}%", "number") for share in PERCENTILES))
    note = f"Percentiles over the sampled texts. {_sample_in_words(described)}"
    if not any(map(_has_duplicates, described.values())):
        note += " These texts have no duplicates."
    return Table("Text length in characters", columns, tuple(rows), note)


def _token_table(described: Mapping[str, Mapping[str, Any]]) -> Table:
    counts = [
        (task, method, lengths) for task, texts in described.items() for method, lengths in texts["tokens"].items()
    ]
    columns = [Column("task"), Column("method"), *(Column(f"{share}%", "number") for share in PERCENTILES)]
    rows: list[tuple[Cell, ...]] = [(task, method, *_lengths(lengths)) for task, method, lengths in counts]
    note = "Tokens as each method counts them."
    if any(lengths["limit"] is not None for _, _, lengths in counts):
        columns += [Column("limit", "number"), Column("truncated", "fraction")]
        rows = [(*row, lengths["limit"], lengths["cut"]) for row, (_, _, lengths) in zip(rows, counts, strict=True)]
        note += " Limit: tokens of a text that the method reads. Truncated: share of texts that are longer."
    return Table("Text length in tokens", tuple(columns), tuple(rows), note)


def _has_duplicates(texts: Mapping[str, Any]) -> bool:
    return any(texts["overlap"]["near"].values())  # exact duplicates are near ones, too


def _duplicate_table(described: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [
        (task, kind, *(shares[pair] for pair in PAIRS))
        for task, texts in described.items()
        for kind, shares in texts["overlap"].items()
        if any(shares.values())
    ]
    without_duplicates = [task for task, texts in described.items() if not _has_duplicates(texts)]
    columns = (Column("task"), Column("kind"), *(Column(name, "fraction") for name in PAIRS.values()))
    note = (
        "Share of the texts of the first set that the second set contains too, exactly or nearly (Jaccard similarity "
        f"of five-character sequences at least {SIMILARITY}); within a set, share of texts that have a duplicate. "
        f"Both arms see a text that is in extra and in test, which hides bias. {_sample_in_words(described)}"
    )
    if without_duplicates:
        note += f" Tasks without duplicates: {', '.join(without_duplicates)}."
    return Table("Duplicate texts", columns, tuple(rows), note)


def _repeated_table(repeated: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [
        (
            task,
            found["texts"],
            found["rows"],
            found["conflicting"],
            "; ".join(f"{first} and {second}" for first, second in found["examples"]),
        )
        for task, found in repeated.items()
    ]
    columns = (
        Column("task"),
        Column("texts", "count"),
        Column("rows", "count"),
        Column("texts with different labels", "count"),
        Column("first rows"),
    )
    note = (
        "Texts that occur in several rows of the whole data set, the rows that have them, and how many of these texts "
        "do not have the same label in all rows. Rows are counted from 0, in the order in which the data are loaded. "
        "In tasks of `files`, `hf` and `docstrings`, the option `drop_duplicates` removes them."
    )
    return Table("Equal texts in the whole data", columns, tuple(rows), note)


def _lengths(percentiles: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(percentiles[share] for share in PERCENTILES)


def _sample_in_words(described: Mapping[str, Mapping[str, Any]]) -> str:
    texts = next(iter(described.values()))
    num_extra = texts.get("num_extra", texts["num_test"])  # stores of earlier versions lack it
    return (
        f"Computed on the first {pluralize(texts['num_subsamples'], 'subsample')} of each task: at most "
        f"{texts['num_train']} training texts, {num_extra} extra and {texts['num_test']} test texts each."
    )


def look_tables(looks: Sequence[PlannedLook], fractions: Sequence[float]) -> list[Table]:
    """Return a table of the planned looks with their verdicts; no table if there were none.

    Parameters
    ----------
    looks
        Planned looks.
    fractions
        Shares of the maximum at all looks so far, ascending. They number the looks as the verdicts do.
    """
    if not looks:
        return []
    methods = list(dict.fromkeys(method for look in looks for method in look.decisions))
    rows = tuple(
        (
            1 + sum(fraction < look.fraction - 1e-9 for fraction in fractions),
            look.subsamples,
            look.fraction,
            *(look.decisions.get(method) for method in methods),
            "stopped" if look.stops else "continued",
        )
        for look in looks
    )
    columns = (
        Column("look", "count"),
        Column("subsamples", "count"),
        Column("share of maximum", "fraction"),
        *(Column(method) for method in methods),
        Column("run"),
    )
    first = " The share refers to the maximum at the first look." if any(look.fraction > 1 for look in looks) else ""
    note = (
        "Verdicts at each planned look before all subsamples are done. The run stops when all verdicts are settled. "
        f"After all subsamples, the report itself is the last look.{first}"
    )
    return [Table("Planned looks", columns, rows, note, topic="data")]

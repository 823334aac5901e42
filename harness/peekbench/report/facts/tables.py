"""Tables on a run's tasks, texts, methods and looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from peekbench.data.preflight import majority_share
from peekbench.data.texts import SIMILARITY
from peekbench.formatting import pluralize
from peekbench.records.data import Split
from peekbench.records.report import Cell, Column, MethodFacts, Table
from peekbench.records.runs import PlannedLook
from peekbench.records.verdicts import Unit

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.spec.experiment import ExperimentSpec
    from peekbench.store.reader import StoredMethod

Descriptions: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Names of tasks to descriptions of their data or texts, as the store keeps them."""
Units: TypeAlias = Mapping[str, Unit]
"""Names of columns to their units."""
PERCENTILES = ("5", "25", "50", "75", "95")
LENGTHS: Units = {f"{share}%": "number" for share in PERCENTILES}
PAIRS = {
    "test-extra": "test in extra",
    "test-train": "test in train",
    "extra-train": "extra in train",
    "test-test": "within test",
    "extra-extra": "within extra",
    "train-train": "within train",
}
"""Key of a share of duplicates to the name of its column."""


def _make_table(title: str, units: Units, rows: Iterable[Sequence[Cell]], note: str = "") -> Table:
    """Return a table without the columns in which all cells are empty."""
    rows = list(rows)
    kept = [place for place in range(len(units)) if any(row[place] not in (None, "") for row in rows)]
    columns = [Column(name, unit) for name, unit in units.items()]
    cells = tuple(tuple(row[place] for place in kept) for row in rows)
    return Table(title, tuple(columns[place] for place in kept), cells, note)


def data_tables(tasks: Descriptions, texts: Descriptions) -> list[Table]:
    """Return the tables on the data of a run: the tasks, and their texts as `text_tables` takes them."""
    return [replace(table, topic="data") for table in (task_table(tasks), *text_tables(texts))]


def task_table(tasks: Descriptions) -> Table:
    """Return a table with the size, classes, version and fingerprint of each task."""
    splits = _splits_of(tasks)
    counts = ("rows", *(f"{split} split" for split in splits), "groups", "classes", "smallest class", "largest class")
    units: dict[str, Unit] = {"task": "text", **dict.fromkeys(counts, "count"), "majority": "fraction"}
    units |= dict.fromkeys(("dropped rows", "version", "fingerprint"), "text")
    rows = [
        (name, data["rows"], *(data["splits"].get(split, {}).get("rows") for split in splits), data.get("groups"),
         len(data["class_names"]) or None, min(data["class_counts"], default=None),
         max(data["class_counts"], default=None), majority_share(data),
         ", ".join(f"{number:,} {reason}" for reason, number in data["details"].get("dropped", {}).items() if number),
         str(data["details"].get("version") or data["details"].get("revision", "")[:12]), data["fingerprint"][:12])
        for name, data in tasks.items()
    ]  # fmt: skip
    note = "The JSON report describes each task and the source of its data."
    if any(data["kind"] == "classification" for data in tasks.values()):
        where = "Majority: accuracy of always predicting the largest class"
        if splits:
            where += " of the test split"
        note = f"{where}. {note}"
    if any(data["kind"] == "multilabel" for data in tasks.values()):
        note = f"Accuracy: share of the texts with exactly the right labels (subset accuracy). {note}"
    return _make_table("Tasks", units, rows, note)


def _splits_of(described: Descriptions) -> list[str]:
    """Return the official splits; none if no task has them."""
    if not any(description["splits"] for description in described.values()):
        return []
    return list(get_args(Split))


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


def text_tables(descriptions: Descriptions) -> list[Table]:
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
    makers = (_class_table, _length_table, _duplicate_table, _repeated_table, _token_table)
    return [table for make in makers if (table := make(described)).rows]


def _class_table(described: Descriptions) -> Table:
    described = {task: texts for task, texts in described.items() if texts["classes"]}
    splits = _splits_of(described)
    rows = [
        (task, name, count, count / texts.get("rows", sum(texts["classes"].values())),
         *(texts["splits"].get(split, {}).get(name) for split in splits))
        for task, texts in described.items()
        for name, count in texts["classes"].items()
    ]  # fmt: skip
    units: dict[str, Unit] = {"task": "text", "class": "text", "rows": "count", "share": "fraction"}
    units |= dict.fromkeys((f"{split} split" for split in splits), "count")
    train = "Training, extra"
    if any(texts["train"] == "balanced" for texts in described.values()):
        train = "Training sets are balanced over classes; extra"
    note = f"In the whole data set. {train} and test sets are sampled at random."
    if splits:
        note += " With official splits, training sets come from the train split, the others from the test split."
    return _make_table("Classes", units, rows, note)


def _length_table(described: Descriptions) -> Table:
    rows = [(task, texts["num_texts"], *_lengths(texts["characters"])) for task, texts in described.items()]
    note = f"Percentiles over the sampled texts. {_sample_in_words(described)}"
    if not any(map(_has_duplicates, described.values())):
        note += " These texts have no duplicates."
    return _make_table("Text length in characters", {"task": "text", "texts": "count", **LENGTHS}, rows, note)


def _token_table(described: Descriptions) -> Table:
    counts = [
        (task, method, lengths) for task, texts in described.items() for method, lengths in texts["tokens"].items()
    ]
    units: dict[str, Unit] = {"task": "text", "method": "text", **LENGTHS}
    note = "Tokens as each method counts them."
    limits: tuple[str, ...] = ()
    if any(lengths["limit"] is not None for _, _, lengths in counts):
        limits = ("limit", "cut")
        units |= {"limit": "number", "truncated": "fraction"}
        note += " Limit: tokens of a text that the method reads. Truncated: share of texts that are longer."
    rows = [(task, method, *_lengths(found), *(found[key] for key in limits)) for task, method, found in counts]
    return _make_table("Text length in tokens", units, rows, note)


def _has_duplicates(texts: Mapping[str, Any]) -> bool:
    return any(texts["overlap"]["near"].values())  # exact duplicates are near ones, too


def _duplicate_table(described: Descriptions) -> Table:
    rows = [
        (task, kind, *(shares[pair] for pair in PAIRS))
        for task, texts in described.items()
        for kind, shares in texts["overlap"].items()
        if any(shares.values())
    ]
    units: Units = {"task": "text", "kind": "text", **dict.fromkeys(PAIRS.values(), "fraction")}
    note = (
        "Share of the texts of the first set that the second set contains too, exactly or nearly (Jaccard similarity "
        f"of five-character sequences at least {SIMILARITY}; prompts also with equal references and numbers); within a "
        "set, share of texts that have a duplicate. "
        f"Both arms see a text that is in extra and in test, which hides bias. {_sample_in_words(described)}"
    )
    if without_duplicates := [task for task, texts in described.items() if not _has_duplicates(texts)]:
        note += f" Tasks without duplicates: {', '.join(without_duplicates)}."
    return _make_table("Duplicate texts", units, rows, note)


def _repeated_table(described: Descriptions) -> Table:
    # Runs whose texts were described earlier have no such entry.
    repeated = {task: texts["repeated"] for task, texts in described.items() if texts.get("repeated", {}).get("texts")}
    rows = [
        (task, found["texts"], found["rows"], found["conflicting"],
         "; ".join(f"{first} and {second}" for first, second in found["examples"]))
        for task, found in repeated.items()
    ]  # fmt: skip
    units: Units = {
        "task": "text", "texts": "count", "rows": "count", "texts with different labels": "count", "first rows": "text"
    }  # fmt: skip
    note = (
        "Texts that occur in several rows of the whole data set, the rows that have them, and how many of these texts "
        "do not have the same label in all rows. Rows are counted from 0, in the order in which the data are loaded. "
        "In tasks of `files`, `hf` and `docstrings`, the option `drop_duplicates` removes them."
    )
    return _make_table("Equal texts in the whole data", units, rows, note)


def _lengths(percentiles: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(percentiles[share] for share in PERCENTILES)


def _sample_in_words(described: Descriptions) -> str:
    texts = next(iter(described.values()))
    num_extra = texts.get("num_extra", texts["num_test"])  # stores of earlier versions lack it
    return (
        f"Computed on the first {pluralize(texts['num_subsamples'], 'subsample')} of each task: at most "
        f"{texts['num_train']:,} training texts, {num_extra:,} extra and {texts['num_test']:,} test texts each."
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
    outcomes = {True: "stopped", False: "continued"}
    rows = [
        (
            1 + sum(fraction < look.fraction - 1e-9 for fraction in fractions),
            look.subsamples,
            look.fraction,
            *(look.decisions.get(method) for method in methods),
            outcomes[look.stops],
        )
        for look in looks
    ]
    units: dict[str, Unit] = {"look": "count", "subsamples": "count", "share of maximum": "fraction"}
    units |= dict.fromkeys((*methods, "run"), "text")
    note = (
        "Verdicts at each planned look before all subsamples are done. The run stops when all verdicts are settled. "
        "After all subsamples, the report itself is the last look."
    )
    if any(look.fraction > 1 for look in looks):
        note += " The share refers to the maximum at the first look."
    return [replace(_make_table("Planned looks", units, rows, note), topic="data")]

"""Tables on a run's tasks, texts, methods and looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from peekbench.data.overlap import MAX_CHARACTERS
from peekbench.data.preflight import majority_share
from peekbench.data.texts import SIMILARITY
from peekbench.formatting import pluralize
from peekbench.records.data import Split
from peekbench.records.report import Cell, Column, MethodFacts, Table
from peekbench.records.runs import PlannedLook, StoredMethod
from peekbench.records.verdicts import Unit

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.spec.experiment import ExperimentSpec

Descriptions: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Names of tasks to descriptions of their data or texts, as the store keeps them."""
Units: TypeAlias = Mapping[str, Unit]
"""Names of columns to their units."""
PERCENTILES = ("5", "25", "50", "75", "95")
LENGTHS: Units = {f"{share}%": "number" for share in PERCENTILES}
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


def data_tables(tasks: Descriptions, texts: Descriptions) -> list[Table]:
    """Return the tables on the data of a run: the tasks, copies of rows, and texts as `text_tables` takes them."""
    return [replace(table, topic="data") for table in (task_table(tasks), *copy_tables(tasks), *text_tables(texts))]


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
    """Return tables on the classes and the lengths of the tasks' texts.

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
    makers = (_class_table, _length_table, _token_table)
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

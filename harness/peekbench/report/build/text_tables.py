"""Tables on the tasks' texts: classes, lengths, tokens, duplicates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from peekbench.data.duplicates import SIMILARITY
from peekbench.formatting import pluralize
from peekbench.records.analysis import Cell, Column, Table
from peekbench.records.data import Split

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
        "The option `drop_duplicates` of a task removes them."
    )
    return Table("Equal texts in the whole data", columns, tuple(rows), note)


def _lengths(percentiles: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(percentiles[share] for share in PERCENTILES)


def _sample_in_words(described: Mapping[str, Mapping[str, Any]]) -> str:
    texts = next(iter(described.values()))
    return (
        f"Computed on the first {pluralize(texts['num_subsamples'], 'subsample')} of each task: at most "
        f"{texts['num_train']} training texts, {texts['num_test']} extra and {texts['num_test']} test texts each."
    )

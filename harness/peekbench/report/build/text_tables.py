"""Tables on the tasks' texts: lengths, tokens, duplicates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peekbench.data.duplicates import SIMILARITY
from peekbench.formatting import pluralize
from peekbench.records.analysis import Cell, Column, Table

SHARES = ("5", "25", "50", "75", "95")
PAIRS = ("test-extra", "test-train", "extra-train", "test-test", "extra-extra", "train-train")


def text_tables(descriptions: Mapping[str, Mapping[str, Any]]) -> list[Table]:
    """What `peekbench.texts.describe_texts` says of each task, as tables."""
    described = {task: texts for task, texts in descriptions.items() if texts}
    if not described:
        return []
    tables = [_class_table(described), _length_table(described), _overlap_table(described)]
    return tables if not any(texts["tokens"] for texts in described.values()) else [*tables, _token_table(described)]


def _class_table(described: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [
        (task, name, count, count / sum(texts["classes"].values()))
        for task, texts in described.items()
        for name, count in texts["classes"].items()
    ]
    columns = (Column("task"), Column("class"), Column("rows", "count"), Column("share", "fraction"))
    return Table(
        "Classes",
        columns,
        tuple(rows),
        "Of the whole data set. Train sets are balanced over classes; extra and test sets are drawn at random.",
    )


def _length_table(described: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [(task, texts["num_texts"], *_lengths(texts["characters"])) for task, texts in described.items()]
    columns = (Column("task"), Column("texts", "count"), *(Column(f"{share}%", "number") for share in SHARES))
    return Table(
        "Lengths of the texts, characters", columns, tuple(rows), f"Percentiles of the texts drawn. {_drawn(described)}"
    )


def _token_table(described: Mapping[str, Mapping[str, Any]]) -> Table:
    counts = [
        (task, method, lengths) for task, texts in described.items() for method, lengths in texts["tokens"].items()
    ]
    columns = [Column("task"), Column("method"), *(Column(f"{share}%", "number") for share in SHARES)]
    rows: list[tuple[Cell, ...]] = [(task, method, *_lengths(lengths)) for task, method, lengths in counts]
    note = "As each method counts."
    if any(lengths["limit"] is not None for _, _, lengths in counts):
        columns += [Column("limit", "number"), Column("cut", "fraction")]
        rows = [(*row, lengths["limit"], lengths["cut"]) for row, (_, _, lengths) in zip(rows, counts, strict=True)]
        note += " The limit is what it can see of a text; cut is the share of texts that are longer."
    return Table("Lengths of the texts, tokens", tuple(columns), tuple(rows), note)


def _overlap_table(described: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [
        (task, likeness, *(shares[pair] for pair in PAIRS))
        for task, texts in described.items()
        for likeness, shares in texts["overlap"].items()
        if any(shares.values())
    ]
    without = [task for task, texts in described.items() if not any(texts["overlap"]["near"].values())]
    names = ("test in extra", "test in train", "extra in train", "within test", "within extra", "within train")
    columns = (Column("task"), Column("kind"), *(Column(name, "fraction") for name in names))
    note = (
        "Share of the first set's texts that stand, exactly or nearly (Jaccard similarity of five-character runs at "
        f"least {SIMILARITY}), in the second too, or a second time in the same set. Texts that stand in extra and in "
        f"test are seen in both arms, which hides bias. {_drawn(described)}"
    )
    if without:
        note += f" None at all: {', '.join(without)}."
    return Table("Texts that stand in two sets", columns, tuple(rows), note)


def _lengths(percentiles: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(percentiles[share] for share in SHARES)


def _drawn(described: Mapping[str, Mapping[str, Any]]) -> str:
    one = next(iter(described.values()))
    return (
        f"Of the first {pluralize(one['num_subsamples'], 'subsample')} of each task: at most {one['num_train']} train "
        f"texts, {one['num_test']} extra and {one['num_test']} test texts."
    )

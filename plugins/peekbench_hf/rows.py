"""Columns as read to texts and labels: joined, filtered, mapped to classes, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peekbench import DataError
from peekbench.data import group_duplicates, keep_first
from peekbench.formatting import pluralize
from peekbench_hf.definition import HubTask
from peekbench_hf.reading import Columns

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

PERCENTILES = (5, 25, 50, 75, 95)


@dataclass(frozen=True, slots=True)
class Rows:
    """A task's rows, ready to be kept."""

    table: pa.Table
    """`text`, large strings, and `label`, int64 from 0; in as many chunks as it was read."""
    class_names: tuple[str, ...]
    details: Mapping[str, Any]
    """What was left out, and why."""


def make_rows(columns: Columns, task: HubTask, label: str, drop_duplicates: str) -> Rows:
    """Apply the task's rules.

    Parameters
    ----------
    label
        The label column's name in these files.
    drop_duplicates
        'none', 'exact' or 'near'.

    Raises
    ------
    DataError
        Where a text or a label is missing, of another type than it should be, or not what the task says.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    num_read = columns.table.num_rows
    texts = _join([_texts(columns.table.column(name), name) for name in task.text])
    table = pa.table({"text": texts, "label": columns.table.column(label)})
    dropped = {"missing": 0, "long": 0, "duplicate": 0}
    blank = pc.or_(pc.equal(table["text"], ""), pc.utf8_is_space(table["text"]))
    missing = pc.fill_null(pc.or_(blank, table["label"].is_null()), True)
    if pc.any(missing).as_py():
        if not task.drop_missing:
            raise DataError(_say_missing(missing, task, label))
        table = table.filter(pc.invert(missing))
        dropped["missing"] = num_read - table.num_rows
    if task.max_characters is not None:
        before = table.num_rows
        table = table.filter(pc.less_equal(pc.utf8_length(table["text"]), task.max_characters))
        dropped["long"] = before - table.num_rows
    codes, names = _classes(table["label"], columns.class_names, task, label)
    table = pa.table({"text": table["text"], "label": codes})
    if drop_duplicates != "none":
        kept = keep_first(_groups(table["text"], drop_duplicates), table["label"].to_numpy())
        dropped["duplicate"] = table.num_rows - int(kept.sum())
        table = table.filter(pa.array(kept))
    _check_classes(table["label"].to_numpy(), names, task)
    return Rows(
        table,
        names,
        {
            "rows_read": num_read,
            "dropped": dropped,
            "drop_duplicates": drop_duplicates,
        },
    )


def measure(texts: pa.ChunkedArray) -> dict[str, Any]:
    """How many texts stand there already, and how long texts are."""
    import pyarrow.compute as pc

    lengths = pc.quantile(pc.utf8_length(texts), q=[share / 100 for share in PERCENTILES]).to_pylist()
    return {
        "exact_duplicates": len(texts) - pc.count_distinct(_narrow(texts)).as_py(),
        "characters": {str(share): round(length) for share, length in zip(PERCENTILES, lengths, strict=True)},
    }


def _narrow(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same texts with 32-bit offsets, which pyarrow counts in half the time, where no chunk is too large for it."""
    import pyarrow as pa

    try:
        return texts.cast(pa.string())
    except pa.ArrowInvalid:
        return texts


def _texts(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise DataError(f"column {name!r} holds {column.type}, no text; name another column")
    return column.cast(pa.large_string())


def _join(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    return (
        columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, pa.scalar("\n", pa.large_string()))
    )


def _say_missing(missing: pa.ChunkedArray, task: HubTask, label: str) -> str:
    import pyarrow.compute as pc

    first = pc.index(missing, True).as_py()
    columns = " or ".join(map(repr, (*task.text, label)))
    return (
        f"row {first + 1}: nothing in column {columns}; so it is in {pluralize(pc.sum(missing).as_py(), 'row')}. Leave "
        "them out with `drop_missing: true` in hf.dataset, or mend the data"
    )


def _classes(
    column: pa.ChunkedArray, given: tuple[str, ...] | None, task: HubTask, label: str
) -> tuple[pa.ChunkedArray, tuple[str, ...]]:
    """Each row's class, 0, 1, ..., and the classes' names.

    Parameters
    ----------
    given
        The label column's names, where it is a ClassLabel.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = None if task.classes is None else tuple(task.classes)
    if given is not None and keys is not None and keys != given:
        raise DataError(
            f"column {label!r} is a ClassLabel of {', '.join(given)}, but the class names are for "
            f"{', '.join(keys)}; give the same labels in the same order"
        )
    labels = _label_texts(column, label)
    if given is not None or (keys is not None and pa.types.is_integer(column.type) and not _are_numbers(keys)):
        keys = given or keys or ()
        values = tuple(map(str, range(len(keys))))
    else:
        keys = keys or _sorted(pc.unique(labels).to_pylist())
        values = keys
    codes = pc.index_in(labels, value_set=pa.array(values, pa.large_string()))
    if codes.null_count:
        stray = pc.filter(labels, codes.is_null())[0].as_py()
        raise DataError(
            f"column {label!r} has a label that is no class in {pluralize(codes.null_count, 'row')}, the first "
            f"{stray!r}; the labels are {', '.join(map(repr, values))}. Name every label in class_names"
        )
    names = keys if task.classes is None else tuple(task.classes[key] for key in keys)
    unique = tuple(dict.fromkeys(names))  # several labels may be one class
    positions = pa.array([unique.index(name) for name in names], pa.int64())
    return pc.take(positions, codes), unique


def _label_texts(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_floating(kind):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(f"column {name!r} holds fractions, which are no labels: {error}") from error
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return _texts(column, name)
    texts = column.cast(pa.large_string())
    return pc.utf8_lower(texts) if pa.types.is_boolean(kind) else texts


def _are_numbers(keys: tuple[str, ...]) -> bool:
    return all(key.lstrip("-").isdigit() for key in keys)


def _sorted(labels: list[str]) -> tuple[str, ...]:
    numeric = _are_numbers(tuple(labels))
    return tuple(sorted(labels, key=lambda label: (int(label) if numeric else 0, label)))


def _groups(texts: pa.ChunkedArray, likeness: str) -> NDArray[np.int64]:
    import pyarrow as pa

    if likeness == "near":
        return group_duplicates(texts.to_pylist(), "near")
    encoded = texts.combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy()
    first = pa.table({"code": codes, "row": range(len(codes))}).group_by("code").aggregate([("row", "min")])
    by_code = first.sort_by("code")["row_min"].to_numpy()
    groups: NDArray[np.int64] = by_code[codes]
    return groups


def _check_classes(labels: NDArray[np.int64], names: tuple[str, ...], task: HubTask) -> None:
    import numpy as np

    if not len(labels):
        raise DataError("no rows are left; see that max_characters and the columns are what they should be")
    counts = np.bincount(labels, minlength=len(names))
    empty = [name for name, count in zip(names, counts, strict=True) if count == 0]
    if empty:
        raise DataError(f"no row has the class {empty[0]!r}, one of {len(names)}; leave it out of class_names")
    if len(names) < 2:
        raise DataError(f"there is one class, {names[0]!r}, in column {task.label!r}; classification needs two or more")

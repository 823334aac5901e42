"""Prepare a task: convert its columns to rows, and store them as an Arrow file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from peekbench import DataError
from peekbench.cache import atomic_write, describe_file, write_cached
from peekbench.data import group_duplicates, keep_first
from peekbench.data.label_sets import LabelSet, find_unlabeled, name_label_sets, read_label_set, refuse_hidden_sets
from peekbench.data.labels import ClassNames, find_missing, name_classes, read_reference, refuse_hidden, refuse_missing
from peekbench.formatting import pluralize
from peekbench.identity import key_of
from peekbench.records.answers import number_label_sets
from peekbench_hf.definition import HubTask
from peekbench_hf.options import HubOptions
from peekbench_hf.prepared import PreparedTask, find_prepared, list_groups, list_labels, metadata_path
from peekbench_hf.reading import Columns, read_splits

VALIDATION = "set `test_split` to validation"
PERCENTILES = (5, 25, 50, 75, 95)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a task."""

    table: pa.Table
    """Columns `text`, large strings, `label`, int64 starting at 0, and large strings `group` if rows have groups; in as
    many chunks as were read."""
    class_names: tuple[str, ...]
    details: Mapping[str, Any]
    """Number of rows that were read, and of rows that were dropped by reason."""
    num_test: int = 0
    """Number of rows of the official test split, which are the last ones; 0 if rows of all splits are pooled."""


def make_rows(columns: Columns, task: HubTask, label: str, drop_duplicates: str) -> Rows:
    """Convert columns to rows according to the task's definition.

    Parameters
    ----------
    columns
        Text and label columns.
    task
        Definition of the task.
    label
        Name of the label column in these files.
    drop_duplicates
        `none`, `exact` or `near`.

    Raises
    ------
    DataError
        If a text or a label is missing, has the wrong type, or does not match the definition.
    """
    num_read = columns.table.num_rows
    texts = _join([_as_texts(columns.table.column(name), name) for name in task.text])
    is_test = np.arange(num_read) >= num_read - columns.num_test
    is_multilabel = _has_lists(columns, label) and not task.is_generation
    labels, class_names = (_read_references if task.is_generation else _read_labels)(columns, task, label)
    groups = pa.nulls(num_read, pa.large_string())
    if task.group:
        groups = _label_texts(columns.table.column(task.group), task.group)
    table = pa.table({"text": texts, "label": labels, "is_test": is_test, "group": groups})
    dropped = {"missing": 0, "long": 0, "duplicate": 0}
    is_blank = pc.or_(pc.equal(table["text"], ""), pc.utf8_is_space(table["text"]))
    is_missing = pc.fill_null(is_blank, True)
    if task.group:
        is_missing = pc.or_(is_missing, pc.fill_null(pc.equal(groups, ""), True))
    if pc.any(is_missing).as_py() and not task.drop_missing:
        raise _missing_error(is_missing, task)
    find = _find_unanswered if task.is_generation else _find_unlabeled
    is_missing = pc.or_(is_missing, find(table, task, label, class_names, is_multilabel=is_multilabel))
    table = table.filter(pc.invert(is_missing))
    dropped["missing"] = num_read - table.num_rows
    if task.drop_shared_groups:
        num_before = table.num_rows
        of_test = pc.unique(table["group"].filter(table["is_test"]))
        table = table.filter(pc.or_(table["is_test"], pc.invert(pc.is_in(table["group"], value_set=of_test))))
        dropped["group of the test split"] = num_before - table.num_rows
    if task.max_characters is not None:
        num_before = table.num_rows
        table = table.filter(pc.less_equal(pc.utf8_length(table["text"]), task.max_characters))
        dropped["long"] = num_before - table.num_rows
    details: dict[str, Any] = {"rows_read": num_read, "dropped": dropped, "drop_duplicates": drop_duplicates}
    if is_multilabel:
        names, indicators, left_out = name_label_sets(_decode_sets(table), class_names, f"column {label!r}")
        flat = pa.array(np.array(indicators, dtype=np.int64).ravel())
        codes = pa.FixedSizeListArray.from_arrays(flat, len(names))
        if left_out:
            details["labels left out"] = ", ".join(left_out)
    else:
        counts = _count(table["label"])
        if task.is_generation:
            names, positions = tuple(counts), {reference: position for position, reference in enumerate(counts)}
        else:
            names, positions = name_classes(counts, class_names, f"column {label!r}")
        keys = pc.index_in(table["label"], value_set=pa.array(list(positions), pa.large_string()))
        codes = pc.take(pa.array(list(positions.values()), pa.int64()), keys)
    table = table.set_column(1, "label", codes)
    if drop_duplicates != "none":
        numbers = number_label_sets(list_labels(table))
        references = numbers.tolist() if task.is_generation else None
        is_kept = keep_first(_group_texts(table["text"], drop_duplicates, references), numbers)
        dropped["duplicate"] = table.num_rows - int(is_kept.sum())
        table = table.filter(pa.array(is_kept))
    _check_classes(list_labels(table), names, task)
    num_test = pc.sum(table["is_test"]).as_py() if columns.num_test else 0
    if columns.num_test and not 0 < num_test < table.num_rows:
        raise DataError(
            f"no rows of the {'train' if num_test else 'test'} split are left; check max_characters, or set "
            "`drop_duplicates` to none"
        )
    if not task.group:
        table = table.drop_columns("group")
    return Rows(table.drop_columns("is_test"), names, details, num_test)


def measure(texts: pa.ChunkedArray) -> dict[str, Any]:
    """Count duplicate texts and compute percentiles of the texts' lengths.

    Returns
    -------
    dict
        `exact_duplicates`, the number of texts that repeat an earlier one, and `characters`, a mapping from
        percentiles to lengths.
    """
    lengths = pc.quantile(pc.utf8_length(texts), q=[percentile / 100 for percentile in PERCENTILES]).to_pylist()
    return {
        "exact_duplicates": len(texts) - pc.count_distinct(_as_small_strings(texts)).as_py(),
        "characters": {str(percentile): round(length) for percentile, length in zip(PERCENTILES, lengths, strict=True)},
    }


def _as_small_strings(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the texts with 32-bit offsets, which halves the time to count them; unchanged if a chunk is too large."""
    try:
        return texts.cast(pa.string())
    except pa.ArrowInvalid:
        return texts


def _as_texts(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    value_type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(value_type) or pa.types.is_large_string(value_type) or pa.types.is_null(value_type)):
        raise DataError(f"column {name!r} contains {column.type}, not text; name another column")
    return column.cast(pa.large_string())


def _join(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    if len(columns) == 1:
        return columns[0]
    return pc.binary_join_element_wise(*columns, pa.scalar("\n", pa.large_string()))


def _missing_error(is_missing: pa.ChunkedArray, task: HubTask) -> DataError:
    first = pc.index(is_missing, True).as_py()
    columns = " or ".join(map(repr, filter(None, (*task.text, task.group))))
    return DataError(
        f"row {first + 1}: no value in column {columns}; {pluralize(pc.sum(is_missing).as_py(), 'row')} in total. Drop "
        "such rows, with `drop_missing` True in hf.dataset, or fix the data"
    )


def _read_labels(columns: Columns, task: HubTask, label: str) -> tuple[pa.ChunkedArray, ClassNames]:
    """Return the label of each row as text, empty if there is none, and the names of the classes.

    Parameters
    ----------
    columns
        Text and label columns.
    task
        Definition of the task.
    label
        Name of the label column.
    """
    column, feature_names = columns.table.column(label), columns.class_names
    if feature_names is not None:
        feature_names = tuple(key_of(name) or "" for name in feature_names)
    if _has_lists(columns, label):
        sets = [_encode_set(value, feature_names, label) for value in column.to_pylist()]
        class_names: ClassNames = task.classes or feature_names
        if task.classes and task.is_in_order:
            class_names = tuple(task.classes)
        return pa.chunked_array([pa.array(sets, pa.large_string())]), class_names
    keys = tuple(task.classes or ())
    labels = pc.fill_null(_label_texts(column, label), "")
    is_coded = pa.types.is_integer(column.type) and task.is_in_order and not _are_numbers(keys)
    if keys and feature_names is None and is_coded:
        feature_names = keys
    if feature_names is not None:
        numbers = pa.array(map(str, range(len(feature_names))), pa.large_string())
        names = pc.take(pa.array(feature_names, pa.large_string()), pc.index_in(labels, value_set=numbers))
        labels = pc.coalesce(names, labels)
    if feature_names is not None and keys:
        others = {label for label in pc.unique(labels).to_pylist() if label not in feature_names}
        named = [key for key in keys if key not in others]
        if set(named) != set(feature_names) or (task.is_in_order and tuple(named) != feature_names):
            raise DataError(
                f"column {label!r} is a ClassLabel with the labels {', '.join(feature_names)}, but class_names has "
                f"{', '.join(keys)}; name the same labels in the same order"
            )
    return labels, task.classes or feature_names


def _read_references(columns: Columns, _: HubTask, label: str) -> tuple[pa.ChunkedArray, ClassNames]:
    """Return the reference of each row in JSON, and no names; those of a ClassLabel are names, of which -1 has none."""
    values = columns.table.column(label).to_pylist()
    if names := columns.class_names:
        by_code = {**dict(enumerate(names)), -1: None}
        values = [by_code.get(value, value) if isinstance(value, int) else value for value in values]
    references = [read_reference(value, f"column {label!r}, row {row}") for row, value in enumerate(values, start=1)]
    written = [json.dumps(reference, ensure_ascii=False) if reference else "" for reference in references]
    return pa.chunked_array([pa.array(written, pa.large_string())]), None


def _find_unanswered(
    table: pa.Table, task: HubTask, label: str, _: ClassNames, *, is_multilabel: bool
) -> pa.ChunkedArray:
    """Return whether each row has no reference. Raise an error if there are such rows, unless they are dropped."""
    is_missing = pc.equal(table["label"], "")
    if pc.any(is_missing).as_py() and not task.drop_missing:
        raise DataError(
            f"row {pc.index(is_missing, True).as_py() + 1}: no reference in column {label!r}; "
            f"{pluralize(pc.sum(is_missing).as_py(), 'row')} in total. Drop such rows, with `drop_missing` True, or "
            "use a split whose references are public"
        )
    return is_missing


def _has_lists(columns: Columns, label: str) -> bool:
    kind = columns.table.column(label).type
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _encode_set(value: Any, names: Sequence[str] | None, label: str) -> str:
    """Return the labels of a row as JSON, with the names of a ClassLabel; empty if they are unknown."""
    labels = read_label_set(value, "", f"column {label!r}")
    if labels is None:
        return ""
    known = {str(number): name for number, name in enumerate(names or ())}
    return json.dumps([known.get(one, one) for one in labels])


def _decode_sets(table: pa.Table) -> list[LabelSet]:
    return [tuple(json.loads(text)) if text else None for text in table["label"].to_pylist()]


def _count(labels: pa.ChunkedArray) -> dict[str, int]:
    return {str(entry["values"]): entry["counts"] for entry in pc.value_counts(labels).to_pylist()}


def _find_unlabeled(
    table: pa.Table, task: HubTask, label: str, class_names: ClassNames, *, is_multilabel: bool
) -> pa.ChunkedArray:
    """Return whether each row has no label. Raise an error if there are such rows, unless they are to be dropped."""
    if is_multilabel:
        sets, place = _decode_sets(table), f"column {label!r}"
        of_test = [labels for labels, is_test in zip(sets, table["is_test"].to_pylist(), strict=True) if is_test]
        refuse_hidden_sets(of_test, "the test split", VALIDATION)
        refuse_hidden_sets(sets, "the data", "use a split that has labels")
        return pa.array(find_unlabeled(sets, class_names, place, drop_missing=task.drop_missing))
    counts = _count(table["label"])
    tests = set(pc.unique(table["label"].filter(table["is_test"])).to_pylist())
    refuse_hidden(tests, counts, class_names, "the test split", VALIDATION)
    if not task.drop_missing:
        refuse_missing(counts, class_names, f"column {label!r}")
    return pc.is_in(table["label"], value_set=pa.array(find_missing(counts, class_names), pa.large_string()))


def _label_texts(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return the keys of labels or groups, null if they are missing."""
    is_number = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    if not is_number and not pa.types.is_boolean(column.type):
        column = _as_texts(column, name)
    encoded = column.combine_chunks().dictionary_encode()
    values = encoded.dictionary.to_pylist()
    keys = [key_of(value) for value in values]
    if None in keys:
        raise DataError(
            f"column {name!r} contains fractions such as {values[keys.index(None)]}, which cannot be labels or groups; "
            "name another column"
        )
    return pa.chunked_array([pa.array(keys, pa.large_string()).take(encoded.indices)])


def _are_numbers(keys: tuple[str, ...]) -> bool:
    return all(key.lstrip("-").isdigit() for key in keys)


def _group_texts(texts: pa.ChunkedArray, likeness: str, references: list[int] | None) -> NDArray[np.int64]:
    """Return for each row the position of the first row with the same text, or nearly the same text."""
    if likeness == "near":
        return group_duplicates(texts.to_pylist(), "near", references)
    encoded = texts.combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy()
    first = pa.table({"code": codes, "row": range(len(codes))}).group_by("code").aggregate([("row", "min")])
    first_row_of = first.sort_by("code")["row_min"].to_numpy()
    groups: NDArray[np.int64] = first_row_of[codes]
    return groups


def _check_classes(labels: NDArray[np.int64], names: tuple[str, ...], task: HubTask) -> None:
    if not len(labels):
        raise DataError("no rows are left; check max_characters and the names of the columns")
    counts = labels.sum(axis=0) if labels.ndim == 2 else np.bincount(labels, minlength=len(names))
    empty = [name for name, count in zip(names, counts, strict=True) if count == 0]
    if empty:
        raise DataError(f"no row has the class {empty[0]!r}, one of {len(names)}; remove it from class_names")
    if len(names) < 2 and not task.is_generation:
        raise DataError(
            f"column {task.label!r} has a single class, {names[0]!r}, but classification needs two; name another column"
        )


def prepare_files(
    splits: Sequence[Sequence[Path]],
    task: HubTask,
    label: str,
    options: HubOptions,
    details: Mapping[str, Any],
    path: Path,
) -> PreparedTask:
    """Read files and store the task's rows.

    Parameters
    ----------
    splits
        Files of the train split, in order, and those of the test split if train and test rows are kept apart.
    task
        Definition of the task.
    label
        Name of the label column in these files.
    options
        Options of the task: how to drop duplicates, and the limit of unpacked sizes.
    details
        Facts for reports, to which those about the rows are added.
    path
        Path of the Arrow file to write.

    Raises
    ------
    DataError
        If a file is damaged, a column is missing, or rows do not match the definition.
    """
    columns = read_splits(splits, task.text, label, options.max_gigabytes, task.group)
    return prepare_rows(make_rows(columns, task, label, options.drop_duplicates), details, path)


def prepare_rows(rows: Rows, details: Mapping[str, Any], path: Path) -> PreparedTask:
    """Store rows in a file; if it cannot be written, they stay in memory, and every process reads the data again.

    Parameters
    ----------
    rows
        The task's rows.
    details
        Facts for reports, to which those about the rows are added.
    path
        Path of the Arrow file to write.
    """
    with ThreadPoolExecutor() as pool:  # each of these tasks passes over all texts without holding the GIL
        measured = pool.submit(measure, rows.table["text"])
        table = rows.table.combine_chunks()
        written = pool.submit(_write, table, path)
        fingerprint = _fingerprint(table, rows.class_names)
        all_details = {**details, **rows.details, **measured.result()}
        file = written.result()
    if file is not None:
        metadata = {
            "fingerprint": fingerprint,
            "class_names": rows.class_names,
            "details": all_details,
            "num_test": rows.num_test,
            "file": file,
        }
        write_cached(metadata_path(path), metadata)
    return find_prepared(path) or PreparedTask(
        table["text"].to_pylist(),
        list_labels(table),
        fingerprint,
        rows.class_names,
        all_details,
        rows.num_test,
        list_groups(table),
    )


def _write(table: pa.Table, path: Path) -> dict[str, Any] | None:
    """Write the file and return its description; None if it cannot be written."""
    with suppress(OSError), atomic_write(path) as temporary:
        with pa.ipc.new_file(str(temporary), table.schema) as writer:
            writer.write_table(table)
        return describe_file(temporary)
    return None


def _fingerprint(table: pa.Table, class_names: Sequence[str]) -> str:
    """Return the SHA-256 of class names, texts and labels."""
    digest = hashlib.sha256(json.dumps(list(class_names)).encode())
    for part in _text_bytes(table["text"]):
        digest.update(part)
    labels: Any = np.ascontiguousarray(list_labels(table))
    digest.update(labels)
    return digest.hexdigest()


def _text_bytes(texts: pa.ChunkedArray) -> Iterator[Any]:
    """Yield the texts' lengths in bytes, then their bytes, independently of their layout in memory."""
    (chunk,) = texts.chunks
    _, offsets, data = chunk.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
    yield np.diff(bounds)
    yield memoryview(data)[bounds[0] : bounds[-1]]

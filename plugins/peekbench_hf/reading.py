"""Read the columns of texts, labels and groups from files of every format that datasets use."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from warnings import catch_warnings

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import (
    Dataset,
    Features,
    Json,
    are_progress_bars_disabled,
    disable_progress_bars,
    enable_progress_bars,
)
from datasets.exceptions import DatasetsError

from peekbench import DataError
from peekbench_hf.definition import HubTask
from peekbench_hf.semeval import read_articles


@dataclass(frozen=True, slots=True)
class SplitColumns:
    """The columns of a split as its files have them."""

    texts: list[tuple[Any, ...]]
    labels: list[Any]
    groups: list[Any] | None
    """None if the task has no groups."""
    class_names: Sequence[str] | None
    """Names of a `ClassLabel`, in order; None if the labels have no names."""


def read(paths: Sequence[Path], task: HubTask, label: str) -> SplitColumns:
    """Read the columns of a split.

    Parameters
    ----------
    paths
        Files of the split, in order.
    task
        Names of the columns of texts and groups.
    label
        Name of the label column in these files.

    Raises
    ------
    DataError
        If a file cannot be read or lacks a column.
    """
    names = [*task.text, label, *filter(None, [task.group])]
    if paths[0].suffix == ".zip":
        columns, class_names = read_articles(paths), None
        _check_columns(columns, names, paths[0])
    else:
        parts = [_read_file(path, names) for path in paths]
        columns = {name: [value for part in parts for value in part.data.column(name).to_pylist()] for name in names}
        feature = parts[0].features[label]
        class_names = getattr(getattr(feature, "feature", feature), "names", None)  # of a label, or of a list of them
        if any(part.features[label] != feature for part in parts):
            raise DataError(f"{paths[0].parent}: the files of a split have other class names; correct the files")
    texts = list(zip(*(columns[name] for name in task.text), strict=True))
    return SplitColumns(texts, columns[label], columns[task.group] if task.group else None, class_names)


def _read_file(path: Path, names: Sequence[str]) -> Dataset:
    try:
        with _quiet_datasets(), TemporaryDirectory() as folder:
            data = _open(path, names, cache_dir=folder, keep_in_memory=True)
    except (DatasetsError, pa.ArrowException, pd.errors.ParserWarning, ValueError, OSError) as error:
        cause = str(error.__cause__ or error).partition("\n")[0]
        raise DataError(
            f"{path}: cannot be read as {path.suffix[1:]}: {cause}; download it again, or correct the file"
        ) from error
    _check_columns(data.features, names, path)
    for name in names:
        if isinstance(data.features[name], Json):
            raise DataError(f"{path}: column {name!r} has values of several types; store one type, such as text")
    return data


@contextmanager
def _quiet_datasets() -> Iterator[None]:
    """Let `datasets` show no progress, and no log of the errors that it raises."""
    logger, shows_progress = logging.getLogger("datasets"), not are_progress_bars_disabled()
    level = logger.level
    disable_progress_bars()
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
        if shows_progress:
            enable_progress_bars()


def _open(path: Path, names: Sequence[str], **options: Any) -> Dataset:
    """Read a file with `datasets`; the options exclude its own cache, in which a damaged file loses rows unnoticed."""
    if path.suffix == ".arrow":
        return Dataset.from_file(str(path))
    if path.suffix == ".parquet":
        _check_columns(Features.from_arrow_schema(pq.read_schema(path)), names, path)
        return Dataset.from_parquet(str(path), columns=list(names), **options)
    if path.suffix == ".csv":
        header = dict.fromkeys(pd.read_csv(path, nrows=0).columns, str)
        # Texts only, because parts of a file could have different types; and the first column is no index.
        options |= {"converters": header, "keep_default_na": False, "index_col": False}
        with catch_warnings(action="error", category=pd.errors.ParserWarning):  # more fields than in the header
            return Dataset.from_csv(str(path), **options)
    return Dataset.from_json(str(path), **options)


def _check_columns(columns: Mapping[str, Any], names: Sequence[str], path: Path) -> None:
    for name in names:
        if name not in columns:
            raise DataError(
                f"{path}: no column {name!r}; available columns: {', '.join(map(repr, columns)) or 'none'}. Set `text` "
                "and `label` in hf.dataset, or another `revision`"
            )

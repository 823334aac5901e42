"""Loads the results table from a store, a file, or a folder of files. One row is one arm of one trial.

`peekbench.results.COLUMNS` documents the columns. A user's CSV, TSV or Parquet file has either one row for each arm,
with these columns, or one row for each subsample, with a column of scores for each arm: base, extra, test, mix-0.25.
Other columns are ignored.
"""

from __future__ import annotations

import csv
import re
import stat
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from peekbench.errors import ResultsError
from peekbench.formatting import pluralize
from peekbench.results.columns import COLUMN_NAMES
from peekbench.results.tidying import (
    MAJORITY,
    NUMBERS,
    SIZES,
    TEXT_DEFAULTS,
    WHOLE_NUMBERS,
    is_arm,
    refuse_duplicates,
    tidy,
)
from peekbench.store.files import is_store
from peekbench.store.writer import Store

__all__ = ["load_results", "tidy"]

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""Texts that mean a missing number. In columns of texts they are ordinary names."""
STUDY_FILE = "accuracies.csv"
MAX_ROWS = 10_000_000  # a small Parquet file can declare billions
MAX_MESSAGE = 500  # characters of another library's message


def load_results(path: str | Path) -> pd.DataFrame:
    r"""Load the results table.

    Parameters
    ----------
    path
        A run's store; a CSV, TSV or Parquet file; or a folder tree ``mM/nN/MODEL/TASK/accuracies.csv``, in which the
        method is the name of the folder that contains mM, and the subsample is the row.

    Returns
    -------
    pandas.DataFrame
        One row for each arm of each trial, with the columns of `peekbench.results.COLUMNS`.

    Raises
    ------
    ResultsError
        If a file cannot be read or is malformed. The message names the file, the row and the column.
    StoreError
        If a store is damaged or has another version.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "accuracies.csv"
    ...     _ = path.write_text("task,num_test,base,extra,test\nnews,200,0.655,0.715,0.730\n")
    ...     results = load_results(path)
    >>> results[["task", "subsample", "arm", "num_correct", "score"]]
       task  subsample    arm  num_correct  score
    0  news          0   base          131  0.655
    1  news          0  extra          143  0.715
    2  news          0   test          146  0.730
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: the path has a null byte
        raise ResultsError(
            f"{path}: no such file or folder; give a run's store, a CSV or Parquet file, or a folder"
        ) from error
    if stat.S_ISDIR(mode):
        return tidy(_read_tree(path), str(path))
    _check_regular(path, mode)
    if is_store(path):
        return _read_store(path)
    return tidy(_read_file(path), str(path))


def _check_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):  # reading a pipe could wait forever
        raise ResultsError(f"{path} is neither a file nor a folder; save the scores in a file first")


def _read_store(path: Path) -> pd.DataFrame:
    with Store.open(path) as store:
        table = pd.DataFrame(store.result_columns())
        majorities = store.majorities()
    draws = zip(*(table[column] for column in ("task", *SIZES, "subsample")), strict=True)
    table[MAJORITY] = [majorities.get(draw) for draw in draws]
    types = {
        **dict.fromkeys(WHOLE_NUMBERS, "Int64"),
        **dict.fromkeys(NUMBERS, "float64"),
        **dict.fromkeys(TEXT_DEFAULTS, "str"),
    }
    return table.astype(types)[list(COLUMN_NAMES)]


def _read_file(path: Path) -> pd.DataFrame:
    suffix = path.suffix.lower()
    try:
        _check_regular(path, path.stat().st_mode)
        if suffix == ".parquet":
            return _read_parquet(path)
        if suffix in (".csv", ".tsv"):
            return _read_csv(path, "\t" if suffix == ".tsv" else ",")
    except (OSError, ValueError, csv.Error, pa.ArrowException) as error:  # pandas' own errors are ValueErrors
        message = str(error)[:MAX_MESSAGE]
        raise ResultsError(f"{path} cannot be read: {message}; is it a {suffix[1:]} file in UTF-8?") from error
    raise ResultsError(f"{path}: neither a store nor a .csv, .tsv or .parquet file; convert it to one of these")


def _read_csv(path: Path, separator: str) -> pd.DataFrame:
    names = _check_fields(path, separator)
    missing = {name: [""] if name in TEXT_DEFAULTS else list(MISSING) for name in names}
    texts = {name: str for name in names if name in TEXT_DEFAULTS}
    # Without index_col=False, pandas takes the first column of a header that lacks a name as the index.
    return pd.read_csv(
        path, sep=separator, header=0, names=names, index_col=False, encoding="utf-8-sig", low_memory=False,
        keep_default_na=False, na_values=missing, dtype=texts,
    )  # fmt: skip


def _check_fields(path: Path, separator: str) -> list[str]:
    """Return the names of the columns. Refuse duplicates, and rows with more or fewer fields than the header."""
    names: list[str] = []
    num_rows = 0
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator)
        for fields in reader:
            if len(fields) == len(names) > 0:
                num_rows += 1
            elif not any(map(str.strip, fields)) and len(fields) < 2:  # an empty line
                continue
            elif names:
                raise ResultsError(
                    f"{path}, line {reader.line_num}: {pluralize(len(fields), 'field')}, but the header has "
                    f"{len(names)}; name every column in the header, and quote texts that contain {separator!r}"
                )
            else:
                names = [name.strip() or f"Unnamed: {position}" for position, name in enumerate(fields)]
                refuse_duplicates(names, str(path))
            if num_rows > MAX_ROWS:
                raise ResultsError(f"{path} has more than {MAX_ROWS:,} rows; analyze parts of it")
    return names


def _read_parquet(path: Path) -> pd.DataFrame:
    with pq.ParquetFile(path) as file:
        refuse_duplicates(file.schema_arrow.names, str(path))
        if file.metadata.num_rows > MAX_ROWS:
            raise ResultsError(f"{path} has more than {MAX_ROWS:,} rows; analyze parts of it")
        # According to pandas' metadata in the file, some columns are an index. A method must not be lost there.
        table: pd.DataFrame = file.read().to_pandas(ignore_metadata=True)
        return table


def _read_tree(root: Path) -> pd.DataFrame:
    tables: list[pd.DataFrame] = []
    for file in sorted(root.rglob(STUDY_FILE), key=_natural_order):
        match = re.search(r"([^/]*)/m(\d+)/n(\d+)/([^/]+)/([^/]+)$", file.parent.absolute().as_posix())
        if match is None:
            raise ResultsError(
                f"{file}: the folders above it are not mM/nN/MODEL/TASK; move the file, or choose another root"
            )
        method, num_train, num_test, model, task = match.groups()
        table = _read_file(file)
        columns = [column for column in table.columns if is_arm(str(column)) or column == MAJORITY]
        tables.append(
            table[columns].assign(
                task=task,
                method=method or TEXT_DEFAULTS["method"],
                model=model,
                num_train=int(num_train),
                num_test=int(num_test),
                subsample=range(len(table)),
            )
        )
    if not tables:
        raise ResultsError(
            f"{root}: contains no {STUDY_FILE}; choose a folder that contains mM/nN/MODEL/TASK/{STUDY_FILE}"
        )
    return pd.concat(tables, ignore_index=True)


def _natural_order(file: Path) -> list[str | int]:
    """Sort n50 before n100."""
    return [int(part) if number % 2 else part for number, part in enumerate(re.split(r"(\d+)", str(file)))]

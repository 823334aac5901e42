"""Reads scores from the store of a run, a file, or a folder of files, and loads the results table.

One row of the results table is one arm of one trial; `peekbench.results.COLUMNS` documents the columns. A user's file
has either one row for each arm, with these columns, or one row for each subsample, with a column of scores for each
arm: base, extra, test, mix-0.25.
"""

from __future__ import annotations

import csv
import io
import json
import re
import stat
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import pandas as pd

from peekbench.errors import DataError, ResultsError
from peekbench.formatting import pluralize
from peekbench.plugins.references import Reference
from peekbench.records.data import TableOptions
from peekbench.results.cells import natural_key
from peekbench.results.columns import (
    COLUMN_NAMES,
    MAJORITY,
    NUMBERS,
    SIZES,
    TEXT_COLUMNS,
    TEXT_DEFAULTS,
    WHOLE_NUMBERS,
    find_role,
    normalize,
)
from peekbench.results.roles import refuse_duplicates
from peekbench.results.texts import StoredPredictions
from peekbench.results.tidying import TidyTable, tidy_table
from peekbench.store.files import is_store
from peekbench.store.writer import Store

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""Texts that mean a missing number. In columns of texts they are ordinary names."""
STANDARD_INPUT = "-"
STUDY_FILE = "accuracies.csv"
STUDY_COLUMNS = ("num_classes", "majority_all")
"""Columns of the study's files that describe the data of the task and are not used."""
MAX_ROWS = 10_000_000  # a small Parquet file can declare billions
MAX_INPUT = 2**31  # bytes of the standard input
MAX_MESSAGE = 500  # characters of another library's message
SEPARATORS = {".csv": ",;\t|", ".tsv": "\t,;|"}
"""Separators of the fields by suffix, the usual one first."""
FORMATS = ".csv, .tsv, .parquet, .jsonl or .json"
EXAMPLE = '{"task": "news", "extra": 0.71, "test": 0.73}'
"""A row in JSON, for messages."""
TYPES = {
    **dict.fromkeys(TEXT_DEFAULTS, "str"),
    **dict.fromkeys(WHOLE_NUMBERS, "Int64"),
    **dict.fromkeys(NUMBERS, "float64"),
}
"""Types of the columns of the results table."""


def load_results(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
    pair_by_order: bool = False,
    percent: bool = False,
    lower_is_better: bool = False,
) -> pd.DataFrame:
    r"""Load the results table.

    Parameters
    ----------
    path
        A run's store; a CSV, TSV, Parquet, JSON or JSON Lines file; '-' for the standard input; or a folder tree
        ``mM/nN/MODEL/TASK/accuracies.csv``, in which the method is the name of the folder that contains mM, and the
        subsample is the row.
    columns
        Meaning of columns with names of their own: ``{"seed": "subsample"}``. Several columns can form the same task,
        method, model or subsample together.
    ignore
        Columns that say nothing about the scores.
    pair_by_order
        Pair rows that have no number of the draw in the order in which they stand.
    percent
        Read scores, macro-F1 and majority as percentages.
    lower_is_better
        Read scores as losses, whose negatives become the scores.

    Returns
    -------
    pandas.DataFrame
        One row for each arm of each trial, with the columns of `peekbench.results.COLUMNS`.

    Raises
    ------
    ResultsError
        If a file cannot be read or is malformed, or a column is neither known nor mapped nor ignored. The
        message names the file, the row and the column.
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
    options = TableOptions(columns or {}, ignore, pair_by_order, percent, lower_is_better)
    return load_table(path, options).results


def load_table(path: str | Path, options: TableOptions) -> TidyTable:
    """Load the results table as `load_results`, with what was done with the columns of a user's table."""
    path = Path(path)
    if str(path) == STANDARD_INPUT:
        return tidy_table(read_file(path, options.columns), "the standard input", options)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: the path has a null byte
        raise ResultsError(
            f"{path}: no such file or folder; give a run's store, a CSV, Parquet or JSON file, or a folder"
        ) from error
    if stat.S_ISDIR(mode):
        return _load_tree(path, options)
    check_regular(path)
    if is_store(path):
        if not options.is_default:
            raise ResultsError(
                f"{path} is the store of a run, whose columns are known; remove {' '.join(options.arguments())}"
            )
        return TidyTable(_read_store(path), predictions=StoredPredictions(path))
    return tidy_table(read_file(path, options.columns), str(path), options)


def is_results_table(table: pd.DataFrame) -> bool:
    """Return whether a table has the columns and types of the results table, so that it need not be checked again."""
    return list(table.columns) == list(COLUMN_NAMES) and all(table[name].dtype == TYPES[name] for name in COLUMN_NAMES)


def _load_tree(root: Path, options: TableOptions) -> TidyTable:
    table = read_tree(root)
    unused = [name for name in STUDY_COLUMNS if name in table.columns]
    tidied = tidy_table(table.drop(columns=unused), str(root), options)
    ignored = {**tidied.columns.ignored, **dict.fromkeys(unused, "facts about the task's data")}
    return replace(tidied, columns=replace(tidied.columns, ignored=ignored))


def _read_store(path: Path) -> pd.DataFrame:
    with Store.open(path) as store:
        return read_store(store)


def read_store(store: Store) -> pd.DataFrame:
    """Return the results table of an open store."""
    table = pd.DataFrame(store.result_columns())
    majorities = store.majorities()
    draws = zip(*(table[column] for column in ("task", *SIZES, "subsample")), strict=True)
    table[MAJORITY] = [majorities.get(draw) for draw in draws]
    return table.astype(TYPES)[list(COLUMN_NAMES)]


def read_file(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    """Read a table from a file.

    Parameters
    ----------
    path
        CSV, TSV, Parquet, JSON or JSON Lines file; '-' is the standard input, in any of these formats.
    columns
        Meaning of columns that the user names. Columns of texts are not read as numbers.

    Raises
    ------
    ResultsError
        If the file cannot be read, or is too large.
    """
    suffix = path.suffix.lower()
    try:
        if str(path) == STANDARD_INPUT:
            return _read_standard_input(columns)
        check_regular(path)
        if suffix == ".parquet":
            with path.open("rb") as file:
                return _read_parquet(file, str(path))
        if suffix in SEPARATORS:
            return _read_csv(lambda: path.open(encoding="utf-8-sig", newline=""), str(path), columns, suffix)
        if suffix in (".jsonl", ".ndjson", ".json"):
            with path.open(encoding="utf-8-sig") as text:
                return _read_json(text, str(path))
    except (OSError, ValueError, csv.Error, RecursionError) as error:  # pandas raises ValueErrors
        message = str(error)[:MAX_MESSAGE]
        raise ResultsError(f"{path} cannot be read: {message}; is it a {suffix[1:]} file in UTF-8?") from error
    raise ResultsError(f"{path}: neither a store nor a {FORMATS} file; convert it to one of these")


def check_regular(path: Path) -> None:
    """Refuse pipes and devices. Reading one could wait forever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ResultsError(f"{path} is neither a file nor a folder; save the scores in a file first, or pipe them to -")


def _read_standard_input(columns: Mapping[str, str]) -> pd.DataFrame:
    """Read a table from the standard input, whose format its first bytes tell."""
    content = sys.stdin.buffer.read(MAX_INPUT + 1)
    origin = "the standard input"
    if len(content) > MAX_INPUT:
        raise ResultsError(f"{origin} has more than {MAX_INPUT:,} bytes; save the scores in a Parquet file")
    if content.startswith(b"PAR1"):
        return _read_parquet(io.BytesIO(content), origin)
    text = content.decode("utf-8-sig")
    if text.lstrip().startswith(("{", "[")):
        return _read_json(io.StringIO(text), origin)
    return _read_csv(lambda: io.StringIO(text, newline=""), origin, columns, ".csv")


def _read_csv(open_file: Callable[[], TextIO], origin: str, columns: Mapping[str, str], suffix: str) -> pd.DataFrame:
    with open_file() as file:
        separator = _find_separator(file, SEPARATORS[suffix])
    with open_file() as file:
        names = _check_fields(file, separator, origin)
    mapped = {normalize(source): target for source, target in columns.items()}
    roles = {name: find_role(mapped.get(normalize(name), name)) for name in names}
    texts = [name for name, role in roles.items() if role is not None and role.column in TEXT_COLUMNS]
    missing = {name: [""] if name in texts else list(MISSING) for name in names}
    # Without index_col=False, pandas takes the first column of a header that lacks a name as the index.
    with open_file() as file:
        return pd.read_csv(
            file, sep=separator, header=0, names=names, index_col=False, low_memory=False, keep_default_na=False,
            na_values=missing, dtype=dict.fromkeys(texts, str),
        )  # fmt: skip


def _find_separator(file: TextIO, separators: str) -> str:
    """Return the separator that divides the header into the most fields."""
    header = next((line for line in file if line.strip()), "")
    return max(separators, key=lambda separator: len(next(csv.reader([header], delimiter=separator), [])))


def _check_fields(file: TextIO, separator: str, origin: str) -> list[str]:
    """Return the names of the columns. Refuse duplicates, and rows with more or fewer fields than the header."""
    names: list[str] = []
    num_rows = 0
    reader = csv.reader(file, delimiter=separator)
    for fields in reader:
        if len(fields) == len(names) > 0:
            num_rows += 1
        elif not any(map(str.strip, fields)) and len(fields) < 2:  # an empty line
            continue
        elif names:
            too_few = "complete or delete the row, or correct the header"
            decimals = ", as numbers with a decimal comma do" if separator == "," else ""
            too_many = f"name every column in the header, and quote cells that contain {separator!r}{decimals}"
            raise ResultsError(
                f"{origin}, line {reader.line_num}: {pluralize(len(fields), 'field')}, but the header has "
                f"{len(names)}; {too_few if len(fields) < len(names) else too_many}"
            )
        else:
            names = [name.strip() or f"Unnamed: {position}" for position, name in enumerate(fields)]
            refuse_duplicates(names, origin)
        if num_rows > MAX_ROWS:
            raise _too_many_rows(origin)
    return names


def _read_parquet(source: BinaryIO, origin: str) -> pd.DataFrame:
    def check(names: list[str], num_rows: int) -> None:
        refuse_duplicates(names, origin)
        if num_rows > MAX_ROWS:
            raise _too_many_rows(origin)

    read = Reference("peekbench.data.parquet:read_frame")  # pyarrow is optional
    try:
        table: pd.DataFrame = read(source, origin, check)
    except DataError as error:
        raise ResultsError(str(error)) from error
    return table


def _read_json(file: TextIO, origin: str) -> pd.DataFrame:
    rows = []
    for place, row in _iterate_json(file, origin):
        if not isinstance(row, dict):
            raise ResultsError(f"{origin}, {place}: not an object; write one object for each row, such as {EXAMPLE}")
        rows.append(row)
        if len(rows) > MAX_ROWS:
            raise _too_many_rows(origin)
    return pd.DataFrame.from_records(rows)


def _iterate_json(file: TextIO, origin: str) -> Iterator[tuple[str, Any]]:
    """Iterate over the rows of a list of objects, or of lines with one object each, with their places."""
    lines = ((number, line) for number, line in enumerate(file, 1) if line.strip())
    first = next(lines, None)
    if first is None:
        return
    if first[1].lstrip().startswith("["):
        content = first[1] + file.read()
        try:
            listed = json.loads(content, object_pairs_hook=_distinct)
        except ValueError as error:
            raise ResultsError(
                f"{origin}, {_describe_json_error(error, first[0])}; write a single list of objects, or one object in "
                f"each line, such as {EXAMPLE}"
            ) from error
        yield from ((f"row {number}", row) for number, row in enumerate(listed, 1))
        return
    for number, line in (first, *lines):
        try:
            yield f"line {number}", json.loads(line.rstrip(), object_pairs_hook=_distinct)
        except ValueError as error:
            raise ResultsError(
                f"{origin}, {_describe_json_error(error, number)}; write one complete object in each line, such as "
                f"{EXAMPLE}"
            ) from error


def _describe_json_error(error: ValueError, line: int) -> str:
    """Return the place and the problem of an error in JSON that starts in a line of the file."""
    if not isinstance(error, json.JSONDecodeError):
        return f"line {line}: {error}"
    reason = error.msg.removesuffix(" at").removesuffix(" starting")
    problem = "text after the end of the list or object" if error.msg == "Extra data" else f"not valid JSON ({reason})"
    return f"line {line + error.lineno - 1}, column {error.colno}: {problem}"


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; a name that is duplicated would silently lose a value."""
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a name is duplicated in an object")
    return row


def _too_many_rows(origin: str) -> ResultsError:
    return ResultsError(f"{origin} has more than {MAX_ROWS:,} rows; analyze parts of it")


def read_tree(root: Path) -> pd.DataFrame:
    """Read a folder tree ``mM/nN/MODEL/TASK/accuracies.csv``.

    Parameters
    ----------
    root
        A folder of the tree, or above it.

    Raises
    ------
    ResultsError
        If the folder contains no such file, or one in other folders.
    """
    tables: list[pd.DataFrame] = []
    for file in sorted(root.rglob(STUDY_FILE), key=lambda file: natural_key(str(file))):
        match = re.search(r"([^/]*)/m(\d+)/n(\d+)/([^/]+)/([^/]+)$", file.parent.absolute().as_posix())
        if match is None:
            raise ResultsError(
                f"{file}: the folders above it are not mM/nN/MODEL/TASK; move the file, or choose another root"
            )
        method, num_train, num_test, model, task = match.groups()
        table = read_file(file, {})
        known = {
            "task": task, "method": method or TEXT_DEFAULTS["method"], "model": model, "num_train": int(num_train),
            "num_test": int(num_test), "subsample": range(len(table)),
        }  # fmt: skip
        if given := [name for name in table.columns if name in known]:
            raise ResultsError(f"{file}: the folders give the column {given[0]!r}; remove it from the file")
        tables.append(table.assign(**known))
    if not tables:
        raise ResultsError(
            f"{root}: contains no {STUDY_FILE}; choose a folder that contains mM/nN/MODEL/TASK/{STUDY_FILE}"
        )
    return pd.concat(tables, ignore_index=True)

"""Reads scores from the store of a run, a file, or a folder of files, and loads the results table.

One row of the results table is one arm of one trial; `peekbench.results.COLUMNS` documents the columns. A user's file
has either one row for each arm, with these columns, or one row for each subsample, with a column of scores for each
arm: base, extra, test, mix-0.25.
"""

from __future__ import annotations

import csv
import re
import shlex
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from peekbench.data.text_files import DELIMITERS, find_dialect, read_lines, read_objects, suffix_of
from peekbench.errors import DataError, ResultsError, SpecError, public
from peekbench.formatting import pluralize
from peekbench.records.answers import GRADED, Predicted
from peekbench.records.data import Answers, FloatArray, TableKeywords, TableOptions
from peekbench.records.scores import average_sets
from peekbench.records.trials import Draw, Trial
from peekbench.results.cells import natural_key
from peekbench.results.columns import COLUMN_NAMES, INDEPENDENT, MAJORITY, SIZES, TEXT_DEFAULTS, TYPES
from peekbench.results.recorded_looks import write_looks
from peekbench.results.tidying import TidyTable, tidy_table
from peekbench.results.user_columns import find_role
from peekbench.store.files import is_store
from peekbench.store.reader import Store
from peekbench.store.schema import size_of_sets

STUDY_FILE = "accuracies.csv"
STUDY_COLUMNS = ("num_classes", "majority_all")
"""Columns of the study's files that describe the data of the task and are not used."""
MAX_MESSAGE = 500  # characters of another library's message
FORMATS = ".csv, .tsv, .parquet, .jsonl or .json"
LOGS = {
    "lm-eval": re.compile(rb'\s*\[?\s*\{\s*"(results"\s*:\s*\{|doc_id")'),
    "inspect": re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"|PK\x03\x04'),
}
"""Beginnings of the logs that `peekbench import` reads, by tool."""
OTHER_TOOLS = {
    "lighteval": re.compile(rb'\s*\{\s*"config_general"\s*:'),
    "MTEB": re.compile(rb'\s*\{\s*"dataset_revision"\s*:'),
    "HELM": re.compile(rb'\s*\[\s*\{\s*"(instance_id"|name"\s*:\s*\{\s*"name")'),
    "Every Eval Ever": re.compile(rb'\s*\{\s*"schema_version"\s*:.*"(evaluation|sample)_id"', re.DOTALL),
}
"""Beginnings of files of tools that peekbench does not read."""
LOG_SUFFIXES = (".json", ".jsonl", ".eval")
HEAD = 10_000  # bytes in which a log is recognized


@public
def load_results(path: str | Path, **options: Unpack[TableKeywords]) -> pd.DataFrame:
    r"""Load the results table.

    Parameters
    ----------
    path
        A run's store; a CSV, TSV, Parquet, JSON or JSON Lines file; or a folder tree
        ``mM/nN/MODEL/TASK/accuracies.csv``, in which the method is the name of the folder that contains mM, and the
        subsample is the row.
    **options
        What the columns of a file do not say themselves, as for `peekbench.analyze`.

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
    table = TableOptions(**options)
    with python_messages(table):
        if not is_store(Path(path)):
            return load_table(Path(path), table).results
        refuse_options_of_store(Path(path), table)
    with Store.open(path) as store:
        return read_store(store)


@contextmanager
def python_messages(options: TableOptions) -> Iterator[None]:
    """Name arguments of Python in errors about a table, with what the user said about it."""
    try:
        yield
    except ResultsError as error:
        raise error.in_python(options) from error


def load_table(path: Path, options: TableOptions) -> TidyTable:
    """Load the results table of a file or folder, with what was done with its columns."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: the path has a null byte
        raise ResultsError(
            f"{path}: no such file or folder; give a run's store, a CSV, Parquet or JSON file, or a folder"
        ) from error
    if not stat.S_ISDIR(mode):
        return tidy_table(read_file(path), str(path), options, task=stem_of(path))
    table = read_tree(path)
    unused = [name for name in STUDY_COLUMNS if name in table.columns]
    return tidy_table(table, str(path), replace(options, ignore=(*options.ignored, *unused)))


def refuse_options_of_store(path: Path, options: TableOptions) -> None:
    """Refuse options for tables of other tools where a run is read, whose tasks are independent anyway."""
    if replace(options, independent_tasks=False).given:  # in a run, tasks are independent
        raise ResultsError(f"{path} is the store of a run, whose columns are known; remove ", options.argument)


def is_results_table(table: pd.DataFrame) -> bool:
    """Return whether a table has the columns and types of the results table, so that it need not be checked again."""
    return list(table.columns) == list(COLUMN_NAMES) and all(table[name].dtype == TYPES[name] for name in COLUMN_NAMES)


def read_store(store: Store) -> pd.DataFrame:
    """Return the results table of an open store."""
    table = pd.DataFrame(store.result_columns())
    majorities = store.majorities()
    draws = zip(*(table[column] for column in ("task", *SIZES, "subsample")), strict=True)
    table[MAJORITY] = [majorities.get(draw) for draw in draws]
    table = table.assign(looks="", percentages="", **INDEPENDENT).astype(TYPES)
    table["looks"] = write_looks(store, table)
    return table[list(COLUMN_NAMES)]


class StoredPredictions:
    """Predictions of a run, read from its store on demand.

    Parameters
    ----------
    path
        The store.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._scores: dict[tuple[str, Trial], dict[str, float]] = {}

    def answers(
        self, task: str, method: str, num_train: int | None, num_test: int | None, arms: Sequence[str], model: str = ""
    ) -> Answers | None:
        """Read the answers of one method in one task at one design point; see `peekbench.records.Predictions`."""
        assert num_train is not None
        assert num_test is not None
        with Store.open(self._path, verified=False) as store:
            if store.tasks()[task]["kind"] not in GRADED:
                return None
            return store.answers(task, method, num_train, num_test, arms)

    def scores(self, results: pd.DataFrame, name: str) -> FloatArray:
        """Compute a score of scikit-learn for each arm of a results table of this run, shape (n_rows,).

        Raises
        ------
        SpecError
            If the score is not defined for a trial.
        """
        from peekbench.plugins.scorers import load_scorer  # noqa: PLC0415 - few reports need scikit-learn

        score = load_scorer(name)
        values = np.full(len(results), np.nan)
        keys = results[["task", "num_train", "num_test", "subsample", "method"]]
        with Store.open(self._path, verified=False) as store:
            for rows in results.reset_index(drop=True).groupby(list(keys), sort=False).indices.values():
                task, num_train, num_test, subsample, method = keys.iloc[rows[0]]
                trial = Trial(Draw(task, int(num_train), int(num_test), int(subsample)), method)
                if (name, trial) not in self._scores:  # the next analysis needs them again
                    try:
                        self._scores[name, trial] = _score_arms(store, trial, score)
                    except ValueError as error:
                        raise SpecError(
                            f"score {name}: {trial}: {error}; use another score, or a larger num_test"
                        ) from error
                values[rows] = [self._scores[name, trial][arm] for arm in results["arm"].iloc[rows]]
        return values


def _score_arms(store: Store, trial: Trial, score: Callable[[Predicted, Any], float]) -> dict[str, float]:
    """Return the average of a score over the sets of each arm."""
    labels, _ = store.test_rows(trial.draw)
    size = size_of_sets(store.spec(), trial.draw.num_test, len(labels))
    scores = {}
    for arm, predicted in store.predictions(trial).items():
        truth = np.resize(labels, (len(predicted), *labels.shape[1:]))
        sets = [slice(first, first + size) for first in range(0, len(predicted), size)]
        scores[arm] = average_sets([score(predicted[rows], truth[rows]) for rows in sets], len(labels) // size)
    return scores


def read_file(path: Path) -> pd.DataFrame:
    """Read a CSV, TSV, Parquet, JSON or JSON Lines file. All cells of a CSV file are texts.

    Raises
    ------
    ResultsError
        If the file cannot be read.
    """
    suffix = suffix_of(path)
    check_regular(path)
    try:
        _refuse_log(path)
        if suffix in (".parquet", ".pq"):
            return pd.read_parquet(path)
        if suffix in DELIMITERS:
            return _read_csv(path, DELIMITERS[suffix])
        if suffix in (".jsonl", ".ndjson", ".json"):
            return pd.DataFrame.from_records([row for _, row in read_objects(_lines(path), str(path))])
    except DataError as error:
        raise ResultsError(str(error)) from error
    except ImportError as error:
        problem = "cannot be read, because pyarrow is missing; install it with `pip install 'peekbench[parquet]'`"
        raise ResultsError(f"{path} {problem}") from error
    except (OSError, ValueError, csv.Error, RecursionError) as error:
        message = str(error)[:MAX_MESSAGE]
        raise ResultsError(f"{path} cannot be read: {message}; is it a {suffix[1:]} file?") from error
    raise ResultsError(f"{path}: neither a store nor a {FORMATS} file; convert it to one of these")


def read_files(paths: Sequence[Path], options: TableOptions) -> pd.DataFrame:
    """Read several files as one table. If no column of a file names its task, it is the name of the file."""
    tables = []
    for path in paths:
        table = read_file(path)
        if "task" not in {options.columns.get(name) or str(find_role(name)) for name in map(str, table.columns)}:
            table = table.assign(task=stem_of(path))
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def stem_of(path: Path) -> str:
    """Return the name of a file without the suffixes of its format and compression."""
    return path.name.removesuffix(path.suffix).removesuffix(suffix_of(path))


def check_regular(path: Path) -> None:
    """Refuse pipes and devices. Reading one could wait forever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ResultsError(f"{path} is neither a file nor a folder; save the scores in a file first")


def find_tool(path: Path) -> str | None:
    """Return the tool that wrote a file; None if it is not known."""
    if path.suffix.lower() not in LOG_SUFFIXES:
        return None
    with path.open("rb") as file:
        head = file.read(HEAD)
    return next((name for name, beginning in (LOGS | OTHER_TOOLS).items() if beginning.match(head)), None)


def _refuse_log(path: Path) -> None:
    """Refuse a log of another tool, with the command that reads the logs of all arms."""
    tool = find_tool(path)
    if tool in OTHER_TOOLS:
        columns = "task, arm (extra or test), text or subsample, and score"
        raise ResultsError(f"{path} is a file of {tool}, not a table; export a CSV file with the columns {columns}")
    if tool is not None:
        raise ResultsError(
            f"{path} is a log of {tool}, not a table of scores; import those of all arms:\n"
            f"  peekbench import {tool} --arm extra=LOG --arm test=LOG -o scores.csv"
        )


def _lines(path: Path) -> Iterator[str]:
    copy = shlex.quote(f"{path.stem}-utf8{path.suffix}")
    remedy = f"convert it, as in `iconv -f cp1252 -t utf-8 {shlex.quote(str(path))} > {copy}`"
    return read_lines(path, remedy=remedy)


def _read_csv(path: Path, delimiters: str) -> pd.DataFrame:
    """Read a table whose header is divided into the most fields by the delimiter of the file."""
    origin = str(path)
    dialect = find_dialect(islice((line for line in _lines(path) if line.strip()), 1), delimiters, '"')
    separator = dialect.delimiter
    reader = csv.reader(_lines(path), delimiter=separator)
    rows: list[list[str]] = []
    for fields in reader:
        if len(fields) < 2 and not any(map(str.strip, fields)):  # an empty line
            continue
        rows.append(fields)
        if len(fields) != len(rows[0]):
            raise ResultsError(
                f"{origin}, line {reader.line_num}: {pluralize(len(fields), 'field')}, but the header has "
                f"{len(rows[0])}; correct the row or the header, and quote cells that contain {separator!r}, such as "
                "numbers with a decimal comma"
            )
    return pd.DataFrame(rows[1:], columns=next(iter(rows), None), dtype="str")


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
        table = read_file(file)
        known = {
            "task": task, "method": method or TEXT_DEFAULTS["method"], "model": model, "num_train": int(num_train),
            "num_test": int(num_test), "subsample": range(len(table)),
        }  # fmt: skip
        tables.append(table.assign(**known))
    if not tables:
        for file in sorted(filter(Path.is_file, root.rglob("*"))):
            _refuse_log(file)
        raise ResultsError(f"{root}: contains no {STUDY_FILE}; choose a folder that has mM/nN/MODEL/TASK/{STUDY_FILE}")
    return pd.concat(tables, ignore_index=True)

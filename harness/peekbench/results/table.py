"""Loads the results table from a store, a file, or a folder of files. One row is one arm of one trial.

`peekbench.results.COLUMNS` documents the columns. A user's file has either one row for each arm, with these columns, or
one row for each subsample, with a column of scores for each arm: base, extra, test, mix-0.25. Other columns are
recognized by their synonyms, or named by the user. No column that could distinguish rows is ignored.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from peekbench.errors import ResultsError
from peekbench.records.table_options import TableOptions
from peekbench.results.columns import COLUMN_NAMES, MAJORITY, NUMBERS, SIZES, TEXT_DEFAULTS, WHOLE_NUMBERS
from peekbench.results.files import STANDARD_INPUT, STUDY_COLUMNS, check_regular, read_file, read_tree
from peekbench.results.predictions import StoredPredictions
from peekbench.results.tidying import TidyTable, tidy, tidy_table
from peekbench.store.files import is_store
from peekbench.store.writer import Store

__all__ = ["is_results_table", "load_results", "load_table", "tidy"]

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
        If a file cannot be read or is malformed, or a column that is neither known nor ignored distinguishes rows. The
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

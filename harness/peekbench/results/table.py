"""Loads the results table from a store, a file, or a folder of files. One row is one arm of one trial.

`peekbench.results.COLUMNS` documents the columns. A user's CSV, TSV or Parquet file has either one row for each arm,
with these columns, or one row for each subsample, with a column of scores for each arm: base, extra, test, mix-0.25.
Other columns are ignored.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from peekbench.errors import ResultsError
from peekbench.results.columns import COLUMN_NAMES
from peekbench.results.tidying import MAJORITY, NUMBERS, SIZES, TEXT_DEFAULTS, WHOLE_NUMBERS, is_arm, tidy
from peekbench.store.schema import is_store
from peekbench.store.writer import Store

__all__ = ["load_results", "tidy"]

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""Texts that mean a missing number. In columns of texts they are ordinary names."""
STUDY_FILE = "accuracies.csv"


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
    if path.is_dir():
        return tidy(_read_tree(path), str(path))
    if not path.exists():
        raise ResultsError(f"{path}: no such file or folder; give a run's store, a CSV or Parquet file, or a folder")
    if is_store(path):
        return _read_store(path)
    return tidy(_read_file(path), str(path))


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
        if suffix == ".parquet":
            return pd.read_parquet(path)
        if suffix in (".csv", ".tsv"):
            separator = "\t" if suffix == ".tsv" else ","
            names = pd.read_csv(path, sep=separator, nrows=0).columns
            missing = {name: [""] if name in TEXT_DEFAULTS else list(MISSING) for name in names}
            texts = {name: str for name in names if name in TEXT_DEFAULTS}
            return pd.read_csv(path, sep=separator, keep_default_na=False, na_values=missing, dtype=texts)
    except (OSError, ValueError) as error:  # pandas' and pyarrow's own errors are ValueErrors
        raise ResultsError(f"{path} cannot be read: {error}; is it a {suffix[1:]} file in UTF-8?") from error
    raise ResultsError(f"{path}: neither a store nor a .csv, .tsv or .parquet file; convert it to one of these")


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

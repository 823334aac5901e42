"""A store, or a user's own scores, to the results table: one row is one arm of one trial.

| column | type | meaning | where it is missing in a user's file |
|---|---|---|---|
| task | text | the task's name | required |
| method | text | the method's label | 'method' |
| control | text | negative (no bias for certain), positive (a planted one), or empty | empty |
| model | text | the language model, or empty | empty |
| num_train | integer | labeled train texts | missing |
| num_test | integer | test texts, and as many extra texts | missing; num_correct is then missing too |
| subsample | integer | number of the draw; methods with the same number are paired | counted from 0 within the rest |
| arm | text | base, extra, test, or a dose such as mix-0.25 | required, or one column an arm, see below |
| num_correct | integer | right answers among num_test | round(score x num_test) |
| score | number | accuracy as a fraction, or R^2 | num_correct / num_test; `accuracy` is another name for it |
| log_loss | number | mean -ln p of the true class | missing |
| brier | number | mean squared distance of the probabilities from the truth, 0 to 2 | missing |
| macro_f1 | number | mean of F1 over classes | missing |
| majority | number | share of the commonest class among the test texts of the draw | missing |
| fit_seconds, predict_seconds | number | time taken | missing |

A user's CSV (or TSV, or Parquet) has either one row an arm, with the columns above, or one row a subsample, with a
column of scores for each arm: base, extra, test, mix-0.25. Other columns are left alone.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from peekbench.errors import ResultsError
from peekbench.records.trials import Control

if TYPE_CHECKING:
    import pandas as pd

CONFIGURATION = ("method", "model", "num_train", "num_test")
"""Columns that tell apart what an analysis keeps apart."""
TRIAL = (*CONFIGURATION, "task", "subsample")
ARMS = ("base", "extra", "test")
DOSE = re.compile(r"mix-0?\.\d+")
TEXTS = {"task": "task", "method": "method", "control": "", "model": "", "arm": ""}
"""With what stands in for a missing column."""
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""What stands for a number that is not known; a method may well be called so."""
SIZES = ("num_train", "num_test")
MAJORITY = "majority"
TELLING_APART = (*CONFIGURATION, "subsample", "control")
SYNONYMS = ("accuracy",)
CLOSE = 0.65  # model_name and model are, num_rows and num_test are not
OF_AN_ARM = ("log_loss", "brier", "macro_f1", "fit_seconds", "predict_seconds")
MEASURES = (*OF_AN_ARM[:3], MAJORITY, *OF_AN_ARM[3:])
COLUMNS = ("task", *CONFIGURATION, "control", "subsample", "arm", "num_correct", "score", *MEASURES)
STUDY_FILE = "accuracies.csv"
SLACK = 0.26  # how far score x num_test may be from a whole number: the score's own printed digits


def is_arm(name: str) -> bool:
    return name in ARMS or DOSE.fullmatch(name) is not None


def load_results(path: str | Path) -> pd.DataFrame:
    """Read a store, a CSV, TSV or Parquet file, or a folder tree mM/nN/MODEL/TASK/accuracies.csv.

    In such a tree the method is the name of the folder that holds mM, and the subsample is the row.

    Returns
    -------
    pandas.DataFrame
        The results table, columns as above.

    Raises
    ------
    ResultsError
        Where it cannot be read or is malformed; says file, row and column.
    StoreError
        Where it is a damaged store.
    """
    from peekbench.store.schema import is_store

    path = Path(path)
    if path.is_dir():
        return tidy(_read_tree(path), str(path))
    if not path.exists():
        raise ResultsError(f"{path}: no such file or folder; give a run's store, a CSV or Parquet file, or a folder")
    if is_store(path):
        return _read_store(path)
    return tidy(_read_file(path), str(path))


def _read_store(path: Path) -> pd.DataFrame:
    import pandas as pd

    from peekbench.store.writer import Store

    with Store.open(path) as store:
        table = pd.DataFrame(store.result_columns())
        majorities = store.majorities()
    for column in ("num_train", "num_test", "subsample", "num_correct"):
        table[column] = table[column].astype("Int64")
    drawn = zip(*(table[column] for column in ("task", *SIZES, "subsample")), strict=True)
    table["majority"] = [majorities.get(draw) for draw in drawn]
    for column in ("score", *MEASURES):
        table[column] = table[column].astype("float64")
    for column in TEXTS:
        table[column] = table[column].astype("str")
    return table[list(COLUMNS)]


def _read_file(path: Path) -> pd.DataFrame:
    import pandas as pd

    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            return pd.read_parquet(path)
        if suffix in (".csv", ".tsv"):
            separator = "\t" if suffix == ".tsv" else ","
            names = pd.read_csv(path, sep=separator, nrows=0).columns
            missing = {name: [""] if name in TEXTS else list(MISSING) for name in names}
            texts = {name: str for name in names if name in TEXTS}
            return pd.read_csv(path, sep=separator, keep_default_na=False, na_values=missing, dtype=texts)
    except (OSError, ValueError) as error:  # pandas' and pyarrow's own errors are ValueErrors
        raise ResultsError(f"{path} cannot be read: {error}; is it a {suffix[1:]} file in UTF-8?") from error
    raise ResultsError(f"{path}: neither a store nor a .csv, .tsv or .parquet file; convert it to one of these")


def _read_tree(root: Path) -> pd.DataFrame:
    import pandas as pd

    found: list[pd.DataFrame] = []
    for file in sorted(root.rglob(STUDY_FILE), key=_by_size):
        place = re.search(r"([^/]*)/m(\d+)/n(\d+)/([^/]+)/([^/]+)$", file.parent.absolute().as_posix())
        if place is None:
            raise ResultsError(f"{file}: the folders above it are not mM/nN/MODEL/TASK; move it, or name another root")
        method, num_train, num_test, model, task = place.groups()
        table = _read_file(file)
        keep = [column for column in table.columns if is_arm(str(column)) or column == MAJORITY]
        found.append(
            table[keep].assign(
                task=task,
                method=method or TEXTS["method"],
                model=model,
                num_train=int(num_train),
                num_test=int(num_test),
                subsample=range(len(table)),
            )
        )
    if not found:
        raise ResultsError(f"{root}: no {STUDY_FILE} below it; name a folder that holds mM/nN/MODEL/TASK/{STUDY_FILE}")
    return pd.concat(found, ignore_index=True)


def _by_size(file: Path) -> list[str | int]:
    """n50 before n100."""
    return [int(part) if number % 2 else part for number, part in enumerate(re.split(r"(\d+)", str(file)))]


def tidy(table: pd.DataFrame, origin: str) -> pd.DataFrame:
    """Check a user's table and bring it into the documented form.

    Raises
    ------
    ResultsError
        Naming `origin`, the row (the first below the heading is 1) and the column.
    """
    import pandas as pd

    table = table.reset_index(drop=True)
    if table.empty:
        raise ResultsError(f"{origin} has no rows; give one row for each subsample, or for each arm of one")
    table = table.rename(columns={"accuracy": "score"}) if "score" not in table.columns else table
    if "task" not in table.columns:
        remedy = "; separate columns by commas" if any(";" in str(column) for column in table.columns) else ""
        raise ResultsError(f"{origin}: column 'task' is missing; it has {_listed(table.columns)}{remedy}")
    _refuse_near_misses(table, origin)
    row_numbers = table.index + 1
    if "arm" not in table.columns:
        table, row_numbers = _one_row_an_arm(table, origin)
    result = table.copy()
    for column, default in TEXTS.items():
        if column in table.columns:
            result[column] = table[column].astype("str").where(table[column].notna(), "")
        else:
            result[column] = pd.Series(default, index=table.index, dtype="str")
    for column in (*SIZES, "subsample", "num_correct"):
        result[column] = _whole_numbers(table, column, origin, row_numbers)
    for column in ("score", *MEASURES):
        result[column] = _numbers(table, column, origin, row_numbers)
    _require(result["task"] != "", "task", "is empty; name the task", result, origin, row_numbers)
    strange = "is no arm; arms are base, extra, test and doses such as mix-0.25"
    _require(result["arm"].map(is_arm), "arm", strange, result, origin, row_numbers)
    known = "is neither 'negative' nor 'positive'; leave it empty for a method of which nothing is known beforehand"
    _require(result["control"].isin(get_args(Control)), "control", known, result, origin, row_numbers)
    odd = "differs from what the first row of its method has; give all rows of a method the same"
    first = result.groupby("method")["control"].transform("first")
    _require(result["control"] == first, "control", odd, result, origin, row_numbers)
    for arm in ("extra", "test"):
        if not (result["arm"] == arm).any():
            raise ResultsError(
                f"{origin}: no row has the arm {arm!r}, but the bias is the score of test minus extra's; add them"
            )
    if "subsample" not in table.columns:
        within = [*CONFIGURATION, "task", "arm"]
        result["subsample"] = result.groupby(within, dropna=False).cumcount().astype("Int64")
    _fill_scores(result, origin, row_numbers)
    _refuse_repeats(result, origin, row_numbers)
    return result[list(COLUMNS)]


def _refuse_near_misses(table: pd.DataFrame, origin: str) -> None:
    """A column `model_name` left alone would pool the rows of several models as if they were one's."""
    absent = [name for name in TELLING_APART if name not in table.columns]
    for column in map(str, table.columns):
        is_known = column in (*COLUMNS, *SYNONYMS) or is_arm(column)
        if not is_known and (close := get_close_matches(column, absent, n=1, cutoff=CLOSE)):
            raise ResultsError(
                f"{origin}: column {column!r} means nothing here, and there is no {close[0]!r}; rename it to that, or "
                "give it a name that is less alike"
            )


def _one_row_an_arm(table: pd.DataFrame, origin: str) -> tuple[pd.DataFrame, Any]:
    """Unfold columns base, extra, test into rows; also the original row number of each new row."""
    import numpy as np

    arms = [str(column) for column in table.columns if is_arm(str(column))]
    missing = [arm for arm in ("extra", "test") if arm not in arms]
    if missing:
        raise ResultsError(
            f"{origin}: neither a column 'arm' nor the column {missing[0]!r}; it has {_listed(table.columns)}"
        )
    # Log loss and the like belong to one arm, and such a row does not say to which.
    keep = [column for column in table.columns if column not in (*arms, "score", "num_correct", *OF_AN_ARM)]
    if "subsample" not in table.columns:
        within = [column for column in (*CONFIGURATION, "task") if column in table.columns]
        table = table.assign(subsample=table.groupby(within, dropna=False).cumcount())
        keep.append("subsample")
    long = table.melt(id_vars=keep, value_vars=arms, var_name="arm", value_name="score")
    return long, np.tile(np.arange(1, len(table) + 1), len(arms))


def _numbers(table: pd.DataFrame, column: str, origin: str, row_numbers: Any) -> pd.Series[float]:
    import numpy as np
    import pandas as pd

    if column not in table.columns:
        return pd.Series(np.nan, index=table.index, dtype="float64")
    values = pd.to_numeric(table[column], errors="coerce").astype("float64")
    good = table[column].isna() | (values.notna() & np.isfinite(values))
    _require(good, column, "is no number", table, origin, row_numbers)
    return values


def _whole_numbers(table: pd.DataFrame, column: str, origin: str, row_numbers: Any) -> pd.Series[int]:
    values = _numbers(table, column, origin, row_numbers)
    good = values.isna() | ((values == values.round()) & (values >= 0))
    _require(good, column, "is no whole number of 0 or more", table, origin, row_numbers)
    return values.astype("Int64")


def _fill_scores(table: pd.DataFrame, origin: str, row_numbers: Any) -> None:
    """Scores from counts, or counts from scores, rounded: 0.29 x 100 is 28.999999999999996, and 29 were right."""
    size = table["num_test"].astype("float64")
    from_counts = table["num_correct"].astype("float64") / size
    table["score"] = table["score"].fillna(from_counts)
    _require(
        table["score"].notna(), "score", "is missing, and num_correct or num_test too; give one of them", table, origin,
        row_numbers,
    )  # fmt: skip
    _require(
        table["score"] <= 1, "score", "is above 1; give fractions, not percent or counts", table, origin, row_numbers
    )
    is_accuracy = ~(table["score"] < 0).groupby(table["task"]).transform("any")  # R^2 can be negative
    exact = table["score"] * size
    whole = exact.isna() | ~is_accuracy | ((exact - exact.round()).abs() <= SLACK)
    _require(
        whole, "score", "is no number of right answers out of num_test; correct num_test, or leave that column out for "
        "a score that is no accuracy", table, origin, row_numbers,
    )  # fmt: skip
    given = table["num_correct"]
    counts = exact.where(is_accuracy).round().astype("Int64")
    agree = given.isna() | counts.isna() | (given == counts)
    _require(agree.fillna(True), "num_correct", "is not score x num_test", table, origin, row_numbers)
    table["num_correct"] = given.fillna(counts)


def _refuse_repeats(table: pd.DataFrame, origin: str, row_numbers: Any) -> None:
    repeated = table.duplicated([*TRIAL, "arm"])
    _require(
        ~repeated, "subsample", "stands twice for the same task, method, model, sizes and arm; number the subsamples, "
        "or name the columns that tell the rows apart method or model", table, origin, row_numbers,
    )  # fmt: skip


def _require(good: Any, column: str, problem: str, table: pd.DataFrame, origin: str, row_numbers: Any) -> None:
    """Refuse the first row that is not `good`."""
    bad = (~good.astype("bool")).to_numpy()
    if bad.any():
        position = int(bad.argmax())
        value = table[column].iloc[position]
        raise ResultsError(f"{origin}, row {row_numbers[position]}, column {column!r}: {value} {problem}")


def _listed(names: Any) -> str:
    return ", ".join(map(repr, map(str, names)))

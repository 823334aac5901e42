"""Checks a user's table of scores and brings it into the form of the results table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NoReturn, get_args

import numpy as np
import pandas as pd

from peekbench.errors import ResultsError
from peekbench.records.data import IntArray
from peekbench.records.predictions import Predictions
from peekbench.records.table_options import TableOptions
from peekbench.records.trials import Control
from peekbench.results.arm_names import rename_arms
from peekbench.results.cells import CellReader, quoted, short
from peekbench.results.column_names import (
    LOSSES,
    Role,
    as_score,
    guess_arm,
    ignore_option,
    map_option,
    nearest,
    normalize,
    normalize_arm,
)
from peekbench.results.column_roles import ARM, METHOD, MODEL, SUBSAMPLE, TASK, TEXT, ColumnRoles, assign_roles
from peekbench.results.column_use import BY_ORDER, BY_ROW, BY_TEXT, ColumnUse, describe_use
from peekbench.results.columns import (
    ARM_MEASURES,
    ARMS,
    COLUMN_NAMES,
    CONFIGURATION,
    LOSS,
    MAJORITY,
    SIZES,
    TEXT_DEFAULTS,
    TRIAL,
)
from peekbench.results.numbering import (
    choose_numbering,
    number_rows_by_content,
    number_rows_by_order,
    read_subsamples,
    refuse_unnumbered,
    refuse_unpaired,
)
from peekbench.results.other_columns import ignore_harmless
from peekbench.results.plain_table import plain_table
from peekbench.results.proposals import ARMS_EXPLAINED, MAX_ARMS
from peekbench.results.row_order import rank_numbers, sort_arms, sort_rows
from peekbench.results.scores_and_counts import fill_scores, fill_text_scores
from peekbench.results.text_column import choose_texts, grades_as_numbers, ignore_facts_of_texts, read_texts
from peekbench.results.text_rows import add_up

KNOWN_UNITS = ("num_correct", "bits_per_byte", "error_rate")
"""Columns of scores with a known unit."""
AVERAGES = frozenset(
    ("average", "avg", "mean", "all", "overall", "total", "macroavg", "macroaverage", "microavg", "microaverage")
)
"""Normalized names of rows that summarize other tasks."""
MIN_COPIED = 4  # distinct rows; fewer can all occur twice by chance
MIN_SHARE = 0.05
"""Scores that are all smaller are in an unknown unit: the default region would contain most of their range."""


@dataclass(frozen=True, slots=True)
class TidyTable:
    """A results table, and what is known about it."""

    results: pd.DataFrame
    columns: ColumnUse = field(default_factory=ColumnUse)
    """What was done with the columns of a user's table."""
    predictions: Predictions | None = None
    """Answers to single texts, if they are known."""

    @property
    def has_texts_as_draws(self) -> bool:
        """Whether each subsample is a single text, because there is one run for each arm."""
        return self.columns.pairing == BY_TEXT

    @property
    def has_rows_of_texts(self) -> bool:
        """Whether a user's table has one row for each text and run."""
        return bool(self.columns) and self.predictions is not None


def tidy(
    table: pd.DataFrame,
    origin: str,
    *,
    columns: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
    pair_by_order: bool = False,
    percent: bool = False,
    lower_is_better: bool = False,
) -> pd.DataFrame:
    """Check a table of scores and fill in the columns of the results table.

    Parameters
    ----------
    table
        One row for each arm with the columns of `peekbench.results.COLUMNS`, or one row for each subsample with a
        column of scores for each arm. Only the task and the scores are required.
    origin
        Name of the table for messages, such as its file.
    columns
        Meaning of columns with names of their own: ``{"seed": "subsample"}``. Several columns can form the same task,
        method, model or subsample together. Values of the column of arms are renamed in the same way:
        ``{"independent": "extra"}``.
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
        The results table, sorted by method, model, sizes, task, subsample and arm.

    Raises
    ------
    ResultsError
        If the table is malformed, or a column that is neither known nor ignored distinguishes rows. The message names
        `origin`, the row (the first below the heading is 1) and the column.

    Examples
    --------
    >>> scores = pd.DataFrame({"task": ["news"], "num_test": [200], "extra": [0.715], "test": [0.730]})
    >>> tidy(scores, "my scores")["num_correct"].tolist()
    [143, 146]
    """
    options = TableOptions(columns or {}, ignore, pair_by_order, percent, lower_is_better)
    return tidy_table(table, origin, options).results


def tidy_table(table: pd.DataFrame, origin: str, options: TableOptions) -> TidyTable:
    """Return the results table of a user's table, as `tidy`, and what was done with its columns."""
    table, row_numbers = plain_table(table, origin)
    if table.empty:
        raise ResultsError(f"{origin} has no rows; give one row for each subsample, or for each arm of a subsample")
    table, options, arm_names = rename_arms(table, origin, options)
    roles = assign_roles(table, origin, options)
    table = grades_as_numbers(table, roles)
    reader = CellReader(table, origin, percent=options.percent, has_unit=options.region is not None)
    trials = _read_trials(roles, reader)
    is_plain = SUBSAMPLE in roles.sources and not (roles.others or roles.numberings or roles.texts)
    groups = np.arange(len(table)) if is_plain else _group(trials)  # grouping takes a while and is rarely needed
    roles = choose_texts(table, roles, groups, origin)
    roles = choose_numbering(table, roles, groups, origin)
    texts = read_texts(trials, roles, reader)
    if texts is not None:
        roles = ignore_facts_of_texts(table, roles, groups, texts)
    roles = ignore_harmless(table, roles, trials, groups, origin)
    results = _read_arms(trials, roles, reader, options.arms)
    if texts is not None:
        groups = rank_numbers(groups * len(texts.names) + texts.numbers)
    pairing = ""
    if SUBSAMPLE in roles.sources:
        if options.pair_by_order:
            source = roles.sources[SUBSAMPLE][0]
            raise ResultsError(
                f"{origin}: --pair-by-order is given, but the column {short(source)!r} numbers the subsamples; remove "
                f"the option, or use {ignore_option(source)}"
            )
        subsamples = read_subsamples(table, roles, reader)
        if not roles.arms:
            refuse_unpaired(trials, subsamples, roles, origin)
    elif len(np.unique(groups)) == len(groups):
        subsamples = pd.Series(0, index=table.index, dtype="Int64")
    elif options.pair_by_order:
        _refuse_copies(trials, results, origin)
        subsamples, pairing = number_rows_by_order(groups), BY_ORDER
    elif roles.arms and texts is None:
        _refuse_copies(trials, results, origin)
        scores = results["score"].to_numpy().reshape(len(roles.arms), len(table)).T
        subsamples, pairing = number_rows_by_content(trials, pd.DataFrame(scores), groups), BY_ROW
    else:
        refuse_unnumbered(groups, origin, roles)
    num_arms = max(1, len(roles.arms))
    results["subsample"] = pd.concat([subsamples] * num_arms).array
    predictions = None
    if texts is not None:
        results[TEXT.column] = np.tile(texts.numbers, num_arms)
    ordered = sort_rows(results, () if texts is None else (TEXT.column,))
    if ordered is None:
        _refuse_duplicate(results, roles, reader)
    if texts is not None:
        ordered, predictions = add_up(ordered, texts.names, origin, needs_pairs=options.needs_pairs)
        pairing = pairing or ("" if predictions else BY_TEXT)
    use = describe_use(roles, row_numbers, reader.percentages, pairing)
    unit = _explain_unit(ordered, roles, reader)
    use = replace(use, mapped={**use.mapped, **arm_names}, not_like_accuracy=unit, region=options.region)
    return TidyTable(ordered[list(COLUMN_NAMES)], use, predictions)


def _explain_unit(results: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> str:
    """Return why scores are not shares, as accuracies are; empty if they are."""
    if results["num_correct"].notna().all() or any(role.column in KNOWN_UNITS for role in roles.sources):
        return ""
    losses = [name for role, names in roles.sources.items() if role.column == LOSS.name for name in names]
    sizes = results["score"].abs()
    if not losses and MIN_SHARE <= sizes.max() <= 1:
        return ""
    name = quoted(losses) if losses else "the scores"
    return (
        f"{reader.origin}: the unit of {name} is unknown (mean {results['score'].abs().mean():.3g}), so there is no "
        "default for the largest bias that is negligible; choose one in this unit with --region WIDTH, such as "
        f"--region {sizes.mean() / 100:.1g}, which is 1% of the mean"
    )


def _read_trials(roles: ColumnRoles, reader: CellReader) -> pd.DataFrame:
    """Return the columns that are not of one arm, and the arm if each row has one."""
    trials = pd.DataFrame(index=reader.index)
    for column, default in TEXT_DEFAULTS.items():
        sources = roles.sources.get(Role(column), ())
        if sources:
            texts = [reader.texts(source) for source in sources]
            trials[column] = texts[0] if len(texts) == 1 else _join(texts)
        elif column != "arm":
            trials[column] = pd.Series(default, index=reader.index, dtype="str")
    for column in (*SIZES, "num_scored", MAJORITY):
        trials[column] = reader.column(roles.source(column), column)
    if "arm" in trials.columns:
        names = {arm: normalize_arm(arm) for arm in trials["arm"].unique()}
        reader.require(
            trials["arm"].isin([arm for arm, name in names.items() if name]),
            roles.sources[ARM][0],
            partial(_explain_arm, unknown=[arm for arm, name in names.items() if not name]),
        )
        trials["arm"] = trials["arm"].map(names).astype("str")
    elif not roles.arms:
        trials["arm"] = pd.Series("base", index=reader.index, dtype="str")
    reader.require(trials["task"] != "", roles.sources[TASK][0], "is empty; name the task")
    _check_names(trials, roles, reader)
    _check_controls(trials, roles, reader)
    return trials


def _check_names(trials: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> None:
    """Refuse rows without a method, methods with a model in some rows only, and rows that average other rows."""
    remedy = "is empty, but other rows have a name; fill in every cell, also below merged cells"
    if METHOD in roles.sources:
        reader.require(trials["method"] != "", roles.sources[METHOD][0], remedy)
    if MODEL in roles.sources:
        has_some = (trials["model"] != "").groupby(trials["method"]).transform("any")
        reader.require((trials["model"] != "") | ~has_some, roles.sources[MODEL][0], remedy)
    tasks = trials["task"].unique()
    averages = [task for task in tasks if normalize(task) in AVERAGES]
    if len(tasks) > len(averages) > 0:
        problem = "is an average of other tasks, which would count twice; delete its rows, or rename the task"
        reader.require(~trials["task"].isin(averages), roles.sources[TASK][0], problem)


def _refuse_copies(trials: pd.DataFrame, results: pd.DataFrame, origin: str) -> None:
    """Refuse rows without numbers of which each occurs several times, so that copies would count as draws."""
    scores = results["score"].to_numpy().reshape(-1, len(trials))
    rows = trials.assign(**{f"score {number}": column for number, column in enumerate(scores)})
    counts = rows.groupby(list(rows.columns), dropna=False).size()
    if len(counts) >= MIN_COPIED and counts.min() > 1:
        raise ResultsError(
            f"{origin}: each row occurs at least {counts.min()} times, and no column numbers the draws; delete the "
            "copies, or add a column 'subsample' with the number of the draw if these are different draws"
        )


def _explain_arm(value: str, unknown: Sequence[str]) -> str:
    remedy = " ".join(map_option(each, guess_arm(each) or "ARM") for each in unknown[:MAX_ARMS])
    near = nearest(value, ARMS)
    return (
        f"is not an arm; {f'did you mean {near}? Arms' if near else 'arms'} are base, extra, test and doses such as "
        f"mix-0.25. Say which arm each value is: {remedy}, {ARMS_EXPLAINED}"
    )


def _group(trials: pd.DataFrame) -> IntArray:
    """Return a number for each row, equal for rows of the same configuration and task, and of the same arm if any."""
    names = [*CONFIGURATION, "task", *(["arm"] if "arm" in trials.columns else [])]
    return trials.groupby(names, dropna=False, sort=False).ngroup().to_numpy().astype(np.int64)


def _join(texts: Sequence[pd.Series[str]]) -> pd.Series[str]:
    """Return the texts of several columns as one, such as 'lsa, 100'."""
    parts = pd.concat(texts, axis="columns", keys=range(len(texts)))
    codes = parts.groupby(list(parts.columns), sort=False).ngroup().to_numpy()
    distinct = parts.drop_duplicates()
    names = [", ".join(filter(None, row)) for row in distinct.itertuples(index=False)]
    return pd.Series(np.array(names, dtype="object")[codes], index=parts.index, dtype="str")


def _check_controls(trials: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> None:
    source = roles.source("control")
    if source is None:
        return
    reader.require(
        trials["control"].isin(get_args(Control)),
        source,
        "is neither 'negative' nor 'positive'; leave it empty for methods that are not controls",
    )
    first = trials.groupby("method")["control"].transform("first")
    reader.require(
        trials["control"] == first,
        source,
        "differs from the first row of its method; use one value for all rows of a method",
    )


def _read_arms(trials: pd.DataFrame, roles: ColumnRoles, reader: CellReader, needed: Sequence[str]) -> pd.DataFrame:
    """Return one row for each arm of each row of the user's table, one arm below the other."""
    arms = sort_arms(roles.arms) or [""]
    tables = []
    for arm in arms:
        measures = {column: reader.column(roles.source(column, arm), column) for column in ARM_MEASURES}
        for role in (Role(name, arm) for name in LOSSES):
            if (source := roles.source(*role)) is not None:
                measures["score"] = measures["score"].fillna(as_score(reader.numbers(source, role.column), role))
        tables.append(trials.assign(**({"arm": arm} if arm else {}), **measures))
    results = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    for arm in needed:
        if not (results["arm"] == arm).any():
            because = (
                "but the bias is the score of test minus the score of extra" if arm != "base" else "which is needed"
            )
            raise ResultsError(f"{reader.origin}: no row has the arm {arm!r}, {because}; add these rows")
    (fill_text_scores if TEXT in roles.sources else fill_scores)(results, roles, reader)
    return results


def _refuse_duplicate(results: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> NoReturn:
    is_text = TEXT in roles.sources
    position = int(results.duplicated([*TRIAL, "arm", *([TEXT.column] if is_text else [])]).to_numpy().argmax())
    source = roles.source(TEXT.column if is_text else "subsample")
    assert source is not None  # other numbers are distinct
    raise reader.error(
        position % len(reader.index),
        source,
        f"is duplicated for the same task, method, model, sizes{', subsample' * is_text} and arm; number the "
        "subsamples, or name the columns that distinguish the rows, such as --map COLUMN=method",
    )

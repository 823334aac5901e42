"""Brings the rows of a user's table into the form of the results table: numbers, counts, order and metric."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Unpack

import numpy as np
import pandas as pd

from peekbench.errors import Argument, ResultsError
from peekbench.records.data import Predictions, TableKeywords, TableOptions
from peekbench.results.cells import (
    MAX_REPEATED,
    CellReader,
    join_draws,
    names_text,
    plain_table,
    rank,
    read_subsamples,
    read_trials,
)
from peekbench.results.columns import (
    ARM_MEASURES,
    AS_PERCENTAGES,
    BY_ROW,
    BY_TEXT,
    COLUMN_NAMES,
    CONFIGURATION,
    ERROR_RATE,
    FIT,
    GROUP,
    INDEPENDENT,
    LOSS,
    LOSSES,
    SCORE_SOURCES,
    TEXT,
    TRIAL,
    ColumnUse,
    are_accuracies,
    quoted,
    short,
    sort_arms,
)
from peekbench.results.recorded_looks import state_earlier
from peekbench.results.text_rows import (
    ANSWERS,
    RowTexts,
    add_up,
    average_fits,
    grade_answers,
    name_texts,
    pair_fits,
    read_texts,
)
from peekbench.results.user_columns import (
    ALLOW_INCOMPLETE,
    REGION,
    ColumnRoles,
    assign_roles,
    find_metric,
    ignoring,
    is_counted,
    mapping,
    names_accuracy,
    refuse_losses,
    refuse_unknown,
)

PLACE = (*CONFIGURATION, "task")
DIGITS = 9  # of scores that decide the order of rows, so that percentages and fractions have the same order
DECIMALS = range(2, 6)
"""Numbers of decimals of rounded scores. Scores with more decimals are exact to 6."""
FLOAT_ERROR = 1e-7
"""Largest error of a score in single precision."""
MIN_COPIED = 4  # distinct rows; fewer can all occur twice by chance
KNOWN_UNITS = ("num_correct", "bits_per_byte", "error_rate")
"""Columns of scores with a known unit."""
MIN_SHARE = 0.05
"""Scores that are all smaller are in an unknown unit: the default region would contain most of their range."""
NAME_FITS = ", or name the fits in a column 'fit' if several fits answer a text"


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


def tidy(table: pd.DataFrame, origin: str, **options: Unpack[TableKeywords]) -> pd.DataFrame:
    """Check a table of scores and fill in the columns of the results table.

    Parameters
    ----------
    table
        One row for each arm with the columns of `peekbench.results.COLUMNS`, or one row for each subsample with a
        column of scores for each arm. Only the task and the scores are required.
    origin
        Name of the table for messages, such as its file.
    **options
        What the columns do not say themselves, as for `peekbench.analyze`.

    Returns
    -------
    pandas.DataFrame
        The results table, sorted by method, model, sizes, task, subsample and arm.

    Raises
    ------
    ResultsError
        If the table is malformed, or a column is neither known nor mapped nor ignored. The message names
        `origin`, the row (the first below the heading is 1) and the column.

    Examples
    --------
    >>> scores = pd.DataFrame({"task": ["news"], "num_test": [200], "extra": [0.715], "test": [0.730]})
    >>> tidy(scores, "my scores")["num_correct"].tolist()
    [143, 146]
    """
    return tidy_table(table, origin, TableOptions(**options)).results


def tidy_table(table: pd.DataFrame, origin: str, options: TableOptions, task: str = "task") -> TidyTable:
    """Return the results table of a user's table, as `tidy`, and what was done with its columns.

    The error about a table names all problems whose remedies are known, and the options that solve them together.
    `task` is the name of the task if no column names it.
    """
    try:
        return _tidy_table(table, origin, options, task)
    except ResultsError as error:
        if error.added is None or {"ARM", "MEANING"} & {*error.added.columns.values()}:
            raise
        first, added = error, error.added
    more = replace(added.combine(options), arms=options.arms, drops_empty=options.drops_empty)
    if more != options:
        try:
            tidy_table(table, origin, more, task)
        except ResultsError as other:
            added = (other.added or TableOptions()).combine(added)
            raise ResultsError(*first.args, "\n", *other.args, added=added) from first
    raise first


def _tidy_table(table: pd.DataFrame, origin: str, options: TableOptions, task: str) -> TidyTable:
    table, options = join_draws(plain_table(table, origin), options)
    options = name_texts(table, options)
    roles = assign_roles(table, origin, options)
    reader = CellReader(table, roles, origin, options, task)
    grade_answers(reader)
    trials = read_trials(reader)
    texts = read_texts(reader, trials)
    suggested = reader.guess_columns(trials)
    named = {name: to for name, to in suggested.columns.items() if to == TEXT.name}
    if reader.has_grades and any(map(names_text, named)):
        return _tidy_table(table, origin, options.combine(TableOptions(named)), task)
    if named:
        refuse_unknown(roles, origin, suggested)
    subsamples, pairing = _number_rows(reader, trials, texts)
    refuse_unknown(roles, origin, suggested)
    rows = read_arms(reader, trials)
    num_arms = len(rows) // len(trials)
    if texts is None:
        fill_scores(rows, reader)
    else:
        fill_text_scores(rows, reader)
        rows[TEXT.name] = np.tile(texts.numbers, num_arms)
        if texts.groups is not None:
            rows[GROUP.name] = np.tile(texts.groups, num_arms)
    if subsamples is None:
        scores = rows["score"].to_numpy().reshape(num_arms, len(trials))
        _refuse_copies(trials, scores, origin)
        subsamples = number_by_content(trials, scores)
    rows["subsample"] = pd.concat([subsamples] * num_arms).array
    has_fits = roles.source(FIT.name) is not None
    rows[FIT.name] = np.tile(reader.texts(FIT.name), num_arms)
    num_empty, num_fits = int(rows["score"].isna().sum()), 0
    rows = rows[rows["score"].notna()]
    if has_fits:
        if texts is None:
            paired = pair_fits(rows, reader)
            rows, num_empty = paired, num_empty + len(rows) - len(paired)
        rows, num_fits = average_fits(rows, reader)
    results = sort_rows(rows)
    if results is None:
        _refuse_duplicate(rows, reader)
    metric = find_metric(results, origin)
    refuse_losses(results, metric, roles, origin)
    predictions = None
    if texts is not None:
        results, predictions = add_up(results, texts.names, origin, has_fits=has_fits)
        if predictions is None:
            results, pairing = sort_rows(results), pairing or BY_TEXT
            assert results is not None  # no text is duplicated
    has_texts_as_draws = pairing == BY_TEXT or bool(results["num_test"].eq(1).fillna(False).all())
    if options.independent_tasks or has_texts_as_draws or pairing == BY_ROW:  # the last has no numbers that tasks share
        results = results.assign(**INDEPENDENT)
    is_share = reader.has_percentages or (results["score"].between(0, 1).all() and names_accuracy(roles))
    if is_share and not are_accuracies(results):
        results = results.assign(**AS_PERCENTAGES)
    results = state_earlier(results, options.earlier_numbers, origin)
    use = ColumnUse(
        used=tuple(name for role, name in roles.sources.items() if name == str(role)),
        mapped={name: str(role) for role, name in roles.sources.items() if name != str(role)} | dict(roles.arm_names),
        ignored=roles.ignored,
        pairing=pairing,
        not_like_accuracy=explain_unit(results, roles, origin),
        region=options.region,
        num_empty=num_empty,
        num_fits=num_fits,
        metric=metric,
        alike_answers=tuple(reader.alike_answers),
        controls=tuple(results.loc[results["control"] != "", "method"].unique()),
    )
    return TidyTable(results[list(COLUMN_NAMES)], use, predictions)


def _number_rows(reader: CellReader, trials: pd.DataFrame, texts: RowTexts | None) -> tuple[pd.Series[int] | None, str]:
    """Return the number of the subsample of each row, and how rows are paired if the user's table has no such number.

    None instead of numbers: each row of a table with columns of arms is a draw of its own.
    """
    if reader.roles.source("subsample") is not None:
        return read_subsamples(reader), ""
    places = trials[[name for name in (*PLACE, "arm") if name in trials]]
    if texts is not None:
        places = places.assign(text=texts.numbers)
        if reader.roles.source(FIT.name) is not None:
            places = places.assign(fit=reader.texts(FIT.name))
    numbers = places.groupby(list(places.columns), dropna=False, sort=False).cumcount().astype("Int64")
    if not numbers.any():
        return numbers, ""
    if reader.roles.arms and texts is None:
        return None, BY_ROW
    if texts is not None and (source := reader.roles.source(TEXT.name)) is not None:
        _refuse_repeated(places, source, reader)
    num_same, listed, missing = int(numbers.max()) + 1, ", ".join(places.columns), "subsample"
    if reader.has_grades and texts is None:
        missing = TEXT.name
    added = TableOptions(dict.fromkeys(reader.roles.unknown, "MEANING"))
    if len(numbering := [name for name in reader.roles.unknown if _numbers_pairs(reader.table[name], places)]) == 1:
        added = TableOptions({numbering[0]: missing}, [name for name in reader.roles.unknown if name not in numbering])
    raise ResultsError(
        f"{reader.origin}: {num_same:,} rows have the same {listed}, and no column numbers the {missing}s, so it is "
        f"unknown which rows of the arms belong together. Add a column {missing!r}, or name yours with ",
        mapping("COLUMN", missing),
        NAME_FITS if texts is not None else "",
        added=added,
    )


def _numbers_pairs(cells: pd.Series[Any], places: pd.DataFrame) -> bool:
    """Return whether each value occurs once in an arm of a place, and in several arms."""
    rows = places.assign(number=cells)
    return not rows.duplicated().any() and bool(rows.drop(columns="arm", errors="ignore").duplicated(keep=False).all())


def read_arms(reader: CellReader, trials: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each arm of each row of the user's table, one arm below the other."""
    tables = []
    for arm in reader.roles.arms or [""]:
        measures: dict[str, Any] = {column: reader.column(column, arm) for column in ARM_MEASURES}
        for column in LOSSES:
            if (source := reader.roles.source(column, arm)) is not None:
                losses = reader.numbers(source, column)
                measures["score"] = -losses
                if column == ERROR_RATE.name:
                    measures["score"] = 1 - losses
        if arm:
            measures["arm"] = arm
        tables.append(trials.assign(**measures))
    return pd.concat(tables, ignore_index=True)


def number_by_content(trials: pd.DataFrame, scores: np.ndarray[Any, Any]) -> pd.Series[int]:
    """Return numbers of subsamples for rows that have all arms of a trial but no number.

    The numbers depend on the scores of a row, not on its position, and look random, so that the first subsamples are
    not those of the lowest scores. Configurations have different numbers, because nothing says that they share draws.

    Parameters
    ----------
    trials
        Configuration and task of each row.
    scores
        Scores of each row: (n_arms, n_rows).
    """
    rounded = pd.DataFrame(scores.T).round(DIGITS) + 0.0
    keys = {f"score {arm}": column for arm, column in enumerate(scores)}
    place = list(PLACE)
    ordered = trials[place].assign(hash=pd.util.hash_pandas_object(rounded, index=False).to_numpy(), **keys)
    ordered = ordered.sort_values(["hash", *reversed(keys)], kind="stable")
    position = ordered.groupby(place, dropna=False, sort=False).cumcount().sort_index()
    ranks = pd.DataFrame({name: rank(trials[name]) for name in CONFIGURATION})
    return (ranks.groupby(list(CONFIGURATION)).ngroup() * (position.max() + 1) + position).astype("Int64")


def _refuse_copies(trials: pd.DataFrame, scores: np.ndarray[Any, Any], origin: str) -> None:
    """Refuse rows without numbers of which each occurs several times, so that copies would count as draws."""
    rows = trials.assign(**{f"score {number}": column for number, column in enumerate(scores)})
    counts = rows.groupby(list(rows.columns), dropna=False).size()
    if len(counts) >= MIN_COPIED and counts.min() > 1:
        raise ResultsError(
            f"{origin}: each row occurs at least {counts.min()} times, and no column numbers the draws; delete the "
            "copies, or add a column 'subsample' if they are different draws"
        )


def _refuse_duplicate(rows: pd.DataFrame, reader: CellReader) -> NoReturn:
    place, column, remedy = [*TRIAL, "arm"], "subsample", "number the subsamples"
    if TEXT.name in rows:
        place, column, remedy = [*place, TEXT.name], TEXT.name, f"{remedy}{NAME_FITS}"
    elif reader.has_grades:
        remedy = "name the text of each row in a column 'text'"
    source = reader.roles.source(column)
    assert source is not None  # other numbers are distinct
    if TEXT.name in rows or not reader.has_grades:
        _refuse_repeated(rows[place], source, reader)
    raise reader.error(
        int(rows.duplicated(place).to_numpy().argmax()) % len(reader.table),
        source,
        f"is duplicated for the same {', '.join(name for name in place if name != column)}; {remedy}, "
        "or name the columns that distinguish the rows, such as ",
        mapping("COLUMN", "method"),
    )


def _refuse_repeated(places: pd.DataFrame, source: str, reader: CellReader) -> None:
    """Refuse rows of the same place if they are copies, or if few texts are repeated."""
    is_repeated = places.duplicated().to_numpy()
    positions = places.index.to_numpy() % len(reader.table)
    later = positions[is_repeated]
    is_few = TEXT.name in places and is_repeated.mean() <= MAX_REPEATED
    if is_few or reader.table.duplicated().iloc[later].all():
        groups = places.groupby(list(places.columns), dropna=False, sort=False).ngroup().to_numpy()
        earlier = positions[(groups == groups[is_repeated.argmax()]).argmax()]
        first, second = reader.row_numbers[[earlier, later[0]]]
        raise reader.error(int(later[0]), source, f"occurs twice (rows {first:,} and {second:,}); delete one")


def fill_text_scores(results: pd.DataFrame, reader: CellReader) -> None:
    """Compute missing scores and counts of rows that are about single texts, and the column of numbers of answers.

    Scores of 0 and 1 are those of a single answer, also if `num_test` is the number of all texts. With `num_correct`,
    `num_test` is the number of answers to each text. Other scores are no counts. Parameters and errors are those of
    `fill_scores`.
    """
    given, sizes = results["num_correct"], results["num_test"]
    scores = results["score"].fillna(results["grade"]).fillna(given.astype("float64"))
    if scores.isin((0.0, 1.0)).all() and (given.isna() | (given == scores)).all():
        answers = pd.Series(1, index=results.index, dtype="Int64")
        results["num_correct"] = given.fillna(scores.astype("Int64"))
    else:
        answers = sizes.where(given.notna())
    results["num_test"] = answers
    fill_scores(results, reader)
    results["num_test"], results["num_scored"], results[ANSWERS] = sizes, pd.NA, answers.fillna(1)


def fill_scores(results: pd.DataFrame, reader: CellReader) -> None:
    """Compute missing scores and counts, counts by rounding: 0.29 x 100 is 28.999999999999996, not 28.

    Parameters
    ----------
    results
        Rows of the user's table, once for each arm that they contain; changed in place.
    reader
        Reader of the user's table, for messages.

    Raises
    ------
    ResultsError
        If a row has no score, or scores, counts and sizes contradict each other.
    """
    roles = reader.roles

    def require(is_valid: pd.Series[bool], *problem: str | Argument, column: str = "score") -> None:
        """Refuse the first row that is not valid; the message names the column, or one of a score."""
        for arm in roles.arms or [""]:
            of_arm = is_valid
            if arm:
                of_arm = is_valid[results["arm"] == arm]
            sources = (roles.source(name, arm) for name in (column, *SCORE_SOURCES, *ARM_MEASURES))
            reader.require(of_arm, next(filter(None, sources)), *problem)

    given = results["num_correct"]
    results["num_scored"] = results["num_scored"].fillna(results["num_test"])
    size = results["num_scored"].astype("float64")
    scores = results["score"].fillna(results["grade"]).fillna(given.astype("float64") / size)
    if scores.isna().all():  # an accuracy that is missing beside others is an error
        scores = -results["bits_per_byte"]
    is_count = given.notna() & results["score"].isna()
    unknown_size = "is a count, and the number of test texts is missing; add the column 'num_test' and fill it in"
    require(scores.notna() | ~is_count, unknown_size, column="num_correct")
    if not reader.drops_empty:
        require(scores.notna(), "is empty; fill it in, or leave it out with ", ALLOW_INCOMPLETE)
    fits = given.isna() | (scores <= 1)
    require(fits, "is larger than the number of test texts; correct one of them", column="num_correct")
    is_loss = any(role.column == LOSS.name for role in roles.sources)
    is_other = given.isna() & results["metric"].map(lambda metric: bool(metric) and not is_counted(metric))
    is_none = (
        (scores.notna() & ~scores.between(0, 1)) | is_loss | is_other | (scores == results["grade"])
    )  # R^2 can be negative
    is_accuracy = ~is_none.groupby(results["task"]).transform("any")
    exact = scores * size
    tolerance = size * (last_decimal(results) - FLOAT_ERROR)  # 0.50 is not 49 of 100
    is_whole = exact.isna() | ~is_accuracy | ((exact - exact.round()).abs() <= tolerance)
    size_column = roles.source("num_scored") or roles.source("num_test") or "num_test"
    problem = f"is not a whole number of correct answers out of {short(size_column)}; correct {short(size_column)}, or "
    require(is_whole, f"{problem}use ", ignoring(size_column), " if the score is not an accuracy")
    counts = exact.where(is_accuracy).round().astype("Int64")
    agrees = given.isna() | counts.isna() | ((given - exact).abs() <= tolerance)
    require(agrees.fillna(True), "is not score x num_test; correct one of them", column="num_correct")
    results["score"] = scores
    results["num_correct"] = given.fillna(counts)


def last_decimal(results: pd.DataFrame) -> pd.Series[float]:
    """Return the unit of the last decimal of the scores of each task and arm: 0.0001 for 0.7222 and 0.7."""
    scores = results["score"]
    decimals = pd.Series(DECIMALS.stop, index=scores.index).where(scores.notna(), DECIMALS.start)
    for number in reversed(DECIMALS):
        decimals = decimals.mask((scores - scores.round(number)).abs() < FLOAT_ERROR, number)
    return 0.1 ** decimals.groupby([results["task"], results["arm"]]).transform("max")


def sort_rows(results: pd.DataFrame) -> pd.DataFrame | None:
    """Return a results table in natural order of its rows, or None if two rows are the same arm of the same trial.

    Results then do not depend on the order of the rows of a file, not even in their last digit. Numbers of texts also
    distinguish and order rows.
    """
    arms = {arm: number for number, arm in enumerate(sort_arms(results["arm"].unique()))}
    keys = pd.DataFrame({name: rank(results[name]) for name in PLACE}, index=results.index)
    keys = keys.assign(subsample=results["subsample"], arm=results["arm"].map(arms))
    if TEXT.name in results:
        keys[TEXT.name] = results[TEXT.name]
    if keys.duplicated().any():
        return None
    return results.loc[keys.sort_values(list(keys.columns), kind="stable").index].reset_index(drop=True)


def explain_unit(results: pd.DataFrame, roles: ColumnRoles, origin: str) -> tuple[str | Argument, ...]:
    """Return why scores are not shares, as accuracies are, in the parts of an error; empty if they are."""
    if are_accuracies(results) or any(role.column in KNOWN_UNITS for role in roles.sources):
        return ()
    losses = [name for role, name in roles.sources.items() if role.column == LOSS.name]
    sizes = results["score"].abs()
    is_share = MIN_SHARE <= sizes.max() <= 1 and (results["score"] > 0).any()
    if not losses and is_share:
        return ()
    return (
        f"{origin}: the unit of {quoted(losses) or 'the scores'} is unknown (mean {sizes.mean():.3g}), so "
        "there is no default for the largest bias that is negligible; choose one in this unit with ",
        REGION,
        ", such as ",
        TableOptions(region=float(f"{sizes.mean() / 100:.1g}")).argument,
        ", which is 1% of the mean",
    )

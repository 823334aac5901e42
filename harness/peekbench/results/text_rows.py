"""Rows of a user's table that are about a single text.

A draw, such as a training seed, has one row for each arm and test text. The results table has one row for each arm of
the draw, and analyses that cross texts with draws read the scores of the texts from `TextScores`. If there is a single
draw, its texts are the draws: nothing else can tell how much a score varies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from peekbench.errors import ResultsError
from peekbench.formatting import pluralize
from peekbench.identity import compare, normalize
from peekbench.records.data import Answers, FloatArray, IntArray, TableOptions
from peekbench.records.scores import SCORES
from peekbench.results.cells import CellReader, names_text, natural_key
from peekbench.results.columns import (
    ANSWER,
    ARM_MEASURES,
    COLUMN_NAMES,
    CONFIGURATION,
    FIT,
    GROUP,
    LABEL,
    TEXT,
    TRIAL,
    short,
)
from peekbench.results.user_columns import ALLOW_INCOMPLETE, Role, find_role

ANSWERS = "answers"
"""Column of rows of single texts: number of answers to the text, of which `num_correct` are correct."""
MEANS = ("score", *(score.name for score in SCORES if score.is_mean))
"""Measures of all texts that are means of those of single texts."""
ARM = (*TRIAL, "arm")
TASK = (*CONFIGURATION, "task")


@dataclass(frozen=True, slots=True)
class TextScores:
    """Scores of single texts: `peekbench.records.Predictions` of a table.

    Examples
    --------
    >>> arms = pd.DataFrame({"task": "news", "method": "lsa", "model": "", "num_train": None, "num_test": 2,
    ...                      "subsample": 0, "arm": ["extra", "test"], "first": [0, 2]})
    >>> predictions = TextScores(arms, np.array([0, 1, 0, 1]), np.array([1.0, 0.0, 1.0, 1.0]))
    >>> predictions.answers("news", "lsa", None, 2, ["test"]).scores["test"]
    array([[1., 1.]])
    """

    arms: pd.DataFrame
    """Each arm of each draw, with the columns of the trial, the arm, and the position of its first text."""
    texts: IntArray
    """Number of the text of each row: (n_rows,)."""
    scores: FloatArray
    """Score of each row: (n_rows,)."""
    groups: IntArray | None = None
    """Number of the group of each row: (n_rows,); None if each text is a group."""

    def answers(
        self, task: str, method: str, num_train: int | None, num_test: int | None, arms: Sequence[str], model: str = ""
    ) -> Answers:
        """Return the scores of the texts of one method in one task; see `peekbench.records.Predictions`."""
        is_wanted = self.arms["arm"].isin(arms)
        place = {"task": task, "method": method, "model": model, "num_train": num_train, "num_test": num_test}
        for column, value in place.items():
            if column == "num_test" and value is None:  # tasks of different sizes are analyzed together
                continue
            if value is None:
                is_wanted &= self.arms[column].isna()
            else:
                is_wanted &= (self.arms[column] == value).fillna(False)
        wanted = self.arms[is_wanted]
        first = wanted.pivot(index="subsample", columns="arm", values="first").dropna().astype("int64").sort_index()
        ends = np.append(self.arms["first"].to_numpy(), len(self.texts))
        num_texts = int((ends[wanted.index + 1] - ends[wanted.index]).min())  # folds can have one more
        places = {arm: first[arm].to_numpy()[:, None] + np.arange(num_texts) for arm in arms}
        groups = None
        if self.groups is not None:
            groups = self.groups[places[arms[0]]]
        return Answers(
            subsamples=first.index.to_numpy(dtype=np.int64),
            rows=self.texts[places[arms[0]]],
            scores={arm: self.scores[place] for arm, place in places.items()},
            groups=groups,
        )


@dataclass(frozen=True, slots=True)
class RowTexts:
    """The test text that each row of a table is about."""

    numbers: IntArray
    """Number of the text of each row, in natural order of the names: (n_rows,)."""
    names: Sequence[str]
    """Names of the texts by their numbers."""
    groups: IntArray | None
    """Number of the group of each row: (n_rows,); None if each text is a group."""


def read_texts(reader: CellReader, trials: pd.DataFrame) -> RowTexts | None:
    """Return the text of each row, or None if rows are not about single texts.

    Without a column of texts, `trials` are numbered in the order of their rows.

    Raises
    ------
    ResultsError
        If a cell is empty, or is neither a text nor a number, or the groups of a text differ.
    """
    if not reader.is_of_texts:
        return None
    if reader.roles.source(TEXT.name) is None:
        position = trials.groupby(list(TASK), sort=False, dropna=False).cumcount()
        return RowTexts(np.asarray(position, dtype=np.int64), [*map(str, reader.row_numbers)], None)
    reader.require_filled(TEXT.name, "name the text of each row, and delete rows that are not about a text")
    codes, found = pd.factorize(reader.texts(TEXT.name))
    names = sorted(map(str, found), key=natural_key)
    positions = {name: position for position, name in enumerate(names)}
    numbers = np.array([positions[str(name)] for name in found], dtype=np.int64)[codes]
    return RowTexts(numbers, names, _read_groups(reader))


def _read_groups(reader: CellReader) -> IntArray | None:
    if reader.roles.source(GROUP.name) is None:
        return None
    reader.require_filled(GROUP.name, "name the group of each text, such as its own name")
    reader.require_one_spelling(GROUP.name)
    names = reader.texts(GROUP.name)
    _require_same(reader, GROUP.name, names)
    groups: IntArray = pd.factorize(names)[0].astype(np.int64)
    return groups


def _require_same(reader: CellReader, column: str, values: pd.Series[Any]) -> None:
    """Refuse values that differ between rows of the same text."""
    if reader.roles.source(TEXT.name) is None:
        return
    first = values.groupby([reader.texts(name) for name in ("task", TEXT.name)], sort=False).transform("first")
    problem = f"differs from the {column} of the same text in an earlier row; correct one"
    reader.require(values == first, reader.roles.sources[Role(column)], problem)


def name_texts(table: pd.DataFrame, options: TableOptions) -> TableOptions:
    """Return options that name the texts of answers and labels, if one column is an identifier such as `id`."""
    roles = {name: find_role(options.columns.get(name) or name) for name in table.columns}
    columns = {role.column for role in roles.values() if role is not None}
    identifiers = [name for name in roles.keys() - {*options.ignored} if roles[name] is None and names_text(name)]
    if len(identifiers) == 1 and {ANSWER.name, LABEL.name} <= columns and TEXT.name not in columns:
        return options.combine(TableOptions({identifiers[0]: TEXT.name}))
    return options


def grade_answers(reader: CellReader) -> None:
    """Replace the answers of a table by 1 for those that equal the labels of their texts, and 0 for others.

    Raises
    ------
    ResultsError
        If a cell is empty, the labels of a text differ, or no answer is a label.
    """
    label = reader.roles.source(LABEL.name)
    arms = [role.arm for role in reader.roles.sources if role.column == ANSWER.name]
    if label is None or not arms:
        return
    reader.require_filled(LABEL.name, "add it")
    labels = reader.texts(LABEL.name)
    _require_same(reader, LABEL.name, labels)
    for arm in arms:
        reader.require_filled(ANSWER.name, "add it, or write any word that is no label", arm=arm)
        answer, answers = reader.roles.sources[Role(ANSWER.name, arm)], reader.texts(ANSWER.name, arm)
        sameness = _compare(answers, labels)
        if (sameness == "different").all() and set(map(normalize, answers)).isdisjoint(map(normalize, labels.unique())):
            problem = f"is none of the labels, and neither is any other answer; write answers as {short(label)!r} does"
            raise reader.error(0, answer, problem)
        _refuse_shifted(reader, answer, answers, labels)
        reader.grade(answer, sameness, arm)


def _compare(answers: pd.Series[str], labels: pd.Series[str]) -> pd.Series[str]:
    """Return whether the answer and the label of each row are equal, alike or different."""
    pairs = pd.Series(list(zip(answers, labels, strict=True)), index=answers.index)
    return pairs.map({pair: compare(*pair) for pair in set(pairs)})


def _refuse_shifted(reader: CellReader, source: str, answers: pd.Series[str], labels: pd.Series[str]) -> None:
    """Refuse answers that count classes from another number than the labels, which are consecutive numbers."""
    if not all(values.str.fullmatch(r"-?[0-9]{1,9}").all() for values in (answers, labels)):
        return
    numbers, known = ({*map(int, values.unique())} for values in (answers, labels))
    lowest, highest = min(known), max(known)
    is_consecutive = len(known) == highest - lowest + 1 > 1
    if is_consecutive and not numbers <= known and max(numbers) - min(numbers) <= highest - lowest:
        reader.require(
            answers.isin(labels.unique()), source, f"is none of the labels, which are {lowest} to {highest}, but ",
            f"answers are {min(numbers)} to {max(numbers)}; number both alike",
        )  # fmt: skip


def average_fits(rows: pd.DataFrame, reader: CellReader) -> tuple[pd.DataFrame, int]:
    """Average the scores of the fits of each arm of a draw, or of those that answered each of its texts.

    Parameters
    ----------
    rows
        Rows with the columns of the results table and the name of the fit, in any order; also the number of the text
        and of answers to it if rows are about single texts.
    reader
        Reader of the user's table.

    Returns
    -------
    tuple
        Rows without fits, and the largest number of fits of a draw.

    Raises
    ------
    ResultsError
        If a fit occurs twice, there is one division, or fewer fits answer some texts than others.
    """
    source, keys = reader.roles.sources[Role(FIT.name)], list(ARM)
    if reader.is_of_texts:
        keys = [*ARM, TEXT.name]
    else:
        rows = rows.assign(**{ANSWERS: 1})
    is_repeated = rows.duplicated([*keys, FIT.name])
    if is_repeated.any():
        position = int(rows.index[is_repeated][0]) % len(reader.table)
        raise reader.error(position, source, "occurs twice in the same arm of a subsample; delete one row")
    num_fits = int(rows.groupby(list(ARM), sort=False, dropna=False)[FIT.name].nunique().max())
    if num_fits > 1 and rows.groupby(list(TASK), sort=False, dropna=False)["subsample"].nunique().max() == 1:
        raise ResultsError(
            f"{reader.origin}: column {short(source)!r} has {num_fits} fits of a single division, which gives no "
            "interval; add at least five divisions, numbered in a column 'subsample'"
        )
    rows = rows.sort_values(FIT.name, kind="stable")  # sums of equal scores are then equal to the last digit
    groups = rows.groupby(keys, sort=False, dropna=False)
    merged = rows[~rows.duplicated(keys)].reset_index(drop=True)
    for column in ("num_correct", "num_scored", ANSWERS):
        merged[column] = groups[column].sum(min_count=1).array
    for column in ARM_MEASURES:
        if column != "num_correct":
            merged[column] = groups[column].mean().array
    is_unequal = merged.groupby(list(ARM), sort=False, dropna=False)[ANSWERS].transform("nunique") > 1
    if is_unequal.any():
        raise ResultsError(
            f"{reader.origin}: {_describe(merged[is_unequal].iloc[0])}: more fits answer some texts than others, so "
            "these would count more; add the missing rows"
        )
    return merged, num_fits


def pair_fits(rows: pd.DataFrame, reader: CellReader) -> pd.DataFrame:
    """Return the rows of scores of fits that all arms of a draw have. Without unlabeled texts, one fit is enough.

    Raises
    ------
    ResultsError
        If an arm lacks a fit, and missing trials are not allowed.
    """
    fits = rows[rows["arm"] != "base"]
    num_arms = fits.groupby([*TRIAL, FIT.name], sort=False, dropna=False)["arm"].transform("nunique")
    of_draws = fits.assign(number=num_arms).groupby(list(TRIAL), sort=False, dropna=False)["number"]
    partial = fits[num_arms < of_draws.transform("max")]
    if len(partial) and not reader.drops_empty:
        row, source = partial.iloc[0], reader.roles.sources[Role(FIT.name)]
        raise ResultsError(
            f"{reader.origin}: {_describe(row)}: not all arms have the {short(source)} {short(row[FIT.name])}; add the "
            "missing row, or leave out this fit with ", ALLOW_INCOMPLETE,
        )  # fmt: skip
    return rows.drop(index=partial.index)


def add_up(
    rows: pd.DataFrame, names: Sequence[str], origin: str, *, has_fits: bool = False
) -> tuple[pd.DataFrame, TextScores | None]:
    """Add up the rows of the texts of each draw and arm.

    Parameters
    ----------
    rows
        Rows with the columns of the results table, the number of the text and the number of answers to it, sorted by
        the columns of the trial, the arm and the text. `num_test` is what the user's table has.
    names
        Names of the texts by their numbers, for messages.
    origin
        Name of the table for messages.
    has_fits
        Whether several fits answered each text; `num_test` is then not the number of texts.

    Returns
    -------
    tuple
        The results table, and the scores of the texts. If the texts are the draws, rows that are not sorted, and None.

    Raises
    ------
    ResultsError
        If the arms of a draw have different texts, the draws of a task different numbers of texts, or there are groups
        of texts that are the draws.
    """
    groups: IntArray = np.asarray(rows.groupby(list(ARM), sort=False, dropna=False).ngroup(), dtype=np.int64)
    counts = np.bincount(groups)
    first = np.cumsum(counts) - counts
    arms = rows.iloc[first].reset_index(drop=True)
    _check_arms(rows, names, origin)
    sized = arms
    if has_fits:
        sized = arms.assign(num_test=counts)
    num_draws = rows.groupby([*TASK, TEXT.name], sort=False, dropna=False)["subsample"].nunique()
    _check_sizes(sized, counts, origin, remainder=int(num_draws.max() == 1))
    if (arms.groupby(list(TASK), sort=False, dropna=False)["subsample"].nunique() == 1).all():
        if GROUP.name in rows:
            raise ResultsError(
                f"{origin}: each arm has a single draw, so its texts are the draws, but those of a group are not "
                "independent; number other draws in a column subsample, or the mean scores of the groups"
            )
        texts = rows[TEXT.name].astype("Int64")
        num_test = 1 if has_fits else rows[ANSWERS]
        return rows.assign(subsample=texts, num_test=num_test, num_scored=rows[ANSWERS]), None
    sums = {
        column: np.bincount(groups, weights=rows[column].to_numpy(dtype=np.float64, na_value=np.nan))
        for column in (*MEANS, "num_correct")
    }
    sizes = counts * arms[ANSWERS].to_numpy(dtype=np.int64)
    means = {column: sums[column] / counts for column in MEANS}
    is_count = rows["num_correct"].notna().all()
    if is_count:
        means["score"] = sums["num_correct"] / sizes
    num_test = arms["num_test"].fillna(pd.Series(counts)) if has_fits else sizes
    results = arms.assign(**means, num_correct=sums["num_correct"], num_test=num_test, num_scored=sizes)
    results = results[list(COLUMN_NAMES)].astype(dict.fromkeys(("num_test", "num_scored", "num_correct"), "Int64"))
    scores = rows["score"]
    if is_count:
        scores = rows["num_correct"] / rows[ANSWERS]
    predictions = TextScores(
        results[list(ARM)].assign(first=first),
        rows[TEXT.name].to_numpy(dtype=np.int64),
        scores.to_numpy(dtype=np.float64),
        rows[GROUP.name].to_numpy(dtype=np.int64) if GROUP.name in rows else None,
    )
    return results, predictions


def _check_arms(rows: pd.DataFrame, names: Sequence[str], origin: str) -> None:
    """Refuse draws whose arms have different texts."""
    num_arms = rows.groupby(list(TRIAL), sort=False, dropna=False)["arm"].transform("nunique")
    having = rows.groupby([*TRIAL, TEXT.name], sort=False, dropna=False)["arm"].transform("size")
    if (having < num_arms).any():
        row = rows.iloc[int((having < num_arms).to_numpy().argmax())]
        raise ResultsError(
            f"{origin}: {_describe(row)}: not all arms have the text {short(names[row[TEXT.name]])!r}; give all arms "
            "of a subsample the same texts, or delete the rows of this text"
        )


def _check_sizes(arms: pd.DataFrame, counts: IntArray, origin: str, remainder: int) -> None:
    """Refuse draws of a task with different numbers of texts, and sizes that are not these numbers.

    `remainder` is 1 if draws are folds, of which some then have one text more.
    """
    given, answers = (arms[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in ("num_test", ANSWERS))
    smallest = arms.assign(count=counts).groupby(list(TASK), sort=False, dropna=False)["count"].transform("min")
    for is_wrong, problem in (
        (
            ~np.isnan(given) & (given != answers) & (given != counts),
            "and num_test is another number; add the missing rows, or leave out num_test",
        ),
        (
            np.asarray(counts > smallest + remainder),
            "but other subsamples have fewer; give all the same number, or add num_test if the design has several",
        ),
    ):
        if is_wrong.any():
            position = int(is_wrong.argmax())
            raise ResultsError(
                f"{origin}: {_describe(arms.iloc[position])} has rows of {pluralize(int(counts[position]), 'text')}, "
                f"{problem}"
            )


def _describe(arm: pd.Series[Any]) -> str:
    return f"task {short(str(arm['task']))}, method {short(str(arm['method']))}, subsample {arm['subsample']}"

"""Answers to single texts: those that a store keeps, and rows of a user's table that are about a single text.

A draw, such as a training seed, has one row for each arm and test text. The results table has one row for each arm of
the draw, and analyses that cross texts with draws read the scores of the texts from `TextScores`. If there is a single
draw, its texts are the draws: nothing else can tell how much a score varies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from peekbench.errors import ResultsError, SpecError
from peekbench.formatting import pluralize
from peekbench.plugins.toolkit import find_toolkit
from peekbench.records.data import Answers, FloatArray, IntArray
from peekbench.records.scores import SCORES, average_sets
from peekbench.records.trials import Draw, Trial
from peekbench.results.cells import ANSWERS, CellReader, natural_key
from peekbench.results.columns import COLUMN_NAMES, CONFIGURATION, MAJORITY, TEXT, TRIAL, ColumnRoles, Role
from peekbench.results.roles import ignoring, short
from peekbench.store.reader import Store

MAX_TEXT = 1_000_000  # characters of a text, which can be its own name
MEANS = ("score", *(score.name for score in SCORES if score.is_mean))
"""Measures of all texts that are means of those of single texts."""
OF_DRAW = (
    *(score.name for score in SCORES if score.name not in (*MEANS, "num_correct")),
    MAJORITY,
    "fit_seconds",
    "predict_seconds",
)
"""Measures of all texts that those of single texts do not give, so all texts must have the same value."""
ARM = (*TRIAL, "arm")
TASK = (*CONFIGURATION, "task")


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
            if not store.tasks()[task]["class_names"]:
                return None
            return store.answers(task, method, num_train, num_test, arms)

    def scores(self, results: pd.DataFrame, name: str) -> FloatArray:
        """Compute a score of scikit-learn for each arm of a results table of this run, shape (n_rows,).

        Raises
        ------
        SpecError
            If the score is not defined for a trial.
        """
        score = find_toolkit().load_scorer(name)
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


def _score_arms(store: Store, trial: Trial, score: Callable[[FloatArray, Any], float]) -> dict[str, float]:
    """Return the average of a score over the sets of each arm."""
    labels, _ = store.test_rows(trial.draw)
    size = trial.draw.num_test
    scores = {}
    for arm, predictions in store.predictions(trial).items():
        predicted, truth = predictions.astype(np.float64), np.resize(labels, len(predictions))
        sets = [slice(first, first + size) for first in range(0, len(predicted), size)]
        scores[arm] = average_sets([score(predicted[rows], truth[rows]) for rows in sets], len(labels) // size)
    return scores


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

    def answers(
        self, task: str, method: str, num_train: int | None, num_test: int | None, arms: Sequence[str], model: str = ""
    ) -> Answers:
        """Return the scores of the texts of one method in one task; see `peekbench.records.Predictions`."""
        is_wanted = self.arms["arm"].isin(arms)
        place = {"task": task, "method": method, "model": model, "num_train": num_train, "num_test": num_test}
        for column, value in place.items():
            if column == "num_test" and value is None:  # tasks of different sizes are analyzed together
                continue
            is_wanted &= self.arms[column].isna() if value is None else (self.arms[column] == value).fillna(False)
        wanted = self.arms[is_wanted]
        first = wanted.pivot(index="subsample", columns="arm", values="first").dropna().astype("int64").sort_index()
        ends = np.append(self.arms["first"].to_numpy(), len(self.texts))
        num_texts = int(ends[wanted.index[0] + 1] - ends[wanted.index[0]])  # as in all draws of the task
        places = {arm: first[arm].to_numpy()[:, None] + np.arange(num_texts) for arm in arms}
        return Answers(
            subsamples=first.index.to_numpy(dtype=np.int64),
            rows=self.texts[places[arms[0]]],
            scores={arm: self.scores[place] for arm, place in places.items()},
        )


def grades_as_numbers(table: pd.DataFrame, roles: ColumnRoles) -> pd.DataFrame:
    """Return a table in which correct answers to single texts are 1, and others 0."""
    if Role(TEXT.name) not in roles.sources:
        return table
    scores = [names[0] for role, names in roles.sources.items() if role.column in ("score", "num_correct")]
    grades = [name for name in scores if table[name].astype("str").str.casefold().isin(("true", "false")).all()]
    return table.assign(
        **{name: (table[name].astype("str").str.casefold() == "true").astype("int64") for name in grades}
    )


@dataclass(frozen=True, slots=True)
class RowTexts:
    """The test text that each row of a table is about."""

    numbers: IntArray
    """Number of the text of each row, in natural order of the names: (n_rows,)."""
    names: Sequence[str]
    """Names of the texts by their numbers."""


def read_texts(roles: ColumnRoles, reader: CellReader) -> RowTexts | None:
    """Return the text of each row, or None if rows are not about single texts.

    Raises
    ------
    ResultsError
        If a cell is empty, or is neither a text nor a number.
    """
    sources = roles.sources.get(Role(TEXT.name), ())
    if not sources:
        return None
    for source in sources:
        reader.require_filled(source, "name the text of each row, and delete rows that are not about a text")
    codes, found = pd.factorize(reader.joined_texts(sources, MAX_TEXT))
    names = sorted(map(str, found), key=natural_key)
    positions = {name: position for position, name in enumerate(names)}
    numbers = np.array([positions[str(name)] for name in found], dtype=np.int64)[codes]
    return RowTexts(numbers, names)


def add_up(rows: pd.DataFrame, names: Sequence[str], origin: str) -> tuple[pd.DataFrame, TextScores | None]:
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

    Returns
    -------
    tuple
        The results table, and the scores of the texts. If the texts are the draws, rows that are not sorted, and None.

    Raises
    ------
    ResultsError
        If the arms of a draw have different texts, the draws of a task different numbers of texts, or rows contradict
        each other.
    """
    groups: IntArray = np.asarray(rows.groupby(list(ARM), sort=False, dropna=False).ngroup(), dtype=np.int64)
    counts = np.bincount(groups)
    first = np.cumsum(counts) - counts
    arms = rows.iloc[first].reset_index(drop=True)
    _check_arms(rows, names, origin)
    _check_sizes(arms, counts, origin)
    if (arms.groupby(list(TASK), sort=False, dropna=False)["subsample"].nunique() == 1).all():
        texts = rows[TEXT.name].astype("Int64")
        return rows.assign(subsample=texts, num_test=rows[ANSWERS], num_scored=rows[ANSWERS]), None
    _check_equal(rows, groups, origin)
    sums = {
        column: np.bincount(groups, weights=rows[column].to_numpy(dtype=np.float64, na_value=np.nan))
        for column in (*MEANS, "num_correct")
    }
    sizes = counts * arms[ANSWERS].to_numpy(dtype=np.int64)
    means = {column: sums[column] / counts for column in MEANS}
    is_count = rows["num_correct"].notna().all()
    if is_count:
        means["score"] = sums["num_correct"] / sizes
    results = arms.assign(**means, num_correct=sums["num_correct"], num_test=sizes, num_scored=sizes)
    results = results[list(COLUMN_NAMES)].astype(dict.fromkeys(("num_test", "num_scored", "num_correct"), "Int64"))
    scores = rows["num_correct"] / rows[ANSWERS] if is_count else rows["score"]
    predictions = TextScores(
        results[list(ARM)].assign(first=first),
        rows[TEXT.name].to_numpy(dtype=np.int64),
        scores.to_numpy(dtype=np.float64),
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


def _check_sizes(arms: pd.DataFrame, counts: IntArray, origin: str) -> None:
    """Refuse draws of a task with different numbers of texts, and sizes that are not these numbers."""
    given, answers = (arms[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in ("num_test", ANSWERS))
    is_wrong = ~np.isnan(given) & (given != answers) & (given != counts)
    if is_wrong.any():
        position = int(is_wrong.argmax())
        raise ResultsError(
            f"{origin}: {_describe(arms.iloc[position])}: num_test is {arms['num_test'].iloc[position]}, and there are "
            f"rows of {pluralize(int(counts[position]), 'text')}; add the missing rows, or leave out num_test, which "
            "rows of texts do not need"
        )
    smallest = arms.assign(count=counts).groupby(list(TASK), sort=False, dropna=False)["count"].transform("min")
    is_larger = (counts != smallest).to_numpy()
    if is_larger.any():
        position = int(is_larger.argmax())
        raise ResultsError(
            f"{origin}: {_describe(arms.iloc[position])} has {pluralize(int(counts[position]), 'text')}, and other "
            f"subsamples of this task and method have {smallest[position]}; give all the same number, or add num_test "
            "if the design has several sizes"
        )


def _check_equal(rows: pd.DataFrame, groups: IntArray, origin: str) -> None:
    """Refuse measures of all texts that differ between the rows of a draw and arm."""
    for column in OF_DRAW:
        is_other = rows.groupby(groups)[column].transform("nunique", dropna=False) > 1
        if is_other.any():
            raise ResultsError(
                f"{origin}: {_describe(rows.iloc[int(is_other.to_numpy().argmax())])}: {column} differs between texts, "
                f"and it is a measure of all texts; give the same value in all rows, or use ",
                ignoring(column),
            )


def _describe(arm: pd.Series[Any]) -> str:
    return f"task {short(str(arm['task']))}, method {short(str(arm['method']))}, subsample {arm['subsample']}"

"""Tells why the trials of a configuration could not show a bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from peekbench.records import NUMBERS, Answers, FloatArray, Predictions, ScoreUnits
from peekbench.results import Configuration, Configurations
from peekbench_stats import units_of
from peekbench_summary.estimates import estimate_these_tasks
from peekbench_summary.text_noise import read_answers

LEVEL = 0.9  # of the two-sided interval whose lower end must be above chance: a one-sided test at 5%
MIN_ANSWERS = 59
"""Answers per arm with which one that differs is missed with a probability of 5%, if it is one in 20."""


def find_hidden(
    configuration: Configuration,
    other_scores: Mapping[str, Configurations],
    predictions: Predictions | None,
    *,
    units: ScoreUnits,
    is_run: bool,
) -> Literal["", "inert", "no signal"]:
    """Return why no trial could show a bias: no answer is right, or the predictions of both arms are equal.

    All scores of a run are computed from the same predictions. Scores of probabilities, R^2 and log-likelihoods of
    texts can be equal in all trials only if the predictions are; scores in points can also be equal by chance, so
    answers are compared if nothing else is known. A few answers can all be wrong or equal by chance.

    Parameters
    ----------
    configuration
        Paired scores of one method.
    other_scores
        Name of a score to the configurations in this score, for the scores of probabilities.
    predictions
        Answers to single texts.
    units
        Units of the scores.
    is_run
        Whether the scores are those of a run. Scores of a table can be rounded.

    Returns
    -------
    str
        As for `Bias.hidden`.
    """
    if _is_any(configuration, "bias"):
        return ""
    num_trials = sum(map(len, configuration.subsamples.values()))
    is_enough = num_trials * (configuration.num_texts or 0) >= MIN_ANSWERS
    if is_enough and configuration.step is not None and not _is_any(configuration, "extra"):
        return "no signal"
    exact = [results for results in other_scores.values() if results.units == NUMBERS]
    same = [other for results in exact for other in results.configurations if other.key == configuration.key]
    if not is_run or any(_is_any(compared, "bias") for compared in same):
        return ""
    if same or units == NUMBERS:
        return "inert"
    if is_enough and predictions is not None and not _is_all_right(configuration):
        answers = (read_answers(configuration, task, predictions) for task in configuration.subsamples)
        if all(map(_are_equal, answers)):
            return "inert"
    return ""


def _is_all_right(configuration: Configuration) -> bool:
    """Return whether all answers of extra are right, so that those of test are equal for this reason alone."""
    return all(score == 1 for scores in configuration.scores["extra"].values() for score in scores)


def _are_equal(answers: Answers | None) -> bool:
    """Return whether the predictions of all arms are known to be equal."""
    if answers is None or answers.are_equal is None:
        return False
    return bool(answers.are_equal.all())


def _is_any(configuration: Configuration, quantity: str) -> bool:
    """Return whether an arm or an effect differs from zero in any trial."""
    return any(map(any, configuration.scores[quantity].values()))


def has_signal(configuration: Configuration, predictions: Predictions | None, *, is_r_squared: bool) -> bool:
    """Return whether the predictions are significantly better than predictions that do not depend on the texts.

    Without information on the labels, the mean recall over C classes (the balanced accuracy) has the expectation 1 / C,
    whatever the shares of the classes, and R^2 is not positive. An accuracy above the share of the majority class
    implies a balanced accuracy above 1 / C.

    Parameters
    ----------
    configuration
        Paired scores of one method.
    predictions
        Answers to single texts.
    is_r_squared
        Whether the scores are R^2.

    Returns
    -------
    bool
        True if it cannot be determined: without answers or labels, and for log-likelihoods of texts.
    """
    if is_r_squared:
        return _is_positive(units_of(configuration, configuration.scores["extra"]))
    if predictions is None:
        return True
    tasks = {}
    for task in configuration.subsamples:
        answers = read_answers(configuration, task, predictions)
        if answers is None or answers.labels is None:
            return True
        tasks[task] = above_chance(answers).tolist()
    return _is_positive(units_of(configuration, tasks))


def above_chance(answers: Answers) -> FloatArray:
    """Return the balanced accuracy minus that of chance, averaged over the arms, shape (n_subsamples,).

    Examples
    --------
    >>> labels, correct = np.array([[0, 0, 0, 1]]), np.array([[1.0, 1.0, 1.0, 0.0]])  # always the majority class
    >>> above_chance(Answers(np.array([0]), np.array([[0, 1, 2, 3]]), {"test": correct}, labels)).tolist()
    [0.0]
    """
    assert answers.labels is not None
    correct = np.mean([*answers.scores.values()], axis=0)
    recalls, present = np.zeros(len(correct)), np.zeros(len(correct))
    for label in np.unique(answers.labels):
        counts = (answers.labels == label).sum(axis=1)
        recalls += (correct * (answers.labels == label)).sum(axis=1) / np.maximum(counts, 1)
        present += counts > 0
    difference: FloatArray = (recalls - 1) / present
    return difference


def _is_positive(units: Sequence[Sequence[float]]) -> bool:
    estimate = estimate_these_tasks(units, LEVEL)
    return estimate.low > 0 if estimate.has_interval else estimate.mean > 0

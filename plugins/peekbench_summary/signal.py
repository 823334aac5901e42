"""Whether a run could have seen a bias: predictions that depend on the unlabeled texts, and that tell labels apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from peekbench.records import Answers, FloatArray, Predictions
from peekbench.results import Configuration, Configurations
from peekbench_summary.estimates import estimate_these_tasks

ARMS = ("extra", "test")
LEVEL = 0.9  # of the two-sided interval whose lower end must be above chance: a one-sided test at 5%


def is_inert(
    configuration: Configuration, effect: str, other_scores: Mapping[str, Configurations], *, is_run: bool
) -> bool:
    """Return whether the predictions of the two arms of an effect are known to be equal in all trials.

    All scores of a run are computed from the same predictions. Scores of probabilities, R^2 and log-likelihoods of
    texts can be equal in all trials only if the predictions are; accuracies can also be equal by chance.

    Parameters
    ----------
    configuration
        Paired scores of one method.
    effect
        Effect, such as 'bias', which is the difference of test and extra.
    other_scores
        Name of a score to the configurations in this score, for the scores of probabilities.
    is_run
        Whether the scores are those of a run. Scores of a table can be rounded.
    """
    same = [
        each for results in other_scores.values() for each in results.configurations if each.key == configuration.key
    ]
    if not is_run or (configuration.step is not None and not same):
        return False
    return not any(any(map(any, each.scores[effect].values())) for each in (configuration, *same))


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
        return _is_positive([*configuration.scores["extra"].values()])
    if predictions is None:
        return True
    method, model, num_train, num_test = configuration.key
    tasks = []
    for task, subsamples in configuration.subsamples.items():
        answers = predictions.answers(
            task,
            str(method),
            num_train if isinstance(num_train, int) else None,
            num_test if isinstance(num_test, int) else None,
            ARMS,
            str(model or ""),
        )
        if answers is None or answers.labels is None:
            return True
        tasks.append(above_chance(answers)[np.isin(answers.subsamples, subsamples)].tolist())
    return _is_positive(tasks)


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


def _is_positive(tasks: Sequence[Sequence[float]]) -> bool:
    estimate = estimate_these_tasks(tasks, LEVEL)
    return estimate.low > 0 if estimate.has_interval else estimate.mean > 0

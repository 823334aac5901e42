"""The noise of texts that are the same in all trials, from the answers to single texts.

Subsamples that test the same texts show how much a score depends on training or on the division into folds, but not how
much it depends on these texts. Scores, boosts and comparisons of methods are about other texts of the same kind, so
their intervals and tests cross texts with subsamples. Verdicts on the bias are about these texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from peekbench.records import Answers, BoolArray, IntArray, Predictions
from peekbench.results import Configuration, Configurations
from peekbench_stats import CrossedMean, cross_texts

ARMS = ("base", "extra", "test")
CROSSED = {**{arm: (arm,) for arm in ARMS}, "boost": ("extra", "base"), "bias": ("test", "extra")}
"""Scores and effects for which texts are crossed with subsamples: the arm, and the arm that is subtracted."""


class _Cached:
    """Answers that are read once."""

    def __init__(self, predictions: Predictions) -> None:
        self._predictions = predictions
        self._found: dict[object, Answers | None] = {}

    def answers(
        self, task: str, method: str, num_train: int | None, num_test: int | None, arms: Sequence[str], model: str = ""
    ) -> Answers | None:
        """See `peekbench.records.Predictions`."""
        place = (task, method, num_train, num_test, tuple(arms), model)
        if place not in self._found:
            self._found[place] = self._predictions.answers(*place)
        return self._found[place]


def read_answers(
    configuration: Configuration, task: str, predictions: Predictions, arms: Sequence[str] = ("extra", "test")
) -> Answers | None:
    """Return the answers of a configuration in its subsamples of a task; None if scores are not means over texts."""
    method, model, *sizes = configuration.key
    num_train, num_test = (size if isinstance(size, int) else None for size in sizes)
    answers = predictions.answers(task, str(method), num_train, num_test, arms, str(model or ""))
    if answers is None:
        return None
    return _select(answers, np.isin(answers.subsamples, configuration.subsamples[task]))


def _select(answers: Answers, chosen: BoolArray | IntArray) -> Answers:
    """Return the answers of some subsamples, by flags or by positions."""
    optional = {name: getattr(answers, name) for name in ("labels", "groups", "are_equal")}
    return Answers(
        answers.subsamples[chosen],
        answers.rows[chosen],
        {arm: scores[chosen] for arm, scores in answers.scores.items()},
        **{name: values if values is None else values[chosen] for name, values in optional.items()},
    )


def with_fixed_texts(
    results: Configurations, predictions: Predictions | None, *, is_mean: bool = True
) -> Configurations:
    """Mark configurations of which all trials of a task test the same texts, and give them the answers to these.

    Parameters
    ----------
    results
        Paired scores by configuration.
    predictions
        Answers to single texts; None if they are not known.
    is_mean
        Whether the scores are the means of the answers. Otherwise configurations get no answers.
    """
    cached = None if predictions is None else _Cached(predictions)
    found = []
    for configuration in results.configurations:
        is_fixed = cached is not None and all(
            are_texts_fixed(read_answers(configuration, task, cached, ("extra",))) for task in configuration.subsamples
        )
        answers = cached if is_fixed and is_mean else None
        has_fixed_texts = is_fixed or configuration.has_folds
        found.append(replace(configuration, has_fixed_texts=has_fixed_texts, fixed_texts=answers))
    return replace(results, configurations=tuple(found))


def are_texts_fixed(answers: Answers | None) -> bool:
    """Return whether several subsamples test the same texts."""
    if answers is None or len(answers.rows) < 2:
        return False
    rows = np.sort(answers.rows, axis=1)
    return bool((rows == rows[0]).all())


def cross_effect(configuration: Configuration, effect: str) -> list[CrossedMean]:
    """Cross the texts of each task with its subsamples, for the score of an arm, the boost or the bias.

    Returns
    -------
    list of CrossedMean
        Empty for other effects, and if texts are not fixed or not known.
    """
    arms = CROSSED.get(effect)
    if configuration.fixed_texts is None or arms is None:
        return []
    crossed = []
    for task in configuration.scores[effect]:
        answers = read_answers(configuration, task, configuration.fixed_texts, arms)
        if answers is None:
            return []
        scores = answers.scores[arms[0]]
        if len(arms) > 1:
            scores = scores - answers.scores[arms[1]]
        crossed.append(cross_texts(scores, answers.rows, answers.groups))
    return crossed


@dataclass(frozen=True, slots=True)
class PairedSubsamples:
    """Subsamples of one task whose scores are compared."""

    task: str
    before: Sequence[int]
    """Numbers of the subsamples of one configuration."""
    after: Sequence[int]
    """Numbers of the subsamples of the other configuration that they are compared with, in the same order."""


def cross_change(
    before: Configuration, after: Configuration, arm: str, pairs: Sequence[PairedSubsamples]
) -> list[CrossedMean] | None:
    """Cross the texts of each task with its subsamples, for the difference of two configurations in an arm.

    Returns
    -------
    list of CrossedMean or None
        None if texts are not fixed or not known; empty if the texts of the configurations differ.
    """
    if before.fixed_texts is None or after.fixed_texts is None or arm not in ARMS:
        return None
    crossed = []
    for pair in pairs:
        old = read_answers(before, pair.task, before.fixed_texts, (arm,))
        new = read_answers(after, pair.task, after.fixed_texts, (arm,))
        if old is None or new is None:
            return None
        old, new = _sort(old, pair.before), _sort(new, pair.after)
        if not np.array_equal(old.rows, new.rows):
            return []
        crossed.append(cross_texts(new.scores[arm] - old.scores[arm], new.rows, new.groups))
    return crossed


def _sort(answers: Answers, subsamples: Sequence[int]) -> Answers:
    """Return the answers of some subsamples, sorted by text."""
    chosen = _select(answers, np.searchsorted(answers.subsamples, subsamples))
    order = np.argsort(chosen.rows, axis=1, kind="stable")

    def sort(values: Any) -> Any:
        return None if values is None else np.take_along_axis(values, order, axis=1)

    scores = {arm: sort(values) for arm, values in chosen.scores.items()}
    return replace(chosen, rows=sort(chosen.rows), scores=scores, labels=None, groups=sort(chosen.groups))

"""What trials that all test the same texts, such as an official test set, state about other texts of this kind.

Such trials show how much a score varies between subsamples of these texts. Other texts vary as well, so the interval
for them is wider, and often leaves open what is known about these texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from peekbench import Estimate, Verdict
from peekbench.records import Answers, FixedTexts, FloatArray, Predictions
from peekbench.results import Configuration, decide
from peekbench_stats import cross_interval, cross_texts
from peekbench_summary.estimates import shared_averages
from peekbench_summary.text_noise import are_texts_fixed, read_answers


def generalize(
    configuration: Configuration, verdict: Verdict, predictions: Predictions | None, level: float, *, is_mean: bool
) -> FixedTexts | None:
    """Return what the trials of a configuration state about other texts; None unless all test the same texts.

    Parameters
    ----------
    configuration
        Paired scores of one method.
    verdict
        Verdict on its bias on these texts.
    predictions
        Answers to single texts.
    level
        Coverage of the interval of the score of extra; the interval of the bias has that of the verdict.
    is_mean
        Whether the scores are the means of those of single texts that `predictions` has.
    """
    answers = _read_same_texts(configuration, predictions)
    if not (answers or configuration.has_folds):
        return None
    if not (answers and is_mean):
        return FixedTexts()
    is_fraction = verdict.unit == "difference"
    extra = _estimate(
        [(of_task, of_task.scores["extra"]) for of_task in answers], level, shared_averages(configuration, "extra")
    )
    if is_fraction:
        extra = _clip(extra, 0.0, 1.0)
    if verdict.decision in ("inert", "no signal") or not verdict.estimate.has_interval:
        return FixedTexts(extra=extra)
    bias = _estimate(
        [(of_task, of_task.scores["test"] - of_task.scores["extra"]) for of_task in answers],
        verdict.estimate.level,
        shared_averages(configuration, "bias"),
    )
    if is_fraction:
        bias = _clip(bias, -1.0, 1.0)
    # The interval on these texts is extended to zero if tests do not exclude it, and so is that for others.
    bias = replace(bias, low=min(bias.low, verdict.estimate.low), high=max(bias.high, verdict.estimate.high))
    decision = decide(bias.low, bias.high, verdict.region or 0.0)
    if decision != verdict.decision:
        decision = "inconclusive"
    return FixedTexts(decision, bias, extra)


def _read_same_texts(configuration: Configuration, predictions: Predictions | None) -> list[Answers]:
    """Return the answers of each task if all subsamples of a task test the same texts; otherwise nothing."""
    found: list[Answers] = []
    predictions = configuration.fixed_texts or predictions  # the first have been read before
    if predictions is None:
        return found
    for task in configuration.subsamples:
        answers = read_answers(configuration, task, predictions)
        if answers is None or not are_texts_fixed(answers):
            return []
        found.append(answers)
    return found


def _estimate(tasks: Sequence[tuple[Answers, FloatArray]], level: float, shared: Sequence[float]) -> Estimate:
    """Return the average of values of single texts with its interval for other subsamples of other texts."""
    crossed = [cross_texts(values, answers.rows, answers.groups) for answers, values in tasks]
    interval = cross_interval(crossed, level, shared)
    assert interval is not None, "each task has several subsamples"
    return Estimate(interval.mean, interval.low, interval.high, level=level)


def _clip(estimate: Estimate, low: float, high: float) -> Estimate:
    return replace(estimate, low=max(estimate.low, low), high=min(estimate.high, high))

"""A decision on one method's bias, and the sentence that says it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from peekbench import Verdict
from peekbench.formatting import ScoreWords, pluralize
from peekbench.results import decide
from peekbench_summary.estimates import Estimate, of_other_tasks, of_these_tasks
from peekbench_summary.region import Region
from peekbench_summary.sample_size import MOST, further_subsamples
from peekbench_summary.significance_tests import biased_tasks

if TYPE_CHECKING:
    from peekbench.records import Decision


FEWEST = 5  # subsamples of a task from which to say how many more are needed
NEWS = 0.001  # nats a text; a smaller change of the log loss is not worth a word


def of_estimate(estimate: Estimate, region: float) -> Decision:
    """What an estimate says of a bias; without an interval, nothing."""
    return decide(estimate.low, estimate.high, region) if estimate.has_interval else "inconclusive"


def judge(label: str, tasks: Sequence[Sequence[float]], *, level: float, region: Region, is_accuracy: bool) -> Verdict:
    """Judge the bias of one configuration.

    Biased up or down: the interval excludes zero and is not inside the region of practical equivalence. Equivalent: it
    is inside the region. Inconclusive: neither, or there is no interval; the sentence then says how many further
    subsamples would probably change that.

    Parameters
    ----------
    label
        Names the configuration.
    tasks
        Bias of each subsample, one sequence a task; fractions.
    """
    these, such = of_these_tasks(tasks, level), of_other_tasks(tasks, level)
    trials = sum(map(len, tasks))
    where = "on this task" if len(tasks) == 1 else f"on average over these {len(tasks)} tasks"
    show = ScoreWords(is_accuracy)
    decision: Decision = "inconclusive"
    if all(value == 0 for task in tasks for value in task):
        decision = "equivalent"
        where = "the one trial" if trials == 1 else f"all {trials:,} trials"
        sentence = f"{label}: seeing the test texts changed nothing: the bias is exactly 0 in {where}."
    elif not these.has_interval:
        sentence = (
            f"{label}: a bias of {show.format_signed(these.mean)}{show.unit} {where}, of unknown uncertainty, because "
            "a task has one subsample only; draw more."
        )
    else:
        span = f"({level:.0%} interval {show.format_signed(these.low)} to {show.format_signed(these.high)})"
        decision = of_estimate(these, region.half_width)
        if decision == "equivalent":
            but = ", though not zero" if these.low > 0 or these.high < 0 else ""
            sentence = (
                f"{label}: seeing the test texts changed {show.noun} by less than {_shown(region, show)} {where}{but}: "
                f"{show.format_signed(these.mean)}{show.unit} {span}."
            )
        elif decision == "inconclusive":
            sentence = (
                f"{label}: a bias of {show.format_signed(these.mean)}{show.unit} {where} {span}: too unsure to tell "
                f"from zero, or to call smaller than {_shown(region, show)}; "
                f"{_would_settle(tasks, level, region.half_width)}."
            )
        else:
            verb = "raised" if decision == "biased up" else "lowered"
            least = min(abs(these.low), abs(these.high))
            size = show.size(abs(these.mean))
            sentence = f"{label}: seeing the test texts {verb} {show.noun} by {size} {where} {span}"
            if least < region.half_width:
                sentence += f", perhaps by as little as {show.size(least)}, which would not matter"
            sentence += "."
        sentence += _beyond(tasks, these, such, level, region.half_width, show)
    low, high = (these.low, these.high) if these.has_interval else (None, None)
    return Verdict(
        label, "bias", decision, sentence, these.mean, low, high, level,
        region=region.half_width,
        basis=f"{pluralize(len(tasks), 'task')}, {pluralize(trials, 'trial')}",
        unit="difference" if is_accuracy else "change",
    )  # fmt: skip


def beside_likelihood(verdict: Verdict, tasks: Sequence[Sequence[float]], level: float) -> Verdict:
    """The same, with a word on the log loss where that shows a bias which the verdict does not say.

    Parameters
    ----------
    tasks
        Bias of the log-likelihood of each subsample, one sequence a task.
    """
    these = of_these_tasks(tasks, level)
    if not these.has_interval or these.low <= 0 <= these.high or abs(these.mean) < NEWS:
        return verdict
    way: Decision = "biased up" if these.mean > 0 else "biased down"
    if verdict.decision == way:
        return verdict
    low, high = sorted((abs(these.low), abs(these.high)))
    better = "better" if these.mean > 0 else "worse"
    word = f"Log loss, however, gets {better} by {abs(these.mean):.4f} ({level:.0%} interval {low:.4f} to {high:.4f})."
    return replace(verdict, sentence=f"{verdict.sentence} {word}")


def _would_settle(tasks: Sequence[Sequence[float]], level: float, region: float) -> str:
    if min(map(len, tasks)) < FEWEST:
        return "draw more"
    further = further_subsamples(tasks, level, region)
    if further is None:
        return f"more than {MOST:,} further subsamples of each task would be needed to settle it"
    digits = max(0, len(str(further)) - 2)
    rounded = math.ceil(further / 10**digits) * 10**digits
    return f"about {pluralize(rounded, 'further subsample')} of each task would probably settle it"


def _beyond(
    tasks: Sequence[Sequence[float]], these: Estimate, such: Estimate, level: float, region: float, show: ScoreWords
) -> str:
    """What the average hides: the range over tasks, those biased by themselves, and what other tasks might show."""
    if len(tasks) < 2:
        return ""
    means = [sum(task) / len(task) for task in tasks]
    span = f"from {show.format_signed(min(means))} to {show.format_signed(max(means))}"
    text = f" Task by task it runs {span}, {_one_by_one(tasks, level)}"
    if such.has_interval and of_estimate(these, region) != of_estimate(such, region):
        ends = f"{show.format_signed(such.low)} to {show.format_signed(such.high)}"
        text += f"; for other tasks like these the interval is {ends}"
    return text + "."


def _one_by_one(tasks: Sequence[Sequence[float]], level: float) -> str:
    counts = biased_tasks(tasks, level)
    ways = ", ".join(f"{number} {way}" for number, way in zip(counts, ("up", "down"), strict=True) if number)
    return f"clear of zero in {sum(counts) or 'none'} of {len(tasks)}{f' ({ways})' * any(counts)}"


def _shown(region: Region, show: ScoreWords) -> str:
    as_given = f" ({region.log_odds:g} log-odds)" if region.log_odds is not None else ""
    return show.size(region.half_width) + as_given

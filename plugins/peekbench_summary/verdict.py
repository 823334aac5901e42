"""Verdicts on the bias of each configuration, and the sentences that state them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from peekbench import Verdict
from peekbench.formatting import ScoreWords, difference_unit, pluralize, state_no_effect
from peekbench.records import Decision
from peekbench.results import Configuration, Configurations, decide
from peekbench_stats import NominalAlpha, fixed_design
from peekbench_summary import Summary
from peekbench_summary.controls import judge_control
from peekbench_summary.estimates import Estimate, estimate_other_tasks, estimate_these_tasks, task_means
from peekbench_summary.probabilistic_scores import LOG_LIKELIHOOD
from peekbench_summary.region import Region, make_region
from peekbench_summary.sample_size import advise
from peekbench_summary.significance_tests import count_biased_tasks

MIN_SUBSAMPLES = 5  # per task, from which the sentence says how many more are needed
MIN_LOG_LOSS_CHANGE = 0.001  # nats per text; smaller changes of the log loss are not mentioned


def judge_all(
    results: Configurations,
    options: Summary,
    probabilistic: Mapping[str, Configurations],
    level_rule: Callable[[Configuration], NominalAlpha] = lambda _: fixed_design,
) -> tuple[Verdict, ...]:
    """Judge the bias of each configuration.

    Parameters
    ----------
    results
        Paired scores by configuration.
    options
        Level and region.
    probabilistic
        Score name to the same configurations in that score, for the scores that are available.
    level_rule
        Returns for a configuration the function from an error rate to the level of this look at its results.

    Returns
    -------
    tuple of Verdict
        One for each configuration, in their order.
    """
    log_likelihoods = (
        {each.key: each.scores["bias"] for each in probabilistic[LOG_LIKELIHOOD].configurations}
        if LOG_LIKELIHOOD in probabilistic
        else {}
    )
    verdicts = []
    for configuration in results.configurations:
        region = make_region(configuration.scores, options.region_unit, options.region, results.is_accuracy)
        tasks = list(configuration.scores["bias"].values())
        verdict = judge(
            configuration.label,
            tasks,
            level=options.level,
            region=region,
            is_accuracy=results.is_accuracy,
            nominal_alpha=level_rule(configuration),
        )
        if configuration.control:
            verdict = judge_control(verdict, configuration.control)
        elif configuration.key in log_likelihoods:
            verdict = mention_log_loss(verdict, list(log_likelihoods[configuration.key].values()), options.level)
        verdicts.append(verdict)
    return tuple(verdicts)


def decide_from(estimate: Estimate, region: float) -> Decision:
    """Apply the decision rule to an estimate; 'inconclusive' without an interval."""
    return decide(estimate.low, estimate.high, region) if estimate.has_interval else "inconclusive"


def judge(
    label: str,
    tasks: Sequence[Sequence[float]],
    *,
    level: float,
    region: Region,
    is_accuracy: bool,
    nominal_alpha: NominalAlpha = fixed_design,
) -> Verdict:
    """Judge the bias of one configuration.

    Biased up or down: the interval excludes zero and is not inside the region of practical equivalence. Equivalent: the
    interval is inside the region, or all biases are exactly zero. Inconclusive: neither, or there is no interval; the
    sentence then says how many more subsamples would probably settle the question.

    Parameters
    ----------
    label
        Name of the configuration.
    tasks
        Bias of each subsample, one sequence per task; fractions for accuracies.
    level
        Nominal coverage of the interval.
    region
        Region of practical equivalence.
    is_accuracy
        Whether scores are accuracies.
    nominal_alpha
        Function from the error rate, 1 - `level`, to the level of this look at the results.
    """
    estimate = estimate_these_tasks(tasks, 1 - nominal_alpha(1 - level))
    num_trials = sum(map(len, tasks))
    words = ScoreWords(is_accuracy)
    if all(value == 0 for task in tasks for value in task):
        decision: Decision = "equivalent"
        statement = state_no_effect(num_trials)
    else:
        decision = decide_from(estimate, region.half_width)
        statement = _state(decision, estimate, tasks, level=level, region=region, words=words)
    low, high = estimate.limits
    return Verdict(
        label, "bias", decision, f"{label}: {statement}", estimate.mean, low, high, level,
        region=region.half_width,
        basis=f"{pluralize(len(tasks), 'task')}, {pluralize(num_trials, 'trial')}",
        unit=difference_unit(is_accuracy),
    )  # fmt: skip


def _state(
    decision: Decision,
    estimate: Estimate,
    tasks: Sequence[Sequence[float]],
    *,
    level: float,
    region: Region,
    words: ScoreWords,
) -> str:
    """State a decision, its interval, and the differences between tasks."""
    where = "on this task" if len(tasks) == 1 else f"on average over these {len(tasks)} tasks"
    bias = f"{words.format_signed(estimate.mean)}{words.unit}"
    if not estimate.has_interval:
        return f"a bias of {bias} {where}; its uncertainty is unknown because a task has only one subsample; draw more."
    half_width = words.size(region.half_width)
    if region.log_odds is not None:
        half_width += f" ({region.log_odds:g} log-odds)"
    limits = estimate.low, estimate.high
    text = words.state_bias(decision, estimate.mean, limits, level=level, region=half_width, scope=where)
    if decision == "inconclusive":
        text += f"; {_advise(tasks, level, region.half_width, words)}"
    elif decision != "equivalent":
        smallest = min(abs(estimate.low), abs(estimate.high))
        if smallest < region.half_width:
            text += f", possibly by as little as {words.size(smallest)}, which would be negligible"
    return f"{text}.{_describe_tasks(tasks, estimate, level, region.half_width, words)}"


def mention_log_loss(verdict: Verdict, tasks: Sequence[Sequence[float]], level: float) -> Verdict:
    """Return the verdict, with a sentence on the log loss if that shows a bias which the verdict does not state.

    Parameters
    ----------
    verdict
        The verdict on the bias of the accuracy.
    tasks
        Bias of the log-likelihood of each subsample, one sequence per task.
    level
        Nominal coverage of the interval.
    """
    estimate = estimate_these_tasks(tasks, level)
    if not estimate.excludes_zero or abs(estimate.mean) < MIN_LOG_LOSS_CHANGE:
        return verdict
    decision: Decision = "biased up" if estimate.mean > 0 else "biased down"
    if verdict.decision == decision:
        return verdict
    low, high = sorted((abs(estimate.low), abs(estimate.high)))
    verb = "improves" if estimate.mean > 0 else "worsens"
    change = f"{abs(estimate.mean):.4f} ({level:.0%} interval {low:.4f} to {high:.4f})"
    return replace(verdict, sentence=f"{verdict.sentence} However, the log loss {verb} by {change}.")


def _advise(tasks: Sequence[Sequence[float]], level: float, region: float, words: ScoreWords) -> str:
    """Say what would settle an inconclusive verdict."""
    return "draw more" if min(map(len, tasks)) < MIN_SUBSAMPLES else advise(tasks, level, region, words)


def _describe_tasks(
    tasks: Sequence[Sequence[float]], estimate: Estimate, level: float, region: float, words: ScoreWords
) -> str:
    """Describe what the average hides: the range over tasks, tasks with a bias of their own, and other tasks."""
    if len(tasks) < 2:
        return ""
    means = task_means(tasks)
    span = f"{words.format_signed(min(means))} to {words.format_signed(max(means))}"
    counts = count_biased_tasks(tasks, level)
    directions = ", ".join(f"{number} {way}" for number, way in zip(counts, ("up", "down"), strict=True) if number)
    significant = f"{sum(counts) or 'none'} of {len(tasks)} tasks{f' ({directions})' * any(counts)}"
    text = f" By task, the bias ranges from {span} and differs from zero in {significant}"
    other = estimate_other_tasks(tasks, level)
    if other.has_interval and decide_from(estimate, region) != decide_from(other, region):
        limits = f"{words.format_signed(other.low)} to {words.format_signed(other.high)}"
        text += f"; for other tasks like these, the interval is {limits}"
    return text + "."

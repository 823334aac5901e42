"""Verdicts on families of configurations, which are judged together, with the facts behind each verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from statistics import fmean

import numpy as np

from peekbench import Estimate, Verdict
from peekbench.records import (
    POINTS,
    Family,
    FixedTexts,
    Looks,
    OtherTasks,
    PredictedAlone,
    Predictions,
    TrialEvidence,
    Unit,
)
from peekbench.results import Configuration, Configurations, decide
from peekbench_stats import (
    find_families,
    hierarchical_rejections,
    procedure_p_value,
    sign_flip_test,
    stratified_sign_flip_test,
    t_test,
    units_of,
)
from peekbench_summary import Summary
from peekbench_summary.biased_rule import (
    NO_LOOKS,
    Bias,
    Conclusion,
    Evidence,
    Levels,
    conclude,
    control_outcome,
    describe_looks,
    levels_of,
    make_region,
    tolerated_loss,
    unseen_share,
)
from peekbench_summary.estimates import (
    estimate_effect,
    estimate_other_tasks,
    estimate_other_texts,
    estimate_these_tasks,
    failures_cancel,
    mean_over_tasks,
    shared_averages,
    task_means,
)
from peekbench_summary.forecast import settle
from peekbench_summary.hidden_bias import LEVEL, find_hidden, has_signal
from peekbench_summary.scores import LOG_LIKELIHOOD
from peekbench_summary.text_noise import read_answers


def count_biased_tasks(family: Sequence[Bias], alpha: float) -> list[tuple[int, int]]:
    """Return the numbers of tasks whose own bias is significantly positive and significantly negative.

    Each task has a sign-flip test, which few subsamples can support. The tasks of a configuration are examined only if
    the family shows that it has any biased task; see `peekbench_stats.hierarchical_rejections`.

    Parameters
    ----------
    family
        Configurations that are judged together.
    alpha
        False discovery rate.

    Returns
    -------
    list of (int, int)
        One pair for each configuration.
    """
    p_values = [
        [procedure_p_value(sign_flip_test(task).two_sided, bias.levels.now) for task in bias.tasks] for bias in family
    ]
    counts = []
    for bias, rejections in zip(family, hierarchical_rejections(p_values, alpha), strict=True):
        significant = [mean for mean, rejected in zip(task_means(bias.tasks), rejections, strict=True) if rejected]
        num_up = sum(mean > 0 for mean in significant)
        counts.append((num_up, len(significant) - num_up))
    return counts


def other_tasks_p_values(
    tasks: Sequence[Sequence[float]], shared: Sequence[float]
) -> tuple[float | None, float | None]:
    """Return the p-values of a bias of zero in other tasks: of the paired t test over tasks, and of sign flips.

    The means of tasks that share their draws are correlated. The t test then has the error of `estimate_other_tasks`,
    and there is no test by sign flips.

    Parameters
    ----------
    tasks
        Bias of each subsample, one sequence per task.
    shared
        Bias of each subsample on average over tasks, if tasks share draws.
    """
    if shared:
        estimate = estimate_other_tasks(tasks, LEVEL, shared=shared)
        return estimate.p_zero if estimate.has_interval else None, None
    means = task_means(tasks)
    return t_test(means), sign_flip_test(means).two_sided


def examine_other_tasks(bias: Bias, conclusion: Conclusion) -> OtherTasks:
    """Return whether other tasks would also show a bias.

    Parameters
    ----------
    bias
        The measured bias.
    conclusion
        The conclusion about these tasks. Its error rate is that of the two tests over tasks: the paired t test, and
        sign flips of the means, which are left out if there are too few tasks to reach this level.

    Returns
    -------
    str
        Empty for a single task, and for a single subsample that tasks share.
    """
    if len(bias.tasks) < 2:
        return ""
    alpha = bias.levels.now(conclusion.alpha)
    by_t_test, by_sign_flips = other_tasks_p_values(bias.tasks, bias.shared)
    if by_t_test is None and by_sign_flips is None:
        return ""
    rejections = [by_t_test is not None and by_t_test <= alpha]
    if by_sign_flips is not None and smallest_p(len(bias.tasks)) <= alpha:
        rejections.append(by_sign_flips <= alpha)
    if any(rejection != rejections[0] for rejection in rejections):
        return "the tests disagree"
    excludes_zero = conclusion.estimate.excludes_zero
    if any(rejections):
        if not excludes_zero:
            return "only across tasks"
        return "yes" if len(rejections) > 1 else "yes, by the t test"
    return "not established" if excludes_zero else "none found"


def smallest_p(num_tasks: int) -> float:
    """Return the smallest p-value that sign flips of task means can reach."""
    return 2.0 ** (1 - num_tasks)


ALONE_EFFECT = "alone - extra"
PERCENTAGE = "percentage"  # the name in sentences of a score in percent that may be no accuracy
MIN_LOG_LOSS_CHANGE = 0.001  # nats per text; smaller changes of the log loss are not mentioned


def judge_all(
    results: Configurations,
    options: Summary,
    probabilistic: Mapping[str, Configurations],
    looks: Looks = NO_LOOKS,
    predictions: Predictions | None = None,
) -> tuple[Verdict, ...]:
    """Judge the bias of each configuration.

    Parameters
    ----------
    results
        Paired scores by configuration.
    options
        Level, region, score, and the configurations that form a family.
    probabilistic
        Score name to the same configurations in that score, for the scores that are available.
    looks
        Looks at the run that the results are from.
    predictions
        Answers to single texts.

    Returns
    -------
    tuple of Verdict
        One for each configuration, in their order.
    """
    log_likelihoods = (
        {other.key: units_of(other, other.scores["bias"]) for other in probabilistic[LOG_LIKELIHOOD].configurations}
        if LOG_LIKELIHOOD in probabilistic
        else {}
    )
    biases = _measure(results, options, probabilistic, looks, predictions)
    verdicts: dict[int, Verdict] = {}
    score = options.score
    if score == "score" and results.units == POINTS and not results.is_accuracy:
        score = PERCENTAGE
    for members in find_families(results.configurations, options.family):
        judged = judge_family([biases[place] for place in members], options.level, score, unit=results.units.difference)
        for member, (verdict, conclusion) in zip(members, judged, strict=True):
            configuration = results.configurations[member]
            assert isinstance(verdict.evidence, TrialEvidence)
            means = {arm: mean_over_tasks(list(configuration.scores[arm].values())) for arm in results.arms}
            evidence = replace(
                verdict.evidence,
                base=means.get("base"),
                extra=means["extra"],
                published=means.get("all"),
                has_folds=configuration.has_folds,
                num_texts=configuration.num_texts,
            )
            if not configuration.control:
                alpha = biases[member].levels.now(conclusion.alpha)
                evidence = replace(
                    evidence,
                    alone=compare_with_alone(configuration, verdict, options.level, alpha),
                    looks=describe_looks(configuration, looks, biases[member], conclusion),
                    fixed_texts=generalize(configuration, verdict, options.level),
                )
                if evidence.settling is not None and predictions is not None and not configuration.has_folds:
                    evidence = replace(evidence, disagreement=find_disagreement(configuration, predictions))
                if configuration.key in log_likelihoods:
                    units = log_likelihoods[configuration.key]
                    change = find_other_bias(units, verdict.decision, alpha)
                    evidence = replace(evidence, log_likelihood=change)
            names = [column.name for column in results.columns]
            verdict = replace(
                verdict,
                method=configuration.label,
                parts=tuple(zip(names, configuration.cells, strict=True)),
                evidence=evidence,
                control=configuration.control,
            )
            if configuration.control:
                verdict = replace(verdict, decision=control_outcome(verdict))
                if configuration.control == "negative" and evidence.is_zero:  # a bound for other trials would mislead
                    verdict = replace(verdict, estimate=Estimate(verdict.estimate.mean))
            verdicts[member] = verdict
    return tuple(verdict for _, verdict in sorted(verdicts.items()))


def find_disagreement(configuration: Configuration, predictions: Predictions) -> float | None:
    """Return the share of texts that one of the arms extra and test answers right, and the other one does not.

    The fewer they are, the less the bias varies between subsamples. A fit that averages several seeds lowers it if it
    is random; more texts or subsamples do not.

    Returns
    -------
    float or None
        Mean over tasks; None if the answers are unknown.
    """
    shares = []
    for task in configuration.subsamples:
        answers = read_answers(configuration, task, predictions)
        if answers is None:
            return None
        shares.append(float(np.abs(answers.scores["test"] - answers.scores["extra"]).mean()))
    return fmean(shares)


def compare_with_alone(
    configuration: Configuration, verdict: Verdict, level: float, alpha: float
) -> PredictedAlone | None:
    """Return what predicting the test texts together changes; None without the arm alone or an interval.

    Parameters
    ----------
    configuration
        Paired scores of one method.
    verdict
        Verdict on its bias.
    level
        Coverage of the interval.
    alpha
        Error rate of the decision, which is adjusted as that of the verdict.
    """
    changes = configuration.scores.get(ALONE_EFFECT)
    if changes is None:
        return None
    change = estimate_effect(configuration, ALONE_EFFECT, level)
    if not change.has_interval:
        return None
    gain = Estimate(-change.mean, -change.high, -change.low, level=level)
    score = mean_over_tasks(list(configuration.scores["alone"].values()))
    if not any(map(any, changes.values())):
        return PredictedAlone(score, gain, "inert")
    adjusted = estimate_effect(configuration, ALONE_EFFECT, 1 - alpha)
    return PredictedAlone(score, gain, decide(-adjusted.high, -adjusted.low, verdict.region or 0.0))


def generalize(configuration: Configuration, verdict: Verdict, level: float) -> FixedTexts | None:
    """Return the evidence of a configuration's trials about other texts; None unless all test the same texts.

    Such trials show how much a score varies between subsamples of these texts. Other texts vary as well, so the
    interval for them is wider, and often leaves open what is known about these texts.

    Parameters
    ----------
    configuration
        Paired scores of one method.
    verdict
        Verdict on its bias on these texts.
    level
        Coverage of the interval of the score of extra; the interval of the bias has that of the verdict.
    """
    if not configuration.has_fixed_texts:
        return None
    if configuration.fixed_texts is None:
        return FixedTexts()
    extra = estimate_effect(configuration, "extra", level)
    if verdict.unit == "difference":
        extra = extra.within(0.0, 1.0)
    extra_of_others = Estimate(extra.mean, extra.low, extra.high, level=level)
    if verdict.decision in ("inert", "no signal") or not verdict.estimate.has_interval:
        return FixedTexts(extra=extra_of_others)
    bias = estimate_other_texts(configuration, "bias", verdict.estimate.level)
    assert bias is not None, "fixed texts are tested by several subsamples"
    # The interval on these texts is extended to zero if tests do not exclude it, and so is that for others.
    low, high = min(bias.low, verdict.estimate.low), max(bias.high, verdict.estimate.high)
    decision = decide(low, high, verdict.region or 0.0)
    if decision != verdict.decision:
        decision = "inconclusive"
    return FixedTexts(decision, Estimate(bias.mean, low, high, level=verdict.estimate.level), extra_of_others)


def _measure(
    results: Configurations,
    options: Summary,
    probabilistic: Mapping[str, Configurations],
    looks: Looks,
    predictions: Predictions | None,
) -> list[Bias]:
    """Return the evidence about the bias of each configuration; see `judge_all`."""
    measured = []
    for configuration in results.configurations:
        is_run = looks.of(str(configuration.key[0])).is_run
        is_r_squared = is_run and options.score == "score" and not results.is_accuracy
        region = make_region(configuration.scores, options, is_accuracy=results.is_accuracy, units=results.units)
        if configuration.has_folds and options.failure_loss is None:
            region = replace(region, failure_loss=0.0)
        measured.append(
            Bias(
                list(configuration.scores["bias"].values()),
                region,
                configuration.step,
                levels_of(configuration, looks),
                find_hidden(configuration, probabilistic, predictions, units=results.units, is_run=is_run),
                cache(partial(has_signal, configuration, predictions, is_r_squared=is_r_squared)),
                shared_averages(configuration, "bias"),
                is_skewed=not failures_cancel(configuration, "bias"),
            )
        )
    return measured


def judge_family(
    biases: Sequence[Bias], level: float, score: str = "score", *, unit: Unit = "difference"
) -> list[tuple[Verdict, Conclusion]]:
    """Judge configurations together.

    Biased up or down: the interval excludes zero and is not inside the region of practical equivalence, and tests that
    need not assume normal differences reject a bias of zero. Equivalent: the interval is inside the region, and the run
    could have seen a bias. Otherwise inert, if extra and test have the same predictions, or no signal, if these are at
    chance. Inconclusive: the interval decides neither, or there are too few trials for any test. Levels and intervals
    are adjusted for the number of configurations.

    Parameters
    ----------
    biases
        The measured biases, one per configuration.
    level
        One minus the false discovery rate of the family; for a single configuration, the coverage of its interval.
    score
        Score that the biases are of.
    unit
        Unit of the biases.

    Returns
    -------
    list of (Verdict, Conclusion)
        Verdicts without the name of the configuration.
    """
    alpha = 1 - level
    family = Evidence.of_family(biases, alpha)
    levels = Levels.of_family(family, alpha)
    judged = []
    for evidence, biased_tasks in zip(family, count_biased_tasks(biases, alpha), strict=True):
        bias, conclusion = evidence.bias, conclude(evidence, levels)
        unadjusted = conclude(evidence, Levels(alpha, alpha)).decision if len(family) > 1 else None
        coverage = 1 - conclusion.num_sides * bias.levels.now(conclusion.alpha)
        mean = conclusion.estimate
        estimate = Estimate(
            mean.mean, mean.low, mean.high, mean.standard_error, coverage if mean.has_interval else math.nan
        )
        verdict = Verdict(
            method="",
            effect="bias",
            decision=conclusion.decision,
            estimate=estimate,
            region=bias.region.half_width,
            unit=unit,
            evidence=_describe(evidence, conclusion, biased_tasks, score),
            family=Family(len(family), round(1 - conclusion.num_sides * alpha, 12), unadjusted),
        )
        judged.append((verdict, conclusion))
    return judged


def _describe(evidence: Evidence, conclusion: Conclusion, biased_tasks: tuple[int, int], score: str) -> TrialEvidence:
    """Return the facts behind a verdict, and what it leaves open."""
    bias, tasks = evidence.bias, evidence.bias.tasks
    now = bias.levels.now(conclusion.alpha)
    means = task_means(tasks)
    is_open = conclusion.decision == "inconclusive"
    return TrialEvidence(
        num_tasks=len(tasks),
        num_trials=bias.num_trials,
        num_shared=len(bias.shared),
        decision=conclusion.decision,
        score=score,
        log_odds=bias.region.log_odds,
        is_zero=bias.is_zero,
        task_means=(min(means), max(means)) if len(means) > 1 else None,
        biased_tasks=biased_tasks,
        other_tasks=examine_other_tasks(bias, conclusion),
        has_too_few=is_open and 2.0 ** (1 - bias.num_units) > now,
        is_extended=conclusion.is_extended,
        p_zero=evidence.p_robust,
        unseen_share=unseen_share(bias.num_units),
        tolerated_loss=tolerated_loss(bias, conclusion),
        failure_loss=bias.region.failure_loss,
        settling=settle(bias, conclusion.alpha) if is_open else None,
    )


def find_other_bias(units: Sequence[Sequence[float]], decision: str, alpha: float) -> Estimate | None:
    """Return the change of the log-likelihood if it shows a bias that the decision on another score does not state.

    Parameters
    ----------
    units
        Bias of the log-likelihood of each subsample, as `Configuration.units` returns it.
    decision
        The decision on the other score.
    alpha
        Level at which the interval excludes zero and sign flips reject.
    """
    estimate = estimate_these_tasks(units, 1 - alpha)
    found = "biased up" if estimate.mean > 0 else "biased down"
    if not estimate.excludes_zero or abs(estimate.mean) < MIN_LOG_LOSS_CHANGE or decision == found:
        return None
    if stratified_sign_flip_test(units).two_sided > alpha:
        return None
    return Estimate(estimate.mean, estimate.low, estimate.high, estimate.standard_error, 1 - alpha)

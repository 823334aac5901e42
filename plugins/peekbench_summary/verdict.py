"""Verdicts on the bias of each configuration, adjusted over the configurations that are judged together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from peekbench import Estimate, Verdict
from peekbench.formatting import difference_unit
from peekbench.records import Family, Looks, Predictions, ScoreName, TrialEvidence
from peekbench.results import Configurations, control_outcome, decide, find_families
from peekbench_stats import stratified_sign_flip_test
from peekbench_summary import Summary
from peekbench_summary.estimates import estimate_other_tasks, estimate_these_tasks, task_means
from peekbench_summary.evidence import Bias, Conclusion, Evidence, Levels, conclude
from peekbench_summary.looks import NO_LOOKS, describe_looks, levels_of
from peekbench_summary.probabilistic_scores import LOG_LIKELIHOOD
from peekbench_summary.region import make_region
from peekbench_summary.sample_size import settle
from peekbench_summary.signal import has_signal, is_inert
from peekbench_summary.significance_tests import count_biased_tasks, examine_other_tasks

MIN_LOG_LOSS_CHANGE = 0.001  # nats per text; smaller changes of the log loss are not mentioned
MIN_SUBSAMPLES = 5  # per task, from which a verdict says how many more are needed


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
        {each.key: each.scores["bias"] for each in probabilistic[LOG_LIKELIHOOD].configurations}
        if LOG_LIKELIHOOD in probabilistic
        else {}
    )
    effects = measure_effects(results, ["bias"], options, probabilistic, looks, predictions)
    biases = [of_configuration["bias"] for of_configuration in effects]
    verdicts: dict[int, Verdict] = {}
    for members in find_families(results.configurations, options.family):
        judged = judge_family(
            [biases[member] for member in members], options.level, options.score, is_accuracy=results.is_accuracy
        )
        for member, (verdict, conclusion) in zip(members, judged, strict=True):
            configuration = results.configurations[member]
            evidence = verdict.evidence
            assert isinstance(evidence, TrialEvidence)
            if not configuration.control:
                evidence = replace(evidence, looks=describe_looks(configuration, looks))
                if configuration.key in log_likelihoods:
                    tasks = list(log_likelihoods[configuration.key].values())
                    change = find_other_bias(tasks, verdict.decision, biases[member].levels.now(conclusion.alpha))
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
            verdicts[member] = verdict
    return tuple(verdict for _, verdict in sorted(verdicts.items()))


def measure_effects(
    results: Configurations,
    effects: Sequence[str],
    options: Summary,
    probabilistic: Mapping[str, Configurations],
    looks: Looks,
    predictions: Predictions | None,
) -> list[dict[str, Bias]]:
    """Return what is known of some effects, by effect, for each configuration; see `judge_all`."""
    is_r_squared = looks.are_known and options.score == "score" and not results.is_accuracy
    measured = []
    for configuration in results.configurations:
        region = make_region(configuration.scores, options, is_accuracy=results.is_accuracy)
        signal = cache(partial(has_signal, configuration, predictions, is_r_squared=is_r_squared))
        measured.append(
            {
                effect: Bias(
                    list(configuration.scores[effect].values()),
                    region,
                    configuration.step,
                    levels_of(configuration, looks),
                    is_inert(configuration, effect, probabilistic, is_run=looks.are_known),
                    signal,
                )
                for effect in effects
            }
        )
    return measured


def judge_family(
    biases: Sequence[Bias], level: float, score: ScoreName = "score", *, is_accuracy: bool = True
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
    is_accuracy
        Whether the scores are accuracies.

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
        effective = 1 - bias.levels.now(conclusion.alpha)  # coverage for a single configuration examined once
        mean = conclusion.estimate
        estimate = Estimate(
            mean.mean, mean.low, mean.high, mean.standard_error, effective if mean.has_interval else math.nan
        )
        verdict = Verdict(
            method="",
            effect="bias",
            decision=conclusion.decision,
            estimate=estimate,
            region=bias.region.half_width,
            unit=difference_unit(is_accuracy),
            evidence=_describe(evidence, conclusion, biased_tasks, effective, score),
            family=Family(len(family), level, unadjusted),
        )
        judged.append((verdict, conclusion))
    return judged


def _describe(
    evidence: Evidence, conclusion: Conclusion, biased_tasks: tuple[int, int], effective: float, score: ScoreName
) -> TrialEvidence:
    """Return the facts behind a verdict, and what it leaves open."""
    bias, tasks, region = evidence.bias, evidence.bias.tasks, evidence.bias.region.half_width
    now = 1 - effective
    means = task_means(tasks)
    others = estimate_other_tasks(tasks, effective, bias.step)
    differs = others.has_interval and decide(others.low, others.high, region) != conclusion.decision
    is_open = conclusion.decision == "inconclusive"
    has_too_few = 2.0 ** (1 - bias.num_trials) > bias.levels.now(conclusion.alpha)
    can_settle = is_open and not has_too_few and not bias.is_zero and min(map(len, tasks)) >= MIN_SUBSAMPLES
    return TrialEvidence(
        num_tasks=len(tasks),
        num_trials=bias.num_trials,
        decision=conclusion.decision,
        score=score,
        log_odds=bias.region.log_odds,
        is_zero=bias.is_zero,
        task_means=(min(means), max(means)) if len(means) > 1 else None,
        biased_tasks=biased_tasks,
        can_test_tasks=any(biased_tasks) or 2.0 ** (1 - max(map(len, tasks))) <= now,
        other_tasks=examine_other_tasks(means, conclusion, bias.levels.now(conclusion.alpha)),
        interval_of_other_tasks=(others.low, others.high) if differs else None,
        min_subsamples=bias.needed_subsamples(conclusion.alpha) if is_open and has_too_few else None,
        is_extended=conclusion.is_extended,
        p_zero=evidence.p_robust,
        settling=settle(bias, conclusion.alpha) if can_settle else None,
    )


def find_other_bias(tasks: Sequence[Sequence[float]], decision: str, alpha: float) -> Estimate | None:
    """Return the change of the log-likelihood if it shows a bias that the decision on another score does not state.

    Parameters
    ----------
    tasks
        Bias of the log-likelihood of each subsample, one sequence per task.
    decision
        The decision on the other score.
    alpha
        Level at which the interval excludes zero and sign flips reject.
    """
    estimate = estimate_these_tasks(tasks, 1 - alpha)
    found = "biased up" if estimate.mean > 0 else "biased down"
    if not estimate.excludes_zero or abs(estimate.mean) < MIN_LOG_LOSS_CHANGE or decision == found:
        return None
    if stratified_sign_flip_test(tasks).two_sided > alpha:
        return None
    return Estimate(estimate.mean, estimate.low, estimate.high, estimate.standard_error, 1 - alpha)

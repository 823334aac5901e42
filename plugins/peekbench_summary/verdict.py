"""Verdicts on the bias of each configuration, adjusted over the configurations that are judged together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from peekbench import Verdict
from peekbench.formatting import ScoreWords, difference_unit, pluralize
from peekbench.records import BiasSize, Looks, Predictions
from peekbench.results import Configurations, find_families
from peekbench_stats import stratified_sign_flip_test
from peekbench_summary import Summary
from peekbench_summary.choice import score_words
from peekbench_summary.controls import judge_control
from peekbench_summary.estimates import estimate_these_tasks, task_means
from peekbench_summary.evidence import Bias, Conclusion, Evidence, Levels, conclude
from peekbench_summary.looks import NO_LOOKS, levels_of, mention_looks
from peekbench_summary.probabilistic_scores import LOG_LIKELIHOOD
from peekbench_summary.region import make_region
from peekbench_summary.sentences import Finding, state
from peekbench_summary.signal import has_signal, is_inert
from peekbench_summary.significance_tests import count_biased_tasks, examine_other_tasks

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
        {each.key: each.scores["bias"] for each in probabilistic[LOG_LIKELIHOOD].configurations}
        if LOG_LIKELIHOOD in probabilistic
        else {}
    )
    effects = measure_effects(results, ["bias"], options, probabilistic, looks, predictions)
    biases = [of_configuration["bias"] for of_configuration in effects]
    verdicts: dict[int, Verdict] = {}
    for members in find_families(results.configurations, options.family):
        judged = judge_family([biases[member] for member in members], options.level, score_words(results, options))
        for member, (verdict, conclusion) in zip(members, judged, strict=True):
            configuration = results.configurations[member]
            named = replace(verdict, method=configuration.label, sentence=f"{configuration.label}: {verdict.sentence}")
            if configuration.control:
                named = judge_control(named, configuration.control)
            elif configuration.key in log_likelihoods:
                log_likelihood = list(log_likelihoods[configuration.key].values())
                named = mention_log_loss(named, log_likelihood, biases[member].levels.now(conclusion.alpha))
            verdicts[member] = named
    return mention_looks([verdict for _, verdict in sorted(verdicts.items())], results, looks)


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


def judge_family(biases: Sequence[Bias], level: float, words: ScoreWords) -> list[tuple[Verdict, Conclusion]]:
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
    words
        Words for the scores.

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
        finding = Finding(evidence, conclusion, biased_tasks, level, len(family), unadjusted)
        low, high = conclusion.estimate.limits
        verdict = Verdict(
            method="",
            effect="bias",
            decision=conclusion.decision,
            sentence=state(finding, words),
            estimate=conclusion.estimate.mean,
            low=low,
            high=high,
            level=level,
            region=bias.region.half_width,
            basis=f"{pluralize(len(bias.tasks), 'task')}, {pluralize(bias.num_trials, 'trial')}",
            unit=difference_unit(words.is_accuracy),
            size=_size(conclusion, bias.region.half_width),
            other_tasks=examine_other_tasks(task_means(bias.tasks), conclusion, bias.levels.now(conclusion.alpha)),
            family=len(family),
            unadjusted=unadjusted,
            interval_level=None if low is None else finding.effective_level,
            population=f"these texts of {pluralize(len(bias.tasks), 'task')}",
        )
        judged.append((verdict, conclusion))
    return judged


def _size(conclusion: Conclusion, region: float) -> BiasSize:
    if not conclusion.decision.startswith("biased"):
        return ""
    return "beyond" if min(abs(conclusion.estimate.low), abs(conclusion.estimate.high)) >= region else "open"


def mention_log_loss(verdict: Verdict, tasks: Sequence[Sequence[float]], alpha: float) -> Verdict:
    """Return the verdict, with a sentence on the log loss if that shows a bias which the verdict does not state.

    Parameters
    ----------
    verdict
        The verdict on the bias of the accuracy.
    tasks
        Bias of the log-likelihood of each subsample, one sequence per task.
    alpha
        Level at which the interval excludes zero and sign flips reject.
    """
    estimate = estimate_these_tasks(tasks, 1 - alpha)
    decision = "biased up" if estimate.mean > 0 else "biased down"
    if not estimate.excludes_zero or abs(estimate.mean) < MIN_LOG_LOSS_CHANGE or verdict.decision == decision:
        return verdict
    if stratified_sign_flip_test(tasks).two_sided > alpha:
        return verdict
    low, high = sorted((abs(estimate.low), abs(estimate.high)))
    verb = "improves" if estimate.mean > 0 else "worsens"
    change = f"{abs(estimate.mean):.4f} ({verdict.level:.0%} interval {low:.4f} to {high:.4f})"
    return replace(
        verdict,
        sentence=f"{verdict.sentence} However, the log loss {verb} by {change}.",
        other_score=f"the log loss {verb} by {abs(estimate.mean):.4f}",
    )

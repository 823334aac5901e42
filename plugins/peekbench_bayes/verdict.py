"""The verdict on the bias of one fit, and its sentence."""

from __future__ import annotations

import numpy as np

from peekbench import Verdict
from peekbench.formatting import ScoreWords, difference_unit, pluralize, state_no_effect
from peekbench.records import Decision
from peekbench.results import decide
from peekbench_bayes.arrays import PairedArms
from peekbench_bayes.posterior import Posterior
from peekbench_bayes.summaries import Summary, summarize


def judge(arms: PairedArms, posterior: Posterior, *, level: float, region: float, words: ScoreWords) -> Verdict:
    """Judge the bias of one fit, averaged over its models and tasks.

    Parameters
    ----------
    arms
        Scores of the arms extra and test.
    posterior
        Posterior of the bias.
    level
        Probability of the interval.
    region
        Half-width of the region of practical equivalence, in units of the score.
    words
        Words for the score.

    Returns
    -------
    Verdict
        "biased up" or "biased down" if the interval excludes zero and is not inside the region; "equivalent" if it is
        inside the region; "inconclusive" otherwise, or if a check of the fit failed.
    """
    differences = arms.difference[np.isfinite(arms.difference)]
    if differences.any():
        summary = summarize(posterior.average, level)
        decision, sentence = _conclude(arms, posterior, summary, level=level, region=region, words=words)
    else:
        summary = Summary(0.0, 0.0, 0.0, 0.0, 0.0)
        decision = "equivalent"
        sentence = state_no_effect(len(differences))
    return Verdict(
        arms.label, "bias", decision, f"{arms.label}: {sentence}", summary.mean, summary.low, summary.high, level,
        region=region,
        basis=f"{pluralize(len(arms.tasks), 'task')}, {pluralize(len(differences), 'trial')}, a posterior",
        unit=difference_unit(arms.is_accuracy),
    )  # fmt: skip


def _conclude(
    arms: PairedArms, posterior: Posterior, summary: Summary, *, level: float, region: float, words: ScoreWords
) -> tuple[Decision, str]:
    """Return the decision and its sentence."""
    if posterior.failed:
        interval = f"({level:.0%} interval {words.format_signed(summary.low)} to {words.format_signed(summary.high)})"
        estimate = f"{words.format_signed(summary.mean)}{words.unit} {interval}"
        return "inconclusive", f"no conclusion, because {_failures(posterior)}. The estimate is {estimate}."
    decision = decide(summary.low, summary.high, region)
    limits = summary.low, summary.high
    statement = words.state_bias(
        decision, summary.mean, limits, interval=f"{level:.0%} interval", region=words.size(region), scope=_scope(arms)
    )
    sentence = f"{statement}. The probability of a bias above zero is {_format_probability(summary.positive)}."
    if len(arms.models) > 1:
        means = posterior.by_model.mean(axis=(0, 1)).tolist()
        by_model = ", ".join(
            f"{words.format_signed(mean)} with {name}" for name, mean in zip(arms.models, means, strict=True)
        )
        sentence += f" By model, the bias is {by_model}."
    return decision, sentence


def _scope(arms: PairedArms) -> str:
    models = f" and {len(arms.models)} models" if len(arms.models) > 1 else ""
    if len(arms.tasks) == 1:
        return f"on this task{models}"
    return f"on average over these {len(arms.tasks)} tasks{models}"


def _failures(posterior: Posterior) -> str:
    failures = [f"{check.name} is {check.value:.3g} and should be {check.limit}" for check in posterior.failed]
    remedies = dict.fromkeys(check.remedy for check in posterior.failed)
    return f"{'; '.join(failures)} ({'; '.join(remedies)})"


def _format_probability(probability: float) -> str:
    """Format a probability; draws cannot distinguish values near 0 or 1 from 0 or 1."""
    if 0.005 <= probability <= 0.995:
        return f"{probability:.0%}"
    return "below 1%" if probability < 0.5 else "above 99%"

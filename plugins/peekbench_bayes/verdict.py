"""The verdict on the bias of one fit."""

from __future__ import annotations

import numpy as np

from peekbench import Estimate, Verdict
from peekbench.formatting import difference_unit
from peekbench.records import Decision, FailedCheck, Family, PosteriorEvidence, ScoreName
from peekbench.results import decide
from peekbench_bayes.arrays import PairedArms
from peekbench_bayes.posterior import Posterior
from peekbench_bayes.summaries import Summary, summarize


def judge(arms: PairedArms, posterior: Posterior, *, level: float, region: float, score: ScoreName) -> Verdict:
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
    score
        Score that the effects are of.

    Returns
    -------
    Verdict
        "biased up" or "biased down" if the interval excludes zero and is not inside the region; "equivalent" if it is
        inside the region; "inconclusive" otherwise, or if a check of the fit failed.
    """
    differences = arms.difference[np.isfinite(arms.difference)]
    is_zero = not differences.any()
    summary = Summary(0.0, 0.0, 0.0, 0.0) if is_zero else summarize(posterior.average, level)
    decision: Decision = decide(summary.low, summary.high, region)
    if posterior.failed and not is_zero:
        decision = "inconclusive"
    means = posterior.by_model.mean(axis=(0, 1)).tolist()
    evidence = PosteriorEvidence(
        num_tasks=len(arms.tasks),
        num_trials=len(differences),
        score=score,
        is_zero=is_zero,
        positive=summary.positive,
        models=tuple(zip(arms.models, means, strict=True)) if len(arms.models) > 1 else (),
        failed=tuple(FailedCheck(check.name, check.value, check.limit, check.remedy) for check in posterior.failed),
    )
    estimate = Estimate(summary.mean, summary.low, summary.high, summary.standard_error, level)
    return Verdict(
        arms.label, "bias", decision, estimate, region, difference_unit(arms.is_accuracy), evidence,
        Family(level=level), parts=arms.parts,
    )  # fmt: skip

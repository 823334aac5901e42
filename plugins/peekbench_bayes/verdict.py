"""A decision on one fit's bias, and the sentence that says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peekbench import Verdict
from peekbench.formatting import ScoreWords, pluralize
from peekbench.results import decide
from peekbench_bayes.arrays import Arms
from peekbench_bayes.posterior import Posterior

if TYPE_CHECKING:
    from peekbench.records import Decision, FloatArray


@dataclass(frozen=True, slots=True)
class Summary:
    """Of draws of one quantity: posterior mean, sd, central interval, and probability of a value above zero."""

    mean: float
    sd: float
    low: float
    high: float
    positive: float


def summarize(draws: FloatArray, level: float) -> Summary:
    """Of draws of any shape."""
    import numpy as np

    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Summary(float(draws.mean()), float(draws.std()), low, high, float((draws > 0).mean()))


def judge(arms: Arms, posterior: Posterior, *, level: float, region: float) -> Verdict:
    """Judge the bias of one fit, averaged over its models and tasks.

    Biased up or down: the interval excludes zero and is not inside the region of practical equivalence. Equivalent: it
    is inside the region. Inconclusive: neither, or the fit's own checks say not to trust it.
    """
    import numpy as np

    differences = arms.difference[np.isfinite(arms.difference)]

    def conclude(decision: Decision, sentence: str, mean: float, low: float, high: float) -> Verdict:
        return Verdict(
            arms.label, "bias", decision, sentence, mean, low, high, level,
            region=region,
            basis=f"{pluralize(len(arms.tasks), 'task')}, {pluralize(len(differences), 'trial')}, a posterior",
            unit="difference" if arms.num_test else "change",
        )  # fmt: skip

    if not differences.any():
        sentence = (
            f"{arms.label}: seeing the test texts changed nothing: the bias is exactly 0 in all "
            f"{len(differences):,} trials."
        )
        return conclude("equivalent", sentence, 0.0, 0.0, 0.0)
    found = summarize(posterior.average, level)
    show = ScoreWords(bool(arms.num_test))
    span = f"({level:.0%} interval {show.format_signed(found.low)} to {show.format_signed(found.high)})"
    estimate = f"{show.format_signed(found.mean)}{show.unit} {span}"
    if posterior.failed:
        sentence = f"{arms.label}: no conclusion, because {_faults(posterior)}. The fit says {estimate}."
        return conclude("inconclusive", sentence, found.mean, found.low, found.high)
    decision = decide(found.low, found.high, region)
    where = _where(arms)
    if decision == "equivalent":
        but = ", though not zero" if found.low > 0 or found.high < 0 else ""
        said = f"seeing the test texts changed {show.noun} by less than {show.size(region)} {where}{but}: {estimate}."
    elif decision == "inconclusive":
        said = (
            f"a bias of {estimate} {where}: too unsure to tell from zero, or to call smaller than {show.size(region)}."
        )
    else:
        verb = "raised" if decision == "biased up" else "lowered"
        said = f"seeing the test texts {verb} {show.noun} by {show.size(abs(found.mean))} {where} {span}."
    text = f"{arms.label}: {said} The probability of a bias above zero is {_percent(found.positive)}."
    if len(arms.models) > 1:
        means = posterior.by_model.mean(axis=(0, 1)).tolist()
        by_model = ", ".join(
            f"{show.format_signed(mean)} with {name}" for name, mean in zip(arms.models, means, strict=True)
        )
        text += f" It is {by_model}."
    return conclude(decision, text, found.mean, found.low, found.high)


def _where(arms: Arms) -> str:
    models = f" and {len(arms.models)} models" if len(arms.models) > 1 else ""
    if len(arms.tasks) == 1:
        return f"on this task{models}"
    return f"on average over these {len(arms.tasks)} tasks{models}"


def _faults(posterior: Posterior) -> str:
    faults = [f"{check.name} is {check.value:.3g} and should be {check.limit}" for check in posterior.failed]
    remedies = dict.fromkeys(check.remedy for check in posterior.failed)
    return f"{'; '.join(faults)} ({'; '.join(remedies)})"


def _percent(chance: float) -> str:
    """Draws cannot tell a probability near 0 or 1 from 0 or 1."""
    if 0.005 <= chance <= 0.995:
        return f"{chance:.0%}"
    return "below 1%" if chance < 0.5 else "above 99%"

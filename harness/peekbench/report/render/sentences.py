"""All sentences on verdicts, for every format: what each decision states, long and short, and what would settle it.

The tables have the texts, which the functions fill with the facts of a verdict. No module reads a sentence again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from peekbench.formatting import (
    capitalize,
    format_cell,
    format_quantity,
    format_range,
    format_signed,
    format_size,
    join_words,
    list_numbers,
    pluralize,
)
from peekbench.records.scores import find_score
from peekbench.records.verdicts import NUMBERS, POINTS, LooksTaken, PosteriorEvidence, TrialEvidence, Unit, Verdict
from peekbench.report.render.advice import explain_inconclusive
from peekbench.report.render.fixed_texts import generalize


@dataclass(frozen=True, slots=True)
class Claim:
    """What a decision states."""

    short: str
    """In a few words, for the first page."""
    long: str
    """In a clause with all numbers, which follows the name of the method and a colon."""


UNCERTAIN = (
    "a bias of {bias} {scope} {interval}: too uncertain to distinguish from zero, or to call smaller than "
    "{region}{odds}"
)
CLAIMS: Mapping[tuple[str, str], Claim] = {
    ("bias", "biased up"): Claim(
        "Test {rows} raise {score}", "seeing the test {rows} raised {score} by {size} {scope} {interval}"
    ),
    ("bias", "biased down"): Claim(
        "Test {rows} lower {score}", "seeing the test {rows} lowered {score} by {size} {scope} {interval}"
    ),
    ("bias", "equivalent"): Claim(
        "Test {rows} change {score} by less than {region}",
        "seeing the test {rows} changed {score} by less than {region}{odds} {scope}{nonzero}: {bias} {interval}",
    ),
    ("bias", "inconclusive"): Claim("Undecided", UNCERTAIN),
    ("bias", "not above"): Claim(
        "An increase of {score} by more than {region} is excluded",
        UNCERTAIN + ", but an increase by more than {region}{odds} is excluded",
    ),
    ("bias", "not below"): Claim(
        "A decrease of {score} by more than {region} is excluded",
        UNCERTAIN + ", but a decrease by more than {region}{odds} is excluded",
    ),
    ("bias", "inert"): Claim(
        "The predictions do not depend on the unlabeled {rows}",
        "its predictions are the same with the {rows} of extra and of test in all {evidence.num_trials:,} trials, so "
        "they do not depend on the unlabeled {rows} and cannot show a bias.",
    ),
    ("bias", "no signal"): Claim(
        "The predictions are at chance, so a bias could not be seen",
        "its predictions carry no information on the labels (their balanced accuracy, R^2 or mean grade is not above "
        "that of chance), so a bias could not be seen; check its answers, or use more train {rows} or other options.",
    ),
}
"""What a verdict states, by effect and decision, or by what an inconclusive one excludes."""
TOGETHER: Mapping[str, str] = {
    "biased up": "predicting the test {rows} together raises {score} by {size} {interval} over predicting each alone",
    "biased down": "predicting the test {rows} together lowers {score} by {size} {interval} over predicting each alone",
    "equivalent": "predicting the test {rows} together changes {score} by less than {region}{odds}: {bias} {interval}",
    "inconclusive": "whether predicting the test {rows} together changes {score} is undecided: {bias} {interval}",
    "inert": "predicting the test {rows} together changes no score",
}
"""What predicting texts together changes, by decision."""
SMALLER = "a bias of {bias} {scope} {interval}: smaller than {region}{odds}, which these trials do not settle"
"""What an inconclusive verdict states if its interval lies within the region."""
OUTCOMES: Mapping[tuple[str, str], str] = {
    ("negative", "passed"): "As expected: a negative control cannot have a bias.",
    ("negative", "undecided"): "A negative control cannot have a bias, but the interval is too wide to exclude one "
    "that is not negligible.",
    ("negative", "failed"): "This should be impossible: a negative control cannot have a bias.",
    ("positive", "passed"): "As expected: a positive control has a planted bias.",
    ("positive", "undecided"): "A positive control has a planted bias, which is not detected yet.",
    ("positive", "failed"): "This should be impossible: a positive control has a planted bias.",
}
"""Sentence on a control, by kind and outcome."""
UNEXPECTED: Mapping[str, str] = {
    "negative undecided": "The interval of the negative control {method} is too wide to exclude a leak of test {rows}. "
    "Draw more subsamples",
    "negative failed": "The negative control {method} has a bias, by chance or because test {rows} leak to it. Find "
    "the cause before you trust any other verdict",
    "positive undecided": "This run does not detect the bias that is planted in {method}, so it may also miss others. "
    "Draw more subsamples, or plant a larger bias",
    "positive failed": "The positive control {method} has a bias of the wrong sign. Find the cause before you trust "
    "any other verdict",
}
"""Warning of a control whose known bias a run does not find, by kind and outcome."""
EXTENT: Mapping[str, str] = {"beyond": " by more than {region}", "open": ", possibly by less than {region}"}
"""What the short sentence adds on the size of a bias."""


def fill(text: str, verdict: Verdict, scope: str = "") -> str:
    """Fill a text with the facts of a verdict; the scope says on which tasks."""
    evidence, estimate, unit = verdict.evidence, verdict.estimate, verdict.unit
    odds = ""
    if isinstance(evidence, TrialEvidence) and evidence.log_odds is not None:
        odds = f" ({evidence.log_odds:g} log-odds)"
    return text.format(
        evidence=evidence,
        method=verdict.method,
        rows=verdict.rows,
        scope=scope,
        score=_name_score(verdict),
        region=format_size(verdict.region or 0.0, unit),
        odds=odds,
        bias=format_quantity(estimate.mean, unit),
        size=format_size(abs(estimate.mean), unit),
        nonzero={True: ", although the bias is not zero", False: ""}[estimate.excludes_zero],
        interval=f"({name_interval(verdict, ':')} {format_range(estimate.low, estimate.high, unit)})",
    )


def state(verdict: Verdict) -> str:
    """State a verdict in a clause to follow the method and a colon, and further sentences.

    Parameters
    ----------
    verdict
        Verdict of an analysis.

    Returns
    -------
    str
        Sentences as in reports, without the name of the method.

    Examples
    --------
    >>> from peekbench import Estimate, Verdict
    >>> state(Verdict("lsa", "bias", "inconclusive", Estimate(0.01, low=-0.01, high=0.03)))
    'bias of +1.00 [-1.00, +3.00] points.'
    """
    text = ""
    match verdict.evidence:
        case TrialEvidence() as evidence:
            text = _state_trials(verdict, evidence)
        case PosteriorEvidence() as evidence:
            text = _state_posterior(verdict, evidence)
        case None:
            estimate = format_quantity(verdict.estimate, verdict.unit)
            if estimate and not verdict.note:
                text = f"{verdict.effect} of {estimate}."
    return " ".join(filter(None, (text, verdict.note)))


def state_briefly(lead: Verdict, others: Sequence[Verdict] = ()) -> str:
    """Return a verdict as one short sentence, with the scores of base and extra, and other decisions that differ.

    Parameters
    ----------
    lead
        Verdict of the first analysis.
    others
        Verdicts of other analyses on the same effect.
    """
    if lead.control:
        return OUTCOMES[lead.control, lead.decision]
    evidence, text = lead.evidence, fill(_claim_briefly(lead), lead)
    if isinstance(evidence, TrialEvidence) and leaves_failures_open(lead):
        loss = format_size(evidence.tolerated_loss, lead.unit)
        text = fill("Within ±{region}, but up to {evidence.unseen_share:.1%} of trials could fail unseen", lead)
        text += f" and lose more than {loss} each"
    if isinstance(evidence, TrialEvidence) and (scores := _list_scores(evidence, lead.unit)):
        if _name_score(lead) not in text:
            scores = f"{_name_score(lead)}: {scores}"
        text += f" ({scores})"
    for other in others:
        if other.decision != lead.decision:
            text += f"; {other.analysis or 'another analysis'}: {other.decision}"
    return f"{text}. {state_unadjusted(lead)}".strip()


def _claim_briefly(verdict: Verdict) -> str:
    """Return the short claim of a verdict, with what is known about the size of a bias."""
    for decision in (verdict.size, verdict.decision):
        if claim := CLAIMS.get((verdict.effect, decision)):
            return claim.short + EXTENT.get(verdict.size, "")
    return capitalize(verdict.decision) + EXTENT.get(verdict.size, "")


def compare(lead: Verdict, other: Verdict) -> str:
    """Return a sentence on the verdict of another analysis about the same method.

    It is named with its estimate if the decisions agree, otherwise quoted.
    """
    name = other.analysis or "Another analysis"
    quote = capitalize(state(other))
    if other.decision == lead.decision and other.estimate.is_known:
        return f"{name} agrees: {format_quantity(other.estimate, other.unit)}."
    if other.decision == lead.decision:
        return f"{name} agrees: {quote}"
    if other.unit != lead.unit:  # the analysis is about another score, so it need not agree
        return f"In another score, the verdict of {name} is {other.decision}: {quote}"
    return f"{name} does not agree, its verdict is {other.decision}: {quote}"


def warn_of_controls(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield a warning for each control whose known bias a run does not find."""
    for verdict in verdicts:
        if text := UNEXPECTED.get(f"{verdict.control} {verdict.decision}"):
            yield fill(text, verdict)


def state_looks(looks: LooksTaken, num_trials: int, num_tasks: int = 1) -> str:
    """Return a sentence on the looks at a run or a table; empty if they do not matter."""
    if looks.earlier and looks.is_run:
        changed = f"The plan of this run was changed to {num_trials:,} trials after analyses at"
        return f"{changed} {list_numbers(looks.earlier)}; the interval accounts for them."
    if looks.earlier:
        earlier = list_numbers([round(number / num_tasks) for number in looks.earlier])
        return f"This table was analyzed before at {earlier} subsamples per task; the interval accounts for this."
    if looks.number:
        planned = f"{looks.share:.0%} of the {looks.maximum:,} subsamples planned first"
        return f"This is planned analysis {looks.number}, at {planned}; the interval accounts for all of them."
    return ""


def state_unadjusted(verdict: Verdict) -> str:
    """Return a sentence on the interval without earlier looks, which is narrower; empty if there are none."""
    looks = getattr(verdict.evidence, "looks", None)
    if looks is None or looks.unadjusted is None:
        return ""
    limits = format_range(looks.unadjusted.low, looks.unadjusted.high, verdict.unit)
    return f"Without the earlier analyses, the interval would be narrower: {limits}."


def name_interval(verdict: Verdict, mark: str = "") -> str:
    """Name an interval; a mark after it only follows what it is adjusted for."""
    name = f"{verdict.family.level:.0%} interval"
    if adjusted := list_adjustments(verdict):
        name += f", adjusted for {adjusted}{mark}"
    return name


def list_adjustments(verdict: Verdict) -> str:
    """Return what the interval of a verdict is adjusted for; empty for nothing."""
    adjusted = []
    if verdict.family.size > 1:
        adjusted.append(name_family(verdict))
    if state_unadjusted(verdict):
        adjusted.append("earlier analyses")
    return join_words(adjusted or [""])


def name_family(verdict: Verdict) -> str:
    """Count the methods that are judged together, or the configurations if methods have several."""
    if len(verdict.parts) > 1:
        return pluralize(verdict.family.size, "configuration")
    return pluralize(verdict.family.size, "method")


def _claim(verdict: Verdict, scope: str) -> str:
    """Return a clause that states the decision on a bias, with its interval."""
    estimate, decision = verdict.estimate, decision_of(verdict)
    text = CLAIMS["bias", decision].long
    if decision == "inconclusive" and max(abs(estimate.low), abs(estimate.high)) < (verdict.region or 0.0):
        text = SMALLER
    elif decision == "inconclusive" and verdict.size:
        text = CLAIMS["bias", verdict.size].long
    return fill(text, verdict, scope)


def _state_no_effect(rows: str, num_trials: int) -> str:
    return f"seeing the test {rows} had no effect: none of {pluralize(num_trials, 'trial')} has a bias"


def _state_trials(verdict: Verdict, evidence: TrialEvidence) -> str:
    """State a verdict on trials, what it leaves open, and what is known of control, other scores and looks."""
    parts = [_state_mean(verdict, evidence)]
    if verdict.control:
        parts.append(OUTCOMES[verdict.control, verdict.decision])
    else:
        parts += [generalize(verdict), _state_failures(verdict, evidence)]
    if evidence.alone is not None:
        parts.append(f"{capitalize(state_together(verdict))}.")
    if (change := evidence.log_likelihood) is not None:
        low, high = sorted((abs(change.low), abs(change.high)))
        verb = {True: "improves", False: "worsens"}[change.mean > 0]
        interval = f"{100 * change.level:.3g}% interval {low:.4f} to {high:.4f}"
        parts.append(f"However, the log loss {verb} by {abs(change.mean):.4f} ({interval}).")
    if evidence.looks is not None and verdict.estimate.has_interval:
        parts += [state_looks(evidence.looks, evidence.num_trials, evidence.num_tasks), state_unadjusted(verdict)]
    return " ".join(filter(None, parts))


def _state_mean(verdict: Verdict, evidence: TrialEvidence) -> str:
    decision = decision_of(verdict)
    if decision == "no signal" or (decision == "inert" and not verdict.control):
        return fill(CLAIMS["bias", decision].long, verdict)
    scope = f"on these {verdict.rows}"
    if evidence.num_tasks > 1:
        scope = f"on average over these {verdict.rows} of {evidence.num_tasks} tasks"
    if evidence.is_zero:
        text = _state_zero(verdict, evidence)
    elif not verdict.estimate.has_interval:
        text = (
            f"a bias of {format_quantity(verdict.estimate, verdict.unit)} {scope}; its uncertainty is unknown because "
            "a task has only one subsample; draw more subsamples."
        )
    else:
        text = _state_bias(verdict, evidence, scope)
    if evidence.other_tasks and not evidence.is_zero and not verdict.control:
        bias = "Bias"
        if decision == "equivalent" and evidence.other_tasks.startswith("yes"):
            bias = "Nonzero bias"
        text += f" {bias} in other tasks: {evidence.other_tasks}."
    return text + _state_unadjusted(verdict)


def _state_unadjusted(verdict: Verdict) -> str:
    """Return a sentence on the decision without the adjustment, if it is another one, with a space before it."""
    family = verdict.family
    if family.unadjusted in (None, decision_of(verdict)):
        return ""
    return f" Without the adjustment for {name_family(verdict)}, it would be {family.unadjusted}."


def decision_of(verdict: Verdict) -> str:
    """Return the decision on a method, or the one that a method with the scores of a control would get."""
    return getattr(verdict.evidence, "decision", None) or verdict.decision


def _state_zero(verdict: Verdict, evidence: TrialEvidence) -> str:
    """State that no trial has a bias, and the largest bias that the trials may have missed."""
    text = _state_no_effect(verdict.rows, evidence.num_trials)
    if verdict.estimate.has_interval:
        text += f", but up to {verdict.estimate.high:.1%} of trials may have one ({name_interval(verdict)})"
    if verdict.decision == "inconclusive":
        text += f". However, {explain_inconclusive(verdict, evidence)}"
    return f"{text}."


def _state_bias(verdict: Verdict, evidence: TrialEvidence, scope: str) -> str:
    """State a bias that is not exactly zero, with what would settle it, and what its average over tasks hides."""
    decision, region, unit = decision_of(verdict), verdict.region or 0.0, verdict.unit
    text = _claim(verdict, scope)
    if decision == "inconclusive":
        text += f"; {explain_inconclusive(verdict, evidence)}"
    elif decision != "equivalent":
        smallest = min(abs(verdict.estimate.low), abs(verdict.estimate.high))
        if smallest < region:
            text += f", possibly by as little as {format_size(smallest, unit)}, which would be negligible"
    text += "."
    if evidence.task_means is None:
        return text
    biased = f"{sum(evidence.biased_tasks) or 'none'} of {evidence.num_tasks} tasks"
    if any(evidence.biased_tasks):
        directions = zip(evidence.biased_tasks, ("up", "down"), strict=True)
        biased += f" ({', '.join(f'{number} {way}' for number, way in directions if number)})"
    ends = format_range(*evidence.task_means, unit)
    return f"{text} By task, the bias ranges from {ends} and differs from zero in {biased}."


def _state_failures(verdict: Verdict, evidence: TrialEvidence) -> str:
    """State how much failures of fits that the trials can have missed may cost; empty if no verdict depends on it."""
    is_open = leaves_failures_open(verdict)
    if math.isnan(evidence.tolerated_loss) or (verdict.decision == "inconclusive" and not is_open):
        return ""
    if verdict.unit == "difference" and evidence.tolerated_loss >= 1:  # which no score can lose
        return ""
    missed = f"Failures in up to {evidence.unseen_share:.1%} of trials can remain unseen;"
    loss = format_size(evidence.tolerated_loss, verdict.unit)
    if is_open:
        needed = format_size(_required_loss(verdict, evidence), verdict.unit)
        return f"{missed} the bias is negligible if each costs at most {loss}, but a verdict must hold for {needed}."
    return f"{missed} the verdict holds if each costs at most {loss}."


def leaves_failures_open(verdict: Verdict) -> bool:
    """Return whether failures that the trials can have missed are the reason for an inconclusive verdict."""
    evidence = verdict.evidence
    if not isinstance(evidence, TrialEvidence) or verdict.decision != "inconclusive":
        return False
    return evidence.tolerated_loss < _required_loss(verdict, evidence)


def _required_loss(verdict: Verdict, evidence: TrialEvidence) -> float:
    """Return the loss of a failure for which 'equivalent' must hold."""
    if evidence.failure_loss is not None:
        return evidence.failure_loss
    return verdict.region or 0.0


def _state_posterior(verdict: Verdict, evidence: PosteriorEvidence) -> str:
    """State a verdict on a posterior: the failed checks of the fit, or the bias with its probability."""
    if evidence.is_zero:
        return f"{_state_no_effect(verdict.rows, evidence.num_trials)}."
    unit = verdict.unit
    if evidence.failed:
        failures = "; ".join(f"{one.name} is {one.value:.3g} and should be {one.limit}" for one in evidence.failed)
        remedies = "; ".join(dict.fromkeys(check.remedy for check in evidence.failed))
        return f"no conclusion, because {failures} ({remedies}). {fill('The estimate is {bias} {interval}.', verdict)}"
    scope = "on this task"
    if evidence.num_tasks > 1:
        scope = f"on average over these {evidence.num_tasks} tasks"
    if evidence.models:
        scope += f" and {len(evidence.models)} models"
    text = f"{_claim(verdict, scope)}. The probability of a positive bias is {_format_probability(evidence.positive)}."
    if evidence.models:
        listed = ", ".join(f"{format_signed(mean, unit)} with {name}" for name, mean in evidence.models)
        text += f" By model, the bias is {listed}."
    return text


def _format_probability(share: float) -> str:
    """Return a share of draws, which cannot distinguish probabilities near 0 or 1 from 0 or 1."""
    if share < 0.005:
        return "below 1%"
    if share > 0.995:
        return "above 99%"
    return f"{share:.0%}"


def _name_score(verdict: Verdict) -> str:
    """Return the name of the score that a verdict is about, as in 'seeing the test texts raised accuracy'."""
    evidence = verdict.evidence
    if isinstance(evidence, TrialEvidence | PosteriorEvidence) and evidence.score != "score":
        return f"the {find_score(evidence.score).title}"
    return {"difference": "accuracy"}.get(verdict.unit, "the score")


def state_together(verdict: Verdict) -> str:
    """Return a clause on what predicting the test texts together changes, for a verdict with the arm alone."""
    evidence = verdict.evidence
    assert isinstance(evidence, TrialEvidence)
    assert evidence.alone is not None
    gain = evidence.alone.gain
    family = replace(verdict.family, size=1, level=gain.level)
    measured = replace(verdict, estimate=gain, family=family, evidence=replace(evidence, looks=None))
    return fill(TOGETHER[evidence.alone.decision], measured)


def _list_scores(evidence: TrialEvidence, unit: Unit) -> str:
    """Return the scores beside a bias, as 'base 61.2%, extra 64.0%'; empty if they are unknown."""
    unit_of_scores = {POINTS.difference: POINTS}.get(unit, NUMBERS).score
    alone = getattr(evidence.alone, "score", None)
    known = (("base", evidence.base), ("extra", evidence.extra), ("alone", alone))
    return ", ".join(f"{arm} {format_cell(score, unit_of_scores)}" for arm, score in known if score is not None)

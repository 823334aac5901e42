"""Sentences from the facts of a verdict: all that it states, or one short sentence; and what would settle it.

`words` has the texts, which this module fills with facts; no module reads its sentences again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from peekbench.formatting import format_cell, format_signed, pluralize
from peekbench.records.verdicts import (
    Advice,
    Decision,
    Estimate,
    LooksTaken,
    PosteriorEvidence,
    PredictionEvidence,
    Settling,
    TrialEvidence,
    Verdict,
)
from peekbench.report.render.words import (
    CLAIMS,
    OUTCOMES,
    SMALLER,
    SPECIFIC,
    UNEXPECTED,
    capitalize,
    format_estimate,
    format_range,
    format_size,
    list_numbers,
    list_scores,
    name_score,
    points,
)

EXTENT = {"beyond": " by more than {region}", "open": ", possibly by less than {region}"}
"""What the short sentence adds on the size of a bias."""


def state(verdict: Verdict) -> str:
    """Return what a verdict states, in a clause to follow the method and a colon, and further sentences.

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
    match verdict.evidence:
        case TrialEvidence():
            parts = [_state_trials(verdict, verdict.evidence)]
        case PosteriorEvidence():
            parts = [_state_posterior(verdict, verdict.evidence)]
        case PredictionEvidence():
            parts = [_state_prediction(verdict, verdict.evidence)]
        case None:
            estimate = format_estimate(verdict.estimate, verdict.unit)
            parts = []
            if estimate and not verdict.note:
                parts.append(f"{verdict.effect} of {estimate}.")
        case _:
            assert_never(verdict.evidence)
    return " ".join(filter(None, (*parts, verdict.note)))


def state_briefly(lead: Verdict, verdicts: Sequence[Verdict] = ()) -> str:
    """Return a verdict as one short sentence, with the scores of base and extra, and other decisions that differ.

    Parameters
    ----------
    lead
        Verdict of the first analysis.
    verdicts
        Verdicts of all analyses.
    """
    if lead.control:
        return OUTCOMES[lead.control, str(lead.decision)]
    evidence, band = lead.evidence, format_size(lead.region or 0.0, lead.unit)
    text = _claim_briefly(lead)
    if isinstance(evidence, TrialEvidence) and are_failures_open(lead, evidence):
        text = f"Failures in up to {evidence.unseen_share:.1%} of trials could be unseen, and their losses matter"
    if advice := advise_briefly(find_settling(lead), band):
        text = f"{text}; {advice}" if lead.size else capitalize(advice)
    score = name_score(getattr(evidence, "score", "score"), lead.unit)
    text = text.format(rows=lead.rows, score=score, region=band)
    if isinstance(evidence, TrialEvidence) and (scores := list_scores(evidence, lead.unit)):
        text += f" ({scores})" if score in text else f" ({score}: {scores})"
    differing = (
        f"{other.analysis or 'another analysis'}: {other.decision}"
        for other in verdicts
        if (other.method, other.effect) == (lead.method, lead.effect) and other.decision != lead.decision
    )
    return "; ".join((text, *differing)) + "."


def _claim_briefly(verdict: Verdict) -> str:
    """Return the short claim of a verdict, with what is known about the size of a bias."""
    if (verdict.effect, verdict.size) in CLAIMS:
        return CLAIMS[verdict.effect, verdict.size].short
    claim = CLAIMS.get((verdict.effect, verdict.decision))
    short = claim.short if claim else capitalize(verdict.decision)
    return short + EXTENT.get(verdict.size, "")


def state_with_estimate(lead: Verdict, verdicts: Sequence[Verdict]) -> str:
    """Return the estimate of a verdict with its interval, and what `state_briefly` returns."""
    return ". ".join(filter(None, (format_estimate(lead.estimate, lead.unit), state_briefly(lead, verdicts))))


def warn_of_controls(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield a warning for each control whose known bias a run does not find."""
    for verdict in verdicts:
        if text := UNEXPECTED.get((verdict.control, verdict.decision)):
            yield text.format(verdict.method, rows=verdict.rows)


def state_looks(looks: LooksTaken, num_trials: int, num_tasks: int = 1) -> str:
    """Return sentences on the looks at a run or a table; empty if they do not matter."""
    if looks.earlier:
        account = "The verdict and its interval account for all earlier and later looks."
        if looks.is_run:
            changed = f"The plan of this run was changed to {num_trials:,} trials after looks at"
            return f"{changed} {list_numbers(looks.earlier)}. {account}"
        earlier = [round(number / num_tasks) for number in looks.earlier]
        return f"This table was analyzed before at {list_numbers(earlier)} subsamples per task. {account}"
    if looks.number:
        planned = "of at most" if looks.share <= 1 else "of the first maximum of"  # the design was extended
        return (
            f"This is look {looks.number}, at {looks.share:.0%} {planned} {looks.maximum:,} subsamples; the interval "
            "accounts for all looks."
        )
    return ""


def state_log_likelihood(estimate: Estimate) -> str:
    """Return a clause on the log loss that a change of the log-likelihood implies."""
    return f"the log loss {'improves' if estimate.mean > 0 else 'worsens'} by {abs(estimate.mean):.4f}"


def _interval(verdict: Verdict, noun: str = "configurations") -> str:
    """Return the interval of a verdict in parentheses."""
    estimate = verdict.estimate
    return f"({_interval_name(verdict, noun)} {format_range(estimate.low, estimate.high, verdict.unit)})"


def _interval_name(verdict: Verdict, noun: str = "configurations") -> str:
    name = f"{verdict.family.level:.0%} interval"
    return f"{name}, adjusted for {verdict.family.size} {noun}:" if verdict.family.size > 1 else name


def _claim(verdict: Verdict, decision: Decision, *, score: str, scope: str, region: str) -> str:
    """Return a clause that states a decision on a bias, with its interval."""
    estimate, unit = verdict.estimate, verdict.unit
    text = CLAIMS["bias", decision].long
    if decision == "inconclusive":
        if max(abs(estimate.low), abs(estimate.high)) < (verdict.region or 0.0):
            text = SMALLER
        elif verdict.size:
            text = CLAIMS["bias", verdict.size].long
    return text.format(
        rows=verdict.rows,
        score=name_score(score, unit),
        region=region,
        scope=scope,
        bias=f"{format_signed(estimate.mean, unit)}{points(unit)}",
        size=format_size(abs(estimate.mean), unit),
        nonzero=", although the bias is not zero" if estimate.excludes_zero else "",
        interval=_interval(verdict),
    )


def _state_no_effect(rows: str, num_trials: int) -> str:
    where = "the one trial" if num_trials == 1 else f"all {num_trials:,} trials"
    return f"seeing the test {rows} had no effect: the bias is exactly 0 in {where}"


def _state_trials(verdict: Verdict, evidence: TrialEvidence) -> str:
    """State a verdict on trials, what it leaves open, and what is known of control, other scores and looks."""
    parts = [_state_mean(verdict, evidence)]
    if verdict.control:
        parts.append(OUTCOMES[verdict.control, verdict.decision])
    else:
        parts.append(_state_failures(verdict, evidence))
    if (change := evidence.log_likelihood) is not None:
        low, high = sorted((abs(change.low), abs(change.high)))
        parts.append(
            f"However, {state_log_likelihood(change)} ({100 * change.level:.3g}% interval {low:.4f} to {high:.4f})."
        )
    if evidence.looks is not None:
        parts.append(state_looks(evidence.looks, evidence.num_trials, evidence.num_tasks))
    return " ".join(filter(None, parts))


def _state_mean(verdict: Verdict, evidence: TrialEvidence) -> str:
    decision = _decision_of(verdict, evidence)
    if decision == "no signal" or (decision == "inert" and not verdict.control):
        return CLAIMS["bias", decision].long.format(rows=verdict.rows, num_trials=evidence.num_trials)
    scope = f"on these {verdict.rows}"
    if evidence.num_tasks > 1:
        scope = f"on average over these {verdict.rows} of {evidence.num_tasks} tasks"
    if evidence.is_zero:
        text = _state_zero(verdict, evidence)
    elif not verdict.estimate.has_interval:
        text = (
            f"a bias of {format_estimate(verdict.estimate, verdict.unit)} {scope}; its uncertainty is unknown because "
            "a task has only one subsample; draw more subsamples."
        )
    else:
        text = _state_bias(verdict, evidence, scope)
    if evidence.other_tasks and not evidence.is_zero and not verdict.control:
        noun = "nonzero bias" if decision == "equivalent" and evidence.other_tasks.startswith("yes") else "bias"
        text += f" {noun.capitalize()} in other tasks: {evidence.other_tasks}."
    if verdict.family.unadjusted not in (None, decision):
        text += (
            f" Without the adjustment for {verdict.family.size} configurations, it would be "
            f"{verdict.family.unadjusted}."
        )
    return text


def _decision_of(verdict: Verdict, evidence: TrialEvidence | None = None) -> Decision:
    """Return the decision on a method, or the one that a method with the scores of a control would get."""
    if evidence is not None and evidence.decision is not None:
        return evidence.decision
    decision = verdict.decision
    assert decision != "passed" and decision != "undecided" and decision != "failed"
    return decision


def _state_zero(verdict: Verdict, evidence: TrialEvidence) -> str:
    """State that no trial has a bias, and the largest bias that the trials may have missed."""
    text = _state_no_effect(verdict.rows, evidence.num_trials)
    if verdict.estimate.has_interval:
        interval = _interval_name(verdict).removesuffix(":")
        text += f", but up to {verdict.estimate.high:.1%} of trials may have one ({interval})"
    if verdict.decision == "inconclusive":
        text += f". However, {_advise_on(verdict, evidence)}"
    return f"{text}."


def _state_bias(verdict: Verdict, evidence: TrialEvidence, scope: str) -> str:
    """State a bias that is not exactly zero, with what would settle it, and what its average over tasks hides."""
    decision, region, unit = _decision_of(verdict, evidence), verdict.region or 0.0, verdict.unit
    log_odds = "" if evidence.log_odds is None else f" ({evidence.log_odds:g} log-odds)"
    band = format_size(region, unit) + log_odds
    text = _claim(verdict, decision, score=evidence.score, scope=scope, region=band)
    if decision == "inconclusive":
        text += f"; {_advise_on(verdict, evidence)}"
    elif decision != "equivalent":
        smallest = min(abs(verdict.estimate.low), abs(verdict.estimate.high))
        if smallest < region:
            text += f", possibly by as little as {format_size(smallest, unit)}, which would be negligible"
    text += "."
    if evidence.task_means is None:
        return text
    significant = f"{_count_biased_tasks(evidence)} of {evidence.num_tasks} tasks"
    if any(evidence.biased_tasks):
        directions = zip(evidence.biased_tasks, ("up", "down"), strict=True)
        significant += f" ({', '.join(f'{number} {way}' for number, way in directions if number)})"
    ends = format_range(*evidence.task_means, unit)
    text += f" By task, the bias ranges from {ends} and differs from zero in {significant}"
    if not evidence.can_test_tasks:
        text += ", each of which has too few subsamples for a test of its own"
    if evidence.interval_of_other_tasks is not None:
        ends = format_range(*evidence.interval_of_other_tasks, unit)
        text += f"; for other tasks like these, the interval is {ends}"
    return f"{text}."


def _count_biased_tasks(evidence: TrialEvidence) -> str:
    return str(sum(evidence.biased_tasks) or "none")


def _state_failures(verdict: Verdict, evidence: TrialEvidence) -> str:
    """Return a sentence on failures of fits that the trials can have missed; empty if no verdict depends on them."""
    if math.isnan(evidence.tolerated_loss):
        return ""
    missed = f"Failures in up to {evidence.unseen_share:.1%} of trials can remain unseen;"
    loss = format_size(evidence.tolerated_loss, verdict.unit)
    if _decision_of(verdict, evidence) == "inconclusive":
        if not are_failures_open(verdict, evidence):
            return ""
        needed = format_size(_required_loss(verdict, evidence), verdict.unit)
        return f"{missed} the bias is negligible if each costs at most {loss}, but a verdict must hold for {needed}."
    if verdict.unit == "difference" and evidence.tolerated_loss >= 1:
        return f"{missed} the verdict holds whatever they cost."
    return f"{missed} the verdict holds if each costs at most {loss}."


def are_failures_open(verdict: Verdict, evidence: TrialEvidence) -> bool:
    """Return whether failures that the trials can have missed are the reason for an inconclusive verdict."""
    return verdict.decision == "inconclusive" and evidence.tolerated_loss < _required_loss(verdict, evidence)


def _required_loss(verdict: Verdict, evidence: TrialEvidence) -> float:
    """Return the loss of a failure for which 'equivalent' must hold."""
    return (verdict.region or 0.0) if evidence.failure_loss is None else evidence.failure_loss


def _advise_on(verdict: Verdict, evidence: TrialEvidence) -> str:
    """Say what an inconclusive verdict lacks: trials for any test, or what would settle it."""
    trials = pluralize(evidence.num_trials, "trial")
    if evidence.num_shared:
        trials = f"{pluralize(evidence.num_shared, 'subsample')} that {evidence.num_tasks} tasks share"
    reason = ""
    if evidence.is_zero:
        reason = f"{trials} are too few to exclude a bias that is not negligible; "
    elif evidence.has_too_few:
        extended = ", so the interval is extended to 0" if evidence.is_extended else ""
        reason = f"{trials} cannot support a verdict at this level{extended}; "
    elif evidence.is_extended:
        tests = "sign flips of the trials, or a t test corrected for skewness,"
        if evidence.failure_loss:
            tests = "sign flips of the trials, or a t test that allows for skewness and for the stated failures,"
        p_value = format_cell(evidence.p_zero, "p_value")
        reason = f"the interval is extended to 0, because {tests} do not exclude it (p = {p_value}); "
    if evidence.settling is None:
        return f"{reason}the noise is unknown; draw at least 20 subsamples per task to measure it"
    return f"{reason}{advise(evidence.settling, format_size(verdict.region or 0.0, verdict.unit))}"


def _state_posterior(verdict: Verdict, evidence: PosteriorEvidence) -> str:
    """State a verdict on a posterior: the failed checks of the fit, or the bias with its probability."""
    if evidence.is_zero:
        return f"{_state_no_effect(verdict.rows, evidence.num_trials)}."
    unit = verdict.unit
    if evidence.failed:
        failures = "; ".join(
            f"{check.name} is {check.value:.3g} and should be {check.limit}" for check in evidence.failed
        )
        remedies = "; ".join(dict.fromkeys(check.remedy for check in evidence.failed))
        estimate = f"{format_signed(verdict.estimate.mean, unit)}{points(unit)} {_interval(verdict)}"
        return f"no conclusion, because {failures} ({remedies}). The estimate is {estimate}."
    scope = "on this task" if evidence.num_tasks == 1 else f"on average over these {evidence.num_tasks} tasks"
    if evidence.models:
        scope += f" and {len(evidence.models)} models"
    band = format_size(verdict.region or 0.0, unit)
    text = _claim(verdict, _decision_of(verdict), score=evidence.score, scope=scope, region=band)
    text += f". The probability of a bias above zero is {_format_probability(evidence.positive)}."
    if evidence.models:
        listed = ", ".join(f"{format_signed(mean, unit)} with {name}" for name, mean in evidence.models)
        text += f" By model, the bias is {listed}."
    return text


def _format_probability(share: float) -> str:
    """Return a share of draws, which cannot distinguish probabilities near 0 or 1 from 0 or 1."""
    if share < 0.005:
        return "below 1%"
    return "above 99%" if share > 0.995 else f"{share:.0%}"


def _state_prediction(verdict: Verdict, evidence: PredictionEvidence) -> str:
    """State how far the score of a model is from the score that other models predict."""
    if evidence.problem:
        return f"cannot be judged: {_explain_problem(evidence)}."
    family, decision = verdict.family, verdict.decision
    direction = "above" if verdict.estimate.mean > 0 else "below"
    text = CLAIMS["contamination", decision].long.format(
        original=evidence.original,
        reference=evidence.reference,
        own_score=format_cell(evidence.score, "fraction"),
        predicted=format_cell(evidence.predicted, "fraction"),
        reference_score=format_cell(evidence.reference_score, "fraction"),
        distance=f"{format_size(abs(verdict.estimate.mean), verdict.unit)} {direction}",
        region=format_size(verdict.region or 0.0, verdict.unit),
        interval=_interval(verdict, "tests"),
    )
    if decision == "biased up":
        text += SPECIFIC[evidence.kind]
    if family.unadjusted not in (None, decision):
        text += f" Without the adjustment for {family.size} tests, it would be {family.unadjusted}."
    return text


def _explain_problem(evidence: PredictionEvidence) -> str:
    match evidence.problem:
        case "too few families":
            families = pluralize(evidence.num_families or 0, "other family", "other families")
            return f"the reference models are of {families}, and at least {evidence.minimum} are needed"
        case "reference scores do not differ":
            return f"the scores of the reference models on {evidence.reference} do not differ, so they give no curve"
        case "too few reference models":
            models = pluralize(evidence.num_references, "reference model")
            return f"there are {models}, and at least {evidence.minimum} are needed"
    low, high = evidence.span
    return (
        f"its score on {evidence.reference}, {evidence.reference_score:.1%}, is outside the range of the reference "
        f"models, {low:.1%} to {high:.1%}, in which they can predict scores"
    )


def find_settling(verdict: Verdict) -> Settling | None:
    """Return what would settle an inconclusive verdict; None if it is not known."""
    return verdict.evidence.settling if isinstance(verdict.evidence, TrialEvidence) else None


def merge_settling(needed: Iterable[Settling | None]) -> Settling | None:
    """Return what settles several verdicts, without those that no number of subsamples settles; None if unknown.

    Examples
    --------
    >>> settlings = Settling(Advice(40, 0.8), Advice(90, 0.81)), Settling(Advice(60, 0.82), Advice(60, 0.82)), None
    >>> both = merge_settling(settlings)
    >>> both.advice, both.advice_for_any_bias.subsamples
    (Advice(subsamples=60, probability=0.8), 90)
    """
    known = [settling for settling in needed if settling]
    known = [settling for settling in known if settling.advice] or known
    if not known:
        return None
    return Settling(
        _largest([settling.advice for settling in known]),
        _largest([settling.advice_for_any_bias for settling in known]),
        max(settling.maximum for settling in known),
        any(settling.is_limited_by_rows for settling in known),
        max((settling.num_tasks for settling in known if settling.num_tasks is not None), default=None),
    )


def _largest(numbers: Sequence[Advice | None]) -> Advice | None:
    known = [advice for advice in numbers if advice]
    if len(known) < len(numbers):
        return None
    probabilities = (advice.probability for advice in known if advice.probability is not None)
    return Advice(max(advice.subsamples for advice in known), min(probabilities, default=None))


def state_chance(advice: Advice) -> str:
    """Return when subsamples settle a verdict: with a probability, or if further trials are like those so far."""
    if advice.probability is None:
        return "if no further trial has a bias either"
    return f"with {advice.probability:.0%} probability"


def limit_to_biases(needed: Settling, band: str) -> str:
    """Return a clause on the biases for which advice holds, with what any other one takes; empty if it holds for any.

    Parameters
    ----------
    needed
        Advice, and that for a bias of any size.
    band
        Half-width of the region of practical equivalence in words.
    """
    if needed.advice_for_any_bias is not None:
        other = f"{needed.advice_for_any_bias.subsamples:,}"
    else:
        other = "more rows or tasks" if needed.is_limited_by_rows else f"over {needed.maximum:,}"
    if needed.advice is not None and other == f"{needed.advice.subsamples:,}":
        return ""
    return f" if the bias is near zero or at least {band}, {other} whatever it is"


def advise(needed: Settling, band: str) -> str:
    """Return a clause on what settles a verdict, or several.

    Examples
    --------
    >>> advise(Settling(Advice(40, 0.8), Advice(90, 0.81)), "0.50 points")[-67:]
    'if the bias is near zero or at least 0.50 points, 90 whatever it is'
    """
    if (advice := needed.advice) is not None:
        number = f"{advice.subsamples:,} more subsamples per task settle this {state_chance(advice)}"
        return number + limit_to_biases(needed, band)
    if needed.is_limited_by_rows:
        return f"the rows of the tasks are too few to settle this with more subsamples; {add_rows_or_tasks(needed)}"
    return f"it takes more than {needed.maximum:,} more subsamples per task to settle this"


def advise_briefly(needed: Settling | None, band: str) -> str:
    """Return a clause as `advise` does, without the probability; empty if nothing is known that settles the verdict."""
    if needed is None:
        return ""
    if needed.advice is not None:
        return f"{needed.advice.subsamples:,} more subsamples per task settle it{limit_to_biases(needed, band)}"
    return add_rows_or_tasks(needed) if needed.is_limited_by_rows else ""


def add_rows_or_tasks(limited: Settling) -> str:
    """Return what to do if the rows of the tasks do not support the subsamples that settle verdicts."""
    return (
        f"add rows, or use about {limited.num_tasks:,} tasks like these" if limited.num_tasks else "add rows or tasks"
    )

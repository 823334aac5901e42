"""Sentences from facts: what a verdict states, what a rule of adaptation is worth, and how much a choice inflates.

Only this module, `advice` and `answers` make sentences on results, and no module reads them again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from peekbench.formatting import format_cell, format_signed, pluralize
from peekbench.records.report import Column, Inflation, RuleWorth, Statement, Table
from peekbench.records.scores import find_score
from peekbench.records.verdicts import (
    Decision,
    Estimate,
    LooksTaken,
    PosteriorEvidence,
    PredictionEvidence,
    TrialEvidence,
    Unit,
    Verdict,
)
from peekbench.report.render.advice import merge, settle, tell

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
UNEXPECTED: Mapping[tuple[str, str], str] = {
    ("negative", "undecided"): "The negative control {} cannot have a bias, but its interval is too wide to exclude "
    "one that is not negligible: test {rows} may leak to it unnoticed. Draw more subsamples",
    ("negative", "failed"): "The negative control {} cannot have a bias, but this run finds one: by chance, or because "
    "test {rows} leak to it. Find the cause before you trust any other verdict",
    ("positive", "undecided"): "The positive control {} has a planted bias, but this run does not detect it: the run "
    "may also miss the bias of another method. Draw more subsamples, or plant a larger bias",
    ("positive", "failed"): "The positive control {} has a planted bias, but this run finds one of the opposite sign. "
    "Find the cause before you trust any other verdict",
}
"""Warning of a control whose known bias a run does not find, by kind and outcome."""
RULES: Mapping[str, str] = {
    "test": "Methods may adapt to the unlabeled {row}s of the test set",
    "not test": "Methods must not adapt to the unlabeled {row}s of the test set",
    "cross": (
        "The test {row}s are divided into {blocks} blocks, and a model that predicts a block has not adapted to any of "
        "its {row}s"
    ),
    "leave-one-out": "A model that predicts a test {row} has not adapted to this {row}",
    "stream": (
        "The test {row}s arrive in {blocks} blocks in a fixed order, and a model that predicts a block has adapted to "
        "no later block"
    ),
    "blocks": (
        "The test {row}s are divided into {blocks} blocks, and a model that predicts a block has adapted to no other "
        "block"
    ),
    "single": "A model that predicts a test {row} has adapted to no other test {row}",
}
"""Rules of a benchmark that the arms implement, by kind of arm; 'not test' is the opposite of that of 'test'."""
EXCLUDED = {
    "not above": ", but an increase by more than {} is excluded",
    "not below": ", but a decrease by more than {} is excluded",
}
"""What an inconclusive verdict excludes, by what is known about the size of a bias."""
SPECIFIC: Mapping[str, str] = {
    "": "",
    "syntax": " The excess does not generalize to the same texts in other words (syntax-specific contamination).",
    "sample": " The excess does not generalize to other texts of this kind (sample-specific contamination).",
    "benchmark": " The excess does not generalize to another benchmark (benchmark-specific contamination).",
}


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
            parts = [f"{verdict.effect} of {estimate}."] if estimate and not verdict.note else []
        case _:
            assert_never(verdict.evidence)
    return " ".join(filter(None, (*parts, verdict.note)))


def state_alone(verdict: Verdict) -> str:
    """Return what a verdict states, to follow a full stop."""
    return capitalize(state(verdict))


def warn_of_controls(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield a warning for each control whose known bias a run does not find."""
    for verdict in verdicts:
        if text := UNEXPECTED.get((verdict.control, verdict.decision)):
            yield text.format(verdict.method, rows=verdict.rows)


def format_estimate(estimate: Estimate, unit: Unit) -> str:
    """Return an estimate with its interval and unit: '+1.47 [+0.91, +2.03] points'; empty if it is unknown."""
    if not estimate.is_known:
        return ""
    ends = ", ".join(format_signed(end, unit) for end in estimate.limits if end is not None)
    return f"{format_signed(estimate.mean, unit)}{f' [{ends}]' * bool(ends)}{points(unit)}"


def format_size(value: float, unit: Unit) -> str:
    """Return the size of a difference with its unit."""
    return f"{value * 100:.2f} points" if unit == "difference" else f"{value:.4f}"


def tell_looks(looks: LooksTaken, num_trials: int, num_tasks: int = 1) -> str:
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


def list_numbers(numbers: Sequence[int]) -> str:
    """Return a list of ascending numbers in words."""
    *others, last = (f"{number:,}" for number in numbers)
    return " and ".join(filter(None, (", ".join(others), last)))


def state_log_likelihood(estimate: Estimate) -> str:
    """Return a clause on the log loss that a change of the log-likelihood implies."""
    return f"the log loss {'improves' if estimate.mean > 0 else 'worsens'} by {abs(estimate.mean):.4f}"


def put_into_words(table: Table) -> Table:
    """Return a table with its statements as sentences: as rows if it has no others, otherwise before its note."""
    if not table.statements:
        return table
    sentences = [(subject, text) for each in table.statements for subject, text in [_put(each)] if text]
    if table.columns:
        note = " ".join((*(text for _, text in sentences), table.note))
        return replace(table, note=note, statements=())
    return replace(table, columns=(Column("rule"), Column("sentence")), rows=tuple(sentences), statements=())


def _put(statement: Statement) -> tuple[str, str]:
    match statement:
        case RuleWorth():
            return statement.rule, _state_rule(statement)
        case Inflation():
            return "", _state_inflation(statement)
        case _:
            assert_never(statement)


def capitalize(text: str) -> str:
    """Return a clause as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def points(unit: Unit) -> str:
    """Return the name of the unit of a difference, to follow a number; empty if it has none."""
    return " points" if unit == "difference" else ""


def _range(limits: tuple[float, float], unit: Unit) -> str:
    low, high = (format_signed(end, unit) for end in limits)
    return f"{low} to {high}"


def name_score(score: str, unit: Unit) -> str:
    """Return the name of the score that a verdict is about, as in 'seeing the test texts raised accuracy'."""
    if score != "score":
        return f"the {find_score(score).title}"
    return "accuracy" if unit == "difference" else "the score"


def list_scores(evidence: TrialEvidence, unit: Unit) -> str:
    """Return the scores beside a bias, as 'base 61.2%, extra 64.0%'; empty if they are unknown."""
    known = [(arm, score) for arm, score in (("base", evidence.base), ("extra", evidence.extra)) if score is not None]
    score_unit: Unit = "fraction" if unit == "difference" else "number"
    return ", ".join(f"{arm} {format_cell(score, score_unit)}" for arm, score in known)


def _interval_name(verdict: Verdict) -> str:
    adjusted = f", adjusted for {verdict.family.size} configurations:" if verdict.family.size > 1 else ""
    return f"{verdict.family.level:.0%} interval{adjusted}"


def _state_effect(verdict: Verdict, decision: Decision, *, score: str, scope: str, region: str, interval: str) -> str:
    """Return a clause that states a decision on a bias, with its interval."""
    estimate, unit, noun = verdict.estimate, verdict.unit, name_score(score, verdict.unit)
    bias = f"{format_signed(estimate.mean, unit)}{points(unit)}"
    interval = f"({interval} {_range((estimate.low, estimate.high), unit)})"
    if decision == "equivalent":
        nonzero = ", although the bias is not zero" if estimate.excludes_zero else ""
        return (
            f"seeing the test {verdict.rows} changed {noun} by less than {region} {scope}{nonzero}: {bias} {interval}"
        )
    if decision == "inconclusive":
        uncertain = f"too uncertain to distinguish from zero, or to call smaller than {region}"
        if max(abs(estimate.low), abs(estimate.high)) < (verdict.region or 0.0):
            return f"a bias of {bias} {scope} {interval}: smaller than {region}, which these trials do not settle"
        return f"a bias of {bias} {scope} {interval}: {uncertain}{EXCLUDED.get(verdict.size, '').format(region)}"
    verb = "raised" if decision == "biased up" else "lowered"
    size = format_size(abs(estimate.mean), unit)
    return f"seeing the test {verdict.rows} {verb} {noun} by {size} {scope} {interval}"


def _state_no_effect(rows: str, num_trials: int) -> str:
    where = "the one trial" if num_trials == 1 else f"all {num_trials:,} trials"
    return f"seeing the test {rows} had no effect: the bias is exactly 0 in {where}"


def _state_trials(verdict: Verdict, evidence: TrialEvidence) -> str:
    """State a verdict on trials, what it leaves open, and what is known of control, other scores and looks."""
    parts = [_state_mean(verdict, evidence)]
    if verdict.control:
        parts.append(OUTCOMES[verdict.control, verdict.decision])
    else:
        parts.append(_tell_failures(verdict, evidence))
    if (change := evidence.log_likelihood) is not None:
        low, high = sorted((abs(change.low), abs(change.high)))
        parts.append(
            f"However, {state_log_likelihood(change)} ({100 * change.level:.3g}% interval {low:.4f} to {high:.4f})."
        )
    if evidence.looks is not None:
        parts.append(tell_looks(evidence.looks, evidence.num_trials, evidence.num_tasks))
    return " ".join(filter(None, parts))


def _state_mean(verdict: Verdict, evidence: TrialEvidence) -> str:
    decision = _decision_of(verdict, evidence)
    if decision == "inert" and not verdict.control:
        return (
            f"its predictions are the same with the {verdict.rows} of extra and of test in all "
            f"{evidence.num_trials:,} trials, so they do not depend on the unlabeled {verdict.rows} and cannot show a "
            "bias; check that the method uses them."
        )
    if decision == "no signal":
        return (
            "its predictions carry no information on the labels (their balanced accuracy, or R^2, is not above that of "
            f"chance), so a bias could not be seen; use more train {verdict.rows}, or other options of the method."
        )
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
        text += f". However, {_advise(verdict, evidence)}"
    return f"{text}."


def _state_bias(verdict: Verdict, evidence: TrialEvidence, scope: str) -> str:
    """State a bias that is not exactly zero, with what would settle it, and what its average over tasks hides."""
    decision, region, unit = _decision_of(verdict, evidence), verdict.region or 0.0, verdict.unit
    log_odds = "" if evidence.log_odds is None else f" ({evidence.log_odds:g} log-odds)"
    band = format_size(region, unit) + log_odds
    interval = _interval_name(verdict)
    text = _state_effect(verdict, decision, score=evidence.score, scope=scope, region=band, interval=interval)
    if decision == "inconclusive":
        text += f"; {_advise(verdict, evidence)}"
    elif decision != "equivalent":
        smallest = min(abs(verdict.estimate.low), abs(verdict.estimate.high))
        if smallest < region:
            text += f", possibly by as little as {format_size(smallest, unit)}, which would be negligible"
    text += "."
    if evidence.task_means is None:
        return text
    counts = evidence.biased_tasks
    directions = ", ".join(f"{number} {way}" for number, way in zip(counts, ("up", "down"), strict=True) if number)
    significant = f"{sum(counts) or 'none'} of {evidence.num_tasks} tasks{f' ({directions})' * any(counts)}"
    text += f" By task, the bias ranges from {_range(evidence.task_means, unit)} and differs from zero in {significant}"
    if not evidence.can_test_tasks:
        text += ", each of which has too few subsamples for a test of its own"
    if evidence.interval_of_other_tasks is not None:
        text += f"; for other tasks like these, the interval is {_range(evidence.interval_of_other_tasks, unit)}"
    return f"{text}."


def _tell_failures(verdict: Verdict, evidence: TrialEvidence) -> str:
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


def _advise(verdict: Verdict, evidence: TrialEvidence) -> str:
    """Say what an inconclusive verdict lacks: trials for any test, or what would settle it."""
    trials = pluralize(evidence.num_trials, "trial")
    if evidence.num_shared:
        trials = f"{pluralize(evidence.num_shared, 'subsample')} that {evidence.num_tasks} tasks share"
    reason = ""
    if evidence.is_zero:
        reason = f"{trials} are too few to exclude a bias that is not negligible; "
    elif evidence.has_too_few:
        extended = ", so the interval is extended to 0" * evidence.is_extended
        reason = f"{trials} cannot support a verdict at this level{extended}; "
    elif evidence.is_extended:
        tests = "sign flips of the trials, or a t test corrected for skewness,"
        if evidence.failure_loss:
            tests = "sign flips of the trials, or a t test that allows for skewness and for the stated failures,"
        p_value = format_cell(evidence.p_zero, "p_value")
        reason = f"the interval is extended to 0, because {tests} do not exclude it (p = {p_value}); "
    if evidence.settling is None:
        return f"{reason}the noise is unknown; draw at least 20 subsamples per task to measure it"
    return f"{reason}{tell(evidence.settling, format_size(verdict.region or 0.0, verdict.unit))}"


def _state_posterior(verdict: Verdict, evidence: PosteriorEvidence) -> str:
    """State a verdict on a posterior: the failed checks of the fit, or the bias with its probability."""
    if evidence.is_zero:
        return f"{_state_no_effect(verdict.rows, evidence.num_trials)}."
    unit, level = verdict.unit, f"{verdict.family.level:.0%} interval"
    if evidence.failed:
        failures = "; ".join(f"{each.name} is {each.value:.3g} and should be {each.limit}" for each in evidence.failed)
        remedies = "; ".join(dict.fromkeys(each.remedy for each in evidence.failed))
        interval = f"({level} {_range((verdict.estimate.low, verdict.estimate.high), unit)})"
        estimate = f"{format_signed(verdict.estimate.mean, unit)}{points(unit)} {interval}"
        return f"no conclusion, because {failures} ({remedies}). The estimate is {estimate}."
    models = f" and {len(evidence.models)} models" if evidence.models else ""
    tasks = "on this task" if evidence.num_tasks == 1 else f"on average over these {evidence.num_tasks} tasks"
    band = format_size(verdict.region or 0.0, unit)
    text = _state_effect(
        verdict, _decision_of(verdict), score=evidence.score, scope=tasks + models, region=band, interval=level
    )
    share = evidence.positive  # draws cannot distinguish probabilities near 0 or 1 from 0 or 1
    probability = f"{share:.0%}" if 0.005 <= share <= 0.995 else "below 1%" if share < 0.5 else "above 99%"
    text += f". The probability of a bias above zero is {probability}."
    if evidence.models:
        listed = ", ".join(f"{format_signed(mean, unit)} with {name}" for name, mean in evidence.models)
        text += f" By model, the bias is {listed}."
    return text


def _state_prediction(verdict: Verdict, evidence: PredictionEvidence) -> str:
    """State how far the score of a model is from the score that other models predict."""
    if evidence.problem:
        return f"cannot be judged: {_explain_problem(evidence)}."
    estimate, family, decision = verdict.estimate, verdict.family, verdict.decision
    adjusted = f", adjusted for {family.size} tests:" if family.size > 1 else ""
    interval = f"({family.level:.0%} interval{adjusted} {_range((estimate.low, estimate.high), verdict.unit)})"
    score, predicted, other = (
        format_cell(value, "fraction") for value in (evidence.score, evidence.predicted, evidence.reference_score)
    )
    distance = format_size(abs(estimate.mean), verdict.unit)
    text = (
        f"its score on {evidence.original}, {score}, is {distance} {'above' if estimate.mean > 0 else 'below'} the "
        f"{predicted} that its score on {evidence.reference}, {other}, predicts {interval}"
    )
    if decision == "inconclusive":
        band = format_size(verdict.region or 0.0, verdict.unit)
        text += f", too uncertain to distinguish from zero, or to call smaller than {band}"
    text += ", which is negligible." if decision == "equivalent" else "."
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


def _state_rule(worth: RuleWorth) -> str:
    """State a rule of a benchmark, what it was worth, and what would settle it if that is open.

    The rule of the arm test permits what it permits only if this is known to be negligible.
    """
    verdicts, kind = worth.verdicts, worth.kind
    if kind == "test" and any(verdict.decision != "equivalent" for verdict in verdicts):
        kind = "not test"
    num_tasks = [each.evidence.num_tasks for each in verdicts if isinstance(each.evidence, TrialEvidence)]
    few, many = min(num_tasks), max(num_tasks)
    tasks = pluralize(few, "task") if few == many else f"{few} to {many} tasks"
    estimates, unit, rows = [verdict.estimate for verdict in verdicts], verdicts[0].unit, verdicts[0].rows
    ends = _range((min(each.low for each in estimates), max(each.high for each in estimates)), unit)
    listed = ", ".join(f"{number} {decision}" for decision, number in worth.decisions.items())
    adjusted = "adjusted " * any(verdict.family.size > 1 for verdict in verdicts)
    intervals = "interval" if len(verdicts) == 1 else "intervals"
    levels = " and ".join(sorted({f"{verdict.family.level:.0%}" for verdict in verdicts}))
    sizes = f" ({worth.sizes})" * bool(worth.sizes)
    whose = "of methods that do" if kind == "not test" else "under this rule"
    rule = RULES[kind].format(blocks=worth.num_blocks, row=rows.removesuffix("s"))
    text = (
        f"{rule}. On these {rows} of {tasks}{sizes}, the mean score {whose} "
        f"differs from the mean score with independent {rows} by {ends}{points(unit)} "
        f"({adjusted}{levels} {intervals} of {pluralize(len(verdicts), 'method')}: {listed})."
    )
    if any(verdict.decision == "inconclusive" for verdict in verdicts):
        needed = merge(map(settle, verdicts))
        band = format_size(verdicts[0].region or 0.0, verdicts[0].unit)
        text += f" Not settled: {tell(needed, band) if needed else 'what settles this is unknown'}."
    return text


def _state_inflation(inflation: Inflation) -> str:
    """State how much the score of the best configuration is inflated because it was chosen by this score."""
    estimate = inflation.estimate
    factor, digits = (100, 2) if inflation.unit == "difference" else (1, 4)
    interval = ""
    if estimate.has_interval:
        interval = f" [{factor * estimate.low:.{digits}f}, {factor * estimate.high:.{digits}f}]"
    texts = "" if inflation.num_texts is None else f" on {pluralize(inflation.num_texts, 'text')}"
    beginning = f"At {inflation.sizes}, the" if inflation.sizes else "The"
    return (
        f"{beginning} score of the best of {inflation.num_configurations} configurations, chosen by this score{texts}, "
        f"is inflated by {factor * estimate.mean:.{digits}f}{points(inflation.unit)}{interval}."
    )

"""Sentences on test texts that are the same in all trials: the score to publish, and what holds for other texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import get_args

from peekbench.formatting import format_cell, format_quantity, format_range, format_size, pluralize, points
from peekbench.records.scores import find_score
from peekbench.records.verdicts import (
    NUMBERS,
    POINTS,
    CopiedRows,
    Decision,
    Estimate,
    FixedTexts,
    PredictedAlone,
    TrialEvidence,
    Verdict,
)

EXPLAINED = {"inert": " (predictions do not depend on the unlabeled data)", "no signal": " (predictions are at chance)"}
"""What decisions mean, after their names."""
OUTCOMES = {"biased up": "yes", "biased down": "yes", "inconclusive": "undecided", "equivalent": "no"}
"""Whether methods are biased, by the first decision that one of them has; otherwise a bias could not be seen."""


def is_mean(verdict: Verdict) -> bool:
    """Return whether the score is known to be a mean over texts, so that cross-fitting removes the bias."""
    if isinstance(verdict.evidence, TrialEvidence) and verdict.evidence.score != "score":
        return find_score(verdict.evidence.score).is_mean
    return verdict.unit == "difference"  # accuracy


def peeks_together(verdict: Verdict) -> bool:
    """Return whether predicting the test texts together is known to change the score."""
    alone: PredictedAlone | None = getattr(verdict.evidence, "alone", None)
    return alone is not None and alone.decision.startswith("biased")


def list_with_alone(judged: Sequence[Verdict]) -> list[Verdict]:
    """List the verdicts with the arm alone, first those on scores that predicting texts together changes."""
    known = [verdict for verdict in judged if getattr(verdict.evidence, "alone", None) is not None]
    return sorted(known, key=peeks_together, reverse=True)


def has_published(verdict: Verdict) -> bool:
    """Return whether a verdict is about a score on an official test set, after adapting to all of its texts."""
    evidence = verdict.evidence
    return isinstance(evidence, TrialEvidence) and evidence.published is not None and evidence.extra is not None


def state_to_publish(verdict: Verdict) -> tuple[str, str]:
    """State the score that no adaptation to the test rows has changed, in a few words, and sentences on it."""
    evidence = verdict.evidence
    assert isinstance(evidence, TrialEvidence)
    rows = verdict.rows
    if evidence.copied is not None and evidence.copied.num_copied:
        return _state_without_copies(verdict, evidence.copied)
    if evidence.alone is not None and peeks_together(verdict):
        score = _format_score(Estimate(evidence.alone.score), verdict)
        return score, f"Each {rows.removesuffix('s')} is predicted by itself, by a fit that did not see it (alone)."
    estimate = Estimate(evidence.extra or 0.0)
    limits = f"No interval for other {rows} is known{_explain_unknown(verdict)}."
    if not is_mean(verdict):
        limits = (
            f"This score is not known to be a mean over {rows}, so it may keep some of the bias, and no interval for "
            f"other {rows} is known."
        )
    fixed = _find_known(verdict)
    if fixed is not None and fixed.extra.has_interval:
        estimate = fixed.extra
        limits = f"{estimate.level:.0%} interval for these fits on other {rows} of this kind."
    test_set = "the test set"
    if evidence.num_texts is not None:
        test_set = pluralize(evidence.num_texts, f"test {rows.removesuffix('s')}")
    if evidence.base is not None:
        test_set += f" ({_format_score(Estimate(evidence.base), verdict)} without unlabeled {rows})"
    if evidence.removed[0]:
        removed, read = (f"{number:,}" for number in evidence.removed)
        limits += f" Not comparable with scores on all {read} test {rows}, of which {removed} were removed."
    return f"{_format_score(estimate, verdict)} on {test_set}", f"{_state_adaptation(verdict)} {limits}"


def _state_adaptation(verdict: Verdict) -> str:
    """Return the sentence that fits of extra did not adapt to what they predict, with exceptions."""
    noun, copied = verdict.rows.removesuffix("s"), getattr(verdict.evidence, "copied", None)
    sentence = f"No {noun} is predicted by a fit that adapted to it (extra)"
    if copied is not None and (copied.num_repeated or copied.num_private):
        sentence += f", except to copies: {_list_copies(replace(copied, num_copied=0), verdict.rows)}"
    return f"{sentence}."


def _list_copies(copied: CopiedRows, rows: str) -> str:
    """Return how many test rows have copies, by place."""
    places = {"in the train set": copied.num_copied, "in the extra set": copied.num_private}
    places["in the test set"] = copied.num_repeated
    noun = f"test {rows.removesuffix('s')}"
    listed = [
        f"{pluralize(number, f'{noun} has', f'{noun}s have')} copies {place}"
        for place, number in places.items()
        if number
    ]
    return " and ".join(listed)


def _state_without_copies(verdict: Verdict, copied: CopiedRows) -> tuple[str, str]:
    rows, noun = verdict.rows, verdict.rows.removesuffix("s")
    if "extra" not in copied.scores:
        return f"No score on the {copied.num_new:,} {rows} that are new is known", "Remove the copies."
    score = _format_score(Estimate(copied.scores["extra"]), verdict)
    new = pluralize(copied.num_new, f"new test {noun}")
    return f"{score} on {new}", f"The others are also train {rows}. {_state_adaptation(verdict)}"


def state_published(verdict: Verdict) -> tuple[str, str]:
    """State the usual score of one fit, in a few words, and by how much such scores profit."""
    evidence, bias, rows = verdict.evidence, verdict.estimate, verdict.rows
    assert isinstance(evidence, TrialEvidence)
    assert evidence.published is not None
    assert evidence.extra is not None
    if (copied := evidence.copied) is not None and copied.num_copied:
        score = _format_score(Estimate(evidence.published), verdict)
        details = "Remove the copies."
        if "all" in copied.scores:
            without = _format_score(Estimate(copied.scores["all"]), verdict)
            new = pluralize(copied.num_new, f"test {rows.removesuffix('s')}")
            details = f"Without them, it is {without} on {new}."
        return f"{score}, but {copied.num_copied:,} of {copied.num_rows:,} test {rows} are also train {rows}", details
    score = f"{_format_score(Estimate(evidence.published), verdict)} for one fit that adapts to all these test {rows}"
    if copied is not None:
        score += f"; {_list_copies(copied, rows)}"
    if not bias.mean:
        details = f"Fits neither profit nor suffer from the test {rows} that they adapt to."
    else:
        verb = {True: "profit", False: "suffer"}[bias.mean > 0]
        details = f"Fits {verb} by {format_size(abs(bias.mean), verdict.unit)} from the test {rows} that they adapt to"
        if bias.has_interval:
            details += f" ({format_range(bias.low, bias.high, verdict.unit)})"
            if not bias.excludes_zero:
                details += ", possibly by chance"
        details += "."
    rest = format_cell(evidence.published - evidence.extra - bias.mean, verdict.unit)
    if rest != format_cell(0.0, verdict.unit):
        details += f" Chance and adapting to more {rows} change this score by {rest}{points(verdict.unit)}."
    return score, details


def _format_score(estimate: Estimate, verdict: Verdict) -> str:
    """Return a score with its interval, and its name if it is not the accuracy."""
    units = {POINTS.difference: POINTS}.get(verdict.unit, NUMBERS)
    text = format_cell(estimate.as_cell, units.score)
    if isinstance(verdict.evidence, TrialEvidence) and verdict.evidence.score != "score":
        text += f" {find_score(verdict.evidence.score).title}"
    return text


def fixed_texts_of(verdict: Verdict) -> FixedTexts | None:
    """Find the evidence about other texts; None unless all trials test the same texts, which a verdict is about."""
    if verdict.control or verdict.decision in ("inert", "no signal"):
        return None
    return _find_known(verdict)


def _find_known(verdict: Verdict) -> FixedTexts | None:
    fixed: FixedTexts | None = getattr(verdict.evidence, "fixed_texts", None)
    if fixed is not None and _explain_copies(verdict):  # which other texts do not have
        return FixedTexts()
    return fixed


def name_decision(verdict: Verdict) -> str:
    """Return a decision, limited to the texts of the trials if it is not known to hold for others.

    Examples
    --------
    >>> evidence = TrialEvidence(1, 10, fixed_texts=FixedTexts("inconclusive"))
    >>> name_decision(Verdict("lsa", "bias", "biased up", evidence=evidence))
    'biased up on these texts'
    """
    fixed = fixed_texts_of(verdict)
    if fixed is None or verdict.decision in ("inconclusive", fixed.decision):
        return verdict.decision
    return f"{verdict.decision} on these {verdict.rows}"


def generalize(verdict: Verdict) -> str:
    """Return a sentence on other texts, with their interval; empty unless all trials test the same texts."""
    fixed, rows = fixed_texts_of(verdict), verdict.rows
    if fixed is None:
        return ""
    if not fixed.bias.has_interval:
        return f"For other {rows} of this kind, the bias is unknown{_explain_unknown(verdict)}."
    limits = f"{format_range(fixed.bias.low, fixed.bias.high, verdict.unit)}{points(verdict.unit)}"
    if fixed.decision == verdict.decision != "inconclusive":
        return f"This also holds for other {rows} of this kind: {limits}."
    return f"For other {rows} of this kind, the bias is undecided: {limits}."


def _explain_copies(verdict: Verdict) -> str:
    """Return which test rows are copies, if there are so many that nothing is known about other rows."""
    copied = getattr(verdict.evidence, "copied", None)
    if copied is None or copied.are_few:
        return ""
    return _list_copies(copied, verdict.rows)


def _explain_unknown(verdict: Verdict) -> str:
    """Return why there is no interval for other texts, as a clause."""
    if copies := _explain_copies(verdict):
        return f", because {copies}"
    if not is_mean(verdict):
        return f", because this score is not known to be a mean over {verdict.rows}"
    if not verdict.estimate.has_interval:
        return ", because a task has only one subsample"
    return f", because the answers to single {verdict.rows} are unknown, or the score is not the accuracy"


def find_outcome(judged: Sequence[Verdict]) -> tuple[str, str]:
    """Return whether any method is biased, on these texts and for others, and the numbers of decisions in words."""
    here = _summarize(verdict.decision for verdict in judged)
    counts = _count(judged)
    fixed = [fixed_texts_of(verdict) for verdict in judged]
    if not any(fixed):
        return here.capitalize(), counts
    rows = judged[0].rows
    known = [found.decision for found in fixed if found is not None]
    there = "unknown"
    if all(known):
        there = _summarize(filter(None, known))
    if there == here:
        return f"{here.capitalize()}, on these {rows} and for other {rows} of this kind", counts
    there = there.replace("undecided", "unknown")
    return f"On these {rows} {here}; for other {rows} of this kind {there}", counts


def _summarize(decisions: Iterable[str]) -> str:
    found = set(decisions)
    return next((outcome for decision, outcome in OUTCOMES.items() if decision in found), "cannot be seen")


def _count(judged: Sequence[Verdict]) -> str:
    """Count the methods with each decision; those that readers do not know are explained."""
    counts = Counter(verdict.decision for verdict in judged)
    found = [decision for decision in get_args(Decision) if counts[decision]]
    verbs = ("is", "are")
    if found[0] == "no signal":
        verbs = ("has", "have")
    if len(judged) == 1:
        return f"{judged[0].method} {verbs[0]} {name_decision(judged[0])}{EXPLAINED.get(found[0], '')}."
    listed = [f"{counts[decision]:,} {decision}{EXPLAINED.get(decision, '')}" for decision in found]
    listed[0] = listed[0].replace(" ", f" {verbs[counts[found[0]] > 1]} ", 1)
    return f"Of {count_methods(judged)}, {', '.join(listed)}."


def count_methods(verdicts: Sequence[Verdict]) -> str:
    """Return the number of methods, after that of their configurations if it differs."""
    number = len({verdict.name for verdict in verdicts})
    counted = pluralize(number, "method")
    if number == len(verdicts):
        return counted
    return f"{pluralize(len(verdicts), 'configuration')} ({counted} with several test sets, sizes or models)"


def size_for_others(verdict: Verdict) -> str:
    """Return a sentence on the interval of a bias for other texts; empty unless all trials test the same texts."""
    fixed = fixed_texts_of(verdict)
    if fixed is None or not fixed.bias.has_interval:
        return ""
    limits = replace(fixed.bias, mean=float("nan")).as_cell
    return f"For other {verdict.rows} of this kind: {format_quantity(limits, verdict.unit)}."

"""Texts on verdicts that all formats share: headings, the meaning of decisions, the basis of a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from peekbench.formatting import ScoreWords, format_signed
from peekbench.records.analysis import Verdict
from peekbench.report.document import MethodFacts, Report

QUESTIONS: Mapping[str, str] = {
    "bias": "Does a method score higher if its unlabeled text comes from the test set?",
    "contamination": "Does a model score higher on a benchmark than its score on another benchmark predicts?",
}
"""Question that the verdicts on an effect answer; that of 'bias' for other effects."""
CONTROLS = "Controls: methods whose bias is known in advance, which check this run"


def split_verdicts(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """Return the verdicts on methods and the verdicts on controls."""
    judged = [verdict for verdict in verdicts if not verdict.control]
    return judged, [verdict for verdict in verdicts if verdict.control]


def verdict_sections(verdicts: Sequence[Verdict]) -> Iterator[tuple[str, list[Verdict]]]:
    """Yield the heading and the verdicts of each section that has any: methods by question, then controls."""
    judged, controls = split_verdicts(lead_verdicts(verdicts))
    by_question: dict[str, list[Verdict]] = {}
    for verdict in judged:
        by_question.setdefault(ask_about(verdict.effect), []).append(verdict)
    yield from by_question.items()
    if controls:
        yield CONTROLS, controls


def ask_about(effect: str) -> str:
    """Return the question that the verdicts on an effect answer."""
    return QUESTIONS.get(effect, QUESTIONS["bias"])


def explain_decisions(verdicts: Sequence[Verdict]) -> str:
    """Return a sentence or two on what the decisions mean; empty if there is no verdict."""
    if not verdicts:
        return ""
    judged, controls = split_verdicts(verdicts)
    regions = {(verdict.region, verdict.unit) for verdict in judged or controls if verdict.region}
    if len(regions) == 1:
        ((region, unit),) = regions
        band = f"±{ScoreWords(unit == 'difference').size(region or 0.0)}"
    else:
        band = "the region of practical equivalence (see 'region')"
    return (
        f"Biased: the interval excludes 0 and extends beyond {band}. Equivalent: the interval lies entirely within "
        f"{band}. Inconclusive: neither."
        + f" Size open: part of the interval lies within {band}."
        * any(verdict.size == "open" for verdict in judged)
    )


def lead_verdicts(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Return one verdict for each method: that of the first analysis, with a sentence on those of other analyses.

    An analysis that reaches the same decision is named with its estimate, or its sentence if it has none. An analysis
    that does not is quoted.
    """
    by_subject: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        by_subject.setdefault((verdict.method, verdict.effect), []).append(verdict)
    return tuple(
        replace(lead, sentence=" ".join((lead.sentence, *(_compare(lead, other) for other in others))))
        for lead, *others in by_subject.values()
    )


def _compare(lead: Verdict, other: Verdict) -> str:
    """Return a sentence on the verdict of another analysis about the same method."""
    name = other.analysis or "Another analysis"
    if other.decision == lead.decision:
        estimate = format_estimate(other)
        return f"{name} agrees: {f'{estimate}.' if estimate else sentence_without_method(other)}"
    if other.unit != lead.unit:  # the analysis is about another score, so it need not agree
        return f"In another score, the verdict of {name} is {other.decision}: {sentence_without_method(other)}"
    return f"{name} does not agree, its verdict is {other.decision}: {sentence_without_method(other)}"


def format_estimate(verdict: Verdict) -> str:
    """Return the estimate with its interval and unit: '+1.47 [+0.91, +2.03] points'; empty if there is none."""
    if verdict.estimate is None:
        return ""
    limits = [format_signed(end, verdict.unit) for end in (verdict.low, verdict.high) if end is not None]
    interval = f" [{', '.join(limits)}]" if limits else ""
    unit = " points" if verdict.unit == "difference" else ""
    return f"{format_signed(verdict.estimate, verdict.unit)}{interval}{unit}"


def scope_in_words(verdict: Verdict) -> str:
    """Return what the decision on a method refers to, to follow it, such as ' on these texts of 2 tasks, size open'."""
    if verdict.control:
        return ""
    scope = f" on {verdict.population}" if verdict.population else ""
    scope += f", {size}" if (size := size_in_words(verdict)) else ""
    return scope + (f"; bias in other tasks: {verdict.other_tasks}" if verdict.other_tasks else "")


def size_in_words(verdict: Verdict) -> str:
    """Return what is known about the size of a bias: 'size open', or 'by more than 0.50 points'; empty if nothing."""
    if verdict.size == "beyond":
        return f"by more than {ScoreWords(verdict.unit == 'difference').size(verdict.region or 0.0)}"
    return "size open" if verdict.size == "open" else ""


def sentence_without_method(verdict: Verdict) -> str:
    """Return the sentence of a verdict without the method, to follow its name."""
    sentence = verdict.sentence.removeprefix(f"{verdict.method}: ")
    return sentence[:1].upper() + sentence[1:]


def basis_in_words(verdict: Verdict) -> str:
    """Return the data that a verdict is based on, in parentheses; empty if it does not say."""
    return f" (Based on {verdict.basis}.)" if verdict.basis else ""


def find_method(verdict: Verdict, report: Report) -> MethodFacts | None:
    """Return the method of a verdict: its label is the method's name, with model and sizes in parentheses if needed."""
    matching = [
        method
        for method in report.methods
        if verdict.method == method.name or verdict.method.startswith(f"{method.name} (")
    ]
    return max(matching, key=lambda method: len(method.name), default=None)

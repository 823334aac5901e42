"""Texts on verdicts that all formats share: headings, the meaning of decisions, the basis of a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peekbench.formatting import ScoreWords
from peekbench.records.analysis import Verdict
from peekbench.report.document import MethodFacts, Report

QUESTION = "Does a method score higher if its unlabeled text comes from the test set?"
CONTROLS = "Controls: methods whose bias is known in advance, which check this run"


def split_verdicts(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """Return the verdicts on methods and the verdicts on controls."""
    judged = [verdict for verdict in verdicts if not verdict.control]
    return judged, [verdict for verdict in verdicts if verdict.control]


def verdict_sections(verdicts: Sequence[Verdict]) -> Iterator[tuple[str, list[Verdict]]]:
    """Yield the heading and the verdicts of each section that has any: methods, then controls."""
    for heading, section in zip((QUESTION, CONTROLS), split_verdicts(verdicts), strict=True):
        if section:
            yield heading, section


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
    )


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

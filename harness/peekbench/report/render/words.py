"""The words and marks for decisions that all formats share: headings, meanings, scope and basis of a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from peekbench.formatting import pluralize
from peekbench.records.report import MethodFacts, Report
from peekbench.records.verdicts import (
    ControlOutcome,
    Decision,
    PosteriorEvidence,
    PredictionEvidence,
    TrialEvidence,
    Verdict,
)
from peekbench.report.render.sentences import format_estimate, format_size, state_alone

MARKS: Mapping[Decision | ControlOutcome, str] = {
    "biased up": "▲",
    "biased down": "▼",
    "equivalent": "≈",
    "inconclusive": "?",
    "inert": "∅",
    "no signal": "∅",
    "passed": "✓",
    "undecided": "?",
    "failed": "✗",
}
TONES: Mapping[str, str] = {
    **dict.fromkeys(("inert", "no signal", "undecided"), "inconclusive"),
    "passed": "equivalent",
    "failed": "biased-up",
}
"""CSS class of the colors of a control's outcome; other decisions have a class of their own."""
DECISION_STYLES = {
    "biased up": "bold red",
    "biased down": "bold magenta",
    "equivalent": "bold green",
    "inconclusive": "bold",
    "inert": "bold",
    "no signal": "bold",
    "passed": "bold green",
    "undecided": "bold",
    "failed": "bold red",
}
"""Style of each decision: colors that are legible on dark and on light backgrounds, which yellow and cyan are not."""
QUESTIONS: Mapping[str, str] = {
    "bias": "Does a method score higher if its unlabeled data come from the test set?",
    "contamination": "Does a model score higher on a benchmark than its score on another benchmark predicts?",
}
"""Question that the verdicts on an effect answer; that of 'bias' for other effects."""
TERMS: Mapping[str, str] = {
    "bias": "Base: no unlabeled {rows}. Extra: independent ones. Test: those of the test set. Bias: test - extra.",
    "contamination": "Excess: the score of a model minus the score that reference models predict from its score on the "
    "reference benchmark.",
}
"""What the words in the verdicts on an effect mean; those of 'bias' for other effects."""
WITHIN_REGION = ("equivalent", "no signal")
"""Decisions whose interval lies within the region."""
MAX_IN_ORDER = 12
"""Verdicts up to which a report keeps the order of its methods; more are ordered by their estimates."""
CONTROLS = "Controls: methods whose bias is known in advance, which check this run"


def split_verdicts(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """Return the verdicts on methods and the verdicts on controls."""
    judged = [verdict for verdict in verdicts if not verdict.control]
    return judged, [verdict for verdict in verdicts if verdict.control]


def verdict_sections(verdicts: Sequence[Verdict]) -> Iterator[tuple[str, list[tuple[Verdict, str]]]]:
    """Yield the heading and the verdicts of each section that has any: methods by question, then controls.

    Of many methods, that with the largest estimate comes first.
    """
    by_question: dict[str, list[tuple[Verdict, str]]] = {}
    controls = []
    for lead, sentence in lead_verdicts(verdicts):
        if lead.control:
            controls.append((lead, sentence))
        else:
            by_question.setdefault(ask_about(lead.effect), []).append((lead, sentence))
    for question, answers in by_question.items():
        if len(answers) > MAX_IN_ORDER:  # unknown estimates come last
            answers.sort(key=lambda answer: -answer[0].estimate.mean if answer[0].estimate.is_known else math.inf)
        yield question, answers
    if controls:
        yield CONTROLS, controls


def ask_about(effect: str) -> str:
    """Return the question that the verdicts on an effect answer."""
    return QUESTIONS.get(effect, QUESTIONS["bias"])


def define_terms(verdict: Verdict) -> str:
    """Return what the words mean in which a verdict answers its question."""
    return TERMS.get(verdict.effect, TERMS["bias"]).format(rows=verdict.rows)


def explain_decisions(verdicts: Sequence[Verdict]) -> str:
    """Return what the intervals and the decisions mean; empty if there is no verdict."""
    if not verdicts:
        return ""
    judged, controls = split_verdicts(verdicts)
    of_any = judged or controls
    regions = {(verdict.region, verdict.unit) for verdict in of_any if verdict.region}
    band = "the region of practical equivalence"
    if len(regions) == 1:
        ((region, unit),) = regions
        band = f"±{format_size(region or 0.0, unit)}"
    return (
        f"{_name_levels(of_any)}Biased: the interval excludes 0 and extends beyond {band}. Equivalent: the interval "
        f"lies entirely within {band}. Inconclusive: neither."
    )


def _name_levels(verdicts: Sequence[Verdict]) -> str:
    known = [verdict for verdict in verdicts if not math.isnan(verdict.family.level)]
    levels = {f"{verdict.family.level:.0%}" for verdict in known if verdict.decision not in WITHIN_REGION}
    within = {f"{verdict.family.level:.0%}" for verdict in known if verdict.decision in WITHIN_REGION} - levels
    if not levels:
        levels, within = within, set()
    if len(levels) != 1:
        return ""
    shorter = "".join(f", {level} where equivalent" for level in within)
    return f"{levels.pop()} intervals{shorter}. "


def explain_adjustments(verdicts: Sequence[Verdict]) -> str:
    """Return for what intervals are adjusted, and why those of equivalent biases are shorter; can be empty."""
    judged, _ = split_verdicts(verdicts)
    size = max((verdict.family.size for verdict in judged), default=1)
    parts = [f"Intervals are adjusted for {size} configurations."] if size > 1 else []
    levels = {verdict.family.level for verdict in judged if _is_by_two_tests(verdict)}
    parts += [f"Two one-sided tests at {(1 - level) / 2:.0%} decide 'equivalent'." for level in sorted(levels)]
    return " ".join(parts)


def _is_by_two_tests(verdict: Verdict) -> bool:
    evidence = verdict.evidence
    return verdict.decision in WITHIN_REGION and isinstance(evidence, TrialEvidence) and not evidence.is_zero


def lead_verdicts(verdicts: Sequence[Verdict]) -> list[tuple[Verdict, str]]:
    """Return one verdict for each method, that of the first analysis, with its sentences and those on other analyses.

    An analysis that reaches the same decision is named with its estimate, or its sentences if it has none. An analysis
    that does not is quoted.
    """
    by_subject: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        by_subject.setdefault((verdict.method, verdict.effect), []).append(verdict)
    return [
        (lead, " ".join((state_alone(lead), *(_compare(lead, other) for other in others))))
        for lead, *others in by_subject.values()
    ]


def _compare(lead: Verdict, other: Verdict) -> str:
    """Return a sentence on the verdict of another analysis about the same method."""
    name = other.analysis or "Another analysis"
    if other.decision == lead.decision:
        estimate = format_estimate(other.estimate, other.unit)
        return f"{name} agrees: {f'{estimate}.' if estimate else state_alone(other)}"
    if other.unit != lead.unit:  # the analysis is about another score, so it need not agree
        return f"In another score, the verdict of {name} is {other.decision}: {state_alone(other)}"
    return f"{name} does not agree, its verdict is {other.decision}: {state_alone(other)}"


def basis_of(verdict: Verdict) -> str:
    """Return the data that a verdict is based on, such as '5 tasks, 250 trials'; empty if it does not say."""
    match verdict.evidence:
        case TrialEvidence() | PosteriorEvidence() as evidence:
            basis = f"{pluralize(evidence.num_tasks, 'task')}, {pluralize(evidence.num_trials, 'trial')}"
            return basis + ", a posterior" * isinstance(evidence, PosteriorEvidence)
        case PredictionEvidence() as evidence:
            answers = " and ".join(f"{number:,}" for number in evidence.num_answers)
            models = pluralize(evidence.num_references, "reference model")
            if evidence.num_families is not None:
                models += f" of {pluralize(evidence.num_families, 'family', 'families')}"
            return f"{models}, {answers} answers"
    return ""


def basis_in_words(verdict: Verdict) -> str:
    """Return the data that a verdict is based on, in parentheses; empty if it does not say."""
    return f" (Based on {basis}.)" if (basis := basis_of(verdict)) else ""


def find_method(verdict: Verdict, report: Report) -> MethodFacts | None:
    """Return the description of the method of a verdict."""
    return next((method for method in report.methods if method.name == verdict.name), None)

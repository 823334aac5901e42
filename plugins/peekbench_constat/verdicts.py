"""Verdicts on the findings, adjusted over the tests that are judged together."""

from __future__ import annotations

from collections.abc import Sequence

from peekbench import Verdict
from peekbench.formatting import ScoreWords, format_cell, pluralize
from peekbench.records import Decision
from peekbench.results import decide
from peekbench_constat import ConStat
from peekbench_constat.findings import Finding
from peekbench_stats import selection_level

WORDS = ScoreWords(is_accuracy=True)
SPECIFIC = {
    "": "",
    "syntax": " The excess does not generalize to the same texts in other words (syntax-specific contamination).",
    "sample": " The excess does not generalize to other texts of this kind (sample-specific contamination).",
    "benchmark": " The excess does not generalize to another benchmark (benchmark-specific contamination).",
}


def judge_all(findings: Sequence[Finding], options: ConStat, *, are_compared_once: bool) -> list[Verdict]:
    """Judge the findings.

    Parameters
    ----------
    findings
        Results of the tests.
    options
        Level, region, and the tests that form a family.
    are_compared_once
        Whether there is one comparison, so that the label of a model is enough to tell verdicts apart.
    """
    families: dict[object, list[int]] = {}
    for position, finding in enumerate(findings):
        key = {"all": "all", "method": finding.model, "none": position}[options.family]
        families.setdefault(key, []).append(position)
    verdicts: dict[int, Verdict] = {}
    for members in families.values():
        p_values = [excess.p_value for member in members if (excess := findings[member].excess) is not None]
        alpha = selection_level(p_values, 1 - options.level) if p_values else 1 - options.level
        for member in members:
            verdicts[member] = _judge(findings[member], options, alpha, len(p_values) or 1, are_compared_once)
    return [verdict for _, verdict in sorted(verdicts.items())]


def _judge(finding: Finding, options: ConStat, alpha: float, family: int, are_compared_once: bool) -> Verdict:
    comparison, excess = finding.comparison, finding.excess
    details = "" if are_compared_once else f" ({comparison.original}, predicted by {comparison.reference})"
    name = finding.model + details
    answers = " and ".join(f"{number:,}" for number in finding.num_answers)
    families = f" of {pluralize(finding.num_families, 'family', 'families')}" if options.model_families else ""
    basis = f"{pluralize(finding.num_references, 'reference model')}{families}, {answers} answers"
    if excess is None:
        sentence = f"{name}: cannot be judged: {finding.reason}."
        return Verdict(name, "contamination", "inconclusive", sentence, basis=basis, region=options.region)
    low, high = excess.interval(alpha)
    decision = decide(low, high, options.region)
    unadjusted = decide(*excess.interval(1 - options.level), options.region)
    sentence = f"{name}: {_state(finding, decision, (low, high), options, family)}"
    if decision == "biased up":
        sentence += SPECIFIC[comparison.kind]
    if family > 1 and unadjusted != decision:
        sentence += f" Without the adjustment for {family} tests, it would be {unadjusted}."
    return Verdict(
        name, "contamination", decision, sentence, excess.estimate, low, high, options.level, options.region, basis,
        family=family, unadjusted=unadjusted if family > 1 else None, interval_level=1 - alpha,
    )  # fmt: skip


def _state(finding: Finding, decision: Decision, limits: tuple[float, float], options: ConStat, family: int) -> str:
    """State the score, the prediction and the interval of their difference."""
    excess, comparison = finding.excess, finding.comparison
    assert excess is not None
    low, high = map(WORDS.format_signed, limits)
    adjusted = f", adjusted for {family} tests:" if family > 1 else ""
    interval = f"({options.level:.0%} interval{adjusted} {low} to {high})"
    score, predicted, other = (
        format_cell(value, "fraction") for value in (finding.score, excess.predicted, finding.reference_score)
    )
    position = f"{WORDS.size(abs(excess.estimate))} {'above' if excess.estimate > 0 else 'below'}"
    text = (
        f"its score on {comparison.original}, {score}, is {position} the {predicted} that its score on "
        f"{comparison.reference}, {other}, predicts {interval}"
    )
    if decision == "inconclusive":
        text += f", too uncertain to distinguish from zero, or to call smaller than {WORDS.size(options.region)}"
    elif decision == "equivalent":
        text += ", which is negligible"
    return text + "."

"""Verdicts on the findings, adjusted over the tests that are judged together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from peekbench import Estimate, Verdict
from peekbench.records import Family, PredictionEvidence
from peekbench.results import decide
from peekbench_constat import ConStat
from peekbench_constat.findings import Finding
from peekbench_stats import selection_level


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
    evidence = PredictionEvidence(
        original=comparison.original,
        reference=comparison.reference,
        kind=comparison.kind,
        score=finding.score,
        reference_score=finding.reference_score,
        num_answers=finding.num_answers,
        num_references=finding.num_references,
        num_families=finding.num_families if options.model_families or finding.problem == "too few families" else None,
        predicted=math.nan if excess is None else excess.predicted,
        problem=finding.problem,
        minimum=finding.minimum,
        span=finding.span,
    )
    verdict = Verdict(
        finding.model + details,
        "contamination",
        "inconclusive",
        region=options.region,
        evidence=evidence,
        parts=(("method", finding.model), ("original", comparison.original), ("reference", comparison.reference)),
    )
    if excess is None:
        return verdict
    low, high = excess.interval(alpha)
    unadjusted = decide(*excess.interval(1 - options.level), options.region) if family > 1 else None
    return replace(
        verdict,
        decision=decide(low, high, options.region),
        estimate=Estimate(excess.estimate, low, high, level=1 - alpha),
        family=Family(family, options.level, unadjusted),
    )

"""The analysis `constat`: from scores of models on benchmarks to verdicts on their contamination."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from peekbench import Analysis, Column, Estimate, Table, Verdict
from peekbench.formatting import list_names, pluralize
from peekbench.records import POINTS, Cell, Family, Figure, Forest, Interval, PredictionEvidence
from peekbench.results import check_region, decide
from peekbench_constat import Comparison, ConStat
from peekbench_constat.excess import read_scores
from peekbench_constat.findings import (
    MIN_REFERENCES,
    Compared,
    Finding,
    check_names,
    choose_models,
    compare,
    label_models,
)
from peekbench_stats import selection_level

MAX_LISTED = 5
UNKNOWN_FAMILIES = (
    "models count as independent, because the option model_families is not given; if models of one developer or base "
    "model resemble each other, intervals are too short, and more clean models than intended have a verdict"
)


def analyze_contamination(results: pd.DataFrame, *, options: ConStat) -> Analysis:
    """Test whether scores on a benchmark exceed those that scores on another benchmark predict.

    Source: ConStat, Dekoninck et al. (2024), https://doi.org/10.48550/arXiv.2405.16281.

    Parameters
    ----------
    results
        The results table. Tasks are benchmarks, and scores are those of the arm base: of models that do not adapt to
        the benchmark's texts while they are tested.
    options
        Benchmarks and models to compare, and level.

    Returns
    -------
    Analysis
        A verdict, with the effect 'contamination', and an interval for each model and comparison.

    Raises
    ------
    SpecError
        If the options name no comparison, or unknown tasks or models, or the region exceeds 20 points.
    ResultsError
        If scores are not accuracies with a known number of texts, or a model that is under test lacks a score.
    """
    check_region(options.region, "constat", units=POINTS)
    models = label_models(results)
    labels, tasks = list(models["label"].unique()), list(models["task"].unique())
    check_names(options, tasks, labels)
    used = dict.fromkeys(
        name for comparison in options.comparisons for name in (comparison.original, comparison.reference)
    )
    rng = np.random.default_rng(options.seed)
    by_task = {name: read_scores(models, name, options.num_resamples, rng) for name in used}
    compared, warnings = [], []
    for comparison in options.comparisons:
        original, reference = by_task[comparison.original], by_task[comparison.reference]
        common = tuple(name for name in original.names if name in reference.names)
        if lacking := [name for name in _used(labels, options) if name not in common]:
            warnings.append(_warn_of_lacking(lacking, comparison))
        compared.append(compare(comparison, original.select(common), reference.select(common), options))
    if not options.model_families:
        warnings.append(UNKNOWN_FAMILIES)
    findings = [finding for result in compared for finding in _sort(result.findings)]
    judged = _judge_all(findings, options, are_compared_once=len(compared) == 1)
    verdicts = {id(finding): verdict for finding, verdict in zip(findings, judged, strict=True)}
    return Analysis(
        "constat",
        tables=(*(_finding_table(result, verdicts, options) for result in compared), _curve_table(compared)),
        figures=_draw_excesses(compared, verdicts, options),
        verdicts=tuple(judged),
        warnings=tuple(warnings),
    )


def _sort(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings by their excess, the highest first and those without one last."""
    return sorted(findings, key=lambda finding: np.inf if finding.excess is None else -finding.excess.estimate)


def _used(labels: Sequence[str], options: ConStat) -> list[str]:
    suspects, references = choose_models(labels, options)
    return [name for name in labels if name in suspects or name in references]


def _warn_of_lacking(names: Sequence[str], comparison: Comparison) -> str:
    return (
        f"{list_names(names, MAX_LISTED)}: left out of a comparison, because a score on {comparison.original} or "
        f"{comparison.reference} is missing"
    )


def _finding_table(compared: Compared, verdicts: Mapping[int, Verdict], options: ConStat) -> Table:
    columns = (
        Column("method"), Column(compared.comparison.reference, "fraction"),
        Column(compared.comparison.original, "fraction"), Column("predicted", "fraction"),
        Column("excess", "difference"), Column("p", "p_value"),
        Column("conclusion"),
    )  # fmt: skip
    rows = tuple(_cells(finding, verdicts[id(finding)]) for finding in _sort(compared.findings))
    note = (
        f"Predicted: score on {compared.comparison.original} of reference models with the same score on "
        f"{compared.comparison.reference}. Excess: score minus prediction, with {options.level:.0%} intervals that "
        "allow for the uncertainty of scores and curve and for the scatter of models around it, adjusted over these "
        "tests (Benjamini-Hochberg). p: two-sided, not adjusted. A high score shows that the model does better than "
        "models like the reference models, not why: it may know the texts, or its training may suit this benchmark."
    )
    return Table(f"Scores on {_name_comparison(compared)}", columns, rows, note, ranked_by="excess")


def _cells(finding: Finding, verdict: Verdict) -> tuple[Cell, ...]:
    excess = finding.excess
    scores = (finding.model, finding.reference_score, finding.score)
    if excess is None:
        return (*scores, None, None, None, f"inconclusive: {finding.problem}")
    interval = Estimate(excess.estimate, verdict.estimate.low, verdict.estimate.high)
    return (*scores, excess.predicted, interval, excess.p_value, verdict.decision)


def _curve_table(results: Sequence[Compared]) -> Table:
    columns = (
        Column("original"), Column("reference"), Column("reference models", "count"), Column("lowest", "fraction"),
        Column("highest", "fraction"), Column("degrees of freedom", "number"), Column("scatter", "spread"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for result in results:
        cells: tuple[Cell, ...] = (None, None, None, None)
        if result.prediction is not None:
            cells = (*result.prediction.span, result.prediction.curve.freedom, result.prediction.scatter)
        rows.append((result.comparison.original, result.comparison.reference, len(result.references), *cells))
    return Table(
        "Curves that predict scores",
        columns,
        tuple(rows),
        f"A curve needs {pluralize(MIN_REFERENCES, 'reference model')}; 2 degrees of freedom are a straight line. "
        "Lowest, highest: scores of the reference models on the reference benchmark, between which the curve can "
        "predict. Scatter: standard deviation of models around the curve, beyond the uncertainty of their scores. If "
        "each model is tested against all others, the curve is fitted again without it and its family.",
    )


def _judge_all(findings: Sequence[Finding], options: ConStat, *, are_compared_once: bool) -> list[Verdict]:
    """Judge the findings as one family; with one comparison, the label of a model tells its verdict apart."""
    p_values = [finding.excess.p_value for finding in findings if finding.excess is not None]
    alpha = selection_level(p_values, 1 - options.level) if p_values else 1 - options.level
    return [_judge(finding, options, alpha, len(p_values) or 1, are_compared_once) for finding in findings]


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


def _name_comparison(compared: Compared) -> str:
    """Return the heading of a comparison."""
    return f"{compared.comparison.original}, predicted by {compared.comparison.reference}"


def _draw_excesses(
    results: Sequence[Compared], verdicts: Mapping[int, Verdict], options: ConStat
) -> tuple[Figure, ...]:
    """Draw the excess of each model with the interval of its verdict."""
    groups = []
    for compared in results:
        intervals = [
            Interval(finding.model, estimate.mean, estimate.low, estimate.high)
            for finding in compared.findings
            if (estimate := verdicts[id(finding)].estimate).has_interval
        ]
        if intervals:
            groups.append((_name_comparison(compared), tuple(sorted(intervals, key=lambda finding: -finding.estimate))))
    if not groups:
        return ()
    note = f"Score minus predicted score, with the {options.level:.0%} intervals of the verdicts."
    label = "score minus prediction, accuracy points"
    return (Forest("Score above prediction by model", tuple(groups), note, label=label, region=options.region),)

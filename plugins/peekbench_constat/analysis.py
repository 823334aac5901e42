"""The analysis `constat`: from scores of models on benchmarks to verdicts on their contamination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from peekbench import Analysis, Column, Table, Verdict
from peekbench.formatting import pluralize
from peekbench.records import Cell
from peekbench.results import check_region
from peekbench_constat import Comparison, ConStat
from peekbench_constat.answers import read_scores
from peekbench_constat.figures import draw_figures, name_comparison
from peekbench_constat.findings import MIN_REFERENCES, Compared, Finding, compare
from peekbench_constat.models import check_names, choose_models, label_models
from peekbench_constat.verdicts import judge_all

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
    check_region(options.region, "constat", is_accuracy=True)
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
    findings = [finding for each in compared for finding in _sort(each.findings)]
    judged = judge_all(findings, options, are_compared_once=len(compared) == 1)
    verdicts = {id(finding): verdict for finding, verdict in zip(findings, judged, strict=True)}
    return Analysis(
        "constat",
        tables=(*(_finding_table(each, verdicts, options) for each in compared), _curve_table(compared)),
        figures=draw_figures(compared, verdicts, options),
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
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return (
        f"{', '.join(names[:MAX_LISTED])}{more}: left out of a comparison, because a score on {comparison.original} or "
        f"{comparison.reference} is missing"
    )


def _finding_table(compared: Compared, verdicts: Mapping[int, Verdict], options: ConStat) -> Table:
    columns = (
        Column("method"), Column(compared.comparison.reference, "fraction"),
        Column(compared.comparison.original, "fraction"), Column("predicted", "fraction"),
        *(Column(f"excess{end}", "difference") for end in ("", ", low", ", high")), Column("p", "p_value"),
        Column("conclusion"),
    )  # fmt: skip
    rows = tuple(_cells(finding, verdicts[id(finding)]) for finding in _sort(compared.findings))
    families = {"all": "these tests", "method": "the tests of a model", "none": ""}
    adjusted = f", adjusted over {families[options.family]} (Benjamini-Hochberg)" if families[options.family] else ""
    note = (
        f"Predicted: score on {compared.comparison.original} of reference models with the same score on "
        f"{compared.comparison.reference}. Excess: score minus prediction, with {options.level:.0%} intervals that "
        "allow for the uncertainty of scores and curve and for the scatter of models around it"
        f"{adjusted}. p: two-sided, not adjusted. A high score shows that the model does better than models like the "
        "reference models, not why: it may have seen the texts, or a part of its training may suit this benchmark."
    )
    return Table(f"Scores on {name_comparison(compared)}", columns, rows, note)


def _cells(finding: Finding, verdict: Verdict) -> tuple[Cell, ...]:
    excess = finding.excess
    scores = (finding.model, finding.reference_score, finding.score)
    if excess is None:
        return (*scores, None, None, None, None, None, f"inconclusive: {finding.problem}")
    interval = (excess.estimate, *verdict.estimate.limits)
    return (*scores, excess.predicted, *interval, excess.p_value, verdict.decision)


def _curve_table(results: Sequence[Compared]) -> Table:
    columns = (
        Column("original"), Column("reference"), Column("reference models", "count"), Column("lowest", "fraction"),
        Column("highest", "fraction"), Column("degrees of freedom", "number"), Column("scatter", "spread"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for each in results:
        cells: tuple[Cell, ...] = (None, None, None, None)
        if each.prediction is not None:
            cells = (*each.prediction.span, each.prediction.curve.freedom, each.prediction.scatter)
        rows.append((each.comparison.original, each.comparison.reference, len(each.references), *cells))
    return Table(
        "Curves that predict scores",
        columns,
        tuple(rows),
        f"A curve needs {pluralize(MIN_REFERENCES, 'reference model')}; 2 degrees of freedom are a straight line. "
        "Lowest, highest: scores of the reference models on the reference benchmark, between which the curve can "
        "predict. Scatter: standard deviation of models around the curve, beyond the uncertainty of their scores. If "
        "each model is tested against all others, the curve is fitted again without it and its family.",
    )

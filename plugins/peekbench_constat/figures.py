"""Figures: the excess of each model, and scores on both benchmarks with the curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from peekbench import Verdict
from peekbench.records import Axis, Curve, Curves, Figure, Forest, Interval
from peekbench_constat import ConStat
from peekbench_constat.findings import Compared, Finding

NUM_POINTS = 41  # of the curve
MAX_NAMED = 6  # models that the legend names


def draw_figures(results: Sequence[Compared], verdicts: Mapping[int, Verdict], options: ConStat) -> tuple[Figure, ...]:
    """Return the figures of all comparisons.

    Parameters
    ----------
    results
        Results of the comparisons.
    verdicts
        Verdicts by the identity of their finding.
    options
        Level and region.
    """
    return *_draw_excesses(results, verdicts, options), *_draw_scores(results, verdicts, options)


def name_comparison(compared: Compared) -> str:
    """Return the heading of a comparison."""
    return f"{compared.comparison.original}, predicted by {compared.comparison.reference}"


def _draw_excesses(results: Sequence[Compared], verdicts: Mapping[int, Verdict], options: ConStat) -> list[Figure]:
    groups = []
    for compared in results:
        intervals = [
            Interval(finding.model, estimate.mean, estimate.low, estimate.high)
            for finding in compared.findings
            if (estimate := verdicts[id(finding)].estimate).has_interval
        ]
        if intervals:
            groups.append((name_comparison(compared), tuple(sorted(intervals, key=lambda each: -each.estimate))))
    if not groups:
        return []
    note = f"Score minus predicted score, with the {options.level:.0%} intervals of the verdicts."
    label = "score minus prediction, accuracy points"
    return [Forest("Score above prediction by model", tuple(groups), note, label=label, region=options.region)]


def _draw_scores(results: Sequence[Compared], verdicts: Mapping[int, Verdict], options: ConStat) -> list[Figure]:
    panels = []
    for compared in results:
        prediction = compared.prediction
        if prediction is None:
            continue
        x = np.linspace(*prediction.span, NUM_POINTS)
        low, high = prediction.band(x, float(np.median(compared.original.num_answers)), 1 - options.level)
        x_values, y_values, lows, highs = (tuple(part.tolist()) for part in (x, prediction.curve(x), low, high))
        panels.append(
            (
                name_comparison(compared),
                (Curve("prediction", x_values, y_values, lows, highs), *_scatter(compared, verdicts)),
            )
        )
    if not panels:
        return []
    return [
        Curves(
            "Scores on both benchmarks",
            Axis("score on the reference benchmark", "fraction"),
            Axis("score on the original benchmark", "fraction"),
            tuple(panels),
            f"The curve is fitted to the reference models. Scores of {options.level:.0%} of models like these are "
            "expected in the band; it is not adjusted for the number of models.",
        )
    ]


def _scatter(compared: Compared, verdicts: Mapping[int, Verdict]) -> list[Curve]:
    """Return points of the reference models, of the models under test, and of each model with a high score."""
    biased = sorted(
        (finding for finding in compared.findings if verdicts[id(finding)].decision == "biased up"), key=_by_estimate
    )
    named = [finding.model for finding in biased[:MAX_NAMED]]
    series = {name: [name] for name in named}
    others = [finding.model for finding in compared.findings if finding.model not in named]
    references = [name for name in compared.references if name not in named and name not in others]
    is_each_tested = not references
    series["models" if is_each_tested else "models under test"] = others
    series["reference models"] = references
    curves = []
    for label, names in reversed(series.items()):
        if names:
            points = sorted(_positions(compared, names))
            curves.append(Curve(label, tuple(x for x, _ in points), tuple(y for _, y in points), is_scatter=True))
    return curves


def _by_estimate(finding: Finding) -> float:
    return -finding.excess.estimate if finding.excess else 0.0


def _positions(compared: Compared, names: Sequence[str]) -> list[tuple[float, float]]:
    positions = [compared.reference.names.index(name) for name in names]
    x, y = compared.reference.observed[positions], compared.original.observed[positions]
    return list(zip(x.tolist(), y.tolist(), strict=True))

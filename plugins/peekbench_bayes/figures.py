"""Posteriors, conclusions, priors and recovered biases as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from peekbench.figures import Axis, Curve, Curves, Densities, Forest, Interval, Sample, downsample
from peekbench.records import Unit
from peekbench_bayes.arrays import Arms
from peekbench_bayes.posterior import Posterior
from peekbench_bayes.verdict import summarize

if TYPE_CHECKING:
    from peekbench.records import FloatArray

AVERAGE = "average of these tasks"
ALL_MODELS = "all models"
Fit = tuple[Arms, Posterior]


def axis_of(effect: str, unit: Unit, region: float = 0.0) -> Axis:
    """Of an effect, or its spread: in points where scores are accuracies."""
    words = "accuracy points" if unit in ("difference", "spread") else "units of the score"
    return Axis(f"{effect}, {words}", unit, region=region)


def forest(fits: Sequence[Fit], preset: str, level: float, region: float, unit: Unit) -> tuple[Forest, ...]:
    """Effects of tasks, shrunk and as observed; none where there is nothing to draw."""
    import numpy as np

    groups = []
    for arms, posterior in fits:
        observed = np.nanmean(arms.cell_means, axis=0).tolist()
        intervals = []
        for number, task in enumerate(arms.tasks):
            found = summarize(posterior.by_task[:, :, number], level)
            intervals.append(Interval(task, found.mean, found.low, found.high, raw=observed[number]))
        if len(arms.tasks) > 1:
            found = summarize(posterior.average, level)
            intervals.append(Interval(AVERAGE, found.mean, found.low, found.high, is_average=True))
        groups.append((arms.label, tuple(intervals)))
    if not groups:
        return ()
    title = f"Bias by task, shrunk, preset {preset}, {level:.0%} intervals"
    note = "Tasks are drawn towards each other; their average is not." if preset == "calibrated" else ""
    axis = axis_of("bias", unit, region)
    return (Forest(title, tuple(groups), note, unit, axis.label, region),)


def posteriors(fits: Sequence[Fit], preset: str, level: float, region: float, unit: Unit) -> tuple[Densities, ...]:
    """Of each effect, the average difference over tasks: by configuration, and by model where there are several."""
    figures = []
    for effect in dict.fromkeys(arms.effect for arms, _ in fits):
        columns: dict[str, list[Sample]] = {}
        for arms, posterior in fits:
            if arms.effect == effect:
                several = len(arms.models) > 1
                columns.setdefault(ALL_MODELS if several else "", []).append(_sample(arms.label, posterior.average))
                for number, model in enumerate(arms.models if several else ()):
                    columns.setdefault(model, []).append(_sample(arms.label, posterior.by_model[:, :, number]))
        what = "Posterior" if preset == "calibrated" else "Posterior predictive distribution"
        figures.append(
            Densities(
                f"{what} of the average {effect} over these tasks, preset {preset}",
                axis_of(effect, unit, region if effect == "bias" else 0.0),
                tuple((heading, tuple(samples)) for heading, samples in columns.items()),
                level,
            )
        )
    return tuple(figures)


def conclusions(
    found: Sequence[tuple[Arms, FloatArray, float]], preset: str, level: float, region: float, unit: Unit
) -> Densities:
    """How the posterior means of slices are spread, each with its share beyond the region."""
    on_log_odds = preset != "calibrated"
    groups: dict[str, list[Sample]] = {}
    for arms, means, outside in found:
        label = f"{arms.label}: {outside:.0%} outside"
        groups.setdefault(arms.effect if len({one.effect for one, *_ in found}) > 1 else "", []).append(
            _sample(label, means)
        )
    axis = axis_of("posterior mean", unit, region)
    if on_log_odds:
        axis = Axis("posterior mean of the effect, log-odds", "change", region=region)
    return Densities(
        f"What studies with one subsample of each task and model would have found, preset {preset}",
        axis,
        tuple((heading, tuple(samples)) for heading, samples in groups.items()),
        level,
        "Each posterior mean is that of a random slice of the results with one subsample of each task and model. "
        "Outside: of the shaded region.",
    )


def implied(
    title: str, axis: Axis, found: Sequence[tuple[Arms, Mapping[str, FloatArray], Mapping[str, FloatArray]]],
    names: Sequence[str], level: float,
) -> Densities:  # fmt: skip
    """Quantities of data sets simulated from priors, with those of the results: a column a quantity."""
    groups = []
    several = len({arms.effect for arms, *_ in found}) > 1
    for name in names:
        samples = [
            Sample(
                f"{arms.label}, {arms.effect}" if several else arms.label,
                downsample(simulated[name]),
                float(observed[name][0]),
            )
            for arms, simulated, observed in found
            if name in simulated
        ]
        if samples:
            groups.append((name if len(names) > 1 else "", tuple(samples)))
    note = "The observed values have no part in the simulation."
    return Densities(title, axis, tuple(groups), level, note, mark="observed")


def recovered(
    found: Sequence[tuple[Arms, Mapping[float, FloatArray]]], level: float, region: float, unit: Unit, show: str
) -> tuple[Densities, Curves]:
    """Estimates by true bias, and how often intervals of any level hold it.

    Parameters
    ----------
    found
        By true bias, draws of the average effect in each data set: (n_draws, n_data_sets).
    show
        How true biases are written: '{:g} points' or so, of what the axis shows.
    """
    import numpy as np

    scale = 100 if unit == "difference" else 1
    estimates, coverages = [], []
    fewest = min(draws.shape[1] for _, by_effect in found for draws in by_effect.values())
    off = (f"{196 * (share * (1 - share) / fewest) ** 0.5:.0f} points at {share:.0%}" for share in (0.5, 0.9))
    chance = f"Of {fewest:,} data sets each, shares are off by chance by up to {' and '.join(off)}, in 95% of cases."
    levels = np.arange(1, 20) / 20
    for arms, by_effect in found:
        samples, curves = [], []
        for effect, draws in by_effect.items():
            label = f"true bias {show.format(effect * scale)}"
            samples.append(Sample(label, downsample(draws.mean(axis=0)), effect))
            depth = np.abs(2 * (draws < effect).mean(axis=0) - 1)  # level of the central interval that just holds it
            held = (depth[:, None] <= levels).mean(axis=0)
            curves.append(Curve(label, tuple(levels.tolist()), tuple(held.tolist())))
        estimates.append((arms.label, tuple(samples)))
        coverages.append((arms.label, tuple(curves)))
    return (
        Densities(
            "Estimates in simulated data sets, by true bias", axis_of("posterior mean of the bias", unit, region),
            tuple(estimates), level, mark="truth",
        ),
        Curves(
            "Calibration: how often intervals hold the true bias", Axis("level of the interval", "fraction"),
            Axis("intervals that hold it", "fraction"), tuple(coverages), chance,
            is_diagonal_drawn=True,
        ),
    )  # fmt: skip


def _sample(label: str, draws: FloatArray) -> Sample:
    return Sample(label, downsample(draws))

"""Figures of posteriors, slices, priors and recovered biases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from peekbench.records import Axis, Curve, Curves, Densities, FloatArray, Forest, Interval, Sample, Unit, downsample
from peekbench_bayes.arrays import PairedArms
from peekbench_bayes.posterior import Posterior, summarize

AVERAGE = "average of these tasks"
ALL_MODELS = "all models"
Fit = tuple[PairedArms, Posterior]


def effect_axis(effect: str, unit: Unit, region: float = 0.0) -> Axis:
    """Return the axis of an effect or its standard deviation, in points if scores are accuracies."""
    words = "accuracy points" if unit in ("difference", "spread") else "units of the score"
    return Axis(f"{effect}, {words}", unit, region=region)


def forest(fits: Sequence[Fit], preset: str, level: float, region: float, unit: Unit) -> tuple[Forest, ...]:
    """Draw the bias of each task, shrunk and observed; no figure without fits."""
    groups = []
    for arms, posterior in fits:
        observed = np.nanmean(arms.cell_means, axis=0).tolist()
        intervals = []
        for number, task in enumerate(arms.tasks):
            summary = summarize(posterior.by_task[:, :, number], level)
            intervals.append(Interval(task, summary.mean, summary.low, summary.high, raw=observed[number]))
        if len(arms.tasks) > 1:
            summary = summarize(posterior.average, level)
            intervals.append(Interval(AVERAGE, summary.mean, summary.low, summary.high, is_average=True))
        groups.append((arms.label, tuple(intervals)))
    if not groups:
        return ()
    title = f"Bias by task, shrunk, preset {preset}, {level:.0%} intervals"
    note = "Tasks are shrunk toward each other; their average is not." if preset == "calibrated" else ""
    axis = effect_axis("bias", unit, region)
    return (Forest(title, tuple(groups), note, unit, axis.label, region),)


def posteriors(fits: Sequence[Fit], preset: str, level: float, region: float, unit: Unit) -> tuple[Densities, ...]:
    """Draw the posterior of each effect's average over tasks: by configuration, and by model if there are several."""
    figures = []
    for effect in dict.fromkeys(arms.effect for arms, _ in fits):
        columns: dict[str, list[Sample]] = {}
        for arms, posterior in fits:
            if arms.effect == effect:
                has_several = len(arms.models) > 1
                heading = ALL_MODELS if has_several else ""
                columns.setdefault(heading, []).append(_sample(arms.label, posterior.average))
                for number, model in enumerate(arms.models if has_several else ()):
                    columns.setdefault(model, []).append(_sample(arms.label, posterior.by_model[:, :, number]))
        distribution = "Posterior" if preset == "calibrated" else "Posterior predictive distribution"
        figures.append(
            Densities(
                f"{distribution} of the average {effect} over these tasks, preset {preset}",
                effect_axis(effect, unit, region if effect == "bias" else 0.0),
                _groups(columns),
                level,
            )
        )
    return tuple(figures)


def slice_means(
    slices: Sequence[tuple[PairedArms, FloatArray, float]], preset: str, level: float, region: float, unit: Unit
) -> Densities:
    """Draw the distribution of the posterior means of slices.

    Parameters
    ----------
    slices
        The data, the posterior means (n_slices,), and the share of means beyond the region, of each fit.
    preset
        Model that was fitted.
    level
        Probability of the interval.
    region
        Half-width of the region of practical equivalence.
    unit
        Unit of the effects.

    Returns
    -------
    Densities
        One distribution per fit, grouped by effect.
    """
    groups: dict[str, list[Sample]] = {}
    has_several_effects = len({arms.effect for arms, *_ in slices}) > 1
    for arms, means, beyond in slices:
        heading = arms.effect if has_several_effects else ""
        groups.setdefault(heading, []).append(_sample(f"{arms.label}: {beyond:.0%} outside", means))
    axis = effect_axis("posterior mean", unit, region)
    if preset != "calibrated":
        axis = Axis("posterior mean of the effect, log-odds", "change", region=region)
    return Densities(
        f"Posterior means of studies with one subsample per task and model, preset {preset}",
        axis,
        _groups(groups),
        level,
        "Each posterior mean comes from a random slice of the results with one subsample per task and model. Outside: "
        "outside the shaded region.",
    )


def prior_predictive(
    title: str,
    axis: Axis,
    predictions: Sequence[tuple[PairedArms, Mapping[str, FloatArray], Mapping[str, FloatArray]]],
    names: Sequence[str],
    level: float,
) -> Densities:
    """Draw quantities of data sets simulated from priors, with the observed values.

    Parameters
    ----------
    title
        Title of the figure.
    axis
        Axis of the quantities.
    predictions
        The data, the simulated values (n_data_sets,) and the observed value (1,) by quantity, of each fit.
    names
        Quantities to draw, one group each.
    level
        Probability of the interval.

    Returns
    -------
    Densities
        One distribution per fit and quantity, marked at the observed value.
    """
    groups = []
    has_several_effects = len({arms.effect for arms, *_ in predictions}) > 1
    for name in names:
        samples = [
            Sample(
                f"{arms.label}, {arms.effect}" if has_several_effects else arms.label,
                downsample(simulated[name]),
                float(observed[name][0]),
            )
            for arms, simulated, observed in predictions
            if name in simulated
        ]
        if samples:
            groups.append((name if len(names) > 1 else "", tuple(samples)))
    note = "The simulation does not use the observed values."
    return Densities(title, axis, tuple(groups), level, note, mark="observed")


def recovered_biases(
    estimates: Sequence[tuple[PairedArms, Mapping[float, FloatArray]]], level: float, region: float, unit: Unit
) -> tuple[Densities, Curves]:
    """Draw estimates by true bias, and the coverage of intervals of each level.

    Parameters
    ----------
    estimates
        The data of each fit, and draws of the average effect in each data set by true bias: (n_draws, n_data_sets).
    level
        Probability of the interval.
    region
        Half-width of the region of practical equivalence.
    unit
        Unit of the effects.

    Returns
    -------
    Densities
        Estimates by true bias.
    Curves
        Coverage by level.
    """
    scale, form = (100, "{:g} points") if unit == "difference" else (1, "{:g}")
    distributions, coverages = [], []
    min_data_sets = min(draws.shape[1] for _, by_bias in estimates for draws in by_bias.values())
    errors = (f"{196 * (share * (1 - share) / min_data_sets) ** 0.5:.0f} points at {share:.0%}" for share in (0.5, 0.9))
    note = (
        f"With {min_data_sets:,} data sets each, 95% of the shares deviate by chance by up to {' and '.join(errors)}."
    )
    levels = np.arange(1, 20) / 20
    for arms, by_bias in estimates:
        samples, curves = [], []
        for bias, draws in by_bias.items():
            label = f"true bias {form.format(bias * scale)}"
            samples.append(Sample(label, downsample(draws.mean(axis=0)), bias))
            # Level of the narrowest central interval that contains the true bias.
            depth = np.abs(2 * (draws < bias).mean(axis=0) - 1)
            covered = (depth[:, None] <= levels).mean(axis=0)
            curves.append(Curve(label, tuple(levels.tolist()), tuple(covered.tolist())))
        distributions.append((arms.label, tuple(samples)))
        coverages.append((arms.label, tuple(curves)))
    return (
        Densities(
            "Estimates in simulated data sets, by true bias", effect_axis("posterior mean of the bias", unit, region),
            tuple(distributions), level, mark="truth",
        ),
        Curves(
            "Calibration: share of intervals that contain the true bias", Axis("level of the interval", "fraction"),
            Axis("intervals that contain it", "fraction"), tuple(coverages), note,
            is_diagonal_drawn=True,
        ),
    )  # fmt: skip


def _groups(samples: Mapping[str, Sequence[Sample]]) -> tuple[tuple[str, tuple[Sample, ...]], ...]:
    return tuple((heading, tuple(group)) for heading, group in samples.items())


def _sample(label: str, draws: FloatArray) -> Sample:
    return Sample(label, downsample(draws))

"""Figures of posteriors, slices, priors and recovered biases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from peekbench.records import Axis, Densities, FloatArray, Forest, Interval, Sample, Unit
from peekbench_bayes.arrays import PairedArms
from peekbench_bayes.posterior import Posterior, summarize
from peekbench_stats import downsample

AVERAGE = "average of these tasks"
ALL_MODELS = "all models"
Fit = tuple[PairedArms, Posterior]


def effect_axis(effect: str, unit: Unit, region: float = 0.0) -> Axis:
    """Return the axis of an effect or its standard deviation, in points if scores are fractions."""
    words = "points" if unit in ("difference", "spread") else "units of the score"
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
    title: str, axis: Axis, predictions: Sequence[tuple[PairedArms, FloatArray, float]], level: float
) -> Densities:
    """Draw a quantity of data sets simulated from priors, (n_data_sets,), with the observed value, for each fit."""
    has_several_effects = len({arms.effect for arms, *_ in predictions}) > 1
    samples = tuple(
        Sample(f"{arms.label}, {arms.effect}" if has_several_effects else arms.label, downsample(simulated), observed)
        for arms, simulated, observed in predictions
    )
    note = "The simulation does not use the observed values."
    return Densities(title, axis, (("", samples),), level, note, mark="observed")


def recovered_biases(
    estimates: Sequence[tuple[PairedArms, float, FloatArray]], level: float, region: float, unit: Unit
) -> Densities:
    """Draw the posterior means of data sets with a known bias, (n_data_sets,), by fit and true bias."""
    scale, form = (100, "{:g} points") if unit == "difference" else (1, "{:g}")
    groups: dict[str, list[Sample]] = {}
    for arms, bias, means in estimates:
        label = f"true bias {form.format(bias * scale)}"
        groups.setdefault(arms.label, []).append(Sample(label, downsample(means), bias))
    axis = effect_axis("posterior mean of the bias", unit, region)
    title = "Estimates in simulated data sets, by true bias"
    return Densities(title, axis, _groups(groups), level, mark="truth")


def _groups(samples: Mapping[str, Sequence[Sample]]) -> tuple[tuple[str, tuple[Sample, ...]], ...]:
    return tuple((heading, tuple(group)) for heading, group in samples.items())


def _sample(label: str, draws: FloatArray) -> Sample:
    return Sample(label, downsample(draws))

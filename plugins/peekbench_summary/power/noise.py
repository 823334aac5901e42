"""From the results table to the sources of variance of the bias, and the variance that they imply for other designs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from peekbench.results import has_independent_tasks, independent_units, pair_arms
from peekbench_stats import welch_satterthwaite

TYPICAL_SAMPLING = 0.15
"""Share of the binomial variance of two independent arms that remains in their difference on the same texts, fitted to
the accuracies published with arXiv 2410.00179 (0.12 for BERT, 0.17 for GPT-2)."""


@dataclass(frozen=True, slots=True)
class Precision:
    """How precisely a design measures the mean bias over its tasks, on which the verdict on it depends."""

    num_tasks: int
    subsamples: float
    """Subsamples per task."""
    evenness: float
    """As in `Measurement`."""
    error: float
    """Standard error of the mean."""
    degrees: float
    """Degrees of freedom of this error."""
    failures_cancel: bool = False
    """As in `Noise`."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The bias of one configuration and its variance; variances are in squared score fractions."""

    num_test: int | None
    num_tasks: int
    subsamples: float
    """Subsamples per task, on average."""
    num_trials: int
    """Trials of all tasks."""
    within: float
    """Variance between subsamples of a task, averaged over tasks."""
    between: float
    """Variance of the bias between tasks that subsamples do not explain; the estimate may be negative."""
    squared_error: float
    """Squared standard error of the mean over these tasks."""
    degrees: float
    """Degrees of freedom of that error (Welch-Satterthwaite)."""
    squared_error_other: float
    """Squared standard error of the mean over other tasks, at least that over these; NaN for one task."""
    evenness: float
    """(Sum of task variances)^2 / (tasks x sum of their squares): 1 if all tasks are equally noisy."""
    binomial: float
    """Mean of 2 p (1 - p) over tasks, divided by the number of scored sets, for accuracies: n times the variance of the
    difference of independent arms."""
    common: float | None = None
    """Covariance of two tasks in a subsample, at least zero, if tasks share draws; None if they do not."""

    @property
    def precision(self) -> Precision:
        """How precisely these trials measure the mean over these tasks. Shared draws count once, as one task."""
        if self.common is not None:
            return Precision(1, self.subsamples, 1.0, math.sqrt(self.squared_error), max(self.degrees, 0.0))
        return Precision(
            self.num_tasks, self.subsamples, self.evenness, math.sqrt(self.squared_error), max(self.degrees, 0.0)
        )


@dataclass(frozen=True, slots=True)
class Noise:
    """Variance components of one method, model and `num_train`, from which the errors of any design follow."""

    label: str
    training: float
    """Variance of the difference that more test texts do not reduce, because training differs between fits."""
    sampling: float
    """Variance that the sampling of n test texts adds, times n."""
    between: float
    """Variance of the bias between tasks."""
    evenness: float
    seconds: tuple[float, float] | None = None
    """Seconds of a trial: a fixed part, and a part per test text; None if unknown."""
    common: float | None = None
    """Covariance of two tasks in a subsample, if tasks share draws; None if they do not."""
    failures_cancel: bool = False
    """Whether what fits that fail lose cancels in the bias, as with folds."""

    def within(self, num_test: int | None) -> float:
        """Return the variance between subsamples of a task."""
        return self.training + (self.sampling / num_test if num_test else 0.0)

    def inflated(self, factor: float) -> Noise:
        """Return the noise with the variances within tasks multiplied by a factor."""
        common = None if self.common is None else self.common * factor
        return replace(self, training=self.training * factor, sampling=self.sampling * factor, common=common)

    def precision(self, num_tasks: int, subsamples: float, num_test: int | None) -> Precision:
        """Return how precisely a design measures the mean over these tasks."""
        within = self.within(num_test)
        if self.common is not None:
            error = math.sqrt((within + (num_tasks - 1) * self.common) / (num_tasks * subsamples))
            return Precision(1, subsamples, 1.0, error, subsamples - 1)
        error = math.sqrt(within / (num_tasks * subsamples))
        evenness = max(self.evenness, 1 / num_tasks)  # a task alone is as noisy as itself
        degrees = evenness * num_tasks * (subsamples - 1)
        return Precision(num_tasks, subsamples, evenness, error, degrees, self.failures_cancel)

    def error_for_other_tasks(self, num_tasks: int, subsamples: float, num_test: int | None) -> tuple[float, float]:
        """Return the standard error of the mean over other tasks, and its degrees of freedom."""
        variance = self.within(num_test) + (num_tasks - 1) * (self.common or 0.0)
        return math.sqrt((self.between + variance / subsamples) / num_tasks), num_tasks - 1.0

    def trial_seconds(self, num_test: int | None) -> float | None:
        """Return the seconds of a trial, all arms together; None if unknown."""
        return None if self.seconds is None else self.seconds[0] + self.seconds[1] * (num_test or 0)


@dataclass(frozen=True, slots=True)
class MethodNoise:
    """The noise of one method, model and `num_train`, as measured and as fitted."""

    label: str
    method: str
    num_train: int
    measurements: tuple[Measurement, ...]
    """One for each test size."""
    noise: Noise

    @property
    def num_tasks(self) -> int:
        """Largest number of tasks of a test size."""
        return max(measurement.num_tasks for measurement in self.measurements)

    @property
    def test_sizes(self) -> tuple[int | None, ...]:
        """Measured test sizes."""
        return tuple(measurement.num_test for measurement in self.measurements)


def fit_noise(label: str, measurements: Sequence[Measurement], seconds: tuple[float, float] | None) -> Noise:
    """Fit variance components to the measurements at one or several test sizes.

    With several sizes, fit the variance within tasks as training + sampling / n by least squares, both at least zero,
    weighted by how precisely each variance is known. With one size, set the sampling variance to `TYPICAL_SAMPLING`
    times the binomial variance, but at most to the whole variance within tasks.
    """
    weights = np.array([measurement.num_tasks * (measurement.subsamples - 1) for measurement in measurements])
    between = float(np.average([measurement.between for measurement in measurements], weights=weights))
    evenness = float(np.average([measurement.evenness for measurement in measurements], weights=weights))
    covariances = [measurement.common for measurement in measurements if measurement.common is not None]
    common = float(np.mean(covariances)) if covariances else None
    within = np.array([measurement.within for measurement in measurements])
    if any(measurement.num_test is None or measurement.binomial == 0 for measurement in measurements):
        training, sampling = float(np.average(within, weights=weights)), 0.0
    elif len(measurements) == 1:
        num_test = measurements[0].num_test or 1
        sampling = min(TYPICAL_SAMPLING * measurements[0].binomial, float(within[0]) * num_test)
        training = max(0.0, float(within[0]) - sampling / num_test)  # rounding can make it negative
    else:
        precision = np.sqrt(weights) / np.maximum(within, 1e-12)
        sizes = np.array([float(measurement.num_test or 1) for measurement in measurements])
        terms = np.column_stack([np.ones(len(sizes)), 1 / sizes])  # (n_sizes, 2)
        (training, sampling), _ = nnls(terms * precision[:, None], within * precision)
    return Noise(label, float(training), float(sampling), max(0.0, between), evenness, seconds, common)


SIZES = ("num_train", "num_test")
UNKNOWN = -1  # a missing size, as `pair_arms` writes it
KEYS = ("method", "model", *SIZES, "task", "subsample")
ALL_MODELS = "average of models"


def pair_trials(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row per trial, with bias and times.

    Returns
    -------
    pandas.DataFrame
        The columns of `KEYS`; `bias`; `mean`, the mean score of extra and test; `answers`, the number of scored answers
        of test; `seconds` of all arms; `fixed_seconds`, the part that does not depend on the number of test texts;
        `is_independent`, whether the draws of different tasks are. If a method has several models, their average over
        each subsample is added as another model.
    """
    names = ("score", "num_scored", "fit_seconds", "predict_seconds")
    needed = results[results["arm"].isin(("base", "extra", "test"))]  # other arms are no cost of measuring the bias
    scores, answers, fits, predictions = (pair_arms(needed, name) for name in names)
    trials = pd.DataFrame(
        {
            "bias": scores["test"] - scores["extra"],
            "mean": (scores["test"] + scores["extra"]) / 2,
            "answers": answers["test"],
            "seconds": (fits + predictions).sum(axis=1, min_count=1),
            "fixed_seconds": fits["base"] * fits.shape[1] if "base" in fits else float("nan"),
        }
    )
    trials = trials.reset_index()
    trials["is_independent"] = trials["method"].map(has_independent_tasks(results))
    several = trials[trials.groupby(["method", *SIZES])["model"].transform("nunique") > 1]
    if several.empty:
        return trials
    subsamples = several.groupby(["method", *SIZES, "task", "subsample"])
    average = (
        subsamples[["bias", "mean", "answers", "is_independent"]]
        .mean()
        .join(subsamples[["seconds", "fixed_seconds"]].sum(min_count=1))
    )
    return trials.merge(average.reset_index().assign(model=ALL_MODELS), how="outer").sort_values(
        ["method", "num_train"], kind="stable"
    )


def measure_noise(trials: pd.DataFrame, is_accuracy: bool, *, failures_cancel: bool = False) -> Iterator[MethodNoise]:
    """Measure the noise of each method, model and `num_train`.

    Skip configurations in which no task has two subsamples.

    Parameters
    ----------
    trials
        The result of `pair_trials`.
    is_accuracy
        Whether scores are accuracies.
    failures_cancel
        As in `Noise`.
    """
    has_several_methods = trials["method"].nunique() > 1
    order = {name: position for position, name in enumerate(dict.fromkeys(trials["model"]))}
    order[ALL_MODELS] = len(order)
    groups: list[tuple[Any, pd.DataFrame]] = list(trials.groupby(["method", "model", "num_train"], sort=False))
    for (method, model, num_train), group in sorted(groups, key=lambda pair: order[pair[0][1]]):
        label = ", ".join(filter(None, (str(method) if has_several_methods or not model else "", str(model))))
        measurements = tuple(
            measurement
            for _, part in group.groupby("num_test")
            for measurement in [_measure(part, size_cell(part["num_test"].iloc[0]), is_accuracy)]
            if measurement is not None
        )
        if measurements:
            seconds = _split_seconds(group) if pd.notna(group["seconds"]).all() else None
            noise = replace(fit_noise(label, measurements, seconds), failures_cancel=failures_cancel)
            yield MethodNoise(label, str(method), int(num_train), measurements, noise)


def _measure(trials: pd.DataFrame, num_test: int | None, is_accuracy: bool) -> Measurement | None:
    by_task = trials.groupby("task").agg(
        bias=("bias", "mean"), variance=("bias", "var"), count=("bias", "size"), mean=("mean", "mean")
    )
    by_task = by_task[by_task["count"] > 1]
    if by_task.empty:
        return None
    variance, count = by_task["variance"].to_numpy(), by_task["count"].to_numpy()
    sets = trials["answers"].astype("float64").mean() / (num_test or 1)
    num_tasks = len(by_task)
    squared_errors = variance / count
    degrees = float(welch_satterthwaite(squared_errors, count - 1))
    between = float(by_task["bias"].var())  # NaN for one task
    squared_error, common_error, common = float(squared_errors.sum() / num_tasks**2), 0.0, None
    if not trials["is_independent"].all() and num_tasks > 1 and trials["subsample"].duplicated().any():
        parts = [part for task, part in trials.groupby("task") if task in by_task.index]
        values, numbers = ([part[name].tolist() for part in parts] for name in ("bias", "subsample"))
        (shared,) = independent_units(values, numbers, shares_draws=True)
        alone, squared_error, degrees = squared_error, float(np.var(shared, ddof=1) / len(shared)), len(shared) - 1.0
        common_error = max(0.0, squared_error - alone) * num_tasks / (num_tasks - 1)
        common = common_error * len(shared)
    sum_of_squares = (variance**2).sum()
    return Measurement(
        num_test=num_test,
        num_tasks=num_tasks,
        subsamples=float(count.mean()),
        num_trials=int(count.sum()),
        within=float(variance.mean()),
        between=float(between - squared_errors.mean() + common_error) if num_tasks > 1 else 0.0,
        squared_error=squared_error,
        degrees=degrees if np.isfinite(degrees) else float((count - 1).sum()),
        squared_error_other=max(between, squared_errors.mean() - common_error) / num_tasks + common_error
        if num_tasks > 1
        else np.nan,
        evenness=float(variance.sum() ** 2 / (num_tasks * sum_of_squares)) if sum_of_squares > 0 else 1.0,
        binomial=float((2 * by_task["mean"] * (1 - by_task["mean"])).mean() / sets) if is_accuracy else 0.0,
        common=common,
    )


def _split_seconds(trials: pd.DataFrame) -> tuple[float, float]:
    """Return the seconds of a trial that do not depend on the number of test texts, and the seconds per test text.

    With several test sizes, fit both by least squares, at least zero. With one, the fit of the base arm is the fixed
    part of each arm, and the rest grows in proportion to the test size; without a base arm, all of it does.
    """
    by_size = trials.groupby("num_test")[["seconds", "fixed_seconds"]].mean()
    sizes = by_size.index.to_numpy(dtype="float64")
    if len(by_size) > 1:
        (fixed, per_text), _ = nnls(np.column_stack([np.ones(len(sizes)), sizes]), by_size["seconds"].to_numpy())
        return float(fixed), float(per_text)
    total, known = (float(by_size[name].iloc[0]) for name in ("seconds", "fixed_seconds"))
    fixed = 0.0 if np.isnan(known) else min(known, total)
    return fixed, (total - fixed) / max(1.0, float(sizes[0]))


def size_cell(size: Any) -> int | None:
    """Return a size as a cell of a table; None if it is unknown."""
    return None if size == UNKNOWN else int(size)

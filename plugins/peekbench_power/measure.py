"""From the results table to the measured variance of the bias in each configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from peekbench.results import pair_arms
from peekbench_power.noise import Measurement, MethodNoise, TaskNoise, fit_noise
from peekbench_stats import welch_satterthwaite

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
        of test; `seconds` of all arms; `fixed_seconds`, the part that does not depend on the number of test texts. If a
        method has several models, their average over each subsample is added as another model.
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
    several = trials[trials.groupby(["method", *SIZES])["model"].transform("nunique") > 1]
    if several.empty:
        return trials
    subsamples = several.groupby(["method", *SIZES, "task", "subsample"])
    average = (
        subsamples[["bias", "mean", "answers"]].mean().join(subsamples[["seconds", "fixed_seconds"]].sum(min_count=1))
    )
    return trials.merge(average.reset_index().assign(model=ALL_MODELS), how="outer").sort_values(
        ["method", "num_train"], kind="stable"
    )


def measure_noise(trials: pd.DataFrame, is_accuracy: bool) -> Iterator[MethodNoise]:
    """Measure the noise of each method, model and `num_train`.

    Skip configurations in which no task has two subsamples.

    Parameters
    ----------
    trials
        The result of `pair_trials`.
    is_accuracy
        Whether scores are accuracies.
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
            noise = fit_noise(label, measurements, seconds)
            yield MethodNoise(label, int(num_train), measurements, noise)


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
    degrees = welch_satterthwaite(squared_errors, count - 1)
    between = float(by_task["bias"].var())  # NaN for one task
    sum_of_squares = (variance**2).sum()
    return Measurement(
        num_test=num_test,
        num_tasks=num_tasks,
        subsamples=float(count.mean()),
        within=float(variance.mean()),
        between=float(between - squared_errors.mean()) if num_tasks > 1 else 0.0,
        squared_error=float(squared_errors.sum() / num_tasks**2),
        degrees=float(degrees) if np.isfinite(degrees) else float((count - 1).sum()),
        squared_error_other=float(max(between, squared_errors.mean()) / num_tasks) if num_tasks > 1 else np.nan,
        evenness=float(variance.sum() ** 2 / (num_tasks * sum_of_squares)) if sum_of_squares > 0 else 1.0,
        binomial=float((2 * by_task["mean"] * (1 - by_task["mean"])).mean() / sets) if is_accuracy else 0.0,
        tasks=tuple(
            TaskNoise(str(task), int(number), float(noise))
            for task, number, noise in zip(by_task.index, count, variance, strict=True)
        ),
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

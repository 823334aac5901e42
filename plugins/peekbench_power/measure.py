"""The results table to what is measured of each configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from peekbench_power.noise import Measured, Noise, fit

if TYPE_CHECKING:
    import pandas as pd

SIZES = ("num_train", "num_test")
UNKNOWN = -1  # stands for a missing size, so that rows can be grouped by it
KEYS = ("method", "model", *SIZES, "task", "subsample")
OF_ALL_MODELS = "average of models"


def biases(results: pd.DataFrame) -> pd.DataFrame:
    """One row a trial: `KEYS`, bias, mean score of extra and test, seconds of all arms and of their parts.

    Where a method has several models, their average over each draw is added as one more model.
    """
    sized = results.assign(**{name: results[name].fillna(UNKNOWN).astype("int64") for name in SIZES})
    sized["seconds"] = sized["fit_seconds"] + sized["predict_seconds"]
    wide = sized.pivot(index=list(KEYS), columns="arm", values="score")
    table = (
        (wide["test"] - wide["extra"])
        .to_frame("bias")
        .assign(mean=(wide["test"] + wide["extra"]) / 2, seconds=sized.groupby(list(KEYS))["seconds"].sum(min_count=1))
    )
    fits = sized.pivot(index=list(KEYS), columns="arm", values="fit_seconds")
    table["fixed_seconds"] = fits["base"] * fits.shape[1] if "base" in fits else float("nan")
    table = table.reset_index()
    several = table[table.groupby(["method", *SIZES])["model"].transform("nunique") > 1]
    if several.empty:
        return table
    draws = several.groupby(["method", *SIZES, "task", "subsample"])
    whole = draws[["bias", "mean"]].mean().join(draws[["seconds", "fixed_seconds"]].sum(min_count=1))
    return table.merge(whole.reset_index().assign(model=OF_ALL_MODELS), how="outer").sort_values(
        ["method", "num_train"], kind="stable"
    )


def measured(table: pd.DataFrame, is_accuracy: bool) -> Iterator[tuple[str, int, list[Measured], Noise]]:
    """Of each method, model and `num_train`: label, `num_train`, what each test size gave, and the components.

    Configurations in which no task has two subsamples are passed over.
    """
    import pandas as pd

    several_methods = table["method"].nunique() > 1
    order = {name: place for place, name in enumerate(dict.fromkeys(table["model"]))}
    order[OF_ALL_MODELS] = len(order)
    groups: list[tuple[Any, pd.DataFrame]] = list(table.groupby(["method", "model", "num_train"], sort=False))
    for (method, model, num_train), group in sorted(groups, key=lambda pair: order[pair[0][1]]):
        label = ", ".join(filter(None, (str(method) if several_methods or not model else "", str(model))))
        sizes = [
            found
            for _, part in group.groupby("num_test")
            for found in [_measure(part, plain(part["num_test"].iloc[0]), is_accuracy)]
            if found is not None
        ]
        if sizes:
            seconds = _seconds(group) if pd.notna(group["seconds"]).all() else None
            yield label, int(num_train), sizes, fit(label, sizes, seconds)


def _measure(part: pd.DataFrame, num_test: int | None, is_accuracy: bool) -> Measured | None:
    import numpy as np

    by_task = part.groupby("task").agg(
        bias=("bias", "mean"), variance=("bias", "var"), count=("bias", "size"), mean=("mean", "mean")
    )
    by_task = by_task[by_task["count"] > 1]
    if by_task.empty:
        return None
    variance, count = by_task["variance"].to_numpy(), by_task["count"].to_numpy()
    squared_errors = variance / count
    total = squared_errors.sum()
    tasks = len(by_task)
    spread = (squared_errors**2 / (count - 1)).sum()
    squares = (variance**2).sum()
    seconds = part["seconds"].mean()
    return Measured(
        num_test=num_test,
        num_tasks=tasks,
        subsamples=float(count.mean()),
        within=float(variance.mean()),
        between=float(by_task["bias"].var() - squared_errors.mean()) if tasks > 1 else 0.0,
        squared_error=float(total / tasks**2),
        degrees=float(total**2 / spread) if spread > 0 else float((count - 1).sum()),
        squared_error_such=float(max(by_task["bias"].var(), squared_errors.mean()) / tasks) if tasks > 1 else np.nan,
        unevenness=float(variance.sum() ** 2 / (tasks * squares)) if squares > 0 else 1.0,
        binomial=float((2 * by_task["mean"] * (1 - by_task["mean"])).mean()) if is_accuracy else 0.0,
        seconds=None if np.isnan(seconds) else float(seconds),
    )


def _seconds(group: pd.DataFrame) -> tuple[float, float]:
    """Seconds of a trial that do not depend on n, and those for each test text.

    With several test sizes by least squares, neither below zero. With one, what the base arm takes to fit is fixed, in
    each arm, and the rest is taken to grow as n does; without base arm, all of it.
    """
    import numpy as np
    from scipy.optimize import nnls

    sizes = group.groupby("num_test")[["seconds", "fixed_seconds"]].mean()
    num_test = sizes.index.to_numpy(dtype="float64")
    if len(sizes) > 1:
        (fixed, each), _ = nnls(np.column_stack([np.ones(len(sizes)), num_test]), sizes["seconds"].to_numpy())
        return float(fixed), float(each)
    total, known = (float(sizes[name].iloc[0]) for name in ("seconds", "fixed_seconds"))
    fixed = 0.0 if np.isnan(known) else min(known, total)
    return fixed, (total - fixed) / max(1.0, float(num_test[0]))


def plain(value: Any) -> int | None:
    """A size as a cell of a table."""
    return None if value == UNKNOWN else int(value)

"""What do the priors imply for the design at hand, before any score is seen (appendix E.1 of the study)?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peekbench import Analysis, Column, Table
from peekbench.records import Cell, Unit
from peekbench_bayes.arrays import Arms, split
from peekbench_bayes.counts import lay_rows, predict_chances
from peekbench_bayes.figures import axis_of, implied
from peekbench_bayes.gaussian import Cells, summarize_cells
from peekbench_bayes.laplace import Draws, Rows

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from peekbench.records import FloatArray
    from peekbench_bayes import PriorCheck
    from peekbench_bayes.model import DifferencePriors

QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)
LEVEL = 0.95  # of the bars of figures: from the first quantile to the last
MEAN = "mean effect"
TASKS = "sd of the tasks' means"
SINGLE = "sd of single differences within tasks"
ACCURACIES = ("mean accuracy", "accuracy of the worst cell", "accuracy of the best cell")
EXTREME = 0.005  # a percentile nearer to 0 or 1 is warned of

Quantities = Mapping[str, "FloatArray"]
"""Of data sets, by name; each of shape (n_data_sets,)."""


@dataclass(frozen=True, slots=True)
class Implied:
    """Of one design point: the quantities of simulated data sets, and of the observed one."""

    arms: Arms
    simulated: Quantities
    observed: Quantities

    def percentile(self, name: str) -> float:
        """Share of simulated values below the observed one, those equal to it counted half."""
        drawn, seen = self.simulated[name], self.observed[name][0]
        return float((drawn < seen).mean() + (drawn == seen).mean() / 2)

    def numbers(self, name: str) -> tuple[Cell, ...]:
        """Quantiles of the simulated values, the observed value, and its percentile."""
        import numpy as np

        quantiles = np.quantile(self.simulated[name], QUANTILES).tolist()
        return (*quantiles, float(self.observed[name][0]), self.percentile(name))


def check_priors(results: pd.DataFrame, *, options: PriorCheck) -> Analysis:
    """Simulate data of each method's design at each design point from the priors, and compare with the results.

    Raises
    ------
    DataError
        Where a binomial preset is asked for scores that are no accuracies.
    """
    import numpy as np

    keys, parts = split(results, options.effects)
    found = [_imply(arms, options) for arms in parts]
    is_accuracy = all(arms.num_test for arms in parts)
    unit: Unit = "difference" if is_accuracy else "change"
    spread: Unit = "spread" if is_accuracy else "number"
    size = f"{options.region * 100:g} points" if is_accuracy else f"{options.region:g}"
    of = f"of {options.num_draws:,} data sets from the priors of {options.preset}"
    means: list[tuple[Cell, ...]] = []
    for one in found:
        beyond = float((np.abs(one.simulated[MEAN]) > options.region).mean())
        means.append((*one.arms.cells, one.arms.effect, *one.numbers(MEAN), beyond))
    first = (*keys, Column("effect"))
    tables = [
        Table(
            f"Mean effects {of}",
            (*first, *_columns(unit), Column(f"beyond {size}", "fraction")),
            tuple(means),
            "Averages over tasks and models of simulated data sets with these tasks, models and subsamples; the scores "
            "of the results are used for the column observed alone. Percentile: share of simulated values below the "
            "observed one.",
        ),
        Table(
            f"Spread {of}",
            (*first, Column("quantity"), *_columns(spread)),
            _rows(found, (TASKS, SINGLE)),
            "A low percentile: the priors allow for more spread than these results have. One near 100%: they hardly "
            "allow for as much.",
        ),
    ]
    if options.preset != "calibrated":
        note = "A cell is one model on one task, its two arms averaged."
        columns = (*first, Column("quantity"), *_columns("fraction"))
        tables.append(Table(f"Accuracies {of}", columns, _rows(found, ACCURACIES), note))
    simulated = [(one.arms, one.simulated, one.observed) for one in found]
    figures = (
        implied(f"Mean effects {of}", axis_of("mean effect", unit, options.region), simulated, (MEAN,), LEVEL),
        implied(f"Spread {of}", axis_of("standard deviation", spread), simulated, (TASKS, SINGLE), LEVEL),
    )
    return Analysis("prior_check", tuple(tables), figures, warnings=tuple(_warnings(found)))


def _columns(unit: Unit) -> tuple[Column, ...]:
    quantiles = (Column(f"{100 * quantile:g}%", unit) for quantile in QUANTILES)
    return (*quantiles, Column("observed", unit), Column("percentile", "fraction"))


def _rows(found: list[Implied], names: tuple[str, ...]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        (*one.arms.cells, one.arms.effect, name, *one.numbers(name))
        for one in found
        for name in names
        if name in one.simulated
    )


def _warnings(found: list[Implied]) -> Iterator[str]:
    for one in found:
        for name in one.simulated:
            percentile = one.percentile(name)
            is_low = percentile < EXTREME and name not in (TASKS, SINGLE)  # room for more spread does no harm
            if is_low or percentile > 1 - EXTREME:
                side = "below" if is_low else "above"
                yield (
                    f"{one.arms.label}, {one.arms.effect}: the observed {name} is {side} nearly all that the priors "
                    "imply; choose priors that allow for it, or another preset"
                )


def _imply(arms: Arms, options: PriorCheck) -> Implied:
    import numpy as np

    rng = np.random.default_rng(options.seed)
    if options.preset == "calibrated":
        observed = summarize_cells(arms.difference[None])
        cells = simulate_cells(observed.count[0], options.difference_priors, options.num_draws, rng)
        return Implied(arms, _describe(cells), _describe(observed))
    rows = lay_rows(arms, options.preset, options.count_priors)
    parts = [_describe_counts(rows, right) for right in simulate_counts(rows, options.num_draws, rng)]
    simulated = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Implied(arms, simulated, _describe_counts(rows, rows.right[None]))


def simulate_cells(count: FloatArray, priors: DifferencePriors, number: int, rng: np.random.Generator) -> Cells:
    """Data sets of the model `calibrated`, by their sufficient statistics.

    Parameters
    ----------
    count : subsamples of each model and task, shape (n_models, n_tasks)
    number : of data sets, each with its own parameters

    Returns
    -------
    Cells of shape (number, n_models, n_tasks).
    """
    import numpy as np

    models, tasks = count.shape
    several = models > 1
    mu = priors.mean_sd * rng.standard_normal((number, 1, 1))
    mu = mu + several * priors.model_sd * rng.standard_normal((number, models, 1))
    tau_task = priors.task_sd * np.abs(rng.standard_normal((number, 1, 1)))
    tau_cell = several * priors.cell_sd * np.abs(rng.standard_normal((number, 1, 1)))
    theta = mu + tau_task * rng.standard_normal((number, 1, tasks))
    theta = theta + tau_cell * rng.standard_normal((number, models, tasks))
    scale = priors.residual_sd**2 * rng.standard_exponential((number, models, 1))
    variance = scale * priors.residual_df / rng.chisquare(priors.residual_df, (number, models, tasks))
    return draw_cells(count, theta, np.sqrt(variance), rng)


def draw_cells(count: FloatArray, theta: FloatArray, sigma: FloatArray, rng: np.random.Generator) -> Cells:
    """Sufficient statistics of normal differences with known means and standard deviations.

    Parameters
    ----------
    count : subsamples of each model and task, shape (n_models, n_tasks)
    theta, sigma : mean and standard deviation of the differences, of shapes that broadcast to the result's

    Returns
    -------
    Cells of shape (n_data_sets, n_models, n_tasks).
    """
    import numpy as np

    noise = sigma / np.sqrt(np.maximum(count, 1)) * rng.standard_normal(theta.shape)
    mean = np.where(count > 0, theta + noise, 0.0)
    squares = sigma**2 * 2 * rng.standard_gamma(np.broadcast_to(np.maximum(count - 1, 0) / 2, theta.shape))
    return Cells(np.broadcast_to(count, theta.shape), mean, squares)


def simulate_counts(rows: Rows, number: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Right answers from the priors of a binomial model, some data sets at a time: each (some, *rows.right.shape)."""
    import numpy as np

    tasks, subsamples, _ = rows.right.shape
    sds = np.abs(rng.standard_normal((number, len(rows.scales)))) * rows.scales
    draws = Draws(
        point=np.zeros(number, dtype=np.int64),
        log_density=np.zeros(number),
        top=rows.global_sd * rng.standard_normal((number, rows.num_global)),
        task=sds[:, None, list(rows.task_groups)] * rng.standard_normal((number, tasks, len(rows.task_groups))),
        group=sds[:, -1, None, None] * rng.standard_normal((number, tasks, subsamples)),
    )
    for chance in predict_chances(rows, draws):
        yield rng.binomial(rows.trials.astype(np.int64), chance).astype(float)


def _describe(cells: Cells) -> dict[str, FloatArray]:
    """Of data sets along the first axis; what a design cannot tell is left out."""
    import numpy as np

    means = np.where(cells.count > 0, cells.mean, np.nan)
    found = {MEAN: np.nanmean(means, axis=(1, 2))}
    if means.shape[2] > 1:
        found[TASKS] = np.nanmean(means, axis=1).std(axis=1, ddof=1)
    degrees = np.maximum(cells.count[0] - 1, 0).sum()
    if degrees:
        found[SINGLE] = np.sqrt(cells.squares.sum(axis=(1, 2)) / degrees)
    return found


def _describe_counts(rows: Rows, right: FloatArray) -> dict[str, FloatArray]:
    """Of counts of shape (n_data_sets, n_tasks, n_subsamples, n_models x 2)."""
    import numpy as np

    with np.errstate(invalid="ignore"):
        scores = right / rows.trials
        by_row = right.sum(axis=2) / rows.trials.sum(axis=1)  # (n_data_sets, n_tasks, n_models x 2)
    differences = np.moveaxis(scores[..., 1::2] - scores[..., 0::2], 3, 1)
    cells = (by_row[..., 0::2] + by_row[..., 1::2]) / 2
    found = (np.nanmean(cells, axis=(1, 2)), np.nanmin(cells, axis=(1, 2)), np.nanmax(cells, axis=(1, 2)))
    return {**_describe(summarize_cells(differences)), **dict(zip(ACCURACIES, found, strict=True))}

"""`bayes.prior_check`: data that the priors imply for this design, compared with the results (appendix E.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from peekbench import Analysis, Column, Table
from peekbench.formatting import difference_unit, spread_unit
from peekbench.records import Cell, FloatArray, Unit
from peekbench.results import select_score
from peekbench_bayes.arrays import PairedArms, split_results
from peekbench_bayes.counts import differences_of_rows, make_count_rows
from peekbench_bayes.figures import effect_axis, prior_predictive
from peekbench_bayes.gaussian import Cells, summarize_cells
from peekbench_bayes.laplace import CountRows
from peekbench_bayes.options import PriorCheck
from peekbench_bayes.scores import region_of, resolve_options
from peekbench_bayes.simulation import simulate_prior_counts, simulate_prior_differences
from peekbench_bayes.summaries import format_region

QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)
LEVEL = 0.95  # of the bars of figures: from the first quantile to the last
MEAN = "mean effect"
TASKS = "sd of the tasks' means"
SINGLE = "sd of single differences within tasks"
ACCURACIES = ("mean accuracy", "accuracy of the worst cell", "accuracy of the best cell")
EXTREME = 0.005  # a percentile closer than this to 0 or 1 leads to a warning


@dataclass(frozen=True, slots=True)
class PriorPrediction:
    """Quantities of simulated data sets and of the observed one, for one fit."""

    arms: PairedArms
    simulated: Mapping[str, FloatArray]
    """Values in the simulated data sets by quantity: (n_data_sets,)."""
    observed: Mapping[str, FloatArray]
    """Value in the results by quantity: (1,)."""

    def percentile(self, name: str) -> float:
        """Return the share of simulated values below the observed one; equal values count half."""
        simulated, observed = self.simulated[name], self.observed[name][0]
        return float((simulated < observed).mean() + (simulated == observed).mean() / 2)

    def cells(self, name: str) -> tuple[Cell, ...]:
        """Return quantiles of the simulated values, the observed value, and its percentile."""
        quantiles = np.quantile(self.simulated[name], QUANTILES).tolist()
        return (*quantiles, float(self.observed[name][0]), self.percentile(name))


def check_priors(results: pd.DataFrame, *, options: PriorCheck) -> Analysis:
    """Simulate data of this design from the priors for each method and design point, and compare with the results.

    Parameters
    ----------
    results
        The results table.
    options
        Preset, priors and number of data sets.

    Returns
    -------
    Analysis
        Quantiles of simulated quantities with the observed value, figures, and a warning per extreme percentile.

    Raises
    ------
    DataError
        If the preset is binomial and the scores are not accuracies of a known number of texts.
    SpecError
        If the region of accuracies exceeds 20 points.
    """
    options = resolve_options(results, options)
    keys, splits = split_results(select_score(results, options.score, "bayes.prior_check"), options.effects)
    region = region_of(options, "bayes.prior_check", splits)
    predictions = [_predict(arms, options) for arms in splits]
    is_accuracy = all(arms.is_accuracy for arms in splits)
    unit, spread = difference_unit(is_accuracy), spread_unit(is_accuracy)
    size = format_region(region, unit)
    subject = f"of {options.num_draws:,} data sets from the priors of {options.preset}"
    means: list[tuple[Cell, ...]] = []
    for prediction in predictions:
        beyond = float((np.abs(prediction.simulated[MEAN]) > region).mean())
        means.append((*prediction.arms.cells, prediction.arms.effect, *prediction.cells(MEAN), beyond))
    columns = (*keys, Column("effect"))
    tables = [
        Table(
            f"Mean effects {subject}",
            (*columns, *_columns(unit), Column(f"beyond {size}", "fraction")),
            tuple(means),
            "Averages over tasks and models of simulated data sets with these tasks, models and subsamples. Only the "
            "column observed uses the scores of the results. Percentile: share of simulated values below the observed "
            "one.",
        ),
        Table(
            f"Spread {subject}",
            (*columns, Column("quantity"), *_columns(spread)),
            _rows(predictions, (TASKS, SINGLE)),
            "A low percentile: the priors allow more spread than the results have. A percentile near 100%: the priors "
            "allow hardly as much spread as the results have.",
        ),
    ]
    if options.preset != "calibrated":
        note = "A cell is one model on one task, averaged over its two arms."
        cell_columns = (*columns, Column("quantity"), *_columns("fraction"))
        tables.append(Table(f"Accuracies {subject}", cell_columns, _rows(predictions, ACCURACIES), note))
    simulated = [(prediction.arms, prediction.simulated, prediction.observed) for prediction in predictions]
    mean_axis = effect_axis("mean effect", unit, region)
    figures = (
        prior_predictive(f"Mean effects {subject}", mean_axis, simulated, (MEAN,), LEVEL),
        prior_predictive(
            f"Spread {subject}", effect_axis("standard deviation", spread), simulated, (TASKS, SINGLE), LEVEL
        ),
    )
    return Analysis("prior_check", tuple(tables), figures, warnings=tuple(_warnings(predictions)))


def _columns(unit: Unit) -> tuple[Column, ...]:
    quantiles = (Column(f"{100 * quantile:g}%", unit) for quantile in QUANTILES)
    return (*quantiles, Column("observed", unit), Column("percentile", "fraction"))


def _rows(predictions: list[PriorPrediction], names: tuple[str, ...]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        (*prediction.arms.cells, prediction.arms.effect, name, *prediction.cells(name))
        for prediction in predictions
        for name in names
        if name in prediction.simulated
    )


def _warnings(predictions: list[PriorPrediction]) -> Iterator[str]:
    for prediction in predictions:
        for name in prediction.simulated:
            percentile = prediction.percentile(name)
            # Priors that allow more spread than observed do no harm.
            is_low = percentile < EXTREME and name not in (TASKS, SINGLE)
            if is_low or percentile > 1 - EXTREME:
                side = "below" if is_low else "above"
                yield (
                    f"{prediction.arms.label}, {prediction.arms.effect}: the observed {name} is {side} nearly all "
                    "values that the priors imply; choose wider priors, or another preset"
                )


def _predict(arms: PairedArms, options: PriorCheck) -> PriorPrediction:
    rng = np.random.default_rng(options.seed)
    if options.preset == "calibrated":
        observed = summarize_cells(arms.difference[None])
        cells = simulate_prior_differences(observed.count[0], options.difference_priors, options.num_draws, rng)
        return PriorPrediction(arms, _quantities(cells), _quantities(observed))
    rows = make_count_rows(arms, options.preset, options.count_priors)
    parts = [_count_quantities(rows, right) for right in simulate_prior_counts(rows, options.num_draws, rng)]
    simulated = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return PriorPrediction(arms, simulated, _count_quantities(rows, rows.right[None]))


def _quantities(cells: Cells) -> dict[str, FloatArray]:
    """Return the quantities of data sets along the first axis, without those that the design does not determine."""
    means = np.where(cells.count > 0, cells.mean, np.nan)
    quantities = {MEAN: np.nanmean(means, axis=(1, 2))}
    if means.shape[2] > 1:
        quantities[TASKS] = np.nanmean(means, axis=1).std(axis=1, ddof=1)
    degrees = np.maximum(cells.count[0] - 1, 0).sum()
    if degrees:
        quantities[SINGLE] = np.sqrt(cells.squares.sum(axis=(1, 2)) / degrees)
    return quantities


def _count_quantities(rows: CountRows, right: FloatArray) -> dict[str, FloatArray]:
    """Return the quantities of counts of shape (n_data_sets, n_tasks, n_subsamples, n_models x 2)."""
    with np.errstate(invalid="ignore"):
        scores = right / rows.trials
        by_row = right.sum(axis=2) / rows.trials.sum(axis=1)  # (n_data_sets, n_tasks, n_models x 2)
    differences = np.moveaxis(differences_of_rows(scores), 3, 1)
    cells = (by_row[..., 0::2] + by_row[..., 1::2]) / 2
    accuracies = (np.nanmean(cells, axis=(1, 2)), np.nanmin(cells, axis=(1, 2)), np.nanmax(cells, axis=(1, 2)))
    return {**_quantities(summarize_cells(differences)), **dict(zip(ACCURACIES, accuracies, strict=True))}

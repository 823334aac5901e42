"""`bayes.recovery`: known effects in simulated data of this design, and how well the calibrated model recovers them.

See appendix E.1 of the study.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from peekbench import Analysis, Column, Table
from peekbench.errors import SpecError
from peekbench.formatting import difference_unit, spread_unit
from peekbench.records import Cell, FloatArray
from peekbench.results import select_score
from peekbench_bayes.arrays import PairedArms, split_results
from peekbench_bayes.calibrated import WARM_UP
from peekbench_bayes.figures import recovered_biases
from peekbench_bayes.gaussian import Cells, sample, sample_population, summarize_cells
from peekbench_bayes.options import DifferencePriors, Recovery
from peekbench_bayes.scores import region_of, resolve_options
from peekbench_bayes.simulation import simulate_differences
from peekbench_bayes.slices import CHAIN_BATCH, draw_averages
from peekbench_bayes.summaries import decision_columns, decision_shares, format_region, interval_ends

CHAINS = 8
DRAWS = 250
MAX_ERROR = 3.0  # a coverage further from its level, in standard errors, is reported
TOO_WIDE = "they are wider than necessary with this design: more subsamples make them narrower"
TOO_NARROW = "do not rely on them with this design: increase draws, run more subsamples, or use the analysis summary"


@dataclass(frozen=True, slots=True)
class Components:
    """Standard deviations of simulated data, in units of the score."""

    count: FloatArray
    """Number of subsamples of each cell: (n_models, n_tasks)."""
    task: float
    """Standard deviation between tasks."""
    cell: float
    """Standard deviation between models within a task; 0 with one model."""
    single: FloatArray
    """Standard deviation of single differences: (n_models, n_tasks)."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of one known bias for one method at one design point."""

    arms: PairedArms
    bias: float
    """The true bias, in units of the score."""
    draws: FloatArray
    """Posterior draws of the average bias in each data set: (n_draws, n_data_sets)."""
    options: Recovery

    @property
    def coverage(self) -> float:
        """Share of intervals that contain the true bias."""
        low, high = self._interval()
        return float(((low <= self.bias) & (self.bias <= high)).mean())

    def cells(self) -> tuple[Cell, ...]:
        """Return the row of the table of estimates."""
        means = self.draws.mean(axis=0)
        low, high = self._interval()
        error = float(means.mean()) - self.bias
        excludes = float(((low > 0) | (high < 0)).mean())
        return (*self.arms.cells, self.bias, error + self.bias, error, float(means.std()), self.coverage, excludes)

    def conclusions(self, region: float) -> tuple[Cell, ...]:
        """Return the row of the table of conclusions for a region of practical equivalence."""
        intervals = np.quantile(self.draws, interval_ends(self.options.verdict_level), axis=0).T.tolist()
        return (*self.arms.cells, self.bias, *decision_shares(intervals, region))

    def _interval(self) -> FloatArray:
        interval: FloatArray = np.quantile(self.draws, interval_ends(self.options.level), axis=0)
        return interval


def recover(results: pd.DataFrame, *, options: Recovery) -> Analysis:
    """Simulate data sets with known biases for each method at each design point, and fit each of them.

    Parameters
    ----------
    results
        The results table; it gives the design and the variances of the simulated data.
    options
        True biases, number of data sets, priors and levels.

    Returns
    -------
    Analysis
        Estimates, coverage and conclusions by true bias, with figures; a warning per inaccurate coverage.

    Raises
    ------
    SpecError
        If the preset is not calibrated, or the region of accuracies exceeds 20 points.
    """
    if options.preset != "calibrated":
        raise SpecError(f"preset {options.preset}: recovery supports only the preset calibrated; remove preset")
    options = resolve_options(results, options)
    keys, splits = split_results(select_score(results, options.score, "bayes.recovery"), ("bias",))
    region = region_of(options, "bayes.recovery", splits)
    estimates: list[Estimates] = []
    spreads: list[tuple[Cell, ...]] = []
    for arms in splits:
        rng = np.random.default_rng(options.seed)
        components = estimate_components(arms, options.difference_priors, rng)
        spreads += [(*arms.cells, name, value) for name, value in _spreads(arms, components)]
        estimates += [
            Estimates(arms, bias, fit_known(components, bias, options, rng), options) for bias in options.biases
        ]
    error = (options.level * (1 - options.level) / options.num_data_sets) ** 0.5  # standard error of a coverage
    is_accuracy = all(arms.is_accuracy for arms in splits)
    unit, spread = difference_unit(is_accuracy), spread_unit(is_accuracy)
    subject = f"{options.num_data_sets:,} simulated data sets each"
    columns = (*keys, Column("true bias", unit))
    return Analysis(
        "recovery",
        tables=(
            Table(
                f"Recovery of known biases, {subject}",
                (
                    *columns, Column("mean estimate", unit), Column("error of the mean", unit),
                    Column("sd of estimates", spread), Column("coverage", "fraction"),
                    Column("interval excludes 0", "fraction"),
                ),
                tuple(estimate.cells() for estimate in estimates),
                "Estimate: posterior mean of the average over these tasks and models. Coverage: share of "
                f"{options.level:.0%} intervals that contain the true bias; by chance it deviates from "
                f"{options.level:.0%} by up to {2 * error:.1%} in most cases. Interval excludes 0: the power, or the "
                "false positive rate if the true bias is 0.",
            ),
            Table(
                f"Conclusions, {subject}, region {format_region(region, unit)}",
                (*columns, *decision_columns()),
                tuple(estimate.conclusions(region) for estimate in estimates),
                f"Share of data sets whose {options.verdict_level:.0%} interval leads to each conclusion.",
            ),
            Table(
                "Standard deviations of the simulated data",
                (*keys, Column("standard deviation"), Column("value", spread)),
                tuple(spreads),
                "Posterior means of the preset calibrated, fitted to the results.",
            ),
        ),
        figures=recovered_biases(
            [
                (arms, {estimate.bias: estimate.draws for estimate in estimates if estimate.arms is arms})
                for arms in splits
            ],
            options.level, region, unit,
        ),
        warnings=tuple(_warnings(estimates, MAX_ERROR * error)),
    )  # fmt: skip


def _warnings(estimates: list[Estimates], max_error: float) -> Iterator[str]:
    for estimate in estimates:
        coverage, level = estimate.coverage, estimate.options.level
        if abs(coverage - level) > max_error:
            yield (
                f"{estimate.arms.label}: {level:.0%} intervals contain a true bias of {estimate.bias:g} in "
                f"{coverage:.1%} of data sets; {TOO_WIDE if coverage > level else TOO_NARROW}"
            )


def estimate_components(arms: PairedArms, priors: DifferencePriors, rng: np.random.Generator) -> Components:
    """Estimate the standard deviations by their posterior means.

    Parameters
    ----------
    arms
        Scores of the arms extra and test.
    priors
        Priors of the model `calibrated`.
    rng
        Random generator.

    Returns
    -------
    Components
        Posterior means, in units of the score.
    """
    cells = summarize_cells(np.repeat(arms.difference[None], CHAINS, axis=0))
    states = list(sample(cells, priors, WARM_UP + DRAWS, rng))[WARM_UP:]
    single = np.mean([np.sqrt(state.variance) for state in states], axis=(0, 1))
    populations = list(sample_population(cells, states, priors, rng))
    task, cell = (float(np.mean([getattr(each, name) for each in populations])) for name in ("tau_task", "tau_cell"))
    return Components(cells.count[0], task, cell, single)


def simulate_known(components: Components, bias: float, num_data_sets: int, rng: np.random.Generator) -> Cells:
    """Simulate data sets whose average bias over tasks and models is exactly `bias`.

    Parameters
    ----------
    components
        Standard deviations of the data.
    bias
        True bias, in units of the score.
    num_data_sets
        Number of data sets.
    rng
        Random generator.

    Returns
    -------
    Cells
        Statistics of shape (num_data_sets, n_models, n_tasks).
    """
    count = components.count
    theta = components.task * rng.standard_normal((num_data_sets, 1, count.shape[1]))
    theta = theta + components.cell * rng.standard_normal((num_data_sets, *count.shape))
    weights = np.broadcast_to(count > 0, theta.shape)
    theta = theta + bias - np.average(theta, axis=(1, 2), weights=weights)[:, None, None]
    return simulate_differences(count, theta, components.single, rng)


def fit_known(components: Components, bias: float, options: Recovery, rng: np.random.Generator) -> FloatArray:
    """Simulate data sets with a known bias, and draw the average bias in each of them.

    Parameters
    ----------
    components
        Standard deviations of the data.
    bias
        True bias, in units of the score.
    options
        Number of data sets and draws, and priors.
    rng
        Random generator.

    Returns
    -------
    array
        Draws of shape (n_draws, n_data_sets).
    """
    parts = []
    for start in range(0, options.num_data_sets, CHAIN_BATCH):
        cells = simulate_known(components, bias, min(CHAIN_BATCH, options.num_data_sets - start), rng)
        parts.append(draw_averages(cells, options.difference_priors, options.draws, rng))
    return np.concatenate(parts, axis=1)


def _spreads(arms: PairedArms, components: Components) -> list[tuple[str, float]]:
    spreads = [("between tasks", components.task)]
    has_several_models = len(arms.models) > 1
    if has_several_models:
        spreads.append(("between models within a task", components.cell))
    for model, single, count in zip(arms.models, components.single, components.count, strict=True):
        if count.any():
            name = f"single differences, {model}" if has_several_models else "single differences"
            spreads.append((name, float(np.sqrt((single[count > 0] ** 2).mean()))))
    return spreads

"""`bayes.prior_check` and `bayes.recovery`: data simulated from the priors, or with known biases (appendix E.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from peekbench import Analysis, Column, Table
from peekbench.records import Cell, FloatArray, Unit
from peekbench_bayes.arrays import PairedArms, region_of, resolve_options, split_results
from peekbench_bayes.calibrated import WARM_UP, Cells, sample, sample_population, summarize_cells
from peekbench_bayes.counts import differences_of_rows, make_count_rows, predict_probabilities
from peekbench_bayes.figures import effect_axis, prior_predictive, recovered_biases
from peekbench_bayes.laplace import CountRows, Draws
from peekbench_bayes.options import DifferencePriors, PriorCheck, Recovery
from peekbench_bayes.posterior import decision_columns, decision_shares, format_region, interval_ends
from peekbench_bayes.slices import CHAIN_BATCH, draw_averages
from peekbench_stats import select_score


def simulate_prior_differences(
    count: FloatArray, priors: DifferencePriors, num_data_sets: int, rng: np.random.Generator
) -> Cells:
    """Simulate data sets from the priors of the model `calibrated`, as sufficient statistics."""
    models, tasks = count.shape
    has_several_models = models > 1
    mu = priors.mean_sd * rng.standard_normal((num_data_sets, 1, 1))
    mu = mu + has_several_models * priors.model_sd * rng.standard_normal((num_data_sets, models, 1))
    tau_task = priors.task_sd * np.abs(rng.standard_normal((num_data_sets, 1, 1)))
    tau_cell = has_several_models * priors.cell_sd * np.abs(rng.standard_normal((num_data_sets, 1, 1)))
    excess = (rng.random((num_data_sets, 1, tasks)) >= priors.exchangeable_share) * priors.own_sd**2
    theta = mu + np.sqrt(tau_task**2 + excess) * rng.standard_normal((num_data_sets, 1, tasks))
    cell_sd = np.sqrt(tau_cell**2 + has_several_models * excess)
    theta = theta + cell_sd * rng.standard_normal((num_data_sets, models, tasks))
    scale = priors.residual_sd**2 * rng.standard_exponential((num_data_sets, models, 1))
    variance = scale * priors.residual_df / rng.chisquare(priors.residual_df, (num_data_sets, models, tasks))
    return simulate_differences(count, theta, np.sqrt(variance), rng)


def simulate_differences(count: FloatArray, theta: FloatArray, sigma: FloatArray, rng: np.random.Generator) -> Cells:
    """Simulate normal differences with means theta (n_data_sets, n_models, n_tasks), as sufficient statistics."""
    noise = sigma / np.sqrt(np.maximum(count, 1)) * rng.standard_normal(theta.shape)
    mean = np.where(count > 0, theta + noise, 0.0)
    squares = sigma**2 * 2 * rng.standard_gamma(np.broadcast_to(np.maximum(count - 1, 0) / 2, theta.shape))
    return Cells(np.broadcast_to(count, theta.shape), mean, squares)


def simulate_prior_counts(rows: CountRows, num_data_sets: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield right answers from the priors of a binomial model: (some_data_sets, n_tasks, n_subsamples, n_rows)."""
    tasks, subsamples, _ = rows.right.shape
    sds = np.abs(rng.standard_normal((num_data_sets, len(rows.scales)))) * rows.scales
    draws = Draws(
        point=np.zeros(num_data_sets, dtype=np.int64),
        log_density=np.zeros(num_data_sets),
        top=rows.global_sd * rng.standard_normal((num_data_sets, rows.num_global)),
        task=sds[:, None, list(rows.task_groups)] * rng.standard_normal((num_data_sets, tasks, len(rows.task_groups))),
        group=sds[:, -1, None, None] * rng.standard_normal((num_data_sets, tasks, subsamples)),
    )
    for probability in predict_probabilities(rows, draws):
        yield rng.binomial(rows.trials.astype(np.int64), probability).astype(float)


QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)
LEVEL = 0.95  # of the bars of figures: from the first quantile to the last
MEAN = "mean effect"
TASKS = "sd of the tasks' means"
SINGLE = "sd of single differences within tasks"
ACCURACIES = ("mean accuracy", "accuracy of the worst cell", "accuracy of the best cell")


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
    """Simulate data of this design from the priors for each method and design point, and compare with the results."""
    options = resolve_options(results, options)
    keys, splits = split_results(select_score(results, options.score, "bayes.prior_check"), options.effects)
    region = region_of(options, "bayes.prior_check", splits)
    predictions = [_predict(arms, options) for arms in splits]
    unit, spread = splits[0].units.difference, splits[0].units.spread
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
    figure = prior_predictive(
        f"Mean effects {subject}",
        effect_axis("mean effect", unit, region),
        [
            (prediction.arms, prediction.simulated[MEAN], float(prediction.observed[MEAN][0]))
            for prediction in predictions
        ],
        LEVEL,
    )
    return Analysis("prior_check", tuple(tables), (figure,))


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


CHAINS = 8
DRAWS = 250


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
    """Simulate data sets with known biases for each method at each design point, and fit each of them."""
    options = resolve_options(results, options)
    keys, splits = split_results(select_score(results, options.score, "bayes.recovery"), ("bias",))
    region = region_of(options, "bayes.recovery", splits)
    estimates: list[Estimates] = []
    for arms in splits:
        rng = np.random.default_rng(options.seed)
        components = estimate_components(arms, options.difference_priors, rng)
        estimates += [
            Estimates(arms, bias, fit_known(components, bias, options, rng), options) for bias in options.biases
        ]
    error = (options.level * (1 - options.level) / options.num_data_sets) ** 0.5  # standard error of a coverage
    unit, spread = splits[0].units.difference, splits[0].units.spread
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
        ),
        figures=(
            recovered_biases(
                [(estimate.arms, estimate.bias, estimate.draws.mean(axis=0)) for estimate in estimates],
                options.level,
                region,
                unit,
            ),
        ),
    )  # fmt: skip


def estimate_components(arms: PairedArms, priors: DifferencePriors, rng: np.random.Generator) -> Components:
    """Estimate the standard deviations by their posterior means."""
    cells = summarize_cells(np.repeat(arms.difference[None], CHAINS, axis=0))
    states = list(sample(cells, priors, WARM_UP + DRAWS, rng))[WARM_UP:]
    single = np.mean([np.sqrt(state.variance) for state in states], axis=(0, 1))
    populations = list(sample_population(cells, states, priors, rng))
    task, cell = (
        float(np.mean([getattr(population, name) for population in populations])) for name in ("tau_task", "tau_cell")
    )
    return Components(cells.count[0], task, cell, single)


def simulate_known(components: Components, bias: float, num_data_sets: int, rng: np.random.Generator) -> Cells:
    """Simulate data sets whose average bias over tasks and models is exactly `bias`."""
    count = components.count
    theta = components.task * rng.standard_normal((num_data_sets, 1, count.shape[1]))
    theta = theta + components.cell * rng.standard_normal((num_data_sets, *count.shape))
    weights = np.broadcast_to(count > 0, theta.shape)
    theta = theta + bias - np.average(theta, axis=(1, 2), weights=weights)[:, None, None]
    return simulate_differences(count, theta, components.single, rng)


def fit_known(components: Components, bias: float, options: Recovery, rng: np.random.Generator) -> FloatArray:
    """Simulate data sets with a known bias, and draw the average bias in each of them."""
    parts = []
    for start in range(0, options.num_data_sets, CHAIN_BATCH):
        cells = simulate_known(components, bias, min(CHAIN_BATCH, options.num_data_sets - start), rng)
        parts.append(draw_averages(cells, options.difference_priors, options.draws, rng))
    return np.concatenate(parts, axis=1)

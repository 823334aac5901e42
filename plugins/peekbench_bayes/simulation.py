"""Simulated data sets of a design: from the priors of each preset, or with known effects."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from peekbench.records import FloatArray
from peekbench_bayes.counts import predict_probabilities
from peekbench_bayes.gaussian import Cells
from peekbench_bayes.laplace import CountRows
from peekbench_bayes.laplace_draws import Draws
from peekbench_bayes.options import DifferencePriors


def simulate_prior_differences(
    count: FloatArray, priors: DifferencePriors, num_data_sets: int, rng: np.random.Generator
) -> Cells:
    """Simulate data sets from the priors of the model `calibrated`, as sufficient statistics.

    Parameters
    ----------
    count
        Number of subsamples of each model and task: (n_models, n_tasks).
    priors
        Priors of the model.
    num_data_sets
        Number of data sets; each has its own parameters.
    rng
        Random generator.

    Returns
    -------
    Cells
        Statistics of shape (num_data_sets, n_models, n_tasks).
    """
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
    """Simulate normal differences with known means and standard deviations, as sufficient statistics.

    Parameters
    ----------
    count
        Number of subsamples of each model and task: (n_models, n_tasks).
    theta
        Means of the differences: (n_data_sets, n_models, n_tasks).
    sigma
        Standard deviations of the differences; an array that broadcasts to the shape of `theta`.
    rng
        Random generator.

    Returns
    -------
    Cells
        Statistics of shape (n_data_sets, n_models, n_tasks).
    """
    noise = sigma / np.sqrt(np.maximum(count, 1)) * rng.standard_normal(theta.shape)
    mean = np.where(count > 0, theta + noise, 0.0)
    squares = sigma**2 * 2 * rng.standard_gamma(np.broadcast_to(np.maximum(count - 1, 0) / 2, theta.shape))
    return Cells(np.broadcast_to(count, theta.shape), mean, squares)


def simulate_prior_counts(rows: CountRows, num_data_sets: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Simulate right answers from the priors of a binomial model, some data sets at a time.

    Parameters
    ----------
    rows
        Design and priors.
    num_data_sets
        Number of data sets; each has its own parameters.
    rng
        Random generator.

    Yields
    ------
    array
        Counts of shape (some_data_sets, n_tasks, n_subsamples, n_rows).
    """
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

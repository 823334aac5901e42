"""The presets `paper` and `random_slopes`: binomial models of right answers (section 6.1, arXiv 2410.00179).

    paper           right ~ arm + model + (1 | task) + (1 | task:subsample)
    random_slopes   right ~ arm + model + (1 | task) + (1 | task:arm) + (1 | task:subsample)

on the logit scale. The study's published analyses fitted the second. Predictors are centered, so that the intercept's
prior applies to the average log-odds, as in bambi.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from peekbench import DataError
from peekbench.records import FloatArray
from peekbench_bayes.arrays import PairedArms
from peekbench_bayes.laplace import CountRows, Draws, approximate, draw, grid_weights, log_importance_weights
from peekbench_bayes.options import CountPriors, Hierarchical, Preset
from peekbench_bayes.posterior import Check, Posterior, check_dispersion, check_weights

ENGINE = "nested Laplace"
SPREADS = {"paper": ("tasks", "subsamples"), "random_slopes": ("tasks", "arms within a task", "subsamples")}
"""Names of the standard deviations, in the order of `CountRows.scales`."""
MAX_PREDICTIONS = 2_000_000  # rows times draws whose probabilities are computed together, to limit memory
MAX_EFFECTS = 10_000_000  # rows times draws whose effects are drawn together, to limit memory
NUM_WEIGHTS = 1000  # draws whose importance weights are computed
NUM_REPLICATES = 200
USE_CALIBRATED = "counts vary more or less than the binomial model allows; use the preset calibrated"
USE_BAMBI = "the approximation is poor here; use engine: bambi"


@dataclass(frozen=True, slots=True)
class EffectDraws:
    """Draws of the effects of a binomial model, as an engine returns them."""

    engine: str
    """Name of the engine in reports."""
    shape: tuple[int, int]
    """Number of chains, and of draws per chain."""
    parts: Iterable[Draws]
    """The draws, in consecutive parts to limit memory."""
    sds: Mapping[str, FloatArray]
    """Standard deviations by name: (n_chains, n_draws)."""
    checks: tuple[Check, ...]
    """The engine's own diagnostics."""


def fit_counts(arms: PairedArms, options: Hierarchical) -> Posterior:
    """Approximate the posterior of a binomial model, draw from it, and check it.

    Parameters
    ----------
    arms
        Accuracies of the two arms.
    options
        Preset, priors, number of draws and seed.

    Returns
    -------
    Posterior
        Draws of shape (1, chains x draws, ...), because the draws are independent.

    Raises
    ------
    DataError
        If the scores are not accuracies of a known number of texts.
    """
    rng = np.random.default_rng(options.seed)
    rows = make_count_rows(arms, options.preset, options.count_priors)
    mode, axes = approximate(rows)
    num_draws = options.chains * options.draws
    points = rng.choice(len(mode.log_density), size=num_draws, p=grid_weights(mode))
    # Spread the draws between the grid points, because they would otherwise take only a few values.
    sds = np.exp(mode.log_sd[points] + rng.uniform(-0.5, 0.5, size=(num_draws, len(axes))) @ axes.T)
    weighted = draw(mode, points[:NUM_WEIGHTS], rng)
    size = max(1, MAX_EFFECTS // rows.right.size)
    effects = EffectDraws(
        engine=ENGINE,
        shape=(1, num_draws),
        parts=(draw(mode, points[start : start + size], rng) for start in range(0, num_draws, size)),
        sds={name: sds[None, :, number] for number, name in enumerate(SPREADS[options.preset])},
        checks=(
            Check("Newton's method converged", float(mode.converged), "1", mode.converged, USE_BAMBI),
            check_weights(log_importance_weights(rows, mode, weighted), USE_BAMBI),
        ),
    )
    return predict_posterior(arms, rows, effects, seed=options.seed)


def predict_posterior(arms: PairedArms, rows: CountRows, effects: EffectDraws, *, seed: int) -> Posterior:
    """Predict differences of accuracies from draws of the effects, and check the dispersion by replicated data.

    Parameters
    ----------
    arms
        Accuracies of the two arms.
    rows
        The same data as counts.
    effects
        Draws of the effects.
    seed
        Seed of the predictions.

    Returns
    -------
    Posterior
        Posterior predictive draws.
    """
    rng = np.random.default_rng([seed, 1])
    effect: list[FloatArray] = []
    cells: list[FloatArray] = []
    replicated: list[FloatArray] = []
    for draws in effects.parts:
        effect.append(draws.top[:, -1])
        for probability in predict_probabilities(rows, draws):
            cells.append(predict_differences(rows, probability, rng))
            missing = NUM_REPLICATES - sum(len(part) for part in replicated)
            if missing > 0:
                replicated.append(_replicate(rows, arms, probability[:missing], rng))
    shape = effects.shape
    differences = np.concatenate(cells).reshape(*shape, len(arms.models), len(arms.tasks))
    observed = _variance_within(arms, arms.difference[None])[0]
    checks = effects.checks
    if np.isfinite(observed).all():
        checks = (*checks, *check_dispersion(observed, np.concatenate(replicated), arms.models, USE_CALIBRATED))
    return Posterior(
        engine=effects.engine,
        average=np.nanmean(differences, axis=(2, 3)),
        by_model=np.nanmean(differences, axis=3),
        by_task=np.nanmean(differences, axis=2),
        log_odds=np.concatenate(effect).reshape(shape),
        other_tasks=None,
        spreads={f"{name}, log-odds": draws for name, draws in effects.sds.items()},
        checks=checks,
    )


def make_count_rows(arms: PairedArms, preset: Preset, priors: CountPriors) -> CountRows:
    """Convert accuracies to counts and predictors.

    Parameters
    ----------
    arms
        Accuracies of the two arms.
    preset
        The binomial model.
    priors
        Its priors.

    Returns
    -------
    CountRows
        Counts of shape (n_tasks, n_subsamples, n_models x 2): control and treatment of each model in turn.

    Raises
    ------
    DataError
        If the scores are not accuracies of a known number of texts.
    """
    if arms.num_scored is None:
        raise DataError(
            f"preset {preset} models counts of right answers, but the scores are not accuracies, or num_test is "
            "missing, or the number of scored answers differs between tasks or arms; use the preset calibrated, or add "
            "num_test if it is missing"
        )
    scores = np.stack([arms.control, arms.treatment], axis=-1)  # (n_models, n_tasks, n_subsamples, 2)
    by_row = np.moveaxis(scores, 0, 2).reshape(*scores.shape[1:3], -1)
    is_present = np.isfinite(by_row)
    models = len(arms.models)
    model = np.repeat(np.eye(models)[:, 1:], 2, axis=0)
    arm = np.tile([0.0, 1.0], models)[:, None]
    predictors = np.concatenate([model, arm], axis=1)
    predictors = predictors - np.average(predictors, axis=0, weights=is_present.sum(axis=(0, 1)))
    intercept = np.ones((2 * models, 1))
    slopes = [1 - arm, arm] if preset == "random_slopes" else []
    return CountRows(
        right=np.where(is_present, np.rint(by_row * arms.num_scored), 0.0),
        trials=np.where(is_present, float(arms.num_scored), 0.0),
        features=np.concatenate([intercept, predictors, intercept, *slopes], axis=1),
        global_sd=np.array([priors.intercept_sd, *[priors.model_sd] * (models - 1), priors.effect_sd]),
        task_groups=(0, 1, 1) if slopes else (0,),
        scales=(priors.task_sd, *([priors.slope_sd] if slopes else []), priors.pair_sd),
    )


def predict_probabilities(rows: CountRows, draws: Draws) -> Iterator[FloatArray]:
    """Yield the probability of a right answer in each row, for some draws at a time.

    Parameters
    ----------
    rows
        Counts and predictors.
    draws
        Draws of the effects.

    Yields
    ------
    array
        Probabilities of shape (some_draws, n_tasks, n_subsamples, n_rows).
    """
    num_global = rows.num_global
    fixed = (draws.top @ rows.features[:, :num_global].T)[:, None] + draws.task @ rows.features[:, num_global:].T
    size = max(1, MAX_PREDICTIONS // rows.right.size)
    for start in range(0, len(fixed), size):
        part = slice(start, start + size)
        yield 1 / (1 + np.exp(-(fixed[part, :, None] + draws.group[part, ..., None])))


def predict_differences(rows: CountRows, probability: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw the posterior predictive difference of accuracies by model and task (section 6.2).

    The sum of a cell's counts covers thousands of answers, so it is drawn as a normal with its mean and variance.

    Parameters
    ----------
    rows
        Counts and predictors.
    probability
        Probabilities of a right answer: (n_draws, n_tasks, n_subsamples, n_rows).
    rng
        Random generator.

    Returns
    -------
    array
        Means over subsamples: (n_draws, n_models, n_tasks); NaN for cells without subsamples.
    """
    total = rows.trials.sum(axis=1)  # (n_tasks, n_rows)
    with np.errstate(invalid="ignore"):
        mean = np.einsum("djkr,jkr->djr", probability, rows.trials) / total
        variance = mean / total - np.einsum("djkr,djkr,jkr->djr", probability, probability, rows.trials) / total**2
    scores = mean + np.sqrt(variance) * rng.standard_normal(mean.shape)
    return np.swapaxes(differences_of_rows(scores), 1, 2)


def differences_of_rows(scores: FloatArray) -> FloatArray:
    """Return treatment - control of each model: (..., n_models x 2) to (..., n_models)."""
    return scores[..., 1::2] - scores[..., 0::2]


def _replicate(rows: CountRows, arms: PairedArms, probability: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the variance of single differences within tasks in replicated data: (n_draws, n_models)."""
    right = rng.binomial(rows.trials.astype(np.int64), probability)
    with np.errstate(invalid="ignore"):
        scores = right / rows.trials
    return _variance_within(arms, np.moveaxis(differences_of_rows(scores), 3, 1))


def _variance_within(arms: PairedArms, differences: FloatArray) -> FloatArray:
    """Return the variance within tasks, pooled over tasks: (n, n_models, n_tasks, n_subsamples) to (n, n_models).

    It is NaN for models without replication.
    """
    count = np.isfinite(arms.difference).sum(axis=2)
    mean = np.nansum(differences, axis=-1) / np.maximum(count, 1)
    squares = np.nansum((differences - mean[..., None]) ** 2, axis=(-1, -2))
    with np.errstate(invalid="ignore"):
        pooled: FloatArray = squares / np.maximum(count - 1, 0).sum(axis=1)
    return pooled

"""The presets `printed` and `random_slopes`: binomial models of right answers (section 6.1, arXiv 2410.00179).

    printed         right ~ arm + model + (1 | task) + (1 | task:subsample)
    random_slopes   right ~ arm + model + (1 | task) + (1 | task:arm) + (1 | task:subsample)

on the logit scale. The study's published analyses fitted the second. Predictors are centerd, so that the intercept's
prior is that of the average log-odds, as in bambi.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from peekbench import DataError
from peekbench_bayes.arrays import Arms
from peekbench_bayes.diagnostics import check_dispersion, check_weights
from peekbench_bayes.laplace import Draws, Rows, approximate, draw, importance, weights
from peekbench_bayes.model import CountPriors, Preset
from peekbench_bayes.posterior import Check, Posterior

if TYPE_CHECKING:
    import numpy as np

    from peekbench.records import FloatArray
    from peekbench_bayes import Hierarchical

ENGINE = "nested Laplace"
SPREADS = {"printed": ("tasks", "subsamples"), "random_slopes": ("tasks", "arms within a task", "subsamples")}
"""Names of the standard deviations, in the order of `Rows.scales`."""
AT_A_TIME = 2_000_000  # rows times draws
DRAWN_AT_A_TIME = 10_000_000  # the same, of effects alone
NUM_CHECKED = 1000  # draws whose importance weights are computed
NUM_REPLICATES = 200
OTHER_MODEL = "counts vary more or less than binomials do; use the preset calibrated"
OTHER_ENGINE = "the approximation is poor here; use engine: bambi"


def fit_counts(arms: Arms, options: Hierarchical) -> Posterior:
    """Approximate the posterior of a binomial model, draw from it, and check it."""
    import numpy as np

    rng = np.random.default_rng(options.seed)
    rows = lay_rows(arms, options.preset, options.count_priors)
    mode, axes = approximate(rows)
    number = options.chains * options.draws
    points = rng.choice(len(mode.log_density), size=number, p=weights(mode))
    # Between the points of the grid, so that the draws are not lumped there.
    sds = np.exp(mode.log_sd[points] + rng.uniform(-0.5, 0.5, size=(number, len(axes))) @ axes.T)
    first = draw(mode, points[:NUM_CHECKED], rng)
    size = max(1, DRAWN_AT_A_TIME // rows.right.size)
    return conclude(
        arms,
        rows,
        (draw(mode, points[at : at + size], rng) for at in range(0, number, size)),
        options,
        engine=ENGINE,
        shape=(1, number),
        sds={name: sds[None, :, at] for at, name in enumerate(SPREADS[options.preset])},
        checks=(
            Check("Newton's method converged", float(mode.converged), "1", mode.converged, OTHER_ENGINE),
            check_weights(importance(rows, mode, first), OTHER_ENGINE),
        ),
    )


def conclude(
    arms: Arms,
    rows: Rows,
    parts: Iterable[Draws],
    options: Hierarchical,
    *,
    engine: str,
    shape: tuple[int, int],
    sds: Mapping[str, FloatArray],
    checks: tuple[Check, ...],
) -> Posterior:
    """What follows from draws of the effects, which come in parts: differences of accuracies, and replicated data."""
    import numpy as np

    rng = np.random.default_rng([options.seed, 1])
    top: list[FloatArray] = []
    task: list[FloatArray] = []
    cells: list[FloatArray] = []
    replicated: list[FloatArray] = []
    for draws in parts:
        top.append(draws.top)
        task.append(draws.task)
        for chance in predict_chances(rows, draws):
            cells.append(predict_differences(rows, chance, rng))
            wanted = NUM_REPLICATES - sum(len(part) for part in replicated)
            if wanted > 0:
                replicated.append(_replicate(rows, arms, chance[:wanted], rng))
    effects = np.concatenate(cells).reshape(*shape, len(arms.models), len(arms.tasks))
    observed = _variance_within(arms, arms.difference[None])[0]
    if np.isfinite(observed).all():
        checks = (*checks, *check_dispersion(observed, np.concatenate(replicated), arms.models, OTHER_MODEL))
    tops, tasks = (np.concatenate(found).reshape(*shape, *found[0].shape[1:]) for found in (top, task))
    return Posterior(
        engine=engine,
        average=np.nanmean(effects, axis=(2, 3)),
        by_model=np.nanmean(effects, axis=3),
        by_task=np.nanmean(effects, axis=2),
        log_odds=tops[..., -1],
        such_tasks=None,
        spreads={f"{name}, log-odds": draws for name, draws in sds.items()},
        checks=checks,
        parameters={"global_effects": tops, "task_effects": tasks},
    )


def lay_rows(arms: Arms, preset: Preset, priors: CountPriors) -> Rows:
    """Counts as (n_tasks, n_subsamples, n_models x 2): control and treatment of each model in turn."""
    import numpy as np

    if arms.num_test is None:
        raise DataError(
            f"preset {preset} models numbers of right answers, but the results do not say how many texts each score "
            "is of, or the scores are no accuracies; give num_test, or use the preset calibrated"
        )
    scores = np.stack([arms.control, arms.treatment], axis=-1)  # (n_models, n_tasks, n_subsamples, 2)
    by_row = np.moveaxis(scores, 0, 2).reshape(*scores.shape[1:3], -1)
    there = np.isfinite(by_row)
    models = len(arms.models)
    model = np.repeat(np.eye(models)[:, 1:], 2, axis=0)
    arm = np.tile([0.0, 1.0], models)[:, None]
    predictors = np.concatenate([model, arm], axis=1)
    predictors = predictors - np.average(predictors, axis=0, weights=there.sum(axis=(0, 1)))
    one = np.ones((2 * models, 1))
    slopes = [1 - arm, arm] if preset == "random_slopes" else []
    return Rows(
        right=np.where(there, np.rint(by_row * arms.num_test), 0.0),
        trials=np.where(there, float(arms.num_test), 0.0),
        features=np.concatenate([one, predictors, one, *slopes], axis=1),
        global_sd=np.array([priors.intercept_sd, *[priors.model_sd] * (models - 1), priors.effect_sd]),
        task_groups=(0, 1, 1) if slopes else (0,),
        scales=(priors.task_sd, *([priors.slope_sd] if slopes else []), priors.pair_sd),
    )


def predict_chances(rows: Rows, draws: Draws) -> Iterator[FloatArray]:
    """Probability of a right answer in each row, some draws at a time: (some_draws, n_tasks, n_subsamples, n_rows)."""
    import numpy as np

    number = rows.num_global
    fixed = (draws.top @ rows.features[:, :number].T)[:, None] + draws.task @ rows.features[:, number:].T
    size = max(1, AT_A_TIME // rows.right.size)
    for at in range(0, len(fixed), size):
        some = slice(at, at + size)
        yield 1 / (1 + np.exp(-(fixed[some, :, None] + draws.group[some, ..., None])))


def predict_differences(rows: Rows, chance: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Posterior predictive difference of accuracies by model and task (section 6.2).

    The sum of a cell's counts is a sum of thousands of answers, which is drawn as a normal with its mean and variance.

    Returns
    -------
    Array of shape (n_draws, n_models, n_tasks), means over subsamples; NaN where a cell has none.
    """
    import numpy as np

    total = rows.trials.sum(axis=1)  # (n_tasks, n_rows)
    with np.errstate(invalid="ignore"):
        mean = np.einsum("djkr,jkr->djr", chance, rows.trials) / total
        variance = mean / total - np.einsum("djkr,djkr,jkr->djr", chance, chance, rows.trials) / total**2
    scores = mean + np.sqrt(variance) * rng.standard_normal(mean.shape)
    return np.swapaxes(scores[..., 1::2] - scores[..., 0::2], 1, 2)


def _replicate(rows: Rows, arms: Arms, chance: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Variance of single differences within tasks in replicated data, by model: (n_draws, n_models)."""
    import numpy as np

    right = rng.binomial(rows.trials.astype(np.int64), chance)
    with np.errstate(invalid="ignore"):
        scores = right / rows.trials
    return _variance_within(arms, np.moveaxis(scores[..., 1::2] - scores[..., 0::2], 3, 1))


def _variance_within(arms: Arms, differences: FloatArray) -> FloatArray:
    """Pooled over tasks, of (n, n_models, n_tasks, n_subsamples): (n, n_models); NaN without replication."""
    import numpy as np

    number = np.isfinite(arms.difference).sum(axis=2)
    mean = np.nansum(differences, axis=-1) / np.maximum(number, 1)
    squares = np.nansum((differences - mean[..., None]) ** 2, axis=(-1, -2))
    with np.errstate(invalid="ignore"):
        pooled: FloatArray = squares / np.maximum(number - 1, 0).sum(axis=1)
    return pooled

"""The reference engine: binomial models sampled by MCMC, with bambi, PyMC and nutpie from the extra `bayes`.

bambi's own form of the models mixes badly, because the intercept and the level of the tasks are strongly correlated.
Unless the sampler `bambi` is chosen, the same model is therefore sampled with hierarchically centered effects:
subsamples around their task, tasks around the intercept, and effects of task and arm around the mean effect.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import bambi
import numpy as np
import nutpie
import pandas as pd
import pymc as pm

from peekbench.records import FloatArray
from peekbench_bayes.arrays import PairedArms
from peekbench_bayes.counts import SPREADS, EffectDraws, make_count_rows, predict_posterior
from peekbench_bayes.laplace import CountRows, Draws
from peekbench_bayes.options import CountPriors, Hierarchical, Preset
from peekbench_bayes.posterior import Check, Posterior, check_chains

CHAINS = 4
TUNE = 500


def _build_in_bambi(table: pd.DataFrame, preset: Preset, priors: CountPriors) -> Any:
    """Build the `bambi.Model` with all priors stated.

    Parameters
    ----------
    table
        Counts, from `_tabulate`.
    preset
        The binomial model.
    priors
        Its priors.

    Returns
    -------
    bambi.Model
        The model.
    """

    def normal(sd: float) -> Any:
        return bambi.Prior("Normal", mu=0, sigma=sd)

    def group(scale: float) -> Any:
        return bambi.Prior("Normal", mu=0, sigma=bambi.Prior("HalfNormal", sigma=scale))

    terms = {"Intercept": normal(priors.intercept_sd), "arm": normal(priors.effect_sd)}
    if table["model"].nunique() > 1:
        terms["model"] = normal(priors.model_sd)
    terms["1|task"] = group(priors.task_sd)
    if preset == "random_slopes":
        terms["1|task_arm"] = group(priors.slope_sd)
    terms["1|pair"] = group(priors.pair_sd)
    right = " + ".join(f"({name})" if "|" in name else name for name in terms if name != "Intercept")
    # A subsample has hundreds of answers, so its effect is known more precisely than it varies: centered effects mix
    # better than non-centered ones.
    return bambi.Model(f"p(right, trials) ~ {right}", table, family="binomial", priors=terms, noncentered=False)


def _tabulate(rows: CountRows) -> pd.DataFrame:
    """Return a table with one row per count.

    Each subsample of a task is one level of a single factor, because bambi builds the full cross product of the factors
    of an interaction, and most of its levels do not occur.
    """
    task, subsample, row = np.nonzero(rows.trials)
    return pd.DataFrame(
        {
            "right": rows.right[task, subsample, row].astype(int),
            "trials": rows.trials[task, subsample, row].astype(int),
            "arm": (row % 2).astype(float),
            "model": [f"{number:03d}" for number in row // 2],
            "task": [f"{number:05d}" for number in task],
            "task_arm": [f"{first:05d}/{second}" for first, second in zip(task, row % 2, strict=True)],
            "pair": [f"{first:05d}/{second:05d}" for first, second in zip(task, subsample, strict=True)],
        }
    )


def _build_centered(rows: CountRows, preset: Preset, priors: CountPriors) -> Any:
    """Build the same model as a `pymc.Model` with hierarchically centered effects.

    Parameters
    ----------
    rows
        Counts and predictors.
    preset
        The binomial model.
    priors
        Its priors.

    Returns
    -------
    pymc.Model
        The model.
    """
    task, subsample, row = np.nonzero(rows.trials)
    pairs, pair = np.unique(np.stack([task, subsample]), axis=1, return_inverse=True)
    pair, arm = pair.ravel(), row % 2
    names = ["sd_task", *(["sd_arm"] if preset == "random_slopes" else []), "sd_pair"]
    with pm.Model() as model:
        sds = {name: pm.HalfNormal(name, scale) for name, scale in zip(names, rows.scales, strict=True)}
        intercept = pm.Normal("intercept", 0, priors.intercept_sd)
        effect = pm.Normal("effect", 0, priors.effect_sd)
        level = pm.Normal("level", intercept, sds["sd_task"], shape=len(rows.trials))
        of_pair = pm.Normal("of_pair", level[pairs[0]], sds["sd_pair"], shape=pairs.shape[1])
        centered = rows.features[:, rows.num_global - 1]  # the arm minus its mean
        eta = of_pair[pair]
        if preset == "random_slopes":
            around = effect * centered[:2]
            of_arm = pm.Normal("of_arm", around[None, :], sds["sd_arm"], shape=(len(rows.trials), 2))
            eta = eta + of_arm[task, arm]
        else:
            eta = eta + effect * centered[row]
        if rows.num_global > 2:
            by_model = pm.Normal("model", 0, priors.model_sd, shape=rows.num_global - 2)
            eta = eta + by_model @ rows.features[row, 1 : rows.num_global - 1].T
        pm.Binomial(
            "right",
            n=rows.trials[task, subsample, row].astype(int),
            logit_p=eta,
            observed=rows.right[task, subsample, row].astype(int),
        )
    return model


@dataclass(frozen=True, slots=True)
class Sampled:
    """Effects as in `Draws`, and standard deviations, with leading axes (n_chains, n_draws)."""

    top: FloatArray
    """Global effects: (n_chains, n_draws, n_global)."""
    task: FloatArray
    """Task effects: (n_chains, n_draws, n_tasks, n_task_effects)."""
    group: FloatArray
    """Subsample effects: (n_chains, n_draws, n_tasks, n_subsamples)."""
    sds: FloatArray
    """Standard deviations: (n_chains, n_draws, n_sds)."""
    divergences: int
    """Number of divergent trajectories in all chains together."""


def fit_with_bambi(arms: PairedArms, options: Hierarchical) -> Posterior:
    """Draw from the posterior of a binomial model by MCMC.

    Parameters
    ----------
    arms
        Accuracies of the two arms.
    options
        Preset, sampler, priors, number of draws and seed.

    Returns
    -------
    Posterior
        Draws of 4 chains; all chains together have `options.chains * options.draws` draws.

    Raises
    ------
    DataError
        If the scores are not accuracies of a known number of texts.
    """
    rows = make_count_rows(arms, options.preset, options.count_priors)
    num_draws = max(1, options.chains * options.draws // CHAINS)
    sampled = (_sample_bambi if options.sampler == "bambi" else _sample_centered)(rows, options, num_draws)
    names = SPREADS[options.preset]
    sds = {name: sampled.sds[..., number] for number, name in enumerate(names)}
    checked = {"effect": sampled.top[..., -1], **{f"sd of {name}": draws for name, draws in sds.items()}}
    top, task, group = (value.reshape(-1, *value.shape[2:]) for value in (sampled.top, sampled.task, sampled.group))
    effects = EffectDraws(
        engine=f"bambi ({options.sampler})",
        shape=sampled.top.shape[:2],
        parts=[Draws(np.zeros(len(top), int), top, task, group, np.zeros(len(top)))],
        sds=sds,
        checks=(*check_chains(checked), _check_divergences(sampled.divergences)),
    )
    return predict_posterior(arms, rows, effects, seed=options.seed)


def _check_divergences(number: int) -> Check:
    remedy = "use engine: fast, which does not need gradients"
    return Check("divergences", float(number), "0", number == 0, remedy)


def _sample_centered(rows: CountRows, options: Hierarchical, num_draws: int) -> Sampled:
    model = _build_centered(rows, options.preset, options.count_priors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks report what matters of the samplers' warnings
        trace = nutpie.sample(
            nutpie.compile_pymc_model(model), draws=num_draws, tune=TUNE, chains=CHAINS, cores=1, seed=options.seed,
            progress_bar=False, store_divergences=False,
        )  # fmt: skip
    draws = {str(name): np.asarray(value) for name, value in trace.posterior.data_vars.items()}
    level, intercept, effect = draws["level"], draws["intercept"], draws["effect"]
    top = [intercept[..., None], *([draws["model"]] if "model" in draws else []), effect[..., None]]
    task = [(level - intercept[..., None])[..., None]]
    if options.preset == "random_slopes":
        task.append(draws["of_arm"] - effect[..., None, None] * rows.features[:2, rows.num_global - 1])
    task_number, subsample = np.nonzero(rows.trials.sum(axis=2))
    group = np.zeros((*effect.shape, *rows.trials.shape[:2]))
    group[:, :, task_number, subsample] = draws["of_pair"] - level[:, :, task_number]
    sds = [draws[name] for name in ("sd_task", "sd_arm", "sd_pair") if name in draws]
    divergences = int(trace.sample_stats["diverging"].sum())
    return Sampled(
        np.concatenate(top, axis=-1), np.concatenate(task, axis=-1), group, np.stack(sds, axis=-1), divergences
    )


def _sample_bambi(rows: CountRows, options: Hierarchical, num_draws: int) -> Sampled:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # also those of formulae about newer versions of pandas
        model = _build_in_bambi(_tabulate(rows), options.preset, options.count_priors)
        trace = model.fit(
            draws=num_draws, tune=TUNE, chains=CHAINS, cores=1, random_seed=options.seed, progressbar=False
        )
    draws = {str(name): np.asarray(value) for name, value in trace.posterior.data_vars.items()}
    effect = draws["arm"]
    by_model = draws["model"] if "model" in draws else np.zeros((*effect.shape, 0))
    # bambi returns the intercept at predictors of zero.
    zero = rows.features[0, 1 : rows.num_global]
    intercept = draws["Intercept"] - by_model @ zero[:-1] - effect * zero[-1]
    task = [draws["1|task"][..., None]]
    if options.preset == "random_slopes":
        task.append(draws["1|task_arm"].reshape(*task[0].shape[:-1], 2))
    task_number, subsample = np.nonzero(rows.trials.sum(axis=2))
    group = np.zeros((*effect.shape, *rows.trials.shape[:2]))
    group[:, :, task_number, subsample] = draws["1|pair"]
    names = ("1|task_sigma", "1|task_arm_sigma", "1|pair_sigma")
    sds = np.stack([draws[name] for name in names if name in draws], axis=-1)
    top = np.concatenate([intercept[..., None], by_model, effect[..., None]], axis=-1)
    return Sampled(top, np.concatenate(task, axis=-1), group, sds, int(trace.sample_stats["diverging"].sum()))

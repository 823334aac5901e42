"""The reference engine: binomial models sampled by MCMC, with PyMC and nutpie from the extra `mcmc`.

The effects are hierarchically centered, which mixes well: subsamples around their task, tasks around the intercept, and
effects of task and arm around the mean effect.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import nutpie
import pymc as pm

from peekbench_bayes.arrays import PairedArms
from peekbench_bayes.counts import SPREADS, EffectDraws, make_count_rows, predict_posterior
from peekbench_bayes.laplace import CountRows, Draws
from peekbench_bayes.options import CountPriors, Hierarchical, Preset
from peekbench_bayes.posterior import Check, Posterior, check_chains

CHAINS = 4
TUNE = 500


def _build(rows: CountRows, preset: Preset, priors: CountPriors) -> Any:
    """Build the model with hierarchically centered effects.

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


def fit_with_mcmc(arms: PairedArms, options: Hierarchical) -> Posterior:
    """Draw from the posterior of a binomial model by MCMC.

    Parameters
    ----------
    arms
        Accuracies of the two arms.
    options
        Preset, priors, number of draws and seed.

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
    model = _build(rows, options.preset, options.count_priors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks report what matters of the samplers' warnings
        trace = nutpie.sample(
            nutpie.compile_pymc_model(model), draws=max(1, options.chains * options.draws // CHAINS), tune=TUNE,
            chains=CHAINS, cores=1, seed=options.seed, progress_bar=False, store_divergences=False,
        )  # fmt: skip
    draws = {str(name): np.asarray(value) for name, value in trace.posterior.data_vars.items()}
    level, intercept, effect = draws["level"], draws["intercept"], draws["effect"]
    top = [intercept[..., None], effect[..., None]]
    if "model" in draws:
        top.insert(1, draws["model"])
    task = [(level - intercept[..., None])[..., None]]
    if options.preset == "random_slopes":
        task.append(draws["of_arm"] - effect[..., None, None] * rows.features[:2, rows.num_global - 1])
    task_number, subsample = np.nonzero(rows.trials.sum(axis=2))
    group = np.zeros((*effect.shape, *rows.trials.shape[:2]))
    group[:, :, task_number, subsample] = draws["of_pair"] - level[:, :, task_number]
    names = [name for name in ("sd_task", "sd_arm", "sd_pair") if name in draws]
    sds = {name: draws[drawn] for name, drawn in zip(SPREADS[options.preset], names, strict=True)}
    divergences = int(trace.sample_stats["diverging"].sum())
    remedy = "use engine: fast, which does not need gradients"
    parts = (np.concatenate(top, axis=-1), np.concatenate(task, axis=-1), group)
    flat_top, flat_task, flat_group = (value.reshape(-1, *value.shape[2:]) for value in parts)
    effects = EffectDraws(
        engine="nutpie",
        shape=effect.shape,
        parts=[Draws(np.zeros(len(flat_top), int), flat_top, flat_task, flat_group, np.zeros(len(flat_top)))],
        sds=sds,
        checks=(
            *check_chains({"effect": effect, **{f"sd of {name}": values for name, values in sds.items()}}),
            Check("divergences", float(divergences), "0", divergences == 0, remedy),
        ),
    )
    return predict_posterior(arms, rows, effects, seed=options.seed)

"""bambi, PyMC and ArviZ, all in one place: the reference engine, and posteriors as NetCDF files.

All are part of the extra `bayes`. The reference fits the binomial models of `counts` by MCMC. bambi's own form of them
mixes badly: the intercept and the level of the tasks move against each other. So unless the sampler `bambi` is asked
for, the same model is drawn from with its effects centerd hierarchically: subsamples around their task, tasks around
the intercept, and what differs by task and arm around the effect.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench.errors import SpecError
from peekbench_bayes.arrays import Arms
from peekbench_bayes.counts import SPREADS, conclude, lay_rows
from peekbench_bayes.diagnostics import check_chains
from peekbench_bayes.laplace import Draws
from peekbench_bayes.model import CountPriors, Preset
from peekbench_bayes.posterior import Check, Posterior

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.records import FloatArray
    from peekbench_bayes import Hierarchical
    from peekbench_bayes.laplace import Rows

CHAINS = 4
TUNE = 500
NEEDED = ("arviz", "bambi", "nutpie", "pymc")


def require() -> None:
    """Refuse where the extra is not installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise SpecError(
            f"engine bambi: {', '.join(missing)} not installed; pip install 'peekbench[bayes]', or use engine: fast"
        )


def build_in_bambi(table: pd.DataFrame, preset: Preset, priors: CountPriors) -> Any:
    """The `bambi.Model`, every prior stated, for a table of `tabulate`."""
    import bambi

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
    # A subsample has hundreds of answers: its effect is known better than it varies,
    # which speaks against non-centering.
    return bambi.Model(f"p(right, trials) ~ {right}", table, family="binomial", priors=terms, noncentered=False)


def tabulate(rows: Rows) -> pd.DataFrame:
    """One row a count.

    A subsample of a task is one level of one factor: bambi builds the full cross product of the factors of an
    interaction, most of whose levels do not occur.
    """
    import numpy as np
    import pandas as pd

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


def build_centered(rows: Rows, preset: Preset, priors: CountPriors) -> Any:
    """The same as a `pymc.Model`, centerd hierarchically."""
    import numpy as np
    import pymc as pm

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
        centered = rows.features[:, rows.num_global - 1]  # the arm, less its mean
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


def fit_with_bambi(arms: Arms, options: Hierarchical) -> Posterior:
    """Draw from the posterior of a binomial model by MCMC."""
    require()
    import numpy as np

    rows = lay_rows(arms, options.preset, options.count_priors)
    number = max(1, options.chains * options.draws // CHAINS)
    drawn = (_by_bambi if options.sampler == "bambi" else _centered)(rows, options, number)
    names = SPREADS[options.preset]
    sds = {name: drawn.sds[..., at] for at, name in enumerate(names)}
    checked = {"effect": drawn.top[..., -1], **{f"sd of {name}": draws for name, draws in sds.items()}}
    top, task, group = (value.reshape(-1, *value.shape[2:]) for value in (drawn.top, drawn.task, drawn.group))
    draws = Draws(np.zeros(len(top), int), top, task, group, np.zeros(len(top)))
    return conclude(
        arms,
        rows,
        [draws],
        options,
        engine=f"bambi ({options.sampler})",
        shape=drawn.top.shape[:2],
        sds=sds,
        checks=(*check_chains(checked), _check_divergences(drawn.divergences)),
    )


@dataclass(frozen=True, slots=True)
class Drawn:
    """Effects as in `laplace.Draws` and standard deviations, with leading axes (n_chains, n_draws)."""

    top: FloatArray
    task: FloatArray
    group: FloatArray
    sds: FloatArray
    divergences: int
    """Of the sampler's trajectories, all chains together."""


def _check_divergences(number: int) -> Check:
    return Check("divergences", float(number), "0", number == 0, "use engine: fast, which does not sample by gradients")


def _centered(rows: Rows, options: Hierarchical, number: int) -> Drawn:
    import numpy as np

    model = build_centered(rows, options.preset, options.count_priors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the samplers: what matters is in the checks
        if options.sampler == "nutpie":
            import nutpie

            trace = nutpie.sample(
                nutpie.compile_pymc_model(model), draws=number, tune=TUNE, chains=CHAINS, cores=1, seed=options.seed,
                progress_bar=False, store_divergences=False,
            )  # fmt: skip
        else:
            import pymc

            with model:
                trace = pymc.sample(
                    number, tune=TUNE, chains=CHAINS, cores=1, random_seed=options.seed, progressbar=False
                )
    draws = {str(name): np.asarray(value) for name, value in trace.posterior.data_vars.items()}
    level, intercept, effect = draws["level"], draws["intercept"], draws["effect"]
    top = [intercept[..., None], *([draws["model"]] if "model" in draws else []), effect[..., None]]
    task = [(level - intercept[..., None])[..., None]]
    if options.preset == "random_slopes":
        task.append(draws["of_arm"] - effect[..., None, None] * rows.features[:2, rows.num_global - 1])
    place, subsample = np.nonzero(rows.trials.sum(axis=2))
    group = np.zeros((*effect.shape, *rows.trials.shape[:2]))
    group[:, :, place, subsample] = draws["of_pair"] - level[:, :, place]
    sds = [draws[name] for name in ("sd_task", "sd_arm", "sd_pair") if name in draws]
    divergences = int(trace.sample_stats["diverging"].sum())
    return Drawn(
        np.concatenate(top, axis=-1), np.concatenate(task, axis=-1), group, np.stack(sds, axis=-1), divergences
    )


def _by_bambi(rows: Rows, options: Hierarchical, number: int) -> Drawn:
    import numpy as np

    model = build_in_bambi(tabulate(rows), options.preset, options.count_priors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = model.fit(draws=number, tune=TUNE, chains=CHAINS, cores=1, random_seed=options.seed, progressbar=False)
    draws = {str(name): np.asarray(value) for name, value in trace.posterior.data_vars.items()}
    effect = draws["arm"]
    by_model = draws["model"] if "model" in draws else np.zeros((*effect.shape, 0))
    # bambi gives the intercept at predictors of zero.
    zero = rows.features[0, 1 : rows.num_global]
    intercept = draws["Intercept"] - by_model @ zero[:-1] - effect * zero[-1]
    task = [draws["1|task"][..., None]]
    if options.preset == "random_slopes":
        task.append(draws["1|task_arm"].reshape(*task[0].shape[:-1], 2))
    place, subsample = np.nonzero(rows.trials.sum(axis=2))
    group = np.zeros((*effect.shape, *rows.trials.shape[:2]))
    group[:, :, place, subsample] = draws["1|pair"]
    names = ("1|task_sigma", "1|task_arm_sigma", "1|pair_sigma")
    sds = np.stack([draws[name] for name in names if name in draws], axis=-1)
    top = np.concatenate([intercept[..., None], by_model, effect[..., None]], axis=-1)
    return Drawn(top, np.concatenate(task, axis=-1), group, sds, int(trace.sample_stats["diverging"].sum()))


def save_posterior(arms: Arms, posterior: Posterior, path: Path) -> None:
    """Write draws as an ArviZ NetCDF file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # arviz announces its own future when it is imported
        import arviz

        found = {"average": posterior.average, "by_model": posterior.by_model, "by_task": posterior.by_task}
        found |= {"log_odds": posterior.log_odds} if posterior.log_odds is not None else {}
        found |= {"such_tasks": posterior.such_tasks} if posterior.such_tasks is not None else {}
        found |= {re.sub(r"\W+", "_", f"sd {name}"): draws for name, draws in posterior.spreads.items()}
        inference = arviz.from_dict(
            posterior={**found, **posterior.parameters},
            coords={"model": list(arms.models), "task": list(arms.tasks)},
            dims={"by_model": ["model"], "by_task": ["task"]},
            attrs={"fit": arms.label, "effect": arms.effect, "engine": posterior.engine},
        )
        inference.to_netcdf(str(path))

"""bambi, PyMC and ArviZ, all in one place: the reference engine, and posteriors as NetCDF files.

Both are part of the extra `bayes`. The reference fits the same binomial models as `counts`, by MCMC.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench import SpecError
from peekbench_bayes.arrays import Arms
from peekbench_bayes.counts import OTHER_MODEL, NUM_REPLICATES, lay_rows, predict_differences, replicate, variance_within
from peekbench_bayes.diagnostics import check_chains, check_dispersion
from peekbench_bayes.model import CountPriors, Preset
from peekbench_bayes.posterior import Check, Posterior

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from peekbench import FloatArray
    from peekbench_bayes import Hierarchical
    from peekbench_bayes.laplace import Rows

TUNE = 500
MORE_TARGET = "raise the option draws; if that does not help, use engine: fast"
NEEDED = ("arviz", "bambi", "pymc")


def build(table: pd.DataFrame, preset: Preset, priors: CountPriors) -> Any:
    """The `bambi.Model`, every prior stated.

    `table` is that of `tabulate`. A subsample of a task is one level of one factor: bambi builds the full cross product
    of the factors of an interaction, most of whose levels do not occur.
    """
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
    # Subsamples have hundreds of answers each: their effects are known better than they vary, so no non-centring.
    return bambi.Model(f"p(right, trials) ~ {right}", table, family="binomial", priors=terms, noncentered=False)


def tabulate(rows: Rows, models: tuple[str, ...]) -> pd.DataFrame:
    """One row a count, in the order of `Rows`, with an index for each level of a group that occurs."""
    import numpy as np
    import pandas as pd

    task, subsample, row = np.nonzero(rows.trials)
    pair = np.unique(np.stack([task, subsample]), axis=1, return_inverse=True)[1].ravel()
    names = [f"{number:04d} {name}" for number, name in enumerate(models)]  # whose order is that of the models
    return pd.DataFrame(
        {
            "right": rows.right[task, subsample, row].astype(int),
            "trials": rows.trials[task, subsample, row].astype(int),
            "arm": (row % 2).astype(float),
            "model": [names[number // 2] for number in row],
            "task": [f"{number:05d}" for number in task],
            "task_arm": [f"{number:05d}/{arm}" for number, arm in zip(task, row % 2, strict=True)],
            "pair": [f"{number:07d}" for number in pair],
        }
    )


def fit_with_bambi(arms: Arms, options: Hierarchical) -> Posterior:
    raise NotImplementedError


def save_posterior(arms: Arms, posterior: Posterior, path: Path) -> None:
    raise NotImplementedError

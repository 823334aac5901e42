"""Posterior draws as ArviZ NetCDF files."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from peekbench_bayes.arrays import PairedArms
from peekbench_bayes.posterior import Posterior


def save_posterior(arms: PairedArms, posterior: Posterior, path: Path) -> None:
    """Write the draws of one fit as an ArviZ NetCDF file.

    Parameters
    ----------
    arms
        Scores that were fitted; they name the models and tasks.
    posterior
        The draws.
    path
        File to write.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # arviz announces future changes when it is imported
        import arviz  # noqa: PLC0415 - part of an optional extra, and warns

        draws = {"average": posterior.average, "by_model": posterior.by_model, "by_task": posterior.by_task}
        if posterior.log_odds is not None:
            draws["log_odds"] = posterior.log_odds
        if posterior.other_tasks is not None:
            draws["other_tasks"] = posterior.other_tasks
        draws |= {re.sub(r"\W+", "_", f"sd {name}"): values for name, values in posterior.spreads.items()}
        inference = arviz.from_dict(
            posterior={**draws, **posterior.parameters},
            coords={"model": list(arms.models), "task": list(arms.tasks)},
            dims={"by_model": ["model"], "by_task": ["task"]},
            attrs={"fit": arms.label, "effect": arms.effect, "engine": posterior.engine},
        )
        inference.to_netcdf(str(path))

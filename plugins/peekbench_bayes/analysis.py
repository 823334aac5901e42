"""The results table to posteriors, tables, figures and verdicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from peekbench import Analysis, Column, Table
from peekbench.errors import SpecError
from peekbench.records import Cell, Unit
from peekbench_bayes.arrays import Arms, split
from peekbench_bayes.figures import Fit, forest, posteriors
from peekbench_bayes.posterior import Posterior
from peekbench_bayes.verdict import judge, summarize

if TYPE_CHECKING:
    import pandas as pd

    from peekbench_bayes import Hierarchical


def analyze(results: pd.DataFrame, *, options: Hierarchical) -> Analysis:
    """Fit each method at each design point, all its language models together, and judge its bias.

    Raises
    ------
    SpecError
        Where options contradict each other, or the engine bambi is not installed.
    """
    keys, parts = split(results, options.effects)
    fits = [(arms, posterior) for arms in parts for posterior in _fit(arms, options)]
    chosen = [fit for fit in fits if fit[1].engine == fits[0][1].engine]
    biases = [fit for fit in chosen if fit[0].effect == "bias"]
    unit: Unit = "difference" if all(arms.num_test for arms in parts) else "change"
    return Analysis(
        "hierarchical",
        tables=(
            _effect_table(keys, fits, options, unit),
            _task_table(keys, chosen, options, unit),
            _spread_table(keys, fits, options),
            _check_table(keys, fits),
        ),
        figures=(
            *forest(biases, options.preset, options.level, options.region, unit),
            *posteriors(chosen, options.preset, options.level, options.region, unit),
        ),
        verdicts=tuple(judge(*fit, level=options.verdict_level, region=options.region) for fit in biases),
        warnings=tuple(_warnings(fits)),
        attachments=_attachments(fits, options) if options.save_posterior and find_spec("arviz") else {},
    )


def _fit(arms: Arms, options: Hierarchical) -> list[Posterior]:
    """By the chosen engine; by both of them, the fast one first."""
    from peekbench_bayes.calibrated import fit_differences
    from peekbench_bayes.counts import fit_counts
    from peekbench_bayes.reference import fit_with_bambi

    if options.preset == "calibrated":
        if options.engine != "fast":
            raise SpecError(
                f"engine {options.engine}: bambi fits the presets printed and random_slopes; choose one of these, or "
                "leave engine out"
            )
        return [fit_differences(arms, options)]
    fast = [fit_counts(arms, options)] if options.engine in ("fast", "both") else []
    return fast + ([fit_with_bambi(arms, options)] if options.engine in ("bambi", "both") else [])


def _effect_table(keys: tuple[Column, ...], fits: Sequence[Fit], options: Hierarchical, unit: Unit) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for arms, posterior in fits:
        start = (*arms.cells, arms.effect, posterior.engine)
        log_odds: tuple[Cell, ...] = (None,) * 4
        if posterior.log_odds is not None:
            found = summarize(posterior.log_odds, options.level)
            log_odds = (found.mean, found.low, found.high, found.sd)
        such: tuple[Cell, ...] = (None, None)
        if posterior.such_tasks is not None:
            found = summarize(posterior.such_tasks, options.level)
            such = (found.low, found.high)
        found = summarize(posterior.average, options.level)
        average = (found.mean, found.low, found.high, found.sd, found.positive)
        rows.append((*start, "all" if len(arms.models) > 1 else arms.models[0], *average, *such, *log_odds))
        for number, model in enumerate(arms.models if len(arms.models) > 1 else ()):
            found = summarize(posterior.by_model[:, :, number], options.level)
            rows.append((*start, model, found.mean, found.low, found.high, found.sd, found.positive, *(None,) * 6))
    spread: Unit = "spread" if unit == "difference" else "number"
    columns = (
        *keys, Column("effect"), Column("engine"), Column("model"),
        Column("mean", unit), Column("mean, low", unit), Column("mean, high", unit), Column("sd", spread),
        Column("P(> 0)", "fraction"), Column("other tasks, low", unit), Column("other tasks, high", unit),
        *(Column(f"log-odds{end}", "change") for end in ("", ", low", ", high")), Column("sd of log-odds", "number"),
    )  # fmt: skip
    title = f"Boost and bias, preset {options.preset}, {options.level:.0%} intervals"
    return Table(title, columns, tuple(rows), NOTES[options.preset])


NOTES = {
    "calibrated": "boost = extra - base, bias = test - extra, averaged over these tasks and models, from a "
    "hierarchical model of the paired differences. Other tasks: the mean over others like these, which are taken as "
    "a sample. Log-odds by the delta method.",
    "printed": "Binomial model of the study's section 6.1. The means are posterior predictive differences averaged "
    "over tasks, models and subsamples (section 6.2).",
    "random_slopes": "Binomial model whose effect differs by task. The means are posterior predictive differences "
    "averaged over tasks, models and subsamples (section 6.2); log-odds are those of the mean over other tasks.",
}


def _task_table(keys: tuple[Column, ...], fits: Sequence[Fit], options: Hierarchical, unit: Unit) -> Table:
    import numpy as np

    rows = []
    for arms, posterior in fits:
        observed = np.nanmean(arms.cell_means, axis=0).tolist()
        for number, task in enumerate(arms.tasks):
            found = summarize(posterior.by_task[:, :, number], options.level)
            rows.append(
                (task, *arms.cells, arms.effect, observed[number], found.mean, found.low, found.high, found.positive)
            )
    numbers = (Column(name, unit) for name in ("observed", "shrunk", "shrunk, low", "shrunk, high"))
    columns = (Column("task"), *keys, Column("effect"), *numbers, Column("P(> 0)", "fraction"))
    title = f"Boost and bias by task, {options.level:.0%} intervals"
    return Table(title, columns, tuple(rows), "Shrunk: drawn towards the other tasks, the more the noisier a task is.")


def _spread_table(keys: tuple[Column, ...], fits: Sequence[Fit], options: Hierarchical) -> Table:
    rows = []
    for arms, posterior in fits:
        for name, draws in posterior.spreads.items():
            found = summarize(draws, options.level)
            rows.append((*arms.cells, arms.effect, posterior.engine, name, found.mean, found.low, found.high))
    columns = (*keys, Column("effect"), Column("engine"), Column("standard deviation"))
    numbers = (Column(name, "number") for name in ("mean", "mean, low", "mean, high"))
    title = f"Variance components, {options.level:.0%} intervals"
    return Table(title, (*columns, *numbers), tuple(rows), "Of scores as fractions, or of log-odds where it says so.")


def _check_table(keys: tuple[Column, ...], fits: Sequence[Fit]) -> Table:
    rows = [
        (*arms.cells, arms.effect, posterior.engine, check.name, check.value, check.limit, check.passed)
        for arms, posterior in fits
        for check in posterior.checks
    ]
    columns = (*keys, Column("effect"), Column("engine"), Column("check"), Column("value", "number"))
    note = "Where one fails, there is no verdict on that fit."
    return Table("Checks of the fits", (*columns, Column("should be"), Column("passed")), tuple(rows), note)


def _warnings(fits: Sequence[Fit]) -> list[str]:
    return [
        f"{arms.label}, {arms.effect}, {posterior.engine}: {check.name} is {check.value:.3g} and should be "
        f"{check.limit}; {check.remedy}"
        for arms, posterior in fits
        for check in posterior.failed
    ]


def _attachments(fits: Sequence[Fit], options: Hierarchical) -> Mapping[str, Callable[[Path], None]]:
    """A file of draws for each fit."""
    from functools import partial

    from peekbench_bayes.reference import save_posterior

    names = (("posterior", arms.label, arms.effect, options.preset, how.engine) for arms, how in fits)
    files = ("-".join(re.sub(r"[^\w.=]+", "-", part).strip("-") for part in parts) + ".nc" for parts in names)
    return {file: partial(save_posterior, arms, how) for file, (arms, how) in zip(files, fits, strict=True)}

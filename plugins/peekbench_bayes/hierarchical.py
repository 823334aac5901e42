"""`bayes.hierarchical`: results table to posteriors, tables, figures and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
import pandas as pd

from peekbench import Analysis, Column, Estimate, Table, Verdict
from peekbench.errors import SpecError
from peekbench.records import Cell, Decision, FailedCheck, Family, PosteriorEvidence, ScoreName, ScoreUnits, Unit
from peekbench.results import decide
from peekbench_bayes.arrays import PairedArms, region_of, resolve_options, split_results, warn_of_shared_draws
from peekbench_bayes.calibrated import fit_differences
from peekbench_bayes.counts import fit_counts
from peekbench_bayes.figures import Fit, forest, posteriors
from peekbench_bayes.options import Hierarchical
from peekbench_bayes.posterior import Posterior, Summary, summarize
from peekbench_stats import select_score

NOTES = {
    "calibrated": "boost = extra - base, bias = test - extra, averaged over these tasks and models, from a "
    "hierarchical model of the paired differences. Other tasks: the mean over the population that these tasks are a "
    "sample of. Log-odds by the delta method.",
    "paper": "Binomial model of section 6.1 of the study. The means are posterior predictive differences averaged over "
    "tasks, models and subsamples (section 6.2).",
    "random_slopes": "Binomial model in which the effect varies by task. The means are posterior predictive "
    "differences averaged over tasks, models and subsamples (section 6.2); log-odds are means over the population of "
    "tasks.",
}


def analyze(results: pd.DataFrame, *, options: Hierarchical) -> Analysis:
    """Fit each method at each design point, with all its language models together, and judge its bias.

    Parameters
    ----------
    results
        The results table.
    options
        Preset, engine, priors and levels.

    Returns
    -------
    Analysis
        Effects, effects by task, variance components and checks; figures; one verdict per method and design point.

    Raises
    ------
    SpecError
        If options contradict each other, the results lack the score, the region of accuracies exceeds 20 points, or
        the engine bambi is not installed.
    """
    options = resolve_options(results, options)
    results = select_score(results, options.score, "bayes.hierarchical")
    columns, splits = split_results(results, options.effects)
    region = region_of(options, "bayes.hierarchical", splits)
    fits = [(arms, _fit(arms, options)) for arms in splits]
    biases = [fit for fit in fits if fit[0].effect == "bias"]
    units = splits[0].units
    return Analysis(
        "hierarchical",
        tables=(
            _effect_table(columns, fits, options, units),
            _task_table(columns, fits, options, units.difference),
            _spread_table(columns, fits, options),
            _check_table(columns, fits),
        ),
        figures=(
            *forest(biases, options.preset, options.level, region, units.difference),
            *posteriors(fits, options.preset, options.level, region, units.difference),
        ),
        verdicts=tuple(judge(*fit, level=options.verdict_level, region=region, score=options.score) for fit in biases),
        warnings=(*_warnings(fits), *warn_of_shared_draws(results)),
    )


def _fit(arms: PairedArms, options: Hierarchical) -> Posterior:
    if options.engine == "fast":
        return (fit_differences if options.preset == "calibrated" else fit_counts)(arms, options)
    if options.preset == "calibrated":
        raise SpecError(
            "engine bambi: bambi fits only the presets paper and random_slopes; choose one of them, or remove engine"
        )
    missing = [name for name in ("arviz", "bambi", "nutpie", "pymc") if find_spec(name) is None]
    if missing:
        raise SpecError(
            f"engine bambi: {', '.join(missing)} not installed; pip install 'peekbench[bambi]', or use engine: fast"
        )
    from peekbench_bayes.mcmc import fit_with_bambi  # noqa: PLC0415 - imports libraries of an optional extra

    return fit_with_bambi(arms, options)


def _effect_table(columns: tuple[Column, ...], fits: Sequence[Fit], options: Hierarchical, units: ScoreUnits) -> Table:
    unit = units.difference
    rows: list[tuple[Cell, ...]] = []
    for arms, posterior in fits:
        key = (*arms.cells, arms.effect, posterior.engine)
        summary = summarize(posterior.average, options.level)
        average = (summary.as_cell, summary.standard_error, summary.positive)
        other_tasks, log_odds = (
            None if draws is None else summarize(draws, options.level)
            for draws in (posterior.other_tasks, posterior.log_odds)
        )
        optional = (
            other_tasks and Estimate(low=other_tasks.low, high=other_tasks.high),
            log_odds and log_odds.as_cell,
            log_odds and log_odds.standard_error,
        )
        rows.append((*key, "all" if len(arms.models) > 1 else arms.models[0], *average, *optional))
        for number, model in enumerate(arms.models if len(arms.models) > 1 else ()):
            summary = summarize(posterior.by_model[:, :, number], options.level)
            by_model = (summary.as_cell, summary.standard_error, summary.positive)
            rows.append((*key, model, *by_model, None, None, None))
    table_columns = (
        *columns, Column("effect"), Column("engine"), Column("model"),
        Column("mean", unit), Column("sd", units.spread), Column("P(> 0)", "fraction"),
        Column("other tasks", unit), Column("log-odds", "change"), Column("sd of log-odds", "number"),
    )  # fmt: skip
    title = f"Boost and bias, preset {options.preset}, {options.level:.0%} intervals"
    return Table(title, table_columns, tuple(rows), NOTES[options.preset])


def _task_table(columns: tuple[Column, ...], fits: Sequence[Fit], options: Hierarchical, unit: Unit) -> Table:
    rows = []
    for arms, posterior in fits:
        observed = np.nanmean(arms.cell_means, axis=0).tolist()
        for number, task in enumerate(arms.tasks):
            summary = summarize(posterior.by_task[:, :, number], options.level)
            cells = (observed[number], summary.as_cell, summary.positive)
            rows.append((task, *arms.cells, arms.effect, *cells))
    numbers = (Column(name, unit) for name in ("observed", "shrunk"))
    table_columns = (Column("task"), *columns, Column("effect"), *numbers, Column("P(> 0)", "fraction"))
    title = f"Boost and bias by task, {options.level:.0%} intervals"
    note = "Shrunk: the estimate is pulled toward the other tasks; the noisier the task, the stronger the pull."
    return Table(title, table_columns, tuple(rows), note)


def _spread_table(columns: tuple[Column, ...], fits: Sequence[Fit], options: Hierarchical) -> Table:
    rows = []
    for arms, posterior in fits:
        for name, draws in posterior.spreads.items():
            summary = summarize(draws, options.level)
            rows.append((*arms.cells, arms.effect, posterior.engine, name, summary.as_cell))
    names = (*columns, Column("effect"), Column("engine"), Column("standard deviation"))
    title = f"Variance components, {options.level:.0%} intervals"
    note = "In units of the score (accuracy as a fraction), or in log-odds if the name says so."
    return Table(title, (*names, Column("mean", "number")), tuple(rows), note)


def _check_table(columns: tuple[Column, ...], fits: Sequence[Fit]) -> Table:
    rows = [
        (*arms.cells, arms.effect, posterior.engine, check.name, check.value, check.limit, check.passed)
        for arms, posterior in fits
        for check in posterior.checks
    ]
    names = (*columns, Column("effect"), Column("engine"), Column("check"), Column("value", "number"))
    note = (
        "A fit with a failed check has no verdict. Dispersion: the share of replicated data sets whose differences "
        "vary less than the observed ones."
    )
    return Table("Checks of the fits", (*names, Column("should be"), Column("passed")), tuple(rows), note)


def _warnings(fits: Sequence[Fit]) -> list[str]:
    return [
        f"{arms.label}, {arms.effect}, {posterior.engine}: {check.name} is {check.value:.3g} and should be "
        f"{check.limit}; {check.remedy}"
        for arms, posterior in fits
        for check in posterior.failed
    ]


def judge(arms: PairedArms, posterior: Posterior, *, level: float, region: float, score: ScoreName) -> Verdict:
    """Judge the bias of one fit, averaged over its models and tasks.

    Parameters
    ----------
    arms
        Scores of the arms extra and test.
    posterior
        Posterior of the bias.
    level
        Probability of the interval.
    region
        Half-width of the region of practical equivalence, in units of the score.
    score
        Score that the effects are of.

    Returns
    -------
    Verdict
        "biased up" or "biased down" if the interval excludes zero and is not inside the region; "equivalent" if it is
        inside the region; "inconclusive" otherwise, or if a check of the fit failed.
    """
    differences = arms.difference[np.isfinite(arms.difference)]
    is_zero = not differences.any()
    summary = Summary(0.0, 0.0, 0.0, 0.0) if is_zero else summarize(posterior.average, level)
    decision: Decision = decide(summary.low, summary.high, region)
    if posterior.failed and not is_zero:
        decision = "inconclusive"
    means = posterior.by_model.mean(axis=(0, 1)).tolist()
    evidence = PosteriorEvidence(
        num_tasks=len(arms.tasks),
        num_trials=len(differences),
        score=score,
        is_zero=is_zero,
        positive=summary.positive,
        models=tuple(zip(arms.models, means, strict=True)) if len(arms.models) > 1 else (),
        failed=tuple(FailedCheck(check.name, check.value, check.limit, check.remedy) for check in posterior.failed),
    )
    estimate = Estimate(summary.mean, summary.low, summary.high, summary.standard_error, level)
    return Verdict(
        arms.label, "bias", decision, estimate, region, arms.units.difference, evidence,
        Family(level=level), parts=arms.parts,
    )  # fmt: skip

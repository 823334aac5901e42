"""From a results table, or the store of a pilot run: variance components, minimum detectable bias, planned designs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from peekbench import Analysis, Column, Table
from peekbench.formatting import SHARED_DRAWS, format_chosen
from peekbench.records import Cell, Looks, ScoreUnits
from peekbench.results import are_accuracies, has_folds, read_looks, resolve_score, score_units, select_score
from peekbench_summary.biased_rule import levels_of_size
from peekbench_summary.power import Power
from peekbench_summary.power.detection import (
    TIME_COLUMNS,
    Plan,
    at_first_look,
    check_units,
    criterion_of,
    detectable_bias,
    detection_power,
    equivalence_probability,
    explain_level,
    find_cheapest,
    minimum_detectable,
    pilot_inflation,
    plan_equivalence,
    plan_subsamples,
)
from peekbench_summary.power.noise import MethodNoise, measure_noise, pair_trials, size_cell

SIZE_COLUMNS = (Column("method"), Column("num_train", "count"), Column("num_test", "count"))
TASKS = Column("tasks", "count")
CONFIGURATION = ["method", "model", "num_train", "num_test"]


def analyze_power(results: pd.DataFrame, *, options: Power) -> Analysis:
    """Estimate variance components of the bias, the bias that this design and planned ones detect, and their cost.

    Parameters
    ----------
    results
        The results table.
    options
        Target bias, power, significance level and planned designs.

    Returns
    -------
    Analysis
        Four tables; only a warning if no task has two subsamples.

    Raises
    ------
    SpecError
        If the results lack the chosen score, or a region or bias of fractions exceeds 20 points.
    """
    if (score := resolve_score(results, options.score)) != options.score:  # the defaults follow the score
        options = Power.model_validate({**options.model_dump(exclude_defaults=True), "score": score})
    results = select_score(results, options.score, "power")
    units = score_units(results)
    check_units(options, units)
    measured = list(measure_noise(pair_trials(results), are_accuracies(results), failures_cancel=has_folds(results)))
    if not measured:
        warning = "power: no task has two subsamples, so the noise cannot be estimated; draw more subsamples."
        return Analysis("power", warnings=(warning,))
    family = len(results[CONFIGURATION].drop_duplicates())
    single = at_first_look(options, family)
    return Analysis(
        "power",
        tables=(
            _component_table(measured, units),
            _detection_table(measured, options, family, read_looks(results), units),
            _curve_table(measured, single, units, explain_level(options, family)),
            _cost_table(measured, single, units),
        ),
    )


def _component_table(measured: Sequence[MethodNoise], units: ScoreUnits) -> Table:
    rows = []
    for method in measured:
        for size in method.measurements:
            sampling = math.sqrt(method.noise.sampling / size.num_test) if size.num_test else None
            training = None if sampling is None else math.sqrt(method.noise.training)
            independent = math.sqrt(size.binomial / size.num_test) if size.num_test and size.binomial else None
            rows.append((
                method.label, size_cell(method.num_train), size.num_test, size.num_tasks, size.subsamples,
                math.sqrt(max(0, size.between)), math.sqrt(size.within), training, sampling, independent,
            ))  # fmt: skip
    names = ("sd between tasks", "sd within tasks", "sd from training", "sd from test texts", "sd of independent arms")
    return Table(
        "Variance components of the bias",
        (*SIZE_COLUMNS, TASKS, Column("subsamples", "number"), *(Column(name, units.spread) for name in names)),
        tuple(rows),
        "Standard deviations of test - extra. sd within tasks has two parts. sd from training: the part that more test "
        "texts would not reduce. sd from test texts: the part due to sampling these texts, fitted over the test sizes; "
        "with a single test size, 0.15 of the variance of independent arms, as in the accuracies published with arXiv "
        "2410.00179. sd of independent arms: sqrt(2 p (1 - p) / num_test).",
    )


def _detection_table(
    measured: Sequence[MethodNoise], options: Power, family: int, looks: Looks, units: ScoreUnits
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for method in measured:
        for size in method.measurements:
            num_train = size_cell(method.num_train)
            levels = levels_of_size(method.method, num_train, size.num_test, num_trials=size.num_trials, looks=looks)
            criterion = replace(criterion_of(options), alpha=levels.now(options.alpha / family))
            precision, error_other = size.precision, math.sqrt(size.squared_error_other)
            rows.append((
                method.label, num_train, size.num_test, size.num_tasks, size.subsamples, criterion.alpha,
                detectable_bias(precision, criterion),
                minimum_detectable(error_other, size.num_tasks - 1, criterion),
                *(detection_power(bias, precision, criterion.alpha) for bias in options.biases),
                equivalence_probability(precision, criterion),
            ))  # fmt: skip
    together = f", of {family} configurations that are judged together" if family > 1 else ""
    shared = ""
    if any(size.common is not None for method in measured for size in method.measurements):
        shared = f" Each subsample, averaged over tasks, counts once, here and in planned designs. {SHARED_DRAWS}"
    return Table(
        f"Minimum detectable bias of this design, {options.power:.0%} power",
        (
            *SIZE_COLUMNS,
            TASKS,
            Column("subsamples", "number"),
            Column("level", "p_value"),
            Column("these tasks", units.spread),
            Column("other tasks", units.spread),
            *(Column(f"power at {format_chosen(bias, units)}", "fraction") for bias in options.biases),
            Column("equivalent, if 0", "fraction"),
        ),
        tuple(rows),
        "For the verdict on the mean bias over these tasks, and for a t test of the mean over other tasks like these. "
        f"level: that of the verdict at this look at an error rate of {options.alpha:.0%}{together}. The power is that "
        "for these tasks. equivalent, if 0: the probability of the verdict 'equivalent' if there is no bias, for a "
        f"region of ±{format_chosen(options.region, units)}.{shared}",
    )


def _curve_table(measured: Sequence[MethodNoise], options: Power, units: ScoreUnits, note: str) -> Table:
    criterion = criterion_of(options)
    rows: list[tuple[Cell, ...]] = []
    for method in _inflate(measured, options.pilot_confidence):
        for num_test in options.num_test or method.test_sizes:
            for tasks in options.tasks or [method.num_tasks]:
                designs = (method.noise.precision(tasks, number, num_test) for number in options.subsamples)
                biases = (detectable_bias(precision, criterion) for precision in designs)
                rows.append((method.label, size_cell(method.num_train), num_test, tasks, *biases))
    columns = (Column(f"{number:,}", units.spread) for number in options.subsamples)
    return Table(
        "Minimum detectable bias by number of subsamples",
        (*SIZE_COLUMNS, TASKS, *columns),
        tuple(rows),
        "For planned designs with the variance components above: the mean over the given number of tasks, which are as "
        "noisy as these, at the first report of a run." + note + _planning_note(options),
    )


def _cost_table(measured: Sequence[MethodNoise], options: Power, units: ScoreUnits) -> Table:
    criterion = criterion_of(options)
    rows: list[tuple[Cell, ...]] = []
    for method in _inflate(measured, options.pilot_confidence):
        for tasks in options.tasks or [method.num_tasks]:
            plans: list[Plan] = []
            for num_test in options.num_test or method.test_sizes:
                plan = plan_subsamples(method.noise, tasks, num_test, options.target_bias, criterion)
                plans += [plan] if plan is not None else []
            cheapest = find_cheapest(plans)
            for plan in plans:
                mark = "lowest" if plan is cheapest and len(plans) > 1 else ""
                equivalent = plan_equivalence(method.noise, tasks, plan.num_test, criterion)
                cells = (plan.num_test, tasks, plan.subsamples, plan.trials, plan.seconds, mark)
                needed = None if equivalent is None else equivalent.subsamples
                rows.append((method.label, size_cell(method.num_train), *cells, needed))
    return Table(
        f"Designs that detect a bias of {format_chosen(options.target_bias, units)}",
        (*SIZE_COLUMNS, TASKS, *TIME_COLUMNS, Column("cost"), Column("subsamples for equivalent, if 0", "count")),
        tuple(rows),
        "The fewest subsamples per task; in the last column, those after which the verdict is 'equivalent' with "
        f"{options.power:.0%} probability if there is no bias. Time: all trials in sequence, predicted from the times "
        "in the results, of which a part grows with num_test. Without times, the design with the fewest "
        "trials has the lowest cost." + _planning_note(options),
    )


def _inflate(measured: Sequence[MethodNoise], confidence: float) -> Iterator[MethodNoise]:
    """Yield the noise to plan with: the upper confidence limit of the measured variance."""
    for method in measured:
        factor = pilot_inflation(sum(size.degrees for size in method.measurements), confidence)
        yield replace(method, noise=method.noise.inflated(factor))


def _planning_note(options: Power) -> str:
    return f" Planned with the upper {options.pilot_confidence:.0%} confidence limit of the variance within tasks."

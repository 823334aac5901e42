"""Forecast what a design will detect, before anything is run, from variance components of published experiments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.stats import t

from peekbench import Analysis, Column, PeekbenchError, Table
from peekbench.formatting import format_chosen, pluralize
from peekbench.records import POINTS, Cell, DesignPoint, PlannedDesign
from peekbench_stats import levels_at
from peekbench_summary.biased_rule import Region
from peekbench_summary.power import Power
from peekbench_summary.power.detection import (
    TIME_COLUMNS,
    Criterion,
    at_first_look,
    check_units,
    criterion_of,
    detectable_bias,
    detection_power,
    equivalence_probability,
    explain_level,
    minimum_detectable,
    name_level,
    plan_equivalence,
    plan_subsamples,
)
from peekbench_summary.power.noise import Noise, Precision

SOURCE = (
    "the accuracies published with arXiv 2410.00179: 25 text classification tasks, 100 train texts, 50 to 500 test "
    "texts"
)
"""Data to which `TYPICAL` was fitted; tests/plugins/test_power.py fits it again."""
TYPICAL = (
    Noise("BERT", training=0.0090, sampling=0.045, between=0.0, evenness=0.6),
    Noise("GPT-2", training=0.00074, sampling=0.061, between=0.0, evenness=0.6),
)

MIN_PROBABILITY = 0.05
"""Probability of 'equivalent' without a bias, below which the forecast warns."""
NOISE = Column("noise of")
POINT_COLUMNS = (*(Column(name, "count") for name in ("num_train", "num_test", "tasks", "subsamples")), NOISE)


def forecast(design: PlannedDesign, *, options: Power) -> Analysis:
    """Forecast the minimum detectable bias at each design point, with the noise of unstable and of stable training.

    Parameters
    ----------
    design
        Methods, design points, and the seconds of timed trials.
    options
        Target bias, power, significance level, and biases for which to compute the power.

    Returns
    -------
    Analysis
        Tables of minimum detectable biases, of the power, and of the time if trials were timed.

    Raises
    ------
    PeekbenchError
        If no task is scored by accuracy, another score is chosen, a region or bias exceeds 20 points, or no pilot
        measured the noise of a design with folds.
    """
    if options.score != "score":
        raise PeekbenchError(
            f"power, option score: typical noise is known only for accuracies, not for {options.score}; run the spec "
            "with few subsamples, then use the analysis `power` on its store"
        )
    if not design.points:
        raise PeekbenchError(
            "power: typical noise is known only for accuracies, and no task of this spec is a classification; run the "
            "spec with few subsamples, then use the analysis `power` on its store"
        )
    check_units(options, POINTS)
    family = len(design.methods) * len(design.points)
    if not family:
        return Analysis("power", warnings=("power: the spec has controls only, so there is no verdict to forecast",))
    single = at_first_look(options, family)
    if design.variances is not None:
        return Analysis(
            "power", tables=(_fold_table(design, design.variances, single, explain_level(options, family)),)
        )
    return Analysis(
        "power",
        tables=(
            _detection_table(design, single, explain_level(options, family)),
            _power_table(design, single),
            *_look_tables(design, options.model_copy(update={"alpha": options.alpha / family})),
            *_time_tables(design, single),
        ),
        warnings=tuple(_warn_of_equivalence(design, single)),
    )


def _fold_table(
    design: PlannedDesign, variances: Mapping[tuple[str, int, int], float], options: Power, note: str
) -> Table:
    """Forecast intervals and verdicts of a design with folds from the answers of a pilot division."""
    if not variances:
        raise PeekbenchError(
            "power: no pilot trial measured the noise of this design with folds; run `peekbench plan` without "
            "--no-pilot. Noise is measured for accuracies only"
        )
    criterion = criterion_of(options)
    rows: list[tuple[Cell, ...]] = []
    for point, method in product(design.points, design.methods):
        variance = variances.get((method, point.num_train, point.num_test))
        if variance is None:
            continue
        # Answers of fits are all noise that there is, and it is that of the texts that a fit adapts to.
        noise = Noise(method, 0.0, variance * point.num_test, 0.0, TYPICAL[0].evenness, failures_cancel=True)
        precision = _precision(noise, point)
        half_width = precision.error * float(t.isf(options.alpha / 2, precision.degrees))
        settled = plan_equivalence(noise, len(point.tasks), point.num_test, criterion)
        needed = None if settled is None else settled.subsamples
        detected = (half_width, detectable_bias(precision, criterion))
        equivalent = equivalence_probability(precision, criterion)
        sizes = (point.num_subsamples, point.num_train, point.num_test)
        rows.append((method, *detected, equivalent, needed, *sizes))
    unit, counts = POINTS.spread, ("divisions", "num_train", "num_test")
    columns = (
        Column("method"),
        Column("half-width", unit),
        Column("detectable", unit),
        Column("equivalent, if 0", "fraction"),
        Column("divisions for that", "count"),
        *(Column(name, "count") for name in counts),
    )
    region = format_chosen(options.region, POINTS)
    return Table(
        f"Interval and verdict on the bias, a forecast ({options.power:.0%} power, {name_level(options)})",
        columns,
        tuple(rows),
        "From the answers of all fits of a division to the same texts, in a pilot trial. Half-width of the interval; "
        f"bias that is detected with {options.power:.0%} probability; probability of the verdict 'equivalent' if there "
        f"is no bias, for a region of ±{region}, and the divisions that give it with {options.power:.0%} probability."
        + note,
    )


def _typical(design: PlannedDesign) -> Iterator[Noise]:
    """Yield typical noise. Crossover scoring divides the variance by at least the number of sets."""
    return (noise.inflated(1 / design.num_scored_sets) for noise in TYPICAL)


def _warn_of_equivalence(design: PlannedDesign, options: Power) -> Iterator[str]:
    """Warn of design points that can hardly lead to the verdict 'equivalent', even if there is no bias."""
    criterion = criterion_of(options)
    for point in design.points:
        needed = {}
        for noise in _typical(design):
            if equivalence_probability(_precision(noise, point), criterion) < MIN_PROBABILITY:
                plan = plan_equivalence(noise, len(point.tasks), point.num_test, criterion)
                needed[noise.label] = "more than a million" if plan is None else f"{plan.subsamples:,}"
        if needed:
            listed = " or ".join(f"{number} with the noise of {label}" for label, number in needed.items())
            yield (
                f"With num_train {point.num_train}, num_test {point.num_test} and "
                f"{pluralize(point.num_subsamples, 'subsample')}, the verdict can hardly be 'equivalent', even without "
                f"a bias: that takes {listed}, for a region of ±{format_chosen(options.region, POINTS)}"
            )


def _look_tables(design: PlannedDesign, options: Power) -> tuple[Table, ...]:
    """Return a table of the subsamples that planned looks will probably take; none without them."""
    if not design.looks.method:
        return ()
    criterion = criterion_of(options)
    rows: list[tuple[Cell, ...]] = []
    for point in design.points:
        for noise in _typical(design):
            detectable = detectable_bias(_precision(noise, point), criterion)
            if detectable is None:
                continue
            none, once, twice = (
                expect(noise, point, design, times * detectable, criterion) for times in (0.0, 1.0, 2.0)
            )
            numbers = (none.subsamples, once.subsamples, twice.subsamples)
            rows.append((*_point_cells(point, noise), detectable, *numbers, once.biased))
    columns = (
        *POINT_COLUMNS,
        Column("detectable", POINTS.spread),
        *(Column(name, "count") for name in ("no bias", "detectable bias", "twice")),
        Column("biased, if detectable", "fraction"),
    )
    note = (
        f"Mean number of subsamples per task at which the run stops, with {len(design.looks.fractions)} looks "
        f"({design.looks.method.replace('_', ' ')}), if the bias is 0, the detectable one, or twice that; and the "
        "probability of the verdict 'biased' at the detectable bias. A run of several methods or sizes stops when the "
        "last of them is settled."
    )
    return (Table("Subsamples with planned looks, a forecast", columns, tuple(rows), note),)


def _detection_table(design: PlannedDesign, options: Power, note: str) -> Table:
    criterion = criterion_of(options)
    rows: list[tuple[Cell, ...]] = []
    for point in design.points:
        num_tasks = len(point.tasks)
        for noise in _typical(design):
            plan = plan_subsamples(noise, num_tasks, point.num_test, options.target_bias, criterion)
            error_of_others = noise.error_for_other_tasks(num_tasks, point.num_subsamples, point.num_test)
            detected = (
                detectable_bias(_precision(noise, point), criterion),
                minimum_detectable(*error_of_others, criterion),
            )
            rows.append((*_point_cells(point, noise), *detected, None if plan is None else plan.subsamples))
    unit = POINTS.spread
    columns = (
        *POINT_COLUMNS,
        Column("these tasks", unit),
        Column("other tasks", unit),
        Column(f"subsamples for {format_chosen(options.target_bias, POINTS)}", "count"),
    )
    return Table(
        f"Minimum detectable bias, a forecast ({options.power:.0%} power, {name_level(options)})",
        columns,
        tuple(rows),
        "In accuracy points, as a mean over these tasks and over other tasks like these. The noise was not "
        "measured: it is that of finetuning BERT, whose training is unstable, and GPT-2, whose training is stable, in "
        f"{SOURCE}. Other methods may have less noise, more, or an amount in between. After a pilot run, the analysis "
        "`power` measures the noise of your methods from its store." + note,
    )


def _power_table(design: PlannedDesign, options: Power) -> Table:
    criterion = criterion_of(options)
    rows: list[tuple[Cell, ...]] = []
    for point in design.points:
        for noise in _typical(design):
            precision = _precision(noise, point)
            powers = (detection_power(bias, precision, options.alpha) for bias in options.biases)
            equivalent = equivalence_probability(precision, criterion)
            plan = plan_equivalence(noise, len(point.tasks), point.num_test, criterion)
            needed = None if plan is None else plan.subsamples
            rows.append((*_point_cells(point, noise), *powers, equivalent, needed))
    columns = (
        *POINT_COLUMNS,
        *(Column(format_chosen(bias, POINTS), "fraction") for bias in options.biases),
        Column("equivalent, if 0", "fraction"),
        Column("subsamples for that", "count"),
    )
    note = (
        "For the mean over these tasks: the probability of detecting each bias; the probability of the verdict "
        f"'equivalent' if there is no bias, for a region of ±{format_chosen(options.region, POINTS)}; and the "
        f"subsamples that give this verdict with {options.power:.0%} probability."
    )
    return Table("Power by true bias, a forecast", columns, tuple(rows), note)


def _precision(noise: Noise, point: DesignPoint) -> Precision:
    return noise.precision(len(point.tasks), point.num_subsamples, point.num_test)


def _point_cells(point: DesignPoint, noise: Noise) -> tuple[Cell, ...]:
    return (point.num_train, point.num_test, len(point.tasks), point.num_subsamples, noise.label)


def _time_tables(design: PlannedDesign, options: Power) -> tuple[Table, ...]:
    """Return a table of the time that each method would need to detect the target bias, if its trials were timed."""
    if not design.seconds:
        return ()
    criterion = criterion_of(options)
    rows: list[tuple[Cell, ...]] = []
    for method in design.methods:
        for point in design.points:
            seconds = design.seconds.get((method, point.num_train, point.num_test))
            for noise in _typical(design):
                plan = plan_subsamples(noise, len(point.tasks), point.num_test, options.target_bias, criterion)
                if plan is not None and seconds is not None:
                    cells = (noise.label, plan.subsamples, plan.trials, plan.trials * seconds)
                    rows.append((method, point.num_train, point.num_test, *cells))
    columns = (Column("method"), Column("num_train", "count"), Column("num_test", "count"), NOISE, *TIME_COLUMNS)
    title = f"Designs that would detect a bias of {format_chosen(options.target_bias, POINTS)}, a forecast"
    note = "All trials in sequence, predicted from one timed trial of each method."
    return (Table(title, columns, tuple(rows), note),)


NUM_WALKS = 10_000
MIN_SUBSAMPLES = 2


@dataclass(frozen=True, slots=True)
class Expectation:
    """What to expect of a design with planned looks if the bias has a given size."""

    subsamples: float
    """Mean number of subsamples per task at which the run stops."""
    biased: float
    """Probability that it stops at 'biased'."""


def expect(noise: Noise, point: DesignPoint, design: PlannedDesign, bias: float, criterion: Criterion) -> Expectation:
    """Simulate the looks at one design point; the verdict on it alone decides when the run stops.

    Parameters
    ----------
    noise
        Noise of the method.
    point
        Sizes, tasks and maximum number of subsamples.
    design
        Planned looks, and the verdicts at which the run stops.
    bias
        True mean bias over these tasks.
    criterion
        Level and region of the verdicts.
    """
    sizes = np.array(
        [max(MIN_SUBSAMPLES, math.ceil(share * point.num_subsamples - 1e-9)) for share in design.looks.fractions]
    )
    precisions = [noise.precision(len(point.tasks), size, point.num_test) for size in sizes.tolist()]
    errors, degrees = np.array([(precision.error, precision.degrees) for precision in precisions]).T
    levels = levels_at(design.looks, criterion.alpha)
    half_widths, half_widths_within = (t.isf(level, degrees) * errors for level in (levels / 2, levels))
    # The sum of the first subsamples is a random walk; its increments have the variance of the added subsamples.
    steps = np.random.default_rng(0).normal(size=(NUM_WALKS, len(sizes))) * np.sqrt(np.diff(sizes, prepend=0))
    means = bias + steps.cumsum(axis=1) / sizes * errors[0] * math.sqrt(sizes[0])
    margins = [Region(criterion.region).margin(precision.num_tasks * precision.subsamples) for precision in precisions]
    equivalent = np.abs(means) + half_widths_within <= margins
    biased = (np.abs(means) > half_widths) & ~equivalent
    settled = (biased & ("biased" in design.stops_at)) | (equivalent & ("equivalent" in design.stops_at))
    settled[:, -1] = True
    stop = settled.argmax(axis=1)
    return Expectation(float(sizes[stop].mean()), float(biased[np.arange(NUM_WALKS), stop].mean()))

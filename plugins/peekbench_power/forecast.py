"""Forecast what a design will detect, before anything is run, from variance components of published experiments."""

from __future__ import annotations

from peekbench import Analysis, Column, PeekbenchError, Table
from peekbench.formatting import spread_unit
from peekbench.records import Cell, DesignPoint, PlannedDesign
from peekbench_power import Power
from peekbench_power.designs import plan_subsamples
from peekbench_power.detection import Criterion, compute_power, minimum_detectable
from peekbench_power.noise import Noise
from peekbench_power.tables import TIME_COLUMNS, format_bias

SOURCE = (
    "the accuracies published with arXiv 2410.00179: 25 text classification tasks, 100 train texts, 50 to 500 test "
    "texts"
)
"""Data to which `TYPICAL` was fitted; tests/plugins/test_power.py fits it again."""
TYPICAL = (
    Noise("BERT", training=0.0090, sampling=0.045, between=0.0, evenness=0.6),
    Noise("GPT-2", training=0.00074, sampling=0.061, between=0.0, evenness=0.6),
)

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
        If no task is scored by accuracy.
    """
    if not design.points:
        raise PeekbenchError(
            "power: typical noise is known only for accuracies, and no task of this spec is a classification; run the "
            "spec with few subsamples, then use the analysis `power` on its store"
        )
    tables = (_detection_table(design, options), _power_table(design, options), *_time_tables(design, options))
    return Analysis("power", tables=tables)


def _detection_table(design: PlannedDesign, options: Power) -> Table:
    criterion = Criterion(options.power, options.alpha)
    rows: list[tuple[Cell, ...]] = []
    for point in design.points:
        num_tasks = len(point.tasks)
        for noise in TYPICAL:
            plan = plan_subsamples(noise, num_tasks, point.num_test, options.target_bias, criterion)
            detected = (
                minimum_detectable(*error(num_tasks, point.num_subsamples, point.num_test), criterion)
                for error in (noise.error_for_these_tasks, noise.error_for_other_tasks)
            )
            rows.append((*_point_cells(point, noise), *detected, None if plan is None else plan.subsamples))
    unit = spread_unit(is_accuracy=True)
    columns = (
        *POINT_COLUMNS,
        Column("these tasks", unit),
        Column("other tasks", unit),
        Column(f"subsamples for {format_bias(options.target_bias, is_accuracy=True)}", "count"),
    )
    return Table(
        f"Minimum detectable bias, a forecast ({options.power:.0%} power, {options.alpha:.0%} two-sided)",
        columns,
        tuple(rows),
        "In accuracy points, as a mean over these tasks and over other tasks like these. Nothing was run: the noise is "
        f"that of finetuning BERT, whose training is unstable, and GPT-2, whose training is stable, in {SOURCE}. Other "
        "methods may have less noise, more, or an amount in between. After a pilot run, the analysis `power` measures "
        "the noise of your methods from its store.",
    )


def _power_table(design: PlannedDesign, options: Power) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for point in design.points:
        for noise in TYPICAL:
            error, degrees = noise.error_for_these_tasks(len(point.tasks), point.num_subsamples, point.num_test)
            powers = (compute_power(bias, error, degrees, options.alpha) for bias in options.biases)
            rows.append((*_point_cells(point, noise), *powers))
    columns = (Column(format_bias(bias, is_accuracy=True), "fraction") for bias in options.biases)
    return Table(
        "Power by true bias, a forecast", (*POINT_COLUMNS, *columns), tuple(rows), "For the mean over these tasks."
    )


def _point_cells(point: DesignPoint, noise: Noise) -> tuple[Cell, ...]:
    return (point.num_train, point.num_test, len(point.tasks), point.num_subsamples, noise.label)


def _time_tables(design: PlannedDesign, options: Power) -> tuple[Table, ...]:
    """Return a table of the time that each method would need to detect the target bias, if its trials were timed."""
    if not design.seconds:
        return ()
    criterion = Criterion(options.power, options.alpha)
    rows: list[tuple[Cell, ...]] = []
    for method in design.methods:
        for point in design.points:
            seconds = design.seconds.get((method, point.num_train, point.num_test))
            for noise in TYPICAL:
                plan = plan_subsamples(noise, len(point.tasks), point.num_test, options.target_bias, criterion)
                if plan is not None and seconds is not None:
                    cells = (noise.label, plan.subsamples, plan.trials, plan.trials * seconds)
                    rows.append((method, point.num_train, point.num_test, *cells))
    columns = (Column("method"), Column("num_train", "count"), Column("num_test", "count"), NOISE, *TIME_COLUMNS)
    title = f"Designs that would detect a bias of {format_bias(options.target_bias, is_accuracy=True)}, a forecast"
    note = "All trials in sequence, predicted from one timed trial of each method."
    return (Table(title, columns, tuple(rows), note),)

"""What a design will detect, before anything is run: with components of variance from published experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench import Analysis, Column, PeekbenchError, Table
from peekbench.records import Cell, DesignPoint, PlannedDesign
from peekbench_power.designs import enough
from peekbench_power.detection import Wanted, minimum_detectable, power
from peekbench_power.noise import Noise

if TYPE_CHECKING:
    from peekbench_power import Power

SOURCE = (
    "the accuracies published with arXiv 2410.00179: 25 text classification tasks, 100 train texts, n from 50 to 500"
)
"""Where `TYPICAL` was fitted; tests/plugins/test_power.py fits it again."""
TYPICAL = (
    Noise("BERT", training=0.0090, sampling=0.045, between=0.0, unevenness=0.6),
    Noise("GPT-2", training=0.00074, sampling=0.061, between=0.0, unevenness=0.6),
)

HEAD = (*(Column(name, "count") for name in ("num_train", "num_test", "tasks", "subsamples")), Column("noise as"))


def forecast(design: PlannedDesign, *, options: Power) -> Analysis:
    """Minimum detectable bias at each design point, with the noise of unsteady training and of steady training.

    Raises
    ------
    PeekbenchError
        Where no task is scored by accuracy.
    """
    if not design.points:
        raise PeekbenchError(
            "power: typical noise is known of accuracies alone, and no task of this spec is a classification; run it "
            "with few subsamples, and let the analysis `power` of that store say how many it takes"
        )
    tables = (_detection_table(design, options), _power_table(design, options), *_time_tables(design, options))
    return Analysis("power", tables=tables)


def _detection_table(design: PlannedDesign, options: Power) -> Table:
    wanted = Wanted(options.power, options.size)
    rows: list[tuple[Cell, ...]] = []
    for point in design.points:
        tasks = len(point.tasks)
        for noise in TYPICAL:
            these = noise.these_tasks(tasks, point.num_subsamples, point.num_test)
            such = noise.such_tasks(tasks, point.num_subsamples, point.num_test)
            plan = enough(noise, tasks, point.num_test, options.wanted, wanted)
            detected = (minimum_detectable(*these, wanted), minimum_detectable(*such, wanted))
            rows.append((*_place(point, noise), *detected, None if plan is None else plan.subsamples))
    columns = (
        *HEAD,
        Column("these tasks", "spread"),
        Column("other tasks", "spread"),
        Column(f"subsamples for {options.wanted * 100:g} points", "count"),
    )
    return Table(
        f"Minimum detectable bias, a forecast (power {options.power:.0%}, size {options.size:.0%})",
        columns,
        tuple(rows),
        "In accuracy points, as a mean over these tasks and over other tasks like these. Nothing was run: the noise is "
        f"that of finetuning BERT, which is unsteady, and GPT-2, which is steady, in {SOURCE}. Other methods may lie "
        "below, between or above; after a pilot run, the analysis `power` of its store says where yours does.",
    )


def _power_table(design: PlannedDesign, options: Power) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for point in design.points:
        for noise in TYPICAL:
            these = noise.these_tasks(len(point.tasks), point.num_subsamples, point.num_test)
            rows.append((*_place(point, noise), *(power(bias, *these, options.size) for bias in options.biases)))
    columns = (*HEAD, *(Column(f"{bias * 100:g} points", "fraction") for bias in options.biases))
    return Table("Power by true bias, a forecast", columns, tuple(rows), "For the mean over these tasks.")


def _place(point: DesignPoint, noise: Noise) -> tuple[Cell, ...]:
    return (point.num_train, point.num_test, len(point.tasks), point.num_subsamples, noise.label)


def _time_tables(design: PlannedDesign, options: Power) -> tuple[Table, ...]:
    """How long each method would take to reach what is wanted, where its trials were timed."""
    if not design.seconds:
        return ()
    wanted = Wanted(options.power, options.size)
    rows: list[tuple[Cell, ...]] = []
    for method in design.methods:
        for point in design.points:
            seconds = design.seconds.get((method, point.num_train, point.num_test))
            for noise in TYPICAL:
                plan = enough(noise, len(point.tasks), point.num_test, options.wanted, wanted)
                if plan is not None and seconds is not None:
                    cells = (noise.label, plan.subsamples, plan.trials, plan.trials * seconds)
                    rows.append((method, point.num_train, point.num_test, *cells))
    columns = (Column("method"), Column("num_train", "count"), Column("num_test", "count"), Column("noise as"),
               Column("subsamples", "count"), Column("trials", "count"), Column("time", "seconds"))  # fmt: skip
    title = f"What it would take to detect {options.wanted * 100:g} points"
    return (Table(title, columns, tuple(rows), "All trials one after the other, from one timed trial of each method."),)

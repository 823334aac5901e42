"""What a design will detect, before anything is run: with components of variance from published experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench import Analysis, Cell, Column, PlannedDesign, Table
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
    Noise("as unsteady as finetuned BERT", training=0.0090, sampling=0.046, between=1e-5, unevenness=0.6),
    Noise("as steady as finetuned GPT-2", training=0.00073, sampling=0.063, between=0.0, unevenness=0.6),
)


def forecast(design: PlannedDesign, *, options: Power) -> Analysis:
    """Minimum detectable bias at each design point, with the noise of unsteady training and of steady training.

    Accuracies are taken for granted.
    """
    wanted = Wanted(options.power, options.size)
    tasks = len(design.tasks)
    rows: list[tuple[Cell, ...]] = []
    for point in design.points:
        for noise in TYPICAL:
            these = noise.these_tasks(tasks, point.num_subsamples, point.num_test)
            such = noise.such_tasks(tasks, point.num_subsamples, point.num_test)
            plan = enough(noise, tasks, point.num_test, options.wanted, wanted)
            rows.append((
                point.num_train, point.num_test, tasks, point.num_subsamples, noise.label,
                minimum_detectable(*these, wanted), minimum_detectable(*such, wanted),
                *(power(bias, *these, options.size) for bias in options.biases),
                None if plan is None else plan.subsamples,
            ))  # fmt: skip
    columns = (
        Column("num_train", "count"),
        Column("num_test", "count"),
        Column("tasks", "count"),
        Column("subsamples", "count"),
        Column("noise"),
        Column("these tasks", "spread"),
        Column("such tasks", "spread"),
        *(Column(f"power at {bias * 100:g} points", "fraction") for bias in options.biases),
        Column(f"subsamples for {options.wanted * 100:g} points", "count"),
    )
    table = Table(
        f"Minimum detectable bias, a forecast: {options.power:.0%} power, {options.size:.0%} two-sided",
        columns,
        tuple(rows),
        f"In accuracy points. Nothing was run: the noise is typical, from {SOURCE}. Other methods may lie below, "
        "between or above; after a pilot run, the analysis `power` of its store says what yours has.",
    )
    return Analysis("power", tables=(table, *_time_tables(design, options)))


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
                plan = enough(noise, len(design.tasks), point.num_test, options.wanted, wanted)
                if plan is not None and seconds is not None:
                    cells = (noise.label, plan.subsamples, plan.trials, plan.trials * seconds)
                    rows.append((method, point.num_train, point.num_test, *cells))
    columns = (Column("method"), Column("num_train", "count"), Column("num_test", "count"), Column("noise"),
               Column("subsamples", "count"), Column("trials", "count"), Column("time", "seconds"))  # fmt: skip
    title = f"What it would take to detect {options.wanted * 100:g} points"
    return (Table(title, columns, tuple(rows), "All trials one after the other, from one timed trial of each method."),)

"""Table of controls, methods whose bias is known in advance."""

from __future__ import annotations

from collections.abc import Sequence

from peekbench import Column, Table, Verdict
from peekbench.formatting import difference_unit
from peekbench.results import Configurations
from peekbench_summary.columns import effect_cells, effect_columns
from peekbench_summary.rules import other_effects

NOTE = (
    "Methods whose bias is known in advance: a negative control has none, a positive control has a planted one. They "
    "test the run and appear in no ranking."
)
EXTENDED_NOTE = (
    " The interval of a verdict that ends at 0 is extended to it, because sign flips of the trials do not exclude 0; "
    "the other tables and the figures show it without this extension."
)


def extension_note(verdicts: Sequence[Verdict]) -> str:
    """Return a note on intervals that were extended to zero, with a space before it; empty if there are none."""
    return EXTENDED_NOTE * any(0 in verdict.estimate.limits and verdict.estimate.mean for verdict in verdicts)


def controls_table(controls: Configurations, verdicts: Sequence[Verdict], level: float) -> Table:
    """Tabulate the kind of each control, its outcome and its effects.

    Parameters
    ----------
    controls
        Paired scores of the controls.
    verdicts
        One verdict for each control, in their order.
    level
        Nominal coverage of the intervals.
    """
    effects = other_effects(controls)
    rows = tuple(
        (
            *configuration.cells,
            configuration.control,
            verdict.decision,
            *effect_cells(configuration, effects, level, verdict),
        )
        for configuration, verdict in zip(controls.configurations, verdicts, strict=True)
    )
    columns = (
        *controls.columns,
        Column("control"),
        Column("outcome"),
        *effect_columns(effects, difference_unit(controls.is_accuracy)),
    )
    return Table(controls.title(f"Controls, {level:.0%} intervals"), columns, rows, NOTE + extension_note(verdicts))

"""Verdicts on controls, methods whose bias is known in advance: whether a run finds the known bias."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from peekbench import Column, Table, Verdict
from peekbench.formatting import difference_unit
from peekbench.records import Control
from peekbench.results import Configurations, control_outcome
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
SENTENCES = {
    ("negative", "passed"): "As expected: a negative control cannot have a bias.",
    ("negative", "undecided"): "A negative control cannot have a bias.",
    ("negative", "failed"): "This should be impossible: a negative control cannot have a bias.",
    ("positive", "passed"): "As expected: a positive control has a planted bias.",
    ("positive", "undecided"): "A positive control has a planted bias, which is not detected yet.",
    ("positive", "failed"): "This should be impossible: a positive control has a planted bias.",
}
WARNINGS = {
    ("negative", "failed"): "The negative control {} cannot have a bias, but this run finds one: by chance, or because "
    "test texts leak to it. Find the cause before you trust any other verdict",
    (
        "positive",
        "undecided",
    ): "The positive control {} has a planted bias, but this run does not detect it: the run may "
    "also miss the bias of another method. Draw more subsamples, or plant a larger bias",
    ("positive", "failed"): "The positive control {} has a planted bias, but this run finds one of the opposite sign. "
    "Find the cause before you trust any other verdict",
}


def judge_control(verdict: Verdict, control: Control) -> Verdict:
    """Return the verdict as one on a control, with a sentence on the outcome."""
    outcome = control_outcome(replace(verdict, control=control))
    sentence = f"{verdict.sentence} {SENTENCES[control, outcome]}"
    return replace(verdict, control=control, decision=outcome, sentence=sentence)


def extension_note(verdicts: Sequence[Verdict]) -> str:
    """Return a note on intervals that were extended to zero, with a space before it; empty if there are none."""
    return EXTENDED_NOTE * any(0 in (verdict.low, verdict.high) and verdict.estimate for verdict in verdicts)


def find_unexpected(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield a warning for each control whose known bias the run does not find."""
    for verdict in verdicts:
        key = (verdict.control, verdict.decision)
        if key in WARNINGS:
            yield WARNINGS[key].format(verdict.method)


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

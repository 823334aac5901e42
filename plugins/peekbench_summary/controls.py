"""Methods whose bias is known beforehand: whether a run finds what is known, and the words for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from peekbench import Column, Table, Verdict
from peekbench.records import Cell, Control, Unit
from peekbench.results import Configurations, control_outcome
from peekbench_summary.estimates import of_these_tasks

NOTE = (
    "Methods whose bias is known beforehand: a negative control has none, in a positive one it is planted. What they "
    "show judges the run, not a method; they are in no ranking."
)
SENTENCES = {
    ("negative", "passed"): "As it must be: in a negative control no bias is possible.",
    ("negative", "undecided"): "In a negative control no bias is possible.",
    ("negative", "failed"): "That cannot be: in a negative control no bias is possible.",
    ("positive", "passed"): "As it must be: in a positive control a bias is planted.",
    ("positive", "undecided"): "In a positive control a bias is planted: it is not found yet.",
    ("positive", "failed"): "That cannot be: in a positive control a bias is planted.",
}
WARNINGS = {
    ("negative", "failed"): "The negative control {} cannot have a bias, and this run finds one: either by chance, or "
    "test texts reach it in a way that they must not. Look into it before any other verdict is trusted",
    ("positive", "undecided"): "The positive control {} has a planted bias, and this run does not find it: it may miss "
    "that of another method too. Draw more subsamples, or plant a larger one",
    (
        "positive",
        "failed",
    ): "The positive control {} has a planted bias, and this run finds one of the other sign. Look "
    "into it before any other verdict is trusted",
}


def judge_control(verdict: Verdict, control: Control) -> Verdict:
    """The same, as a verdict on a control."""
    made = replace(verdict, control=control)
    return replace(made, sentence=f"{verdict.sentence} {SENTENCES[control, control_outcome(made)]}")


def unlike_what_is_known(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """A warning for each control that did not come out as it must."""
    for verdict in verdicts:
        key = (verdict.control, control_outcome(verdict))
        if key in WARNINGS:
            yield WARNINGS[key].format(verdict.method)


def controls_table(found: Configurations, verdicts: Sequence[Verdict], level: float) -> Table:
    """What is known of each control, and what was found.

    Parameters
    ----------
    verdicts
        One for each configuration, in their order.
    """
    rows = []
    for one, verdict in zip(found.configurations, verdicts, strict=True):
        cells: list[Cell] = []
        for effect in found.effects:
            estimate = of_these_tasks(list(one.scores[effect].values()), level)
            cells += [estimate.mean, *((estimate.low, estimate.high) if estimate.has_interval else (None, None))]
        rows.append((*one.cells, one.control, control_outcome(verdict), *cells))
    unit: Unit = "difference" if found.is_accuracy else "change"
    columns = [*found.columns, Column("control"), Column("outcome")]
    columns += [
        Column(name, unit) for effect in found.effects for name in (effect, f"{effect}, low", f"{effect}, high")
    ]
    return Table(found.title(f"Controls, {level:.0%} intervals"), tuple(columns), tuple(rows), NOTE)

"""Methods whose bias is known beforehand: whether a run finds what is known, and the words for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from peekbench import Cell, Column, Configurations, Control, Table, Unit, Verdict, is_as_known
from peekbench_summary.estimates import of_these_tasks

NOTE = (
    "Methods whose bias is known beforehand: a negative control has none, in a positive one it is planted. What they "
    "show judges the run, not a method; they are in no ranking."
)


def judge_control(verdict: Verdict, control: Control) -> Verdict:
    """The same, as a verdict on a control."""
    so = "So it must be" if is_as_known(control, verdict.decision) else "So it cannot be"
    known = "no bias is possible" if control == "negative" else "a bias is planted"
    return replace(verdict, control=control, sentence=f"{verdict.sentence} {so}: in a {control} control {known}.")


def unlike_what_is_known(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """A warning for each control that came out as it cannot."""
    for verdict in verdicts:
        if is_as_known(verdict.control, verdict.decision):
            continue
        if verdict.control == "positive":
            yield (
                f"The positive control {verdict.method} has a planted bias, and this run does not find it: no other "
                "verdict that finds none can be trusted. Draw more subsamples, or plant a larger one"
            )
        else:
            yield (
                f"The negative control {verdict.method} cannot have a bias, and this run finds one: either by chance, "
                "or test texts reach it in a way that they must not. Look into it before any other verdict is trusted"
            )


def controls_table(found: Configurations, verdicts: Sequence[Verdict], level: float) -> Table:
    """What is known of each control, and what was found.

    Parameters
    ----------
    verdicts
        One for each configuration, in their order.
    """
    effects = [effect for effect in ("boost", "bias") if effect in found.effects]
    rows = []
    for one, verdict in zip(found.each, verdicts, strict=True):
        cells: list[Cell] = []
        for effect in effects:
            estimate = of_these_tasks(list(one.scores[effect].values()), level)
            cells += [estimate.mean, *((estimate.low, estimate.high) if estimate.has_interval else (None, None))]
        is_right = is_as_known(one.control, verdict.decision)
        rows.append((*one.cells, one.control, "yes" if is_right else "no", *cells))
    unit: Unit = "difference" if found.is_accuracy else "change"
    columns = [*found.columns, Column("control"), Column("passed")]
    columns += [Column(name, unit) for effect in effects for name in (effect, f"{effect}, low", f"{effect}, high")]
    return Table(found.title(f"Controls, {level:.0%} intervals"), tuple(columns), tuple(rows), NOTE)

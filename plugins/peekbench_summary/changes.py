"""What scores, boost, bias and verdict of the same methods are in two runs, and what they differ by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench import Analysis, Column, Table
from peekbench.errors import SpecError
from peekbench.records import Cell, Decision, Unit
from peekbench.results import configurations
from peekbench_summary.leaderboard import judge_all
from peekbench_summary.pairing import Change, compare

if TYPE_CHECKING:
    import pandas as pd

    from peekbench_summary import Summary

RUN = "run"
NOTE = (
    "Means over the tasks that both runs have, in points; every task counts alike. 'paired' counts the draws that both "
    "have and that were compared one by one; where it is 0, the runs were compared as independent sets of draws. The "
    "{level:.0%} interval of the change is for further subsamples of the same data."
)


def contrast(results: pd.DataFrame, *, options: Summary) -> Analysis:
    """Compare two runs, told apart by a column `run`, configuration by configuration.

    Raises
    ------
    SpecError
        Where there are not two runs, or only one of them is scored by accuracy.
    """
    names = list(map(str, results[RUN].unique())) if RUN in results.columns else []
    if len(names) != 2:
        raise SpecError("`summary.changes` compares two runs; use `peekbench compare RUN_A RUN_B`")
    before, after = (configurations(results[results[RUN] == name]) for name in names)
    if before.is_accuracy != after.is_accuracy:
        raise SpecError(f"only one of {names[0]} and {names[1]} is scored by accuracy; compare runs of one kind")
    keys = [one.key for run in (before, after) for one in run.configurations]
    varying = [place for place in range(4) if place == 0 or len({key[place] for key in keys}) > 1]
    key_columns = [
        (Column("method"), Column("model"), Column("num_train", "count"), Column("num_test", "count"))[place]
        for place in varying
    ]
    pairs = [(old, new) for old in before.configurations for new in after.configurations if old.key == new.key]
    kinds = [
        what for what in ("extra", "boost", "bias")
        if all(what in (*run.arms, *run.effects) for run in (before, after))
    ]  # fmt: skip
    rows = [
        (*(old.key[place] for place in varying), what, *_cells(change))
        for old, new in pairs
        for what in kinds
        if (change := compare(old, new, what, options.level)) is not None
    ]
    difference: Unit = "difference" if before.is_accuracy else "change"
    spread: Unit = "spread" if before.is_accuracy else "number"
    columns = [Column(name, spread) for name in ("before", "after")]
    columns += [Column(name, difference) for name in ("change", "change, low", "change, high")]
    scores = Table(
        f"What changed from {names[0]} to {names[1]}",
        (*key_columns, Column("what"), *columns, Column("paired", "count")),
        tuple(rows),
        NOTE.format(level=options.level),
    )
    decisions = [
        {
            one.key: verdict.decision
            for one, verdict in zip(run.configurations, judge_all(run, options, {}), strict=True)
        }
        for run in (before, after)
    ]
    told = [
        (*(key[place] for place in varying), old or "-", new or "-", _changed(old, new))
        for key in dict.fromkeys(keys)
        for old, new in [tuple(decision.get(key) for decision in decisions)]
    ]
    headings = (Column("before"), Column("after"), Column("changed"))
    verdicts = Table("Verdicts, before and after", (*key_columns, *headings), tuple(told))
    return Analysis("changes", (verdicts, scores))


def _changed(old: Decision | None, new: Decision | None) -> str:
    if old is None or new is None:
        return "only before" if new is None else "only after"
    return "no" if old == new else "yes"


def _cells(change: Change) -> tuple[Cell, ...]:
    found = change.difference
    ends = (found.low, found.high) if found.has_interval else (None, None)
    return (change.before, change.after, found.mean, *ends, change.num_paired)

"""Findings of the checks, the table that they examine, and how they name parts of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from peekbench.formatting import format_signed, list_names
from peekbench.records import Key
from peekbench.results import has_independent_tasks, label_parts, pair_arms

CONFIGURATION = ("method", "model", "num_train", "num_test")
BLOCK = (*CONFIGURATION, "task")
"""Columns that identify a block: rows in which each subsample occurs once."""
UNKNOWN = -1  # of a missing size, as `pair_arms` returns it
MAX_LISTED = 4  # names in a list

Severity: TypeAlias = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding that a reader should know before using the table."""

    severity: Severity
    """An error cannot be correct; a warning may have a good reason; an info limits what the scores can show."""
    title: str
    location: str
    evidence: str
    remedy: str


@dataclass(frozen=True, slots=True)
class WideTable:
    """The results table with one row per trial and one column per arm, sorted by block and subsample."""

    rows: pd.DataFrame
    """Columns `BLOCK`, subsample, majority, control, and one per arm; missing sizes are `UNKNOWN`."""
    num_scored: pd.DataFrame
    """Scored answers, with the same index as `rows` and one column per arm; NaN if unknown."""
    arms: tuple[str, ...]
    is_accuracy: bool
    varying: tuple[str, ...]
    """Columns of `BLOCK` with more than one value; locations omit the others."""
    is_independent: Mapping[Key, bool]
    """Whether the table states that draws of different tasks are independent, by method."""

    def locate(self, **values: Any) -> str:
        """Name a part of the table, without the values that are the same everywhere: 'gpt2, num_test=200, ag_news'."""
        varying = {name: values[name] for name in self.varying if name in values}
        return ", ".join([*filter(None, [varying.get("method")]), *label_parts(varying)])

    def format_difference(self, value: float) -> str:
        """Format the difference of two scores as reports do."""
        return format_signed(value, "difference") + " points" if self.is_accuracy else format_signed(value, "number")


def make_wide(results: pd.DataFrame) -> WideTable:
    """Return the results with one row per trial.

    Parameters
    ----------
    results
        The results table.

    Returns
    -------
    WideTable
        The same scores; missing sizes are `UNKNOWN`.
    """
    wide = pair_arms(results)
    known = results[results["majority"].notna()]
    if known["arm"].nunique() > 1:  # the share of a trial; one arm is enough if it has all of them
        first = known[known["arm"] == known["arm"].iloc[0]]
        known = first if len(first) == len(wide) else known
    wide["majority"] = pair_arms(known, "majority").bfill(axis=1).iloc[:, 0] if len(known) else np.nan
    wide = wide.reset_index()
    wide["control"] = wide["method"].map(results.drop_duplicates("method").set_index("method")["control"])
    return WideTable(
        wide,
        pair_arms(results, "num_scored").reset_index(drop=True).astype("float64"),
        tuple(results["arm"].unique()),
        bool(results["num_correct"].notna().all() and results["num_scored"].notna().all()),
        tuple(name for name in BLOCK if wide[name].nunique() > 1),
        has_independent_tasks(results),
    )


def summarize(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return one sentence for each kind of error or warning, with the first of its findings in full."""
    kinds: dict[tuple[Severity, str], list[Finding]] = {}
    for finding in findings:
        if finding.severity != "info":
            kinds.setdefault((finding.severity, finding.title), []).append(finding)
    sentences = []
    for (_, title), (first, *others) in kinds.items():
        places = first.location
        if others:
            places = f"{first.location or 'the whole table'} and {len(others)} more"
        if places:
            places = f" ({places})"
        sentences.append(f"{title[0].upper()}{title[1:]}{places}: {first.evidence}; {first.remedy}.")
    return tuple(sentences)


def join_names(names: Sequence[str]) -> str:
    """Join the first few names, and count the others: 'a, b, c, d and 3 more'."""
    return list_names(names, MAX_LISTED)


def join_locations(*parts: str) -> str:
    """Join parts of a location, without empty ones."""
    return ", ".join(filter(None, parts))


def format_p(p: float) -> str:
    """Format a p-value: 'p 0.002'."""
    return f"p {p:.1g}" if p >= 1e-12 else "p < 1e-12"


def as_mapping(key: Any, names: Sequence[str] = BLOCK) -> dict[str, Any]:
    """Return the values of a group by column."""
    return dict(zip(names, key, strict=True))

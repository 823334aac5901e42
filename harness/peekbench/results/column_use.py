"""What was done with each column of a user's table, for reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from peekbench.formatting import visible
from peekbench.results.cells import MAX_QUOTED, CellReader, quoted, short
from peekbench.results.columns import LOSS, ColumnRoles, find_role

KNOWN_UNITS = ("num_correct", "bits_per_byte", "error_rate")
"""Columns of scores with a known unit."""
MIN_SHARE = 0.05
"""Scores that are all smaller are in an unknown unit: the default region would contain most of their range."""
BY_ORDER = "rows paired by their order, on request"
BY_TEXT = "no column numbers several subsamples, so each text is one, and arms and methods are paired by text"
BY_ROW = "no column numbers the subsamples, so arms are paired by row and methods are not paired"

UNKNOWN_UNIT = (
    "Scores were given as percentages, but without num_test it is not known whether they are accuracies, so "
    "differences are shown as fractions. If they are accuracies, add num_test, the number of test texts, to see "
    "percentage points."
)
WARNINGS_OF_PAIRING = {
    BY_TEXT: "Each arm has a single run, so each test text is a subsample: intervals are for other texts with these "
    "fitted models, and not for models that are trained again. Several runs of each arm, such as training seeds, would "
    "show both.",
    BY_ORDER: "Rows were paired by their order in the table, on request (--pair-by-order). If arms or methods have "
    "their rows in different orders, all intervals are wrong.",
}


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """What was done with each column of a user's table.

    Examples
    --------
    >>> print(ColumnUse(("task", "extra"), {"seed": "subsample"}, {"notes": "by request"}))
    used task, extra; mapped seed=subsample; ignored notes (by request)
    """

    used: tuple[str, ...] = ()
    """Columns that have the names of the results table, or of arms."""
    mapped: Mapping[str, str] = field(default_factory=dict)
    """Other columns that were used, with their meaning."""
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Columns that were not used, with the reason."""
    percentages: tuple[str, ...] = ()
    """Columns that were read as percentages."""
    pairing: str = ""
    """How rows of different arms or methods were matched, if no column numbers the subsamples."""
    has_unknown_unit: bool = False
    """Whether scores are percentages that may or may not be accuracies."""
    not_like_accuracy: str = ""
    """Why scores have no default region of practical equivalence; empty if they are shares, as accuracies are."""
    region: float | None = None
    """Half-width of the region of practical equivalence that the user chose for this table."""

    def __bool__(self) -> bool:
        """Whether anything is known; the columns of a store need no words."""
        return bool(self.used or self.mapped)

    def __str__(self) -> str:
        """Return the columns in one line."""
        ignored = [
            f"{_listed([name for name, other in self.ignored.items() if other == reason])} ({reason})"
            for reason in dict.fromkeys(self.ignored.values())
        ]
        parts = {
            "used ": _listed(self.used),
            "mapped ": _listed([f"{source}={target}" for source, target in self.mapped.items()]),
            "ignored ": ", ".join(ignored),
            "percentages ": _listed(self.percentages),
            "": self.pairing,
        }
        return "; ".join(name + text for name, text in parts.items() if text)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What readers of a report must know about the unit of scores and the pairing of rows."""
        losses = [name for name, role in self.mapped.items() if role.startswith("loss")]
        losses += [name for name in self.used if name.startswith("loss")]
        lower = f"Lower is better for {_listed(losses)}: scores are negatives, so a positive bias is an improvement."
        pairing = WARNINGS_OF_PAIRING.get(self.pairing, "")
        return tuple(filter(None, [self.has_unknown_unit * UNKNOWN_UNIT, bool(losses) * lower, pairing]))

    def as_json(self) -> dict[str, Any]:
        """Return the columns as JSON values."""
        return {
            "used": list(self.used),
            "mapped": dict(self.mapped),
            "ignored": dict(self.ignored),
            "percentages": list(self.percentages),
            "pairing": self.pairing,
        }


def describe_use(
    results: pd.DataFrame, roles: ColumnRoles, row_numbers: Mapping[str, str], reader: CellReader, pairing: str
) -> ColumnUse:
    """Return what was done with the columns of a table.

    Parameters
    ----------
    results
        The results table.
    roles
        Roles of the columns.
    row_numbers
        Columns that were dropped, with the reason.
    reader
        Reader that read the cells.
    pairing
        How rows were matched, if no column numbers the subsamples.
    """
    assigned = [(name, role) for role, names in roles.sources.items() for name in names]
    named = {role.column for role in (*roles.sources, *filter(None, map(find_role, roles.ignored)))}
    return ColumnUse(
        tuple(name for name, role in assigned if name == str(role)),
        {name: str(role) for name, role in assigned if name != str(role)} | dict(roles.arm_names),
        {**row_numbers, **dict.fromkeys(roles.ignored, "by request")},
        tuple(sorted(reader.percentages)),
        pairing,
        has_unknown_unit=not named & {"num_test", "num_correct"}
        and any(name in reader.percentages for name, role in assigned if role.column == "score"),
        not_like_accuracy=_explain_unit(results, roles, reader.origin),
    )


def _explain_unit(results: pd.DataFrame, roles: ColumnRoles, origin: str) -> str:
    """Return why scores are not shares, as accuracies are; empty if they are."""
    if results["num_correct"].notna().all() or any(role.column in KNOWN_UNITS for role in roles.sources):
        return ""
    losses = [name for role, names in roles.sources.items() if role.column == LOSS.name for name in names]
    sizes = results["score"].abs()
    if not losses and MIN_SHARE <= sizes.max() <= 1:
        return ""
    name = quoted(losses) if losses else "the scores"
    return (
        f"{origin}: the unit of {name} is unknown (mean {sizes.mean():.3g}), so there is no default for the "
        "largest bias that is negligible; choose one in this unit with --region WIDTH, such as "
        f"--region {sizes.mean() / 100:.1g}, which is 1% of the mean"
    )


def _listed(names: Sequence[str]) -> str:
    listed = [visible(short(name)) for name in names[:MAX_QUOTED]]
    return ", ".join(listed) + (f" and {len(names) - MAX_QUOTED} more" if len(names) > MAX_QUOTED else "")

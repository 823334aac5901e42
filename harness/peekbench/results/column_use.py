"""What was done with each column of a user's table, for reports."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from peekbench.formatting import visible
from peekbench.results.cells import MAX_QUOTED, short
from peekbench.results.column_names import find_claims
from peekbench.results.column_roles import ColumnRoles, is_exact
from peekbench.results.other_columns import ROW_NUMBERS

BY_ORDER = "rows paired by their order, on request"
BY_TEXT = "no column numbers several subsamples, so each text is one, and arms and methods are paired by text"
BY_ROW = "no column numbers the subsamples, so arms are paired by row and methods are not paired"

UNKNOWN_UNIT = (
    "Scores were given as percentages, but without num_test it is not known whether they are accuracies, so "
    "differences are shown as fractions. If they are accuracies, add num_test, the number of test texts, to see "
    "percentage points."
)


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
        reasons: dict[str, list[str]] = {}
        for name, reason in self.ignored.items():
            reasons.setdefault(reason, []).append(name)
        mapped = [f"{source}={target}" for source, target in self.mapped.items()]
        ignored = [f"{_listed(names)} ({reason})" for reason, names in reasons.items()]
        parts = (
            ("used", _listed(self.used)),
            ("mapped", _listed(mapped)),
            ("ignored", ", ".join(ignored)),
            ("percentages", _listed(self.percentages)),
        )
        return "; ".join([*(f"{name} {text}" for name, text in parts if text), *filter(None, [self.pairing])])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What readers of a report must know about the unit of scores and the pairing of rows."""
        losses = [name for name, role in self.mapped.items() if role.startswith("loss")]
        losses += [name for name in self.used if name.startswith("loss")]
        lower = f"Lower is better for {_listed(losses)}: scores are negatives, so a positive bias is an improvement."
        return (
            *([UNKNOWN_UNIT] if self.has_unknown_unit else []),
            *([lower] if losses else []),
            *self._warn_of_pairing(),
        )

    def _warn_of_pairing(self) -> tuple[str, ...]:
        if self.pairing == BY_TEXT:
            return (
                "Each arm has a single run, so each test text is a subsample: intervals are for other texts with these "
                "fitted models, and not for models that are trained again. Several runs of each arm, such as training "
                "seeds, would show both.",
            )
        if self.pairing != BY_ORDER:
            return ()
        return (
            "Rows were paired by their order in the table, on request (--pair-by-order). If arms or methods have their "
            "rows in different orders, all intervals are wrong.",
        )

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
    roles: ColumnRoles, row_numbers: Sequence[str], percentages: Collection[str], pairing: str
) -> ColumnUse:
    """Return what was done with the columns of a table.

    Parameters
    ----------
    roles
        Final roles of the columns.
    row_numbers
        Columns that were dropped because they only number the rows.
    percentages
        Columns that were read as percentages.
    pairing
        How rows were matched, if no column numbers the subsamples.
    """
    assigned = [(name, role) for role, names in roles.sources.items() for name in names]
    named = {role.column for _, role in assigned}
    named |= {claim.role.column for name in roles.ignored for claim in find_claims(name)}
    return ColumnUse(
        tuple(name for name, role in assigned if is_exact(role, name)),
        {name: str(role) for name, role in assigned if not is_exact(role, name)},
        {**dict.fromkeys(row_numbers, ROW_NUMBERS), **roles.ignored},
        tuple(sorted(percentages)),
        pairing,
        has_unknown_unit=not named & {"num_test", "num_correct"}
        and any(name in percentages for name, role in assigned if role.column == "score"),
    )


def _listed(names: Sequence[str]) -> str:
    listed = [visible(short(name)) for name in names[:MAX_QUOTED]]
    return ", ".join(listed) + (f" and {len(names) - MAX_QUOTED} more" if len(names) > MAX_QUOTED else "")

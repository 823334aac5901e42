"""How to read a table of scores: what its columns do not say themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How to read a user's table of scores.

    Examples
    --------
    >>> TableOptions(columns={"seed": "subsample"}, ignore=["notes"]).is_default
    False
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    """Columns of the user's table to columns of the results table, or to arms."""
    ignore: Collection[str] = ()
    """Columns of the user's table that say nothing about the scores."""
    pair_by_order: bool = False
    """Whether rows without a number of the draw are paired in the order in which they stand."""
    percent: bool = False
    """Whether scores are percentages."""
    region: float | None = None
    """Half-width of the region of practical equivalence, in the unit of the scores; None for the default."""
    arms: tuple[str, ...] = ("extra", "test")
    """Arms that the table must have, because its analyses need them. If these are not extra and test, a table without
    arms has the scores of the arm base."""

    @property
    def needs_pairs(self) -> bool:
        """Whether trials need the arms extra and test, which are paired."""
        return not set(self.arms) <= {"base"}

    @property
    def is_default(self) -> bool:
        """Whether the user said nothing."""
        return replace(self, arms=()) == TableOptions(arms=())

    def combine(self, other: TableOptions) -> TableOptions:
        """Return these options with those of another source; these decide about columns that both name."""
        return TableOptions(
            {**other.columns, **self.columns},
            tuple(dict.fromkeys((*other.ignore, *self.ignore))),
            other.pair_by_order or self.pair_by_order,
            other.percent or self.percent,
            other.region if self.region is None else self.region,
            self.arms,
        )

    def arguments(self) -> list[str]:
        """Return the arguments of the command line that say the same."""
        return [
            *(part for source, target in self.columns.items() for part in ("--map", f"{source}={target}")),
            *(part for source in self.ignore for part in ("--ignore", source)),
            *(["--pair-by-order"] if self.pair_by_order else []),
            *(["--percent"] if self.percent else []),
            *([] if self.region is None else ["--region", f"{self.region:g}"]),
        ]

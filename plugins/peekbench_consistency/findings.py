"""What a look at a results table finds, and how many tests it took to find it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from peekbench.formatting import format_signed

if TYPE_CHECKING:
    import pandas as pd

CONFIGURATION = ("method", "model", "num_train", "num_test")
BLOCK = (*CONFIGURATION, "task")
"""What tells apart the blocks of rows in which each subsample stands once."""
UNKNOWN = -1  # stands for a missing size, so that rows can be grouped by it
SHOWN = 4  # names in a list

Weight: TypeAlias = Literal["fault", "doubt", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a reader should know before trusting the table."""

    weight: Weight
    """A fault cannot be as it should; a doubt may have a good reason; a note limits what the numbers can show."""
    what: str
    where: str
    evidence: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Rows:
    """The results table, one row a trial with a column for each arm, sorted by block and subsample."""

    wide: pd.DataFrame
    """Columns `BLOCK`, subsample, majority, and each arm; missing sizes are `UNKNOWN`."""
    arms: tuple[str, ...]
    is_accuracy: bool
    varying: tuple[str, ...]
    """Columns of `BLOCK` with more than one value: the others need no mention."""

    def place(self, **cells: Any) -> str:
        """Names a part of the table, without what is the same everywhere: 'gpt2, n=200, ag_news'."""
        forms = {"num_train": "m={}", "num_test": "n={}"}
        named = [
            forms.get(name, "{}").format(cells[name])
            for name in BLOCK
            if name in cells and name in self.varying and cells[name] not in ("", UNKNOWN)
        ]
        return ", ".join(named)

    def difference(self, value: float) -> str:
        """What two scores differ by, as reports write it."""
        return format_signed(value, "difference") + " points" if self.is_accuracy else format_signed(value, "number")


def arrange(results: pd.DataFrame) -> Rows:
    """One row a trial; missing sizes become `UNKNOWN`."""
    sized = results.assign(
        **{name: results[name].fillna(UNKNOWN).astype("int64") for name in ("num_train", "num_test")}
    )
    keys = [*BLOCK, "subsample"]
    wide = sized.pivot(index=keys, columns="arm", values="score")
    wide = wide.join(sized.groupby(keys)["majority"].first()).reset_index()
    return Rows(
        wide,
        tuple(results["arm"].unique()),
        bool(results["num_correct"].notna().all() and results["num_test"].notna().all()),
        tuple(name for name in BLOCK if wide[name].nunique() > 1),
    )


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p-values after Holm (1979): all below a level are right at once with that level's assurance."""
    adjusted = [0.0] * len(p)
    largest = 0.0
    for rank, position in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        largest = max(largest, min(1.0, (len(p) - rank) * p[position]))
        adjusted[position] = largest
    return adjusted


def listed(names: Sequence[str]) -> str:
    """The first few of many names."""
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def joined(*parts: str) -> str:
    """Parts of a place, the empty ones left out."""
    return ", ".join(filter(None, parts))


def shown_p(p: float) -> str:
    return f"p {p:.1g}" if p >= 1e-12 else "p < 1e-12"


def cells_of(key: Any, names: Sequence[str] = BLOCK) -> dict[str, Any]:
    """The values of a group, by column."""
    return dict(zip(names, key, strict=True))

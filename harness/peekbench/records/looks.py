"""Looks at the results of a run before all of its trials are done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

LookMethod: TypeAlias = Literal["group_sequential", "confidence_sequence"]
"""How verdicts account for planned looks.

Examples
--------
>>> from typing import get_args
>>> get_args(LookMethod)
('group_sequential', 'confidence_sequence')
"""

Settled: TypeAlias = Literal["biased", "equivalent"]
"""Kind of verdict at which a run may stop."""

Size: TypeAlias = tuple[str, int, int]
"""Method, num_train and num_test."""


@dataclass(frozen=True, slots=True)
class Looks:
    """What an analysis needs to know about the looks at a run.

    Examples
    --------
    The second of four planned looks:

    >>> looks = Looks(True, "group_sequential", fractions=(0.25, 0.5), maximum=100)
    >>> looks.fractions[-1]
    0.5

    A run that now has 40 trials of a method and was reported after 10 and after 20 of them:

    >>> Looks(True, earlier={("lsa", 50, 200): (10, 20)}).earlier_of("lsa", 50, 200)
    (10, 20)
    """

    are_known: bool = False
    """Whether the results are those of a run, which records all looks. The looks at a table of scores are unknown."""
    method: LookMethod | Literal[""] = ""
    """How the design accounts for looks; empty if it plans none."""
    fractions: tuple[float, ...] = ()
    """Share of the maximum number of subsamples at every look so far, ascending. The last is the present one."""
    maximum: int = 0
    """Largest number of subsamples per task that the design planned at its first look."""
    earlier: Mapping[Size, tuple[int, ...]] = field(default_factory=dict)
    """Trials at earlier looks that no design planned, and after which the run was extended, by configuration."""

    def earlier_of(self, method: str, num_train: int | None, num_test: int | None) -> tuple[int, ...]:
        """Return the numbers of trials of a configuration at earlier unplanned looks, ascending."""
        return self.earlier.get((method, num_train or 0, num_test or 0), ())


@dataclass(frozen=True, slots=True)
class PlannedLook:
    """A planned look at the results of a run, and what it found.

    Examples
    --------
    >>> PlannedLook(subsamples=40, maximum=100, fraction=0.4, decisions={"lsa": "biased up"}, stops=True).stops
    True
    """

    subsamples: int
    """Subsamples per task, at the test size with the most."""
    maximum: int
    """Largest number of these subsamples that the design allows."""
    fraction: float
    """Share of the maximum at this look."""
    decisions: Mapping[str, str]
    """Verdicts on the bias by method, without controls."""
    stops: bool
    """Whether the verdict on every method is one at which the design stops."""

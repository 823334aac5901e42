"""Planned looks at a run: when it analyzes its results, and at which verdicts it stops."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, field_validator

from peekbench.records.looks import LookMethod, Settled
from peekbench.spec.base import Count, SpecModel, sort_sizes

MIN_SUBSAMPLES = 2
"""Subsamples per task at the first look; with one, there is no interval."""
_NUMBER: TypeAdapter[int] = TypeAdapter(Annotated[int, Field(ge=2, le=1000, strict=True)])
_SIZES: TypeAdapter[tuple[int, ...]] = TypeAdapter(tuple[Count, ...])


class Stop(SpecModel):
    """Planned looks, and the verdicts at which a run stops early.

    Examples
    --------
    >>> Stop(looks=4).sizes(100)
    (25, 50, 75, 100)
    >>> Stop(looks=[10, 30]).sizes(100)
    (10, 30, 100)
    """

    looks: int | tuple[int, ...] = 5
    """Number of looks, evenly spaced up to `num_subsamples`; or the numbers of subsamples after which to look, such as
    [10, 20, 50]. With several `num_test`, numbers refer to the largest `num_subsamples`, and the others follow in
    proportion."""
    method: LookMethod = "group_sequential"
    """How verdicts account for repeated looks: 'group_sequential' (Lan-DeMets, resembles O'Brien-Fleming) has the
    highest power for a fixed maximum of subsamples; 'confidence_sequence' has wider intervals, but subsamples may be
    added without end."""
    at: Annotated[tuple[Settled, ...], Field(min_length=1)] = ("biased", "equivalent")
    """Stop when the verdict on every method, except controls, is one of these."""

    @field_validator("looks", mode="before")
    @classmethod
    def _validate_one_form(cls, looks: Any) -> Any:
        """Validate the form that was written, so that an error message describes that form only."""
        if not isinstance(looks, list | tuple):
            return _NUMBER.validate_python(looks)
        if not looks:
            raise ValueError("give the number of looks, or the numbers of subsamples after which to look")
        return sort_sizes(_SIZES.validate_python(looks))

    def fractions(self, num_subsamples: int) -> tuple[float, ...]:
        """Return the share of a maximum number of subsamples at each look; the last one is 1."""
        if isinstance(self.looks, int):
            return tuple(number / self.looks for number in range(1, self.looks + 1))
        early = [size / num_subsamples for size in self.looks if size < num_subsamples]
        return (*early, 1.0)

    def sizes(self, num_subsamples: int, largest: int | None = None) -> tuple[int, ...]:
        """Return the number of subsamples at each look.

        Parameters
        ----------
        num_subsamples
            Maximum number of subsamples at one test size.
        largest
            Largest maximum of the design, if it differs.

        Raises
        ------
        ValueError
            If two looks have the same number of subsamples.
        """
        fractions = self.fractions(largest or num_subsamples)
        sizes = tuple(max(MIN_SUBSAMPLES, math.ceil(fraction * num_subsamples - 1e-9)) for fraction in fractions)
        if len(set(sizes)) < len(sizes) or sizes[-1] > num_subsamples:
            raise ValueError(
                f"{len(sizes)} looks need more than {num_subsamples} subsamples: the first has at least "
                f"{MIN_SUBSAMPLES}, and every further look at least one more; plan fewer looks, or more subsamples"
            )
        return sizes

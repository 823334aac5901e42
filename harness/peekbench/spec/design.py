"""The design of an experiment: how many texts are drawn, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter, field_validator, model_validator

from peekbench.spec.base import Count, Counts, SpecModel, freeze, sort_sizes

TrainShares: TypeAlias = Literal["balanced", "natural"]
Repeats: TypeAlias = Count | dict[Annotated[int, Field(ge=1)], Count]
_ONE_NUMBER: TypeAdapter[int] = TypeAdapter(Count)
_BY_NUM_TEST: TypeAdapter[dict[int, int]] = TypeAdapter(dict[Annotated[int, Field(ge=1)], Count])


class Design(SpecModel):
    """Sizes and number of the subsamples. The design points are all pairs of `num_train` and `num_test`.

    Examples
    --------
    >>> design = Design(num_train=(50, 100), num_test=(200,), num_subsamples=20)
    >>> list(design.points())
    [(50, 200), (100, 200)]
    """

    num_train: Annotated[Counts, Field(min_length=1)]
    """Number of labeled train texts, one number or several."""
    num_test: Annotated[Counts, Field(min_length=1)]
    """Number of test texts and of extra texts, one number or several."""
    num_subsamples: Repeats
    """Number of subsamples, or one number for each `num_test`: {50: 100, 500: 20}."""
    train: TrainShares = "balanced"
    """Classes of train texts. balanced: floor(num_train / classes) of each class. natural: drawn at random like test
    texts, but at least one of each class. Regression tasks are always drawn at random."""

    @field_validator("num_train", "num_test")
    @classmethod
    def _sort_sizes(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        return sort_sizes(sizes)

    @field_validator("num_subsamples", mode="before")
    @classmethod
    def _validate_one_form(cls, repeats: Any) -> Any:
        """Validate the form that was written, so that an error message describes that form only."""
        if not isinstance(repeats, Mapping):
            return _ONE_NUMBER.validate_python(repeats)
        by_num_test = _BY_NUM_TEST.validate_python(repeats)
        if len(by_num_test) < len(repeats):
            raise ValueError("two entries have the same num_test; remove one of them")
        return by_num_test

    @field_validator("num_subsamples")
    @classmethod
    def _freeze_repeats(cls, repeats: Any) -> Any:
        return freeze(repeats)

    @model_validator(mode="after")
    def _check_each_size_has_repeats(self) -> Design:
        if isinstance(self.num_subsamples, dict) and set(self.num_subsamples) != set(self.num_test):
            raise ValueError(
                f"num_subsamples has entries for {sorted(self.num_subsamples)}, num_test is {list(self.num_test)}; "
                "give one entry for each num_test, or one number for all"
            )
        return self

    def repeats(self, num_test: int) -> int:
        """Return the number of subsamples at a test size."""
        return self.num_subsamples[num_test] if isinstance(self.num_subsamples, dict) else self.num_subsamples

    def points(self) -> Iterator[tuple[int, int]]:
        """Iterate over the design points, pairs (num_train, num_test)."""
        return product(self.num_train, self.num_test)

    def only(self, num_test: Sequence[int]) -> Design:
        """Return the design restricted to some of its test sizes; an empty sequence means all of them."""
        return self.model_copy(update={"num_test": tuple(sorted(num_test))}) if num_test else self

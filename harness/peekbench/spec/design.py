"""How much is drawn and how often, and which unlabeled texts an arm gets."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Field,
    TypeAdapter,
    field_validator,
    model_serializer,
    model_validator,
)

from peekbench.spec.components import Count, Counts, SpecModel, in_order

Repeats: TypeAlias = Count | dict[Annotated[int, Field(ge=1)], Count]
_ONE: TypeAdapter[int] = TypeAdapter(Count)
_EACH: TypeAdapter[dict[int, int]] = TypeAdapter(dict[Annotated[int, Field(ge=1)], Count])


class Design(SpecModel):
    """How much is drawn, and how often. The design points are all pairs of `num_train` and `num_test`."""

    num_train: Annotated[Counts, Field(min_length=1)]
    """Labeled train texts, one number or several; floor(num_train / classes) of each class are drawn."""
    num_test: Annotated[Counts, Field(min_length=1)]
    """Test texts, and just as many extra texts; one number or several."""
    num_subsamples: Repeats
    """Repeats; one number, or one for each `num_test`: {50: 100, 500: 20}."""

    @field_validator("num_train", "num_test")
    @classmethod
    def _no_repeats(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        return in_order(sizes)

    @field_validator("num_subsamples", mode="before")
    @classmethod
    def _one_or_each(cls, repeats: Any) -> Any:
        """One form or the other, so that a fault is described for the form that was written."""
        if not isinstance(repeats, Mapping):
            return _ONE.validate_python(repeats)
        by_size = _EACH.validate_python(repeats)
        if len(by_size) < len(repeats):
            raise ValueError("two entries are for the same num_test; remove one of them")
        return by_size

    @model_validator(mode="after")
    def _repeats_for_each_size(self) -> Design:
        if isinstance(self.num_subsamples, dict) and set(self.num_subsamples) != set(self.num_test):
            raise ValueError(
                f"num_subsamples has entries for {sorted(self.num_subsamples)}, num_test is {list(self.num_test)}; "
                "give one entry for each num_test, or one number for all"
            )
        return self

    def repeats(self, num_test: int) -> int:
        """Subsamples at this test size."""
        return self.num_subsamples[num_test] if isinstance(self.num_subsamples, dict) else self.num_subsamples

    def points(self) -> Iterator[tuple[int, int]]:
        """Every (num_train, num_test)."""
        return product(self.num_train, self.num_test)

    def only(self, num_test: Sequence[int]) -> Design:
        """The same at these of its test sizes; at all of them where none is named."""
        return self.model_copy(update={"num_test": tuple(sorted(num_test))}) if num_test else self


class Arm(SpecModel):
    """What the unlabeled texts are: none, extra texts, test texts, or a mix of the two."""

    kind: Literal["base", "extra", "test", "mix"]
    mix: Annotated[float, Field(ge=0, le=1)]
    """Share of test texts among the unlabeled ones."""

    @property
    def name(self) -> str:
        """As tables have it: 'base', 'extra', 'test' or 'mix-0.25'."""
        return f"mix-{self.mix:.{DOSE_DIGITS}f}".rstrip("0") if self.kind == "mix" else self.kind

    def num_peeked(self, num_test: int) -> int:
        """Test texts among the unlabeled ones, of which there are `num_test`."""
        return round(self.mix * num_test)

    @model_serializer
    def _as_written(self) -> str | dict[str, float]:
        return {"mix": self.mix} if self.kind == "mix" else self.kind


DOSE_DIGITS = 4  # of a share: it is part of the arm's name

BASE, EXTRA, TEST = Arm(kind="base", mix=0), Arm(kind="extra", mix=0), Arm(kind="test", mix=1)


def _read_arm(value: Any) -> Any:
    for arm in (BASE, EXTRA, TEST):
        if value == arm.name:
            return arm
    if isinstance(value, Mapping) and set(value) == {"mix"}:
        share = value["mix"]
        if isinstance(share, float) and 0 < share < 1:
            if round(share, DOSE_DIGITS) != share:
                raise ValueError(f"mix: {share!r} has more than {DOSE_DIGITS} decimals; round it")
            return Arm(kind="mix", mix=share)
        raise ValueError(f"mix: {share!r} is not a share between 0 and 1 (0 is the arm extra, 1 the arm test)")
    if isinstance(value, Arm):
        return value
    raise ValueError(f"{reprlib.repr(value)} is no arm; arms are base, extra, test, and a dose such as `mix: 0.25`")


ArmSpec: TypeAlias = Annotated[Arm, BeforeValidator(_read_arm)]

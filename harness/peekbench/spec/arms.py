"""Arms of a trial: which unlabeled texts a fit gets."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_serializer

from peekbench.spec.base import SpecModel

DOSE_DIGITS = 4  # decimals of a dose; they are part of the arm's name


class Arm(SpecModel):
    """Kind of the unlabeled texts: none, extra texts, test texts, or a mix of extra and test texts."""

    kind: Literal["base", "extra", "test", "mix"]
    """Kind of the arm."""
    mix: Annotated[float, Field(ge=0, le=1)]
    """Share of test texts among the unlabeled texts."""

    @property
    def name(self) -> str:
        """Name in tables: 'base', 'extra', 'test' or, for example, 'mix-0.25'."""
        return f"mix-{self.mix:.{DOSE_DIGITS}f}".rstrip("0") if self.kind == "mix" else self.kind

    def num_peeked(self, num_test: int) -> int:
        """Return the number of test texts among `num_test` unlabeled texts."""
        return round(self.mix * num_test)

    @model_serializer
    def _as_written(self) -> str | dict[str, float]:
        return {"mix": self.mix} if self.kind == "mix" else self.kind


BASE, EXTRA, TEST = Arm(kind="base", mix=0), Arm(kind="extra", mix=0), Arm(kind="test", mix=1)


def _read_arm(value: Any) -> Any:
    for arm in (BASE, EXTRA, TEST):
        if value == arm.name:
            return arm
    if isinstance(value, Mapping) and set(value) == {"mix"}:
        share = value["mix"]
        if isinstance(share, float) and 0 < share < 1:
            if round(share, DOSE_DIGITS) != share:
                raise ValueError(f".mix: {share!r} has more than {DOSE_DIGITS} decimals; round it")
            return Arm(kind="mix", mix=share)
        percent = isinstance(share, int | float) and not isinstance(share, bool) and 2 <= share < 100
        remedy = f"; write {share / 100:g}" if percent else ""
        raise ValueError(f".mix: {share!r} is not a share between 0 (the arm extra) and 1 (the arm test){remedy}")
    if isinstance(value, Arm):
        return value
    names = [BASE.name, EXTRA.name, TEST.name]
    close = get_close_matches(value[:10].lower(), names, n=1) if isinstance(value, str) else []
    dose = value if isinstance(value, float) and 0 < value < 1 else 0.25
    remedy = f"did you mean {close[0]}?" if close else f"arms are base, extra, test, and doses such as `mix: {dose}`"
    raise ValueError(f"{reprlib.repr(value)} is not an arm; {remedy}")


ArmSpec: TypeAlias = Annotated[Arm, BeforeValidator(_read_arm)]

"""The base class and the field types that all models of a spec share."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Name: TypeAlias = Annotated[str, Field(pattern=NAME, max_length=100)]


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else value


Count: TypeAlias = Annotated[int, Field(ge=1, le=10**7, strict=True)]
Counts: TypeAlias = Annotated[tuple[Count, ...], BeforeValidator(_as_tuple)]


class SpecModel(BaseModel):
    """Base class of the models of a spec."""

    # Validators are built at the first use: that of a whole spec contains those of its parts.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def sort_sizes(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return sizes in ascending order.

    Raises
    ------
    ValueError
        If a size is duplicated.
    """
    if len(set(sizes)) < len(sizes):
        raise ValueError(f"{list(sizes)} has a number twice; remove one")
    return tuple(sorted(sizes))

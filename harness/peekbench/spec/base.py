"""The base class and the field types that all models of a spec share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NoReturn, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

STORED = "stored"
"""Context in which the spec of a store is validated: only what its report uses must be installed."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Name: TypeAlias = Annotated[str, Field(pattern=NAME, max_length=100)]


def _as_tuple(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,)
    if isinstance(value, list | tuple):
        return value
    raise PydanticCustomError("counts_type", "Input should be a whole number or a list of them")


Count: TypeAlias = Annotated[int, Field(ge=1, le=10**7, strict=True)]
Counts: TypeAlias = Annotated[tuple[Count, ...], BeforeValidator(_as_tuple)]


K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A dictionary that cannot be changed, for the mappings of a spec; it pickles and serializes like any other.

    Examples
    --------
    >>> FrozenDict({50: 100})
    {50: 100}
    """

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a spec cannot be changed; make a new one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        """Pickle the items."""
        return FrozenDict, (dict(self),)


def freeze(value: Any) -> Any:
    """Return plain values with frozen mappings and with tuples instead of lists.

    Examples
    --------
    >>> freeze({"sizes": [1, 2]})
    {'sizes': (1, 2)}
    """
    if isinstance(value, Mapping):
        return FrozenDict({key: freeze(item) for key, item in value.items()})
    return tuple(map(freeze, value)) if isinstance(value, list | tuple) else value


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

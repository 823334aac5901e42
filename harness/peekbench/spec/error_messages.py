"""What pydantic finds wrong, as lines that a user can act on."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pydantic import ValidationError

PLACED = re.compile(r"(\w*)\[(\d+)\]\.(\w+): ")
AS_GIVEN: Mapping[str, Sequence[int]] = MappingProxyType({})


def describe(
    error: ValidationError, at: tuple[int | str, ...] = (), written: Mapping[str, Sequence[int]] = AS_GIVEN
) -> str:
    """One line a fault: place, problem, and what was given.

    Parameters
    ----------
    at
        Where the value stands that was validated.
    written
        For lists some of whose entries stood for several: where in the user's own list each entry came from.
    """
    lines = []
    for fault in error.errors(include_url=False):
        loc = (*at, *fault["loc"])
        cause = fault.get("ctx", {}).get("error")
        if fault["type"] == "too_short" and fault["input"]:  # there were some, and their own faults are listed
            continue
        if isinstance(cause, ValidationError):  # of a plugin's options model
            lines += describe(cause, loc, written).split("\n")
            continue
        message = fault["msg"].removeprefix("Value error, ")
        if placed := PLACED.match(message):  # from a validator of the whole list, or spec
            group, position, name = placed.groups()
            loc = (*loc, *filter(None, [group]), int(position), name)
            message = message[placed.end() :]
        place = _place(loc, written)
        if fault["type"] == "extra_forbidden":
            message = "no such setting; remove it or correct its name"
        elif fault["type"] == "too_short":
            message = "is empty; name at least one"
        elif fault["type"] == "missing":
            message = "is missing; add it"
        elif fault["type"] != "value_error":
            # YAML has lists, not tuples.
            message = f"{message.replace('valid tuple', 'valid list')}; got {reprlib.repr(fault['input'])}"
        lines.append(f"  {place or 'spec'}: {message}")
    return "\n".join(dict.fromkeys(lines))  # members of one group share their faults


def _place(loc: tuple[int | str, ...], written: Mapping[str, Sequence[int]]) -> str:
    """As a user would point at it: methods[1].options.num_components."""
    match loc:
        case (str(group), int(position), *rest) if group in written:
            loc = (group, written[group][position], *rest)
    steps = (step for step in loc if step != "[key]")  # pydantic's mark of a fault in a mapping's key
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")

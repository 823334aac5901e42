"""What pydantic finds wrong, as lines that a user can act on."""

from __future__ import annotations

import re
import reprlib

from pydantic import ValidationError

POSITION = re.compile(r"(\[\d+\]\.name): ")


def describe(error: ValidationError, at: tuple[int | str, ...] = ()) -> str:
    """One line a fault: place, problem, and what was given."""
    lines = []
    for fault in error.errors(include_url=False):
        loc = (*at, *fault["loc"])
        cause = fault.get("ctx", {}).get("error")
        if fault["type"] == "too_short" and fault["input"]:  # there were some, and their own faults are listed
            continue
        if isinstance(cause, ValidationError):  # of a plugin's options model
            lines.append(describe(cause, loc))
            continue
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc).lstrip(".")
        message = fault["msg"].removeprefix("Value error, ")
        if positioned := POSITION.match(message):  # from a validator of the whole list
            place += positioned[1]
            message = message[positioned.end() :]
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
    return "\n".join(lines)

"""Validation errors as lines that a user can act on: the place, the problem and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from peekbench.spec.suggestions import Place, describe_unknown, find_meant
from peekbench.spec.value_errors import describe_alternatives

PLACED = re.compile(r"(\w*)(?:\[(\d+)\])?\.([\w-]+): ")
MAX_LISTED = 10  # errors of a spec that a message lists
MAX_MESSAGE = 600  # characters of one of them
MAX_NAME = 100  # characters of a misspelled name that are compared with valid names
NOT_ABOUT_A_VALUE = {"extra_forbidden", "missing", "too_short", "value_error"}  # errors with messages of their own
EXAMPLES = {
    "name": "name: my_experiment",
    "design": "design: {num_train: 50, num_test: 200, num_subsamples: 20}",
    "num_train": "num_train: 50",
    "num_test": "num_test: 200",
    "num_subsamples": "num_subsamples: 20",
    "tasks": "tasks: [PLUGIN.TASK]",
    "methods": "methods: [PLUGIN.METHOD]",
    "use": "use: PLUGIN.NAME",
    "executor.use": "use: local",
}


class OptionsError(ValueError):
    """Options that a plugin's own model refuses."""

    def __init__(self, model: type[BaseModel], error: ValidationError) -> None:
        super().__init__(f"{error.error_count()} errors in options")
        self.model = model
        self.error = error


@dataclass(frozen=True, slots=True)
class Written:
    """What a user wrote: the validated value, its place in the spec, and where its parts came from."""

    model: type[BaseModel]
    """Model that was validated; its fields are suggested for misspelled options."""
    value: Any = None
    """Value that was validated, as plain values; None if it is unknown."""
    at: tuple[int | str, ...] = ()
    """Place of the value in the spec."""
    positions: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """For lists in which a group was replaced by its members: position in the user's own list of each item."""

    def place(self, loc: Sequence[int | str]) -> Place:
        """Return the place of an error as it was written: without the position in a list that is a single value."""
        match loc:
            case (str(group), int(position), *rest) if group in self.positions:
                loc = (group, self.positions[group][position], *rest)
        value, steps = self.value, []
        for step in loc:
            if step == "[key]" or (isinstance(step, int) and value is not None and not isinstance(value, list | tuple)):
                continue  # '[key]' is pydantic's mark of an error in a mapping's key
            steps.append(step)
            value = _get(value, step)
        return tuple(steps)

    def place_of_value(self, loc: Sequence[int | str], value: Any) -> Place:
        """Return the place of a wrong value, without pydantic's name of one of several types that it could have."""
        place = self.place(loc)
        parent = self.value
        for step in place[:-1]:
            parent = _get(parent, step)
        return place[:-1] if len(place) > 1 and parent is value else place


def describe(error: ValidationError, written: Written) -> str:
    """Return one line for each error: place, problem and remedy.

    Parameters
    ----------
    error
        Errors that pydantic found.
    written
        What was validated.
    """
    lines: dict[str, None] = {}  # the members of a group have the same errors
    for num_described, line in enumerate(_describe_each(error, written, ()), start=1):
        lines[line] = None
        if len(lines) == MAX_LISTED and (num_left := _count(error) - num_described):  # suggestions take time
            return "\n".join([*lines, f"  and {num_left:,} more errors"])
    return "\n".join(lines)


def _count(error: ValidationError) -> int:
    details = [detail for detail in error.errors(include_url=False) if not _is_implied(detail)]
    causes = (detail.get("ctx", {}).get("error") for detail in details)
    return sum(_count(cause.error) if isinstance(cause, OptionsError) else 1 for cause in causes)


def _is_implied(detail: Any) -> bool:
    """Return whether the items of a list that is too short have errors of their own."""
    return detail["type"] == "too_short" and bool(detail["input"])


def _describe_each(error: ValidationError, written: Written, outer: tuple[int | str, ...]) -> Iterator[str]:
    details = [detail for detail in error.errors(include_url=False) if not _is_implied(detail)]
    unknown = [written.place((*outer, *detail["loc"])) for detail in details if detail["type"] == "extra_forbidden"]
    meant = {find_meant(written.model, written.value, place) for place in unknown[:MAX_LISTED]}
    alternatives: dict[tuple[Place, int], list[Any]] = {}  # errors of one value, one for each type that it could have
    for detail in details:
        if detail["type"] not in NOT_ABOUT_A_VALUE:
            place = written.place_of_value((*outer, *detail["loc"]), detail["input"])
            alternatives.setdefault((place, id(detail["input"])), []).append(detail)
    for detail in details:
        loc = (*outer, *detail["loc"])
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, OptionsError):
            yield from _describe_each(cause.error, written, loc)
            continue
        message = detail["msg"].removeprefix("Value error, ")
        if placed := PLACED.match(message):  # from a validator of the whole list, or of the whole spec
            group, position, name = placed.groups()
            loc = (*loc, *filter(None, [group]), *([int(position)] if position else ()), name)
            message = message[placed.end() :]
        place = written.place(loc)
        if detail["type"] not in NOT_ABOUT_A_VALUE:
            place = written.place_of_value(loc, detail["input"])
            same_value = alternatives.pop((place, id(detail["input"])), None)
            if same_value is None:  # they have a line already
                continue
            message = describe_alternatives(same_value)
        elif detail["type"] == "extra_forbidden":
            message = describe_unknown(written.model, written.value, place)
        elif detail["type"] == "too_short":
            message = "is empty; name at least one"
        elif detail["type"] == "missing":
            if place in meant:  # it is there, but misspelled
                continue
            message = _describe_missing(written, place)
        yield f"  {_format_place((*written.at, *place)) or 'spec'}: {shorten(message)}"


def _describe_missing(written: Written, place: tuple[int | str, ...]) -> str:
    example = EXAMPLES.get(_format_place(place[-2:]), EXAMPLES.get(str(place[-1]), ""))
    if example:
        return f"is missing; add it, for example `{example}`"
    if "options" in place:
        component = written.value
        for step in place[: place.index("options")]:
            component = _get(component, step)
        use = component if isinstance(component, str) else _get(component, "use")
        return f"is missing; add it. `peekbench show {use}` describes the options" if use else "is missing; add it"
    return "is missing; add it"


def shorten(text: str, limit: int = MAX_MESSAGE) -> str:
    """Return a text of limited length: its start and its end, because messages end with the remedy.

    Examples
    --------
    >>> shorten("a name") == "a name", len(shorten("a name" * 1000)) <= MAX_MESSAGE
    (True, True)
    """
    if len(text) <= limit:
        return text
    part = (limit - 5) // 2
    return f"{text[:part]} ... {text[-part:]}"


def _format_place(place: Sequence[int | str]) -> str:
    """Return a place as users write it: methods[1].options.num_components."""
    steps = (shorten(step, MAX_NAME) if isinstance(step, str) else step for step in place)
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def _get(value: Any, step: int | str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step)
    return value[step] if isinstance(value, list | tuple) and isinstance(step, int) and step < len(value) else None

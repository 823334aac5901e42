"""Validation errors as lines that a user can act on: the place, the problem and the nearest valid name."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Any, TypeAlias, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from peekbench.errors import PluginError
from peekbench.formatting import shorten, visible

Place: TypeAlias = tuple[int | str, ...]

MAX_LISTED = 10  # errors of a spec that a message lists
MAX_MESSAGE = 600  # characters of one of them
MAX_NAME = 100  # characters of a misspelled name that are compared with valid names
SIMILAR, SURE = 0.6, 0.8  # similarity of names that may be meant at the same place, and elsewhere
MAX_DEPTH = 6  # levels of options that suggestions name
EXPECTED = {
    "tuple_type": "Input should be a list",
    "dict_type": "Input should be a mapping",
    "model_type": "Input should be a mapping",
}
"""Words for types that YAML calls otherwise than Python."""
IN_PART = ("missing", "problem", "value_error")
"""Types of errors whose input can be the value that contains the place."""


def problem(message: str, *place: int | str) -> PydanticCustomError:
    """Return the error of a validator, with the place of the problem within the value that is validated.

    Examples
    --------
    >>> str(problem("'x' is taken; give each entry its own name", 1, "name"))
    "[1].name: 'x' is taken; give each entry its own name"
    """
    where = f"{_format_place(place)}: " if place else ""
    return PydanticCustomError("problem", "{where}{problem}", {"where": where, "problem": message, "place": place})


@dataclass(frozen=True, slots=True)
class Written:
    """What a user wrote: the validated value, its place in the spec, and where its parts came from."""

    model: type[BaseModel]
    """Model that was validated; its fields are suggested for misspelled options."""
    value: Any = None
    """Value that was validated, as plain values; None if it is unknown."""
    at: Place = ()
    """Place of the value in the spec."""
    positions: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """For lists in which a group was replaced by its members: position in the user's own list of each item."""
    locate: Callable[[str], str] = str
    """Returns the name of an entry with the folder where it starts; see `Origin.locate`."""

    def place(self, detail: ErrorDetails) -> Place:
        """Return the place of an error as it was written, without pydantic's marks for types and keys."""
        loc = (*detail["loc"], *detail.get("ctx", {}).get("place", ()))
        match loc:
            case (str(group), int(position), *rest) if group in self.positions:
                loc = (group, self.positions[group][position], *rest)
        value, steps = self.value, []
        for step in loc:
            is_reached = value is detail["input"] and detail["type"] not in IN_PART
            if step == "[key]" or is_reached:  # the rest names one of several types that the value could have
                break
            if not _is_mark(step, value):
                steps.append(step)
                value = _get(value, step)
        return tuple(steps)


def _is_mark(step: int | str, value: Any) -> bool:
    """Return whether a step of pydantic is no part of a value, but a position in a single value, or a type."""
    if isinstance(value, list | tuple):
        return isinstance(step, str)
    if isinstance(value, Mapping):
        return step not in value and not str(step).isidentifier()
    return isinstance(step, int) and value is not None


def _get(value: Any, step: int | str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step)
    if isinstance(value, list | tuple) and isinstance(step, int) and step < len(value):
        return value[step]
    return None


def _format_place(place: Sequence[int | str]) -> str:
    """Return a place as users write it: methods[1].options.num_components."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{visible(shorten(step, MAX_NAME))}"
    return text.lstrip(".")


def describe(error: ValidationError, written: Written) -> str:
    """Return one line for each place with errors, and their problems."""
    problems: dict[Place, dict[str, None]] = {}
    details = [(written.place(detail), detail) for detail in error.errors(include_url=False)]
    with_wrong_parts = {place[:length] for place, _ in details for length in range(len(place))}
    for place, detail in details:
        if detail["type"] == "default_factory_not_called":  # another value, which has an error, decides this default
            continue
        if detail["type"] in ("problem", "value_error") or place not in with_wrong_parts:
            problems.setdefault(place, {})[_describe_one(detail, place, written)] = None
    lines = [
        f"  {_format_place((*written.at, *place)) or 'spec'}: {shorten('; or '.join(messages), MAX_MESSAGE)}"
        for place, messages in islice(problems.items(), MAX_LISTED)
    ]
    if len(problems) > MAX_LISTED:
        lines.append("  and more errors")
    return "\n".join(lines)


def _describe_one(detail: ErrorDetails, place: Place, written: Written) -> str:
    """Return the problem of a value and, if it is known, the remedy."""
    match detail["type"]:
        case "problem":
            return str(detail["ctx"]["problem"])
        case "value_error":
            return str(detail["ctx"]["error"])
        case "extra_forbidden":
            return f"no such option; {_suggest(written, place)}"
        case "missing" if "options" in place:
            value = written.value
            for step in place[: place.index("options")]:
                value = _get(value, step)
            return f"is missing; add it. `peekbench show {_find_use(value)}` describes the options"
        case "missing":
            return "is missing; add it"
    shown = reprlib.repr(detail["input"])
    remedy = ""
    if detail["type"] == "literal_error":
        choices = [choice.strip("'") for choice in detail["ctx"]["expected"].replace(" or ", ", ").split(", ")]
        for near in get_close_matches(str(detail["input"])[:MAX_NAME], choices, n=1, cutoff=SIMILAR):
            remedy = f"; did you mean {near}?"
    return f"{EXPECTED.get(detail['type'], detail['msg'])}: {shown}{remedy}"


def _find_use(component: Any) -> Any:
    """Return the name of the entry that a component has, as it was written."""
    if isinstance(component, Mapping):
        return component.get("use")
    return component


def _suggest(written: Written, place: Place) -> str:
    """Return the remedy for an option that does not exist: the nearest one here or elsewhere, or all that are here."""
    *parent, unknown = place
    key = str(unknown)[:MAX_NAME].lower().replace("-", "_").replace(" ", "_")
    options = dict.fromkeys(_walk_options(written.model, written.value, written.locate))
    here = [option for option in options if list(option[:-1]) == parent]
    elsewhere = sorted((option for option in options if option != place[: len(option)]), key=len)
    for choices, cutoff in ((here, SURE), (elsewhere, 1.0), (here, SIMILAR), (elsewhere, SURE)):
        by_name = {str(option[-1]).lower(): option for option in reversed(choices)}
        for close in get_close_matches(key, by_name, n=1, cutoff=cutoff):
            meant = by_name[close]
            if list(meant[:-1]) == parent:
                return f"did you mean {meant[-1]}?"
            where = _format_place((*written.at, *meant[:-1]))
            return f"{meant[-1]} belongs {f'in {where}' if where else 'at the top level of the spec'}"
    if here:
        return f"choose from: {', '.join(str(option[-1]) for option in here)}"
    return "remove it: there are no options here"


def _walk_options(
    model: type[BaseModel], value: Any, locate: Callable[[str], str], place: Place = ()
) -> Iterator[Place]:
    for name, setting in model.model_fields.items():
        if setting.exclude or len(place) > MAX_DEPTH:  # no user writes an excluded field
            continue
        yield (*place, name)
        annotation: Any = setting.annotation
        if name == "options" and hasattr(model, "entry_type"):
            annotation = _find_options(model, _find_use(value), locate)
        written = _get(value, name)
        if isinstance(setting.default, str):  # the default of a component is its name
            if written is None:
                written = setting.default
            elif isinstance(written, Mapping):
                written = {"use": setting.default, **written}
        for nested in _nested_models(annotation):
            for step, part in _list_parts(annotation, written):
                yield from _walk_options(nested, part, locate, (*place, name, *step))


def _list_parts(annotation: Any, value: Any) -> list[tuple[Place, Any]]:
    """Return the values that may have options, with their positions in a list."""
    if get_origin(annotation) not in (tuple, list):
        return [((), value)]
    if isinstance(value, list | tuple):
        return [((position,), item) for position, item in enumerate(value)]
    return []


def _find_options(component: Any, use: Any, locate: Callable[[str], str]) -> type[BaseModel] | None:
    """Return the options of the entry that a component names; None if there is no such entry."""
    with suppress(PluginError):
        if isinstance(use, str):
            options: type[BaseModel] = component.find(locate(use)).options
            return options
    return None


def _nested_models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a type such as `tuple[TaskSpec, ...]` contains."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _nested_models(argument)]

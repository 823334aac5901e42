"""Validation errors as lines that a user can act on: the place, the problem and the remedy."""

from __future__ import annotations

import re
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
from peekbench.plugins.names import OF_FEW, find_nearest

Place: TypeAlias = tuple[int | str, ...]

MAX_LISTED = 10  # errors of a spec that a message lists
MAX_MESSAGE = 600  # characters of one of them
MAX_NAME = 100  # characters of a misspelled name that are compared with valid names
SURE = 0.8  # similarity of names that are certainly meant
MAX_DEPTH = 6  # levels of options that suggestions name
EXAMPLES = {
    "name": '"name": "my_experiment"',
    "design": '"design": {"num_train": 50, "num_test": 200, "num_subsamples": 20}',
    "num_train": '"num_train": 50',
    "num_test": '"num_test": 200',
    "num_subsamples": '"num_subsamples": 20',
    "tasks": '"tasks": ["PLUGIN.TASK"]',
    "methods": '"methods": ["PLUGIN.METHOD"]',
    "use": '"use": "PLUGIN.NAME"',
}
"""Valid in YAML and in Python."""
LIMITS = {
    "greater_than_equal": "too small; use at least {ge:g}",
    "greater_than": "too small; use more than {gt:g}",
    "less_than_equal": "too large; use at most {le:g}",
    "less_than": "too large; use less than {lt:g}",
    "too_short": "empty; name at least one",
    "string_too_long": "too long; use at most {max_length} characters",
}
EXPECTED = {
    error_type: (words, remedy)
    for types, words, remedy in (
        ("int_type int_parsing int_from_float int_parsing_size", "a whole number",
         "write digits without quotes, such as 50"),
        ("counts_type", "a whole number or a list of them", "write digits without quotes, such as 50 or [50, 100]"),
        ("float_type float_parsing finite_number", "a number", "write it without quotes, such as 0.5 or 1.0e-4"),
        ("bool_type bool_parsing", "True or False", "write one of them without quotes"),
        ("string_type", "a text", "put it in quotes, since some words and digits mean other values without them"),
        ("tuple_type list_type", "a list", "write [A, B], or in YAML a dash before each entry"),
        ("dict_type model_type model_attributes_type mapping_type", "a mapping",
         "write {\"name\": value}, in YAML without dashes"),
    )
    for error_type in types.split()
}  # fmt: skip
"""What a value should be, and how to write it, by type of error, with the same example for all values."""

WRONG_TYPE = (*EXPECTED, "literal_error")
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
        if detail["type"] == "invalid_key":
            loc = loc[:-1]
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

    def find(self, place: Place) -> Any:
        """Find the value at a place."""
        value = self.value
        for step in place:
            value = _get(value, step)
        return value

    def list_options(self) -> list[Place]:
        """Return the places of all options that the value can have, those of the plugins that it names included."""
        return list(dict.fromkeys(_iterate_options(self.model, self.value, self.locate)))


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
    """Return one line for each error: place, problem and remedy."""
    lines = list(islice(dict.fromkeys(_describe_each(error, written)), MAX_LISTED + 1))
    if len(lines) > MAX_LISTED:
        lines[MAX_LISTED] = "  and more errors"
    return "\n".join(lines)


def _describe_each(error: ValidationError, written: Written) -> Iterator[str]:
    by_value: dict[tuple[Place, int], list[ErrorDetails]] = {}  # errors of a value, one for each type it could have
    for detail in error.errors(include_url=False):
        by_value.setdefault((written.place(detail), id(detail["input"])), []).append(detail)
    with_wrong_parts = {place[:length] for place, _ in by_value for length in range(len(place))}
    unknown = [place for (place, _), (detail, *_) in by_value.items() if detail["type"] == "extra_forbidden"]
    misspelled = {_find_meant(written, place) for place in unknown[:MAX_LISTED]}
    for (place, _), details in by_value.items():
        # An error other than a wrong type is one of the type that was meant.
        detail = next((detail for detail in details if detail["type"] not in WRONG_TYPE), details[0])
        if place in with_wrong_parts and detail["type"] in (*WRONG_TYPE, "too_short"):
            continue
        if detail["type"] == "missing" and place in misspelled:
            continue
        if detail["type"] == "default_factory_not_called":  # another value, which has an error, decides this default
            continue
        message = _describe_one(detail, details, place, written)
        yield f"  {_format_place((*written.at, *place)) or 'spec'}: {shorten(message, MAX_MESSAGE)}"


def _describe_one(detail: ErrorDetails, details: Sequence[ErrorDetails], place: Place, written: Written) -> str:
    """Return the problem and the remedy of a value, given an error for each type that it could have."""
    context = detail.get("ctx", {})
    match detail["type"]:
        case "problem":
            return str(context["problem"])
        case "value_error":
            return str(context["error"])
        case "truth_value":
            return str(detail["msg"])
        case "extra_forbidden":
            return f"no such option; {_suggest(written, place)}"
        case "missing":
            return _describe_missing(written, place)
        case "invalid_key":
            remedy = "put it in quotes, since YAML reads some words and digits as other values"
            return f"{detail['loc'][-1]} is not a name; {remedy}"
        case "literal_error" if len(details) == 1:
            choices = _list_choices(detail)
            near = find_nearest(str(detail["input"]), choices, OF_FEW)
            remedy = f"did you mean {near}?" if near else "choose one of them"
            return f"{reprlib.repr(detail['input'])} is not one of {', '.join(choices)}; {remedy}"
        case error_type if error_type in LIMITS:
            return f"{reprlib.repr(detail['input'])} is {LIMITS[error_type].format(**context)}"
    if detail["input"] is None:
        return "has no value; write one after the colon"
    expected = [words for other in details for words in _list_expected(other)]
    remedies = [EXPECTED[other["type"]][1] for other in details if other["type"] in EXPECTED]
    message = f"{_show(detail['input'])} is not {' or '.join(expected)}"
    if remedies:
        message += f"; {', or '.join(remedies)}"
    return message


def _describe_missing(written: Written, place: Place) -> str:
    if example := EXAMPLES.get(str(place[-1])):
        return f"is missing; add it, for example `{example}`"
    if "options" in place:
        use = _find_use(written.find(place[: place.index("options")]))
        return f"is missing; add it. `peekbench show {use}` describes the options"
    return "is missing; add it"


def _find_use(component: Any) -> Any:
    """Return the name of the entry that a component has, as it was written."""
    if isinstance(component, Mapping):
        return component.get("use")
    return component


# Options that do not exist


def _suggest(written: Written, place: Place) -> str:
    """Return the remedy for an option that does not exist: the nearest one, or all that are possible here."""
    *parent, _ = place
    if meant := _find_meant(written, place):
        if list(meant[: len(parent)]) == parent:
            return f"did you mean {_format_place(meant[len(parent) :])}?"
        at_top = " at the top level" if len(meant) == 1 else ""
        return f"did you mean {_format_place(meant)}{at_top}?"
    here = [str(option[-1]) for option in written.list_options() if list(option[:-1]) == parent]
    if here:
        return f"choose from: {', '.join(here)}"
    return "remove it: there are no options here"


def _find_meant(written: Written, place: Place) -> Place | None:
    """Return the option with the most similar name: here, below, with this very name around it, or else anywhere."""
    *parent, unknown = place
    key = str(unknown)[:MAX_NAME].lower().replace("-", "_").replace(" ", "_")
    options = [option for option in written.list_options() if option != place[: len(option)]]
    inside = [option for option in options if list(option[: len(parent)]) == parent]
    here = [option for option in inside if len(option) == len(place)]
    around = [
        option for option in options if len(option) < len(place) and list(option[:-1]) == parent[: len(option) - 1]
    ]
    for choices, cutoff in ((here, SURE), (inside, 1.0), (around, 1.0), (here, 0.6), (inside, 0.6), (options, SURE)):
        by_name: dict[str, Place] = {}
        for option in sorted(choices, key=len):  # of options of the same name, the one that is nested least counts
            by_name.setdefault(str(option[-1]).lower(), option)
        if close := get_close_matches(key, by_name, n=1, cutoff=cutoff):
            return by_name[close[0]]
    return None


def _iterate_options(
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
                yield from _iterate_options(nested, part, locate, (*place, name, *step))


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


# Values of a wrong type


def _list_expected(detail: ErrorDetails) -> list[str]:
    """Describe the expected value."""
    if detail["type"] == "literal_error":
        return _list_choices(detail)
    return [EXPECTED.get(detail["type"], (detail["msg"].removeprefix("Input should be "), ""))[0]]


def _list_choices(detail: ErrorDetails) -> list[str]:
    return [choice.strip("'") for choice in re.split(", | or ", detail["ctx"]["expected"])]


def _show(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return reprlib.repr(value)

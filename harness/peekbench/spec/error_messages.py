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

from peekbench.errors import PluginError
from peekbench.formatting import shorten, visible
from peekbench.plugins.similar_names import OF_FEW, find_nearest
from peekbench.spec.design import NAME

Place: TypeAlias = tuple[int | str, ...]

PLACED = re.compile(r"(\w*)(?:\[(\d+)\])?\.([\w-]+): ")
MAX_LISTED = 10  # errors of a spec that a message lists
MAX_MESSAGE = 600  # characters of one of them
MAX_NAME = 100  # characters of a misspelled name that are compared with valid names
SURE = 0.8  # similarity of names that are certainly meant
MAX_DEPTH = 6  # levels of options that suggestions name
NOT_ABOUT_A_VALUE = {"extra_forbidden", "missing", "too_short", "value_error"}  # errors with messages of their own
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
    "greater_than_equal": ("ge", "too small; use at least"),
    "greater_than": ("gt", "too small; use more than"),
    "less_than_equal": ("le", "too large; use at most"),
    "less_than": ("lt", "too large; use less than"),
}
EXPECTED: tuple[tuple[set[str], str, str], ...] = (
    ({"int_type", "int_parsing", "int_from_float", "int_parsing_size"}, "a whole number",
     "write digits without quotes, such as 50"),
    ({"counts_type"}, "a whole number or a list of them", "write digits without quotes, such as 50 or [50, 100]"),
    ({"invalid_key"}, "a name", "put it in quotes, since YAML reads some words and digits as other values"),
    ({"float_type", "float_parsing", "finite_number"}, "a number", "write it without quotes, such as 0.5 or 1.0e-4"),
    ({"bool_type", "bool_parsing"}, "True or False", "write one of them without quotes"),
    ({"string_type"}, "a text", "put it in quotes, since some words and digits mean other values without them"),
    ({"tuple_type", "list_type"}, "a list", "write [A, B], or in YAML a dash before each entry"),
    ({"dict_type", "model_type", "model_attributes_type", "mapping_type"}, "a mapping",
     "write {\"name\": value}, in YAML without dashes"),
)  # fmt: skip
"""Types of errors, what the value should be, and how to write it, with the same example for all values."""


class OptionsError(ValueError):
    """Options that a plugin's own model refuses."""

    def __init__(self, error: ValidationError) -> None:
        super().__init__(f"{error.error_count()} errors in options")
        self.error = error


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
        return place[:-1] if len(place) > 1 and self.find(place[:-1]) is value else place

    def find(self, place: Place) -> Any:
        """Return what is written at a place."""
        value = self.value
        for step in place:
            value = _get(value, step)
        return value


def describe(error: ValidationError, written: Written) -> str:
    """Return one line for each error: place, problem and remedy."""
    lines = dict.fromkeys(islice(_describe_each(error, written, ()), MAX_LISTED + 1))  # members of groups have the same
    more = ["  and more errors"] if len(lines) > MAX_LISTED else []
    return "\n".join([*islice(lines, MAX_LISTED), *more])


def _describe_each(error: ValidationError, written: Written, outer: Place) -> Iterator[str]:
    # The items of a list that is too short have errors of their own.
    details = [each for each in error.errors(include_url=False) if each["type"] != "too_short" or not each["input"]]
    placed = [(detail, *_locate(detail, written, outer)) for detail in details]
    unknown = [place for detail, place, _ in placed if detail["type"] == "extra_forbidden"]
    meant = {_find_meant(written, place) for place in unknown[:MAX_LISTED]}
    alternatives: dict[tuple[Place, int], list[Any]] = {}  # errors of one value, one for each type that it could have
    for detail, place, _ in placed:
        if detail["type"] not in NOT_ABOUT_A_VALUE:
            alternatives.setdefault((place, id(detail["input"])), []).append(detail)
    for detail, place, message in placed:
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, OptionsError):
            yield from _describe_each(cause.error, written, (*outer, *detail["loc"]))
            continue
        if detail["type"] not in NOT_ABOUT_A_VALUE:
            same_value = alternatives.pop((place, id(detail["input"])), None)
            if same_value is None:  # they have a line already
                continue
            message = _describe_value(same_value)
        elif detail["type"] == "extra_forbidden":
            message = f"no such option; {_suggest(written, place)}"
        elif detail["type"] == "too_short":
            message = "is empty; name at least one"
        elif detail["type"] == "missing":
            if place in meant:  # it is there, but misspelled
                continue
            message = _describe_missing(written, place)
        yield f"  {_format_place((*written.at, *place)) or 'spec'}: {shorten(message, MAX_MESSAGE)}"


def _locate(detail: Any, written: Written, outer: Place) -> tuple[Place, str]:
    """Return the place of an error and its message, which can start with a place within the value."""
    loc, message = (*outer, *detail["loc"]), detail["msg"].removeprefix("Value error, ")
    if detail["type"] not in NOT_ABOUT_A_VALUE:
        return written.place_of_value(loc, detail["input"]), message
    if placed := PLACED.match(message):  # from a validator of the whole list, or of the whole spec
        group, position, name = placed.groups()
        loc = (*loc, *filter(None, [group]), *([int(position)] if position else ()), name)
        message = message[placed.end() :]
    return written.place(loc), message


def _describe_missing(written: Written, place: Place) -> str:
    if example := EXAMPLES.get(str(place[-1])):
        return f"is missing; add it, for example `{example}`"
    component = written.find(place[: place.index("options")]) if "options" in place else None
    use = component if isinstance(component, str) else _get(component, "use")
    return "is missing; add it" + (f". `peekbench show {use}` describes the options" if use else "")


def _format_place(place: Sequence[int | str]) -> str:
    """Return a place as users write it: methods[1].options.num_components."""
    steps = (visible(shorten(step, MAX_NAME)) if isinstance(step, str) else step for step in place)
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def _get(value: Any, step: int | str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step)
    return value[step] if isinstance(value, list | tuple) and isinstance(step, int) and step < len(value) else None


# Options that do not exist


def _suggest(written: Written, place: Place) -> str:
    """Return the remedy for an option that does not exist: the nearest one, or all that are possible here."""
    *parent, _ = place
    if meant := _find_meant(written, place):
        is_inside = list(meant[: len(parent)]) == parent
        at_top = " at the top level" if parent and len(meant) == 1 else ""
        return f"did you mean {_format_place(meant[len(parent) :] if is_inside else meant)}{at_top}?"
    options = dict.fromkeys(_iterate_options(written.model, written.value, written.locate))
    here = [str(option[-1]) for option in options if list(option[:-1]) == parent]
    return f"choose from: {', '.join(here)}" if here else "remove it: there are no options here"


def _find_meant(written: Written, place: Place) -> Place | None:
    """Return the option with the most similar name: in the same mapping, below it, or else anywhere in the spec."""
    *parent, unknown = place
    key = str(unknown)[:MAX_NAME].lower().replace("-", "_").replace(" ", "_")
    options = [
        option
        for option in _iterate_options(written.model, written.value, written.locate)
        if option != place[: len(option)]
    ]
    inside = [option for option in options if list(option[: len(parent)]) == parent]
    here = [option for option in inside if len(option) == len(place)]
    for choices, cutoff in ((here, SURE), (inside, 1.0), (here, 0.6), (inside, 0.6), (options, SURE)):
        by_name = {str(option[-1]).lower(): option for option in reversed(choices)}  # the first one counts
        if close := get_close_matches(key, by_name, n=1, cutoff=cutoff):
            return by_name[close[0]]
    return None


def _iterate_options(
    model: type[BaseModel], value: Any, locate: Callable[[str], str], place: Place = ()
) -> Iterator[Place]:
    """Iterate over the places of all options that a value can have, those of the plugins that it names included."""
    for name, setting in model.model_fields.items():
        if setting.exclude or len(place) > MAX_DEPTH:  # no user writes an excluded field
            continue
        yield (*place, name)
        annotation: Any = setting.annotation
        if name == "options" and hasattr(model, "entry"):
            annotation = _options_of(model, value, locate)
        written = value.get(name) if isinstance(value, Mapping) else None
        models = _nested_models(annotation)
        if get_origin(annotation) in (tuple, list):
            for position, item in enumerate(written if isinstance(written, list | tuple) else ()):
                for nested in models:
                    yield from _iterate_options(nested, item, locate, (*place, name, position))
        elif get_origin(annotation) is not dict and len(models) == 1:
            if isinstance(setting.default, str):  # the default of a component is its name
                written = {"use": setting.default, **(written if isinstance(written, Mapping) else {})}
            yield from _iterate_options(models[0], written, locate, (*place, name))


def _options_of(component: Any, value: Any, locate: Callable[[str], str]) -> type[BaseModel] | None:
    """Return the options of the entry that a component names; None if there is no such entry."""
    use = value.get("use") if isinstance(value, Mapping) else value
    with suppress(PluginError):
        if isinstance(use, str):
            options: type[BaseModel] = component.entry.find(locate(use)).options
            return options
    return None


def _nested_models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a type such as `tuple[TaskSpec, ...]` contains."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _nested_models(argument)]


# Values of a wrong type or size


def _describe_value(details: Sequence[Mapping[str, Any]]) -> str:
    """Return a message about a value, given an error for each type that it could have; a wrong size counts most."""
    detail = next((each for each in details if each["type"] in LIMITS), details[0])
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in LIMITS:
        limit, words = LIMITS[kind]
        return f"{reprlib.repr(value)} is {words} {context[limit]:g}"
    if value is None and kind not in ("none_required", "is_instance_of"):
        return "has no value; write one after the colon"
    if kind == "string_pattern_mismatch" and context["pattern"] == NAME:
        return (
            f"{reprlib.repr(value)} is not a name; use letters, digits, '_', '-' and '.', and start with a letter or a "
            "digit"
        )
    if kind == "truth_value":
        return str(detail["msg"])
    if kind == "literal_error" and len(details) == 1:
        choices = _choices(detail)
        near = find_nearest(str(value), choices, OF_FEW)
        remedy = f"did you mean {near}?" if near else "choose one of them"
        return f"{reprlib.repr(value)} is not one of {', '.join(choices)}; {remedy}"
    expected = [
        words
        for each in details
        for words in (_choices(each) if each["type"] == "literal_error" else [_expected(each)[0]])
    ]
    remedy = _expected(detail)[1] if len(details) == 1 else ""
    return f"{_format(value)} is not {' or '.join(expected)}{f'; {remedy}' if remedy else ''}"


def _expected(detail: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a value should be, and how to write it."""
    found = ((words, remedy) for types, words, remedy in EXPECTED if detail["type"] in types)
    return next(found, (detail["msg"].removeprefix("Input should be ").replace("valid tuple", "valid list"), ""))


def _choices(detail: Mapping[str, Any]) -> list[str]:
    return re.findall(r"'([^']*)'", detail["ctx"]["expected"])


def _format(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else reprlib.repr(value)

"""Validation errors as lines that a user can act on: the place, the problem and the remedy."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice, takewhile
from typing import Any, TypeAlias, get_args, get_origin

from pydantic import BaseModel, ValidationError

from peekbench.errors import PluginError
from peekbench.spec.design import NAME

Place: TypeAlias = tuple[int | str, ...]

PLACED = re.compile(r"(\w*)(?:\[(\d+)\])?\.([\w-]+): ")
MAX_LISTED = 10  # errors of a spec that a message lists
MAX_MESSAGE = 600  # characters of one of them
MAX_NAME = 100  # characters of a misspelled name that are compared with valid names
MAX_VALUE = 60  # characters of a value that a remedy writes out
MAX_DEPTH = 6  # levels of options that suggestions name
SURE = 0.8  # similarity of names that are certainly meant
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
NAME_IN_WORDS = "a name of letters, digits, '_', '-' and '.' that starts with a letter or a digit"
NUMBER = re.compile(r"[+-]?(\d+|\d{1,3}([,_ ]\d{3})+)(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)
ASSIGNMENT = re.compile(r"(\w+) *= *(\S+)")
QUOTE_WORD = "put the word in quotes, because YAML reads yes, no, on and off as true and false"
LIMITS = {
    "greater_than_equal": ("ge", "too small; use at least"),
    "greater_than": ("gt", "too small; use more than"),
    "less_than_equal": ("le", "too large; use at most"),
    "less_than": ("lt", "too large; use less than"),
}


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
        yield f"  {_format_place((*written.at, *place)) or 'spec'}: {shorten(message)}"


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
    if example := EXAMPLES.get(_format_place(place[-2:]), EXAMPLES.get(str(place[-1]), "")):
        return f"is missing; add it, for example `{example}`"
    if "options" in place:
        component = written.find(place[: place.index("options")])
        if use := component if isinstance(component, str) else _get(component, "use"):
            return f"is missing; add it. `peekbench show {use}` describes the options"
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


# Options that do not exist


def _suggest(written: Written, place: Place) -> str:
    """Return the remedy for an option that does not exist: the one that was meant, or all that are possible."""
    meant = _find_meant(written, place)
    if meant is None:
        here = [str(option[-1]) for option in _options_near(written, place) if option[:-1] == place[:-1]]
        return f"choose from: {', '.join(here)}" if here else "remove it: there are no options here"
    start = _num_shared(meant, place[:-1])  # it is named relative to what it shares with the place
    while start and isinstance(meant[start], int):
        start -= 1
    outside = f", outside of {place[start]}" if len(meant) == start + 1 < len(place) else ""
    return f"did you mean {_format_place(meant[start:])}{outside}?"


def _find_meant(written: Written, place: Place) -> Place | None:
    """Return the place of the option that was meant by one that does not exist; None if no name is similar."""
    *parent, unknown = place
    name = str(unknown)[:MAX_NAME]
    options = _options_near(written, place)
    inside = [option for option in options if option[: len(parent)] == tuple(parent)]
    here = [option for option in inside if len(option) == len(place)]
    nested = [option for option in inside if len(option) > len(place)]
    return (
        _nearest(name, here, SURE)
        or _nearest(name, inside, 1.0)
        or _nearest(name, here, 0.6)
        or _nearest(name, nested, 0.6)
        or _nearest(name, options, SURE, near=parent)
    )


def _options_near(written: Written, place: Place) -> list[Place]:
    """Return the places of all options, except of those that contain a place."""
    options = dict.fromkeys(_iterate_options(written.model, written.value))
    return [option for option in options if option != place[: len(option)]]


def _nearest(name: str, options: Sequence[Place], cutoff: float, near: Sequence[int | str] = ()) -> Place | None:
    """Return the option with the most similar name; of several, the one nearest to a place."""
    key = name.lower().replace("-", "_").replace(" ", "_")
    by_name: dict[str, list[Place]] = {}
    for option in options:
        by_name.setdefault(str(option[-1]).lower(), []).append(option)
    close = [key] if key in by_name else get_close_matches(key, by_name, n=1, cutoff=cutoff)
    return max(by_name[close[0]], key=lambda option: _num_shared(option, near)) if close else None


def _num_shared(option: Sequence[int | str], place: Sequence[int | str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(option, place, strict=False)))


def _iterate_options(model: type[BaseModel], value: Any, place: Place = ()) -> Iterator[Place]:
    """Iterate over the places of all options that a value can have, those of the plugins that it names included."""
    for name, setting in model.model_fields.items():
        if setting.exclude or len(place) > MAX_DEPTH:  # no user writes an excluded field
            continue
        yield (*place, name)
        annotation: Any = setting.annotation
        if name == "options" and hasattr(model, "entry"):
            annotation = _options_of(model, value)
        written = value.get(name) if isinstance(value, Mapping) else None
        models = _nested_models(annotation)
        if get_origin(annotation) in (tuple, list):
            for position, item in enumerate(written if isinstance(written, list | tuple) else ()):
                for nested in models:
                    yield from _iterate_options(nested, item, (*place, name, position))
        elif get_origin(annotation) is not dict and len(models) == 1:
            if isinstance(setting.default, str):  # the default of a component is its name
                written = {"use": setting.default, **(written if isinstance(written, Mapping) else {})}
            yield from _iterate_options(models[0], written, (*place, name))


def _options_of(component: Any, value: Any) -> type[BaseModel] | None:
    """Return the options of the entry that a component names; None if there is no such entry."""
    use = value.get("use") if isinstance(value, Mapping) else value
    with suppress(PluginError):
        if isinstance(use, str):
            options: type[BaseModel] = component.entry.find(use).options
            return options
    return None


def _nested_models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a type such as `tuple[TaskSpec, ...]` contains."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _nested_models(argument)]


# Values of a wrong type or size


def _describe_value(details: Sequence[Mapping[str, Any]]) -> str:
    """Return a message about a value, given an error for each type that it could have.

    If the value has one of the types but a wrong size, only that is said.
    """
    sizes = [detail for detail in details if detail["type"] in LIMITS]
    value = details[0]["input"]
    if sizes or len(details) == 1 or value is None:
        return _describe_one([*sizes, *details][0])
    choices = [choice for detail in details if detail["type"] == "literal_error" for choice in _choices(detail)]
    expected = [_expected(detail)[0] for detail in details if detail["type"] != "literal_error"]
    close = get_close_matches(str(value)[:MAX_VALUE].lower(), choices, n=1)
    *others, last = [*expected, *choices]
    return f"{_format(value)} is not {', '.join(others)} or {last}" + (f"; did you mean {close[0]}?" if close else "")


def _describe_one(detail: Mapping[str, Any]) -> str:
    """Return a message about a value that could have one type."""
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in LIMITS:
        limit, words = LIMITS[kind]
        return f"{reprlib.repr(value)} is {words} {context[limit]:g}"
    if value is None and kind not in ("none_required", "is_instance_of"):
        return "has no value; write one after the colon"
    if kind == "literal_error":
        return _describe_choice(value, _choices(detail))
    if kind == "string_pattern_mismatch" and context["pattern"] == NAME:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", value[:MAX_VALUE]).strip("_.-")
        return f"{reprlib.repr(value)} is not {NAME_IN_WORDS}" + (f"; write {name}" if name else "")
    words, write = _expected(detail)
    if not write:
        return f"{detail['msg'].replace('valid tuple', 'valid list')}; got {reprlib.repr(value)}"
    remedy = write(value)
    return f"{_format(value)} is not {words}; {remedy}" if remedy else f"{_format(value)} is not {words}"


def _expected(detail: Mapping[str, Any]) -> tuple[str, Callable[[Any], str] | None]:
    """Return what a value should be, and the function that writes the value that was meant."""
    found = ((words, write) for types, words, write in EXPECTED if detail["type"] in types)
    return next(found, (detail["msg"].removeprefix("Input should be "), None))


def _choices(detail: Mapping[str, Any]) -> list[str]:
    return re.findall(r"'([^']*)'", detail["ctx"]["expected"])


def _describe_choice(value: Any, choices: list[str]) -> str:
    close = get_close_matches(str(value)[:MAX_VALUE].lower(), choices, n=1)
    remedy = f"did you mean {close[0]}?" if close else "choose one of them"
    remedy = QUOTE_WORD if isinstance(value, bool) else remedy
    return f"{reprlib.repr(value)} is not one of {', '.join(choices)}; {remedy}"


def _format(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else reprlib.repr(value)


def _write_number(value: Any) -> str:
    """Return how to write the number that a text or a float stands for; empty if it stands for none."""
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        number, unquoted = float(re.sub("[,_ ]", "", value)), " without quotes" * value.strip().isdecimal()
    elif isinstance(value, float) and value.is_integer():
        number, unquoted = value, ""
    else:
        return ""
    return f"write {int(number) if number.is_integer() and abs(number) < 1e15 else number}{unquoted}"


def _write_counts(value: Any) -> str:
    if isinstance(value, float) and 0 < value < 1:
        return "give a number of texts, not a share"
    parts = re.split(r"[,;\s]+", value.strip()) if isinstance(value, str) else []
    listed = len(parts) > 1 and all(part.isdecimal() and not part.startswith("0") for part in parts)
    forms = [_write_number(value).removeprefix("write "), f"[{', '.join(parts)}]" if listed else ""]
    return "write " + " or ".join(filter(None, forms)) if any(forms) else ""


def _write_text(value: Any) -> str:
    if isinstance(value, bool):
        return QUOTE_WORD
    return f'put it in quotes: "{value}"' if isinstance(value, int | float) else ""


def _write_list(value: Any) -> str:
    if isinstance(value, str) and len(value) <= MAX_VALUE:
        items = ", ".join(filter(None, re.split(r"[,;\s]+", value)))
        return f"write [{items}]"
    if not isinstance(value, Mapping):
        return ""
    if not value:
        return "name at least one entry"
    first, settings = next(iter(value.items()))
    if isinstance(settings, Mapping) and "use" in settings:
        name = str(first)[:MAX_VALUE]
        return f"write a dash before each entry and the name in it, as in `- {{name: {name}, use: PLUGIN.NAME}}`"
    return "write a dash before each entry, as in `- use: PLUGIN.NAME`"


def _write_mapping(value: Any) -> str:
    if isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value):
        return "write its settings without dashes"
    if isinstance(value, str) and len(value) <= MAX_VALUE and (pairs := ASSIGNMENT.findall(value)):
        return f"write {{{', '.join(f'{name}: {item}' for name, item in pairs)}}}"
    return "write it as {name: value}"


EXPECTED: tuple[tuple[set[str], str, Callable[[Any], str]], ...] = (
    ({"int_type", "int_parsing", "int_from_float", "int_parsing_size"}, "a whole number", _write_number),
    ({"counts_type"}, "a whole number or a list of them", _write_counts),
    ({"float_type", "float_parsing", "finite_number"}, "a number", _write_number),
    ({"bool_type", "bool_parsing"}, "true or false", lambda _: ""),
    ({"string_type"}, "a text", _write_text),
    ({"tuple_type", "list_type"}, "a list", _write_list),
    ({"dict_type", "model_type", "model_attributes_type", "mapping_type"}, "a mapping", _write_mapping),
)
"""Types of errors, what the value should be, and the function that writes the value that was meant."""

"""Suggests the option that was meant by one that does not exist, and the place where it belongs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, TypeAlias, get_args, get_origin

from pydantic import BaseModel

from peekbench.errors import PluginError

MAX_NAME = 100  # characters of a misspelled name that are compared with valid names
MAX_DEPTH = 6  # levels of options that suggestions name
SURE = 0.8  # similarity of names that are certainly meant

Place: TypeAlias = tuple[int | str, ...]


def find_meant(model: type[BaseModel], value: Any, place: Place) -> Place | None:
    """Return the place of the option that was meant by one that does not exist; None if no name is similar.

    Parameters
    ----------
    model
        Model of the whole value, such as the spec.
    value
        Whole value as it was written.
    place
        Place of the option in the value.
    """
    *parent, written = place
    name = str(written)[:MAX_NAME]
    options = _options_near(model, value, place)
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


def describe_unknown(model: type[BaseModel], value: Any, place: Place) -> str:
    """Return a message about an option that does not exist, with the one that was meant; see `find_meant`."""
    meant = find_meant(model, value, place)
    if meant is not None:
        return f"no such option; {_ask(meant, place)}"
    here = [str(option[-1]) for option in _options_near(model, value, place) if option[:-1] == place[:-1]]
    if not here:
        return "no such option; remove it: there are no options here"
    return f"no such option; choose from: {', '.join(here)}"


def _options_near(model: type[BaseModel], value: Any, place: Place) -> list[Place]:
    """Return the places of all options, except of those that contain a place."""
    return [option for option in dict.fromkeys(_iterate_options(model, value)) if option != place[: len(option)]]


def _nearest(name: str, options: Sequence[Place], cutoff: float, near: Sequence[int | str] = ()) -> Place | None:
    """Return the option with the most similar name; of several, the one nearest to a place."""
    key = _normalize(name)
    by_name: dict[str, list[Place]] = {}
    for option in options:
        by_name.setdefault(str(option[-1]).lower(), []).append(option)
    close = [key] if key in by_name else get_close_matches(key, by_name, n=1, cutoff=cutoff)
    return max(by_name[close[0]], key=lambda option: _num_shared(option, near)) if close else None


def _normalize(name: str) -> str:
    return name.lower().replace("-", "_").replace(" ", "_")


def _num_shared(option: Sequence[int | str], place: Sequence[int | str]) -> int:
    pairs = zip(option, place, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _ask(option: Place, place: Place) -> str:
    """Name an option relative to what it shares with a place."""
    start = _num_shared(option, place[:-1])
    while start and isinstance(option[start], int):
        start -= 1
    words = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in option[start:]).lstrip(".")
    outside = f", outside of {place[start]}" if len(option) == start + 1 < len(place) else ""
    return f"did you mean {words}{outside}?"


def _iterate_options(model: type[BaseModel], value: Any, place: Place = ()) -> Iterator[Place]:
    """Iterate over the places of all options that a value can have, those of the plugins that it names included."""
    for name, field in _fields_of(model, value):
        if field.exclude or len(place) > MAX_DEPTH:  # no user writes an excluded field
            continue
        yield (*place, name)
        written = value.get(name) if isinstance(value, Mapping) else None
        if get_origin(field.annotation) in (tuple, list):
            items = written if isinstance(written, list | tuple) else ()
            for nested in _nested_models(field.annotation):
                for position, item in enumerate(items):
                    yield from _iterate_options(nested, item, (*place, name, position))
        elif get_origin(field.annotation) is not dict and len(nested_models := _nested_models(field.annotation)) == 1:
            if isinstance(field.default, str):  # the default of a component is its name
                written = {"use": field.default, **(written if isinstance(written, Mapping) else {})}
            yield from _iterate_options(nested_models[0], written, (*place, name))


def _fields_of(model: type[BaseModel], value: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over the fields of a model; the options of a component are those of the plugin that it names."""
    find = getattr(model, "entry", None)
    for name, field in model.model_fields.items():
        if find is None or name != "options":
            yield name, field
            continue
        use = value.get("use") if isinstance(value, Mapping) else value
        try:
            options = find.find(use).options if isinstance(use, str) else None
        except PluginError:
            options = None
        yield name, _Options(options)


class _Options:
    """Field of the options of a component."""

    def __init__(self, model: type[BaseModel] | None) -> None:
        self.annotation = model
        self.exclude = False
        self.default = None


def _nested_models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a type such as `tuple[TaskSpec, ...]` contains."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _nested_models(argument)]

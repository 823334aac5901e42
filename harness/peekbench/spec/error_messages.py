"""Validation errors as lines that a user can act on: the place, the problem and the remedy."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from types import MappingProxyType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

PLACED = re.compile(r"(\w*)\[(\d+)\]\.(\w+): ")
MAX_LISTED = 20  # errors of a spec that a message lists
MAX_MESSAGE = 600  # characters of one of them
MAX_NAME = 100  # characters of a misspelled name that are compared with valid names
MAX_DEPTH = 3  # levels of nested options that suggestions name
NO_POSITIONS: Mapping[str, Sequence[int]] = MappingProxyType({})


class OptionsError(ValueError):
    """Options that a plugin's own model refuses."""

    def __init__(self, model: type[BaseModel], error: ValidationError) -> None:
        super().__init__(f"{error.error_count()} errors in options")
        self.model = model
        self.error = error


def describe(
    error: ValidationError,
    model: type[BaseModel],
    at: tuple[int | str, ...] = (),
    positions: Mapping[str, Sequence[int]] = NO_POSITIONS,
) -> str:
    """Return one line for each error: place, problem and remedy.

    Parameters
    ----------
    error
        Errors that pydantic found.
    model
        Model that was validated; its fields are suggested for misspelled options.
    at
        Place of the validated value in the spec.
    positions
        For lists in which a group was replaced by its members: position in the user's own list of each item.
    """
    lines = dict.fromkeys(_describe_each(error, model, at, positions))  # the members of a group have the same errors
    listed = list(islice(lines, MAX_LISTED))
    return "\n".join(listed + ([f"  and {len(lines) - MAX_LISTED:,} more errors"] if len(lines) > MAX_LISTED else []))


def _describe_each(
    error: ValidationError, model: type[BaseModel], at: tuple[int | str, ...], positions: Mapping[str, Sequence[int]]
) -> Iterator[str]:
    for detail in error.errors(include_url=False):
        loc = (*at, *detail["loc"])
        cause = detail.get("ctx", {}).get("error")
        if detail["type"] == "too_short" and detail["input"]:  # the items have errors of their own
            continue
        if isinstance(cause, OptionsError):
            yield from _describe_each(cause.error, cause.model, loc, positions)
            continue
        message = detail["msg"].removeprefix("Value error, ")
        if placed := PLACED.match(message):  # from a validator of the whole list, or of the whole spec
            group, position, name = placed.groups()
            loc = (*loc, *filter(None, [group]), int(position), name)
            message = message[placed.end() :]
        if detail["type"] == "extra_forbidden":
            message = _unknown_option(model, detail["loc"])
        elif detail["type"] == "too_short":
            message = "is empty; name at least one"
        elif detail["type"] == "missing":
            message = "is missing; add it"
        elif detail["type"] != "value_error":
            # YAML has lists, not tuples.
            message = f"{message.replace('valid tuple', 'valid list')}; got {reprlib.repr(detail['input'])}"
        yield f"  {_place(loc, positions) or 'spec'}: {shorten(message)}"


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


def _place(loc: tuple[int | str, ...], positions: Mapping[str, Sequence[int]]) -> str:
    """Return a place as users write it: methods[1].options.num_components."""
    match loc:
        case (str(group), int(position), *rest) if group in positions:
            loc = (group, positions[group][position], *rest)
    # '[key]' is pydantic's mark of an error in a mapping's key.
    steps = (shorten(step, MAX_NAME) if isinstance(step, str) else step for step in loc if step != "[key]")
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def _unknown_option(model: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    """Return a message that names the nearest valid option."""
    *parents, name = loc
    for step in parents:
        if isinstance(step, str) and step in model.model_fields:
            nested = _nested_models(model.model_fields[step].annotation)
            if len(nested) != 1:
                return "no such option; remove it or correct its name"
            (model,) = nested
    names = list(_option_names(model))
    if not names:
        return "no such option; remove it: there are no options here"
    by_last_name = {option.rpartition(".")[2]: option for option in reversed(names)}
    close = get_close_matches(str(name)[:MAX_NAME], [*names, *by_last_name], n=1)
    if close:
        return f"no such option; did you mean {by_last_name.get(close[0], close[0])}?"
    return f"no such option; choose from: {', '.join(name for name in names if '.' not in name)}"


def _option_names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Iterate over the names of options, with those of nested models as 'outer.inner'."""
    for name, field in model.model_fields.items():
        if field.exclude:  # no user writes it
            continue
        yield prefix + name
        nested = [] if get_origin(field.annotation) in (tuple, list, dict) else _nested_models(field.annotation)
        if prefix.count(".") < MAX_DEPTH and len(nested) == 1:
            yield from _option_names(nested[0], f"{prefix}{name}.")


def _nested_models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a type such as `tuple[TaskSpec, ...]` contains."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _nested_models(argument)]

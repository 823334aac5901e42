"""Says what a value of a spec should be, and how to write the value that was meant."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from peekbench.spec.base import NAME

NAME_IN_WORDS = "a name of letters, digits, '_', '-' and '.' that starts with a letter or a digit"
NUMBER = re.compile(r"[+-]?(\d+|\d{1,3}([,_ ]\d{3})+)(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)
ASSIGNMENT = re.compile(r"(\w+) *= *(\S+)")
MAX_LENGTH = 60  # characters of a value that a remedy writes out
LIMITS = {
    "greater_than_equal": ("ge", "too small; use at least"),
    "greater_than": ("gt", "too small; use more than"),
    "less_than_equal": ("le", "too large; use at most"),
    "less_than": ("lt", "too large; use less than"),
}


def describe_alternatives(details: Sequence[Mapping[str, Any]]) -> str:
    """Return a message about a value that is of none of several types.

    Parameters
    ----------
    details
        Error of pydantic for each type. If the value has one of the types but a wrong size, only that is said.

    Examples
    --------
    >>> number = {"type": "float_parsing", "input": "ledoit-wolf", "msg": "", "ctx": {}}
    >>> word = {"type": "literal_error", "input": "ledoit-wolf", "msg": "", "ctx": {"expected": "'ledoit_wolf'"}}
    >>> describe_alternatives([number, word])
    "'ledoit-wolf' is not a number or ledoit_wolf; did you mean ledoit_wolf?"
    """
    sizes = [detail for detail in details if detail["type"] in LIMITS]
    value = details[0]["input"]
    expected: list[str] = []
    choices: list[str] = []
    if sizes or len(details) == 1 or value is None:
        return describe_value([*sizes, *details][0])
    for detail in details:
        if detail["type"] == "literal_error":
            choices += _choices(detail)
        else:
            words = next((words for types, words, _ in EXPECTED if detail["type"] in types), "")
            expected.append(words or detail["msg"].removeprefix("Input should be "))
    close = get_close_matches(str(value)[:MAX_LENGTH].lower(), choices, n=1)
    *others, last = [*expected, *choices]
    return f"{_format(value)} is not {', '.join(others)} or {last}" + (f"; did you mean {close[0]}?" if close else "")


def describe_value(detail: Mapping[str, Any]) -> str:
    """Return a message about a value of the wrong type or size.

    Parameters
    ----------
    detail
        Error of pydantic, an item of `ValidationError.errors()`.

    Examples
    --------
    >>> describe_value({"type": "int_type", "input": "1e3", "msg": "", "ctx": {}})
    "'1e3' is not a whole number; write 1000"
    """
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in LIMITS:
        limit, words = LIMITS[kind]
        return f"{reprlib.repr(value)} is {words} {context[limit]:g}"
    if kind == "counts_type" and value is not None:
        return _describe_counts(value)
    if value is None and kind not in ("none_required", "is_instance_of"):
        return "has no value; write one after the colon"
    if kind == "literal_error":
        return _describe_choice(value, _choices(detail))
    if kind == "string_pattern_mismatch" and context["pattern"] == NAME:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", value[:MAX_LENGTH]).strip("_.-")
        return f"{reprlib.repr(value)} is not {NAME_IN_WORDS}" + (f"; write {name}" if name else "")
    for types, expected, suggest in EXPECTED:
        if kind in types:
            remedy = suggest(value)
            return f"{_format(value)} is not {expected}" + (f"; {remedy}" if remedy else "")
    return f"{detail['msg'].replace('valid tuple', 'valid list')}; got {reprlib.repr(value)}"


def _choices(detail: Mapping[str, Any]) -> list[str]:
    return re.findall(r"'([^']*)'", detail["ctx"]["expected"])


def _describe_counts(value: Any) -> str:
    """Return a message about a value that is neither a whole number nor a list of them."""
    expected = f"{_format(value)} is not a whole number or a list of them"
    remedy = _write_number(value)
    if isinstance(value, float) and 0 < value < 1:
        remedy = "give a number of texts, not a share"
    parts = re.split(r"[,;\s]+", value.strip()) if isinstance(value, str) else []
    if len(parts) > 1 and all(part.isdecimal() and not part.startswith("0") for part in parts):
        listed = f"[{', '.join(parts)}]"
        remedy = f"{remedy} or {listed}" if remedy else f"write {listed}"
    return f"{expected}; {remedy}" if remedy else expected


def _describe_choice(value: Any, choices: list[str]) -> str:
    """Return a message about a value that is not one of several words, with the nearest of them."""
    close = get_close_matches(str(value)[:MAX_LENGTH].lower(), choices, n=1)
    if isinstance(value, bool):
        remedy = "put the word in quotes, because YAML reads yes, no, on and off as true and false"
    else:
        remedy = f"did you mean {close[0]}?" if close else "choose one of them"
    return f"{reprlib.repr(value)} is not one of {', '.join(choices)}; {remedy}"


def _format(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else reprlib.repr(value)


def _write_number(value: Any) -> str:
    """Return how to write the number that a text or a float stands for; empty if it stands for none."""
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        number = float(re.sub("[,_ ]", "", value))
        return f"write {_plain(number)}{' without quotes' if value.strip().isdecimal() else ''}"
    if isinstance(value, float) and value.is_integer():
        return f"write {_plain(value)}"
    return ""


def _plain(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else str(number)


def _write_text(value: Any) -> str:
    if isinstance(value, bool):
        return "put the word in quotes, because YAML reads yes, no, on and off as true and false"
    return f'put it in quotes: "{value}"' if isinstance(value, int | float) else ""


def _write_list(value: Any) -> str:
    if isinstance(value, str) and len(value) <= MAX_LENGTH:
        items = ", ".join(filter(None, re.split(r"[,;\s]+", value)))
        return f"write [{items}]"
    if not isinstance(value, Mapping):
        return ""
    if not value:
        return "name at least one entry"
    first, settings = next(iter(value.items()))
    if isinstance(settings, Mapping) and "use" in settings:
        name = str(first)[:MAX_LENGTH]
        return f"write a dash before each entry and the name in it, as in `- {{name: {name}, use: PLUGIN.NAME}}`"
    return "write a dash before each entry, as in `- use: PLUGIN.NAME`"


def _write_mapping(value: Any) -> str:
    if isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value):
        return "write its settings without dashes"
    if isinstance(value, str) and len(value) <= MAX_LENGTH and (pairs := ASSIGNMENT.findall(value)):
        return f"write {{{', '.join(f'{name}: {item}' for name, item in pairs)}}}"
    return "write it as {name: value}"


def _write_boolean(_: Any) -> str:
    return ""


EXPECTED: tuple[tuple[frozenset[str], str, Callable[[Any], str]], ...] = (
    (frozenset({"int_type", "int_parsing", "int_from_float", "int_parsing_size"}), "a whole number", _write_number),
    (frozenset({"float_type", "float_parsing", "finite_number"}), "a number", _write_number),
    (frozenset({"bool_type", "bool_parsing"}), "true or false", _write_boolean),
    (frozenset({"string_type"}), "a text", _write_text),
    (frozenset({"tuple_type", "list_type"}), "a list", _write_list),
    (frozenset({"dict_type", "model_type", "model_attributes_type", "mapping_type"}), "a mapping", _write_mapping),
)

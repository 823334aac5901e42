"""Errors of YAML in words: the line, the problem and the remedy."""

from __future__ import annotations

import re

import yaml

MAX_MESSAGE = 500  # characters of a message of the library
OPENING = {"sequence": "[", "mapping": "{"}


def describe_yaml_error(error: yaml.YAMLError, text: str) -> str:
    """Return a message about YAML that the library refuses.

    Parameters
    ----------
    error
        Error of the library.
    text
        YAML text.
    """
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(error)[:MAX_MESSAGE]
    lines = [*text.splitlines(), ""]
    line, start = _line(lines, mark), _line(lines, getattr(error, "context_mark", None) or mark)
    problem, context = str(getattr(error, "problem", "") or ""), str(getattr(error, "context", "") or "")
    place, start_place = f"line {mark.line + 1}", f"line {(error.context_mark or mark).line + 1}"  # type: ignore[attr-defined]
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return f"{place}: a tab, which YAML does not allow in indentation; replace the tab by spaces"
    if "quoted scalar" in context:
        return f"{start_place}: a quotation mark is not closed; close it, or remove it"
    if "flow" in context:
        opening = next((sign for word, sign in OPENING.items() if word in context), "[")
        return (
            f"{place}: the bracket {opening!r} of {start_place} is not closed, or a comma is missing before this line; "
            "close the bracket, or add the comma"
        )
    if "could not find expected ':'" in problem:
        if re.match(r"\s*(- +)?[\w.-]+:\S", start):
            return f"{start_place}: {_quote(start)} has no space after the colon; write a space after the colon"
        return f"{start_place}: {_quote(start)} is not of the form `name: value`; add a colon, or remove the line"
    if "mapping values are not allowed" in problem and len(re.findall(r":(?:\s|$)", line)) > 1:
        return f"{place}: {_quote(line)} has a second colon; put a text that contains a colon in quotes"
    if "cannot start any token" in problem:
        sign = line[mark.column : mark.column + 1]
        return f"{place}: a value cannot start with {sign!r}; put it in quotes"
    if "undefined alias" in problem:
        return f"{place}: '*' starts an alias of an anchor that does not exist; put a text with '*' in quotes"
    if "mapping values are not allowed" in problem or "did not find expected" in problem or "block" in context:
        return f"{place}: {_quote(line)} has a wrong indentation; indent entries of the same level by the same spaces"
    if "constructor for the tag" in problem:
        return f"{place}: '!' starts a tag, which specs do not use; put a text with '!' in quotes"
    return f"{place}, column {mark.column + 1}: {f'{context}: ' if context else ''}{problem}"[:MAX_MESSAGE]


def _line(lines: list[str], mark: yaml.Mark) -> str:
    return lines[mark.line] if mark.line < len(lines) else ""


def _quote(line: str) -> str:
    text = line.strip()
    return repr(text if len(text) <= 60 else f"{text[:57]}...")

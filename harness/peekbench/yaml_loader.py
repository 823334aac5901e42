"""Safe YAML in which a duplicated key is an error."""

from __future__ import annotations

import re
import reprlib
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import yaml

from peekbench.errors import SpecError

MAX_DEPTH = 100  # levels; much deeper ones overflow the stack of the C parser, which ends the process
MAX_VALUES = 20_000  # numbers, words and collections, counted again for each alias
MAX_CHARACTERS = 10_000_000  # of all values, counted again for each alias
MAX_MESSAGE = 500  # characters of a message of the library
DECIMAL_OR_HEX = re.compile(r"[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)")
MAX_BITS = 1024  # of an integer; Python refuses to print much larger ones
NUMBER = re.compile(r"[-+.\d]")


def read_limited(path: Path) -> bytes:
    """Return the content of a small file, such as a spec; a device such as /dev/zero would fill the memory.

    Raises
    ------
    SpecError
        If the file has more bytes than the text of a spec can have.
    OSError
        If the file cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(MAX_CHARACTERS + 1)
    if len(content) > MAX_CHARACTERS:
        raise SpecError(f"{path}: more than {MAX_CHARACTERS:,} bytes; give the path of a YAML file")
    return content


def read_text(path: Path) -> str:
    """Return the text of a spec.

    Raises
    ------
    SpecError
        If the file cannot be read, or is not in UTF-8.
    """
    try:
        return read_limited(path).decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        problem = f"line {line}: the byte 0x{error.object[error.start]:02x} is not UTF-8; save the file in UTF-8"
        raise SpecError(f"cannot read the spec {path}: {problem}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SpecError(f"cannot read the spec {path}: {reason}; give the path of a YAML file in UTF-8") from error


def read_yaml(text: str, origin: str) -> Any:
    """Return the value of a YAML text.

    Parameters
    ----------
    text
        YAML.
    origin
        Name of the text for messages.

    Raises
    ------
    SpecError
        If the text is not valid YAML, has a duplicated key, is nested too deeply, or has a too large number or too many
        values. The message names the line.

    Examples
    --------
    >>> read_yaml("{num_train: [50, 100]}", "design.yaml")
    {'num_train': [50, 100]}
    """
    try:
        _check(text)
        return yaml.load(text, Loader=_NumberLoader)  # noqa: S506 - a safe loader
    except SpecError as error:
        raise SpecError(f"{origin}: {error}") from error
    except Exception as error:  # the library raises many types: for `!!bool x` a KeyError
        if isinstance(error, yaml.YAMLError):
            message = describe_yaml_error(error)
        else:
            message = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise SpecError(f"{origin} is not valid YAML: {message[:MAX_MESSAGE]}") from error


class _Size(NamedTuple):
    """Size of a value after its aliases are replaced."""

    values: int = 0
    characters: int = 0
    depth: int = 0


class _Open:
    """A collection, or the whole text, of which the end is not read yet."""

    def __init__(self, values: int = 0, anchor: str | None = None, *, is_mapping: bool = False) -> None:
        self.size, self.anchor, self.is_mapping = _Size(values), anchor, is_mapping
        self.expects_key = is_mapping
        self.lines: dict[Any, int] = {}

    def begin_item(self, event: Any) -> None:
        """Check the key of an entry: a word or a number that no other entry has."""
        if not self.expects_key:
            return
        line = event.start_mark.line + 1
        if not isinstance(event, yaml.ScalarEvent):
            raise SpecError(f"line {line}: a key must be a word or a number; write one")
        key = event.value
        if event.implicit[0] and NUMBER.match(key):  # 0x10 and 16 are the same number
            key = yaml.load(key, Loader=_NumberLoader)  # noqa: S506 - a safe loader
        if key in self.lines:
            shown = reprlib.repr(key)
            raise SpecError(
                f"line {line}: the key {shown} is a duplicate of line {self.lines[key]}; remove one of them"
            )
        self.lines[key] = line

    def end_item(self, item: _Size) -> None:
        """Add the size of a key, of a value, or of an item of a list."""
        values, characters, depth = self.size
        self.size = _Size(values + item.values, characters + item.characters, max(depth, item.depth + 1))
        self.expects_key = self.is_mapping and not self.expects_key


def _check(text: str) -> None:
    """Refuse duplicated keys, and texts that are too long, too deep, or too large once their aliases are replaced.

    Ten aliases of ten aliases of a list are 100 lists, so a few hundred characters can stand for billions of values.
    """
    if len(text) > MAX_CHARACTERS:
        raise SpecError(f"more than {MAX_CHARACTERS:,} characters; remove what is no part of the spec")
    opened = [_Open()]
    anchored: dict[str | None, _Size] = {}
    event: Any
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        line, anchor, size = event.start_mark.line + 1, getattr(event, "anchor", None), None
        if isinstance(event, yaml.NodeEvent):
            opened[-1].begin_item(event)
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append(_Open(1, anchor, is_mapping=isinstance(event, yaml.MappingStartEvent)))
        elif isinstance(event, yaml.CollectionEndEvent):
            size, anchor = opened[-1].size, opened.pop().anchor
        elif isinstance(event, yaml.ScalarEvent):
            size = _Size(1, len(event.value))
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == collection.anchor for collection in opened):
                raise SpecError(f"line {line}: an alias that contains itself; write its value out")
            size = anchored.get(anchor, _Size())
        if size is not None:
            opened[-1].end_item(size)
            anchored[anchor] = size
        total = opened[-1].size
        if max(len(opened) - 1, len(opened) - 2 + total.depth) > MAX_DEPTH:
            raise SpecError(f"line {line}: nested more than {MAX_DEPTH} levels deep; close the open brackets")
        if total.values > MAX_VALUES:
            raise SpecError(f"line {line}: more than {MAX_VALUES:,} values, aliases included; use fewer")
        if total.characters > MAX_CHARACTERS:
            raise SpecError(f"line {line}: more than {MAX_CHARACTERS:,} characters, aliases included; use fewer")


class _NumberLoader(yaml.CSafeLoader):
    """Safe loader that refuses numbers of YAML 1.1 that are not what they look like: 010 is 8, and 1:40 is 100."""

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        # Base 60 (1:30:00) takes quadratic time, and the length bounds the bits of every other base.
        value: int = 2**MAX_BITS if len(node.value) > MAX_BITS else super().construct_yaml_int(node)
        if value.bit_length() > MAX_BITS:
            line = node.start_mark.line + 1
            raise SpecError(f"line {line}: a number of more than {MAX_BITS} bits; correct it")
        if not DECIMAL_OR_HEX.fullmatch(node.value):
            self._refuse_number(node, value)
        return value

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        value: float = super().construct_yaml_float(node)
        if ":" in node.value:
            self._refuse_number(node, value)
        return value

    def _refuse_number(self, node: yaml.ScalarNode, value: float) -> NoReturn:
        raise SpecError(
            f"line {node.start_mark.line + 1}: YAML reads {node.value} as the number {value}; write {value}, or "
            f"'{node.value}' for a text"
        )


_NumberLoader.add_constructor("tag:yaml.org,2002:int", _NumberLoader.construct_yaml_int)
_NumberLoader.add_constructor("tag:yaml.org,2002:float", _NumberLoader.construct_yaml_float)


YAML_REMEDIES = (
    ("tab character", "replace the tab by spaces"),
    ("quoted scalar", "close the quotation mark"),
    ("flow", "close the bracket, or add the comma that is missing before this line"),
    ("could not find expected ':'", "write `name: value`, with a space after the colon"),
    ("cannot start any token", "put the value in quotes; if it is a tab, replace the tab by spaces"),
    ("undefined alias", "put a text with '*' in quotes"),
    ("constructor for the tag", "put a text with '!' in quotes"),
    ("mapping values are not allowed", "put a text that contains a colon in quotes, or indent entries equally"),
    ("block", "indent entries of the same level by the same spaces"),
)
"""Parts of messages of the library, and the remedies; the first that fits counts."""


def describe_yaml_error(error: yaml.YAMLError) -> str:
    """Return a message with the line, the problem in the words of the library, and the remedy."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return str(error)
    context = f"{error.context}: " if error.context else ""
    begin, end = (mark.line + 1 if mark else 0 for mark in (error.context_mark, error.problem_mark))
    start = f" (from line {begin})" if 0 < begin < end else ""
    message = f"{context}{error.problem}"
    remedy = next((f"; {words}" for part, words in YAML_REMEDIES if part in message), "")
    return f"line {end}{start}: {message}{remedy}"

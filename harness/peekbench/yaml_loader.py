"""Safe YAML in which a duplicated key is an error."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import yaml

from peekbench.errors import SpecError

MAX_DEPTH = 100  # levels; much deeper ones overflow the stack of the C parser, which ends the process
MAX_VALUES = 20_000  # numbers, words and collections, counted again for each alias
MAX_CHARACTERS = 10_000_000
MAX_MESSAGE = 500  # characters of a message of the library
DECIMAL_OR_HEX = re.compile(r"[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)")
MAX_BITS = 1024  # of an integer; Python refuses to print much larger ones
NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


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
        _check_depth(text)
        loader = _NumberLoader(text)
        root = loader.get_single_node()
        if root is None:
            return None
        _check_nodes(root, loader)
        return loader.construct_document(root)
    except SpecError as error:
        raise SpecError(f"{origin}: {error}") from error
    except Exception as error:  # the library raises many types: for `!!bool x` a KeyError
        if isinstance(error, yaml.YAMLError):
            message = describe_yaml_error(error)
        else:
            message = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise SpecError(f"{origin} is not valid YAML: {message[:MAX_MESSAGE]}") from error


def _check_depth(text: str) -> None:
    """Refuse what is nested so deeply that it would overflow the stack of the C parser."""
    if len(text) > MAX_CHARACTERS:
        raise SpecError(f"more than {MAX_CHARACTERS:,} characters; remove what is no part of the spec")
    depth = 0
    event: Any
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            line = event.start_mark.line + 1
            raise SpecError(f"line {line}: nested more than {MAX_DEPTH} levels deep; close the open brackets")


def _check_nodes(root: Any, loader: _NumberLoader) -> None:
    """Refuse duplicated keys, and more values than a spec has.

    Ten aliases of ten aliases of a list are 100 lists, so a few hundred characters can stand for billions of values.
    """
    nodes = [root]
    for node in nodes:
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
        elif isinstance(node, yaml.MappingNode):
            _check_keys([key for key, _ in node.value], loader)
            nodes += [value for _, value in node.value]
        if len(nodes) > MAX_VALUES:
            line = node.start_mark.line + 1
            raise SpecError(f"line {line}: more than {MAX_VALUES:,} values, aliases included; use fewer")


def _check_keys(keys: Sequence[Any], loader: _NumberLoader) -> None:
    """Refuse a key that is no word or number, or a duplicate."""
    lines: dict[Any, int] = {}
    for node in keys:
        line = node.start_mark.line + 1
        if not isinstance(node, yaml.ScalarNode):
            raise SpecError(f"line {line}: a key must be a word or a number; write one")
        key = node.value
        if node.tag in NUMBER_TAGS:  # 0x10 and 16 are the same number
            key = loader.construct_object(node)
        if key in lines:
            shown = reprlib.repr(key)
            raise SpecError(f"line {line}: the key {shown} is a duplicate of line {lines[key]}; remove one of them")
        lines[key] = line


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
    ("flow", "close the bracket, or add the comma that is missing before this line"),
    ("cannot start any token", "put the value in quotes; if it is a tab, replace the tab by spaces"),
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

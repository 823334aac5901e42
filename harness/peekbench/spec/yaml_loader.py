"""Safe YAML in which a duplicated key is an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from peekbench.errors import SpecError

MAX_DEPTH = 100  # levels; much deeper ones overflow the stack of the C parser, which ends the process
MAX_BITS = 1024  # of an integer; Python refuses to print much larger ones
MERGE = "tag:yaml.org,2002:merge"


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
        If the text is not valid YAML, has a duplicated key, is nested too deeply or has a too large number. The message
        names the line.

    Examples
    --------
    >>> read_yaml("{num_train: [50, 100]}", "design.yaml")
    {'num_train': [50, 100]}
    """
    try:
        _check_depth(text)
        return yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506 - a safe loader
    except SpecError as error:
        raise SpecError(f"{origin}: {error}") from error
    except Exception as error:  # the library raises many types: for `!!bool x` a KeyError
        message = str(error) if isinstance(error, yaml.YAMLError | ValueError) else f"{type(error).__name__}: {error}"
        raise SpecError(f"{origin} is not valid YAML: {message}") from error


def _check_depth(text: str) -> None:
    depth = 0
    event: Any
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            line = event.start_mark.line + 1
            raise SpecError(f"line {line}: nested more than {MAX_DEPTH} levels deep; close the open brackets")


class _UniqueKeyLoader(yaml.CSafeLoader):
    """Safe loader in which a duplicated key is an error, instead of the last value replacing the others."""

    def get_single_node(self) -> yaml.Node | None:
        root: yaml.Node | None = super().get_single_node()
        for node in _iterate_nodes(root):
            if isinstance(node, yaml.MappingNode):
                self._check_keys(node)
        return root

    def _check_keys(self, node: yaml.MappingNode) -> None:
        """Refuse keys that are written twice; a key may override a merged one."""
        lines: dict[Any, int] = {}
        for key_node, _ in node.value:
            line = key_node.start_mark.line + 1
            key: Any = "<<" if key_node.tag == MERGE else self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool | None):
                raise SpecError(f"line {line}: a key must be a word or a number, not {type(key).__name__}")
            if key in lines:
                raise SpecError(f"line {line}: the key {key!r} is a duplicate of line {lines[key]}; remove one of them")
            lines[key] = line

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        value: int = super().construct_yaml_int(node)
        if value.bit_length() > MAX_BITS:
            line = node.start_mark.line + 1
            raise SpecError(f"line {line}: a number of more than {MAX_BITS} bits; correct it")
        return value


_UniqueKeyLoader.add_constructor("tag:yaml.org,2002:int", _UniqueKeyLoader.construct_yaml_int)


def _iterate_nodes(root: yaml.Node | None) -> Iterator[yaml.Node]:
    """Iterate over all nodes, each once even if it has aliases."""
    pending = [] if root is None else [root]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, yaml.MappingNode):
            pending += [part for pair in reversed(node.value) for part in reversed(pair)]
        elif isinstance(node, yaml.SequenceNode):
            pending += reversed(node.value)

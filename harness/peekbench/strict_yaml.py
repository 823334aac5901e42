"""Safe YAML in which a key that stands twice is an error."""

from __future__ import annotations

from typing import Any

import yaml

from peekbench.errors import SpecError


def read_yaml(text: str, origin: str) -> Any:
    """The value of a YAML text.

    Raises
    ------
    SpecError
        Where it is no YAML, or has a key twice; says in which line of `origin`.
    """
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506 - a safe loader
    except SpecError as error:
        raise SpecError(f"{origin}: {error}") from error
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise SpecError(f"{origin} is not valid YAML: {error}") from error


class _UniqueKeyLoader(yaml.CSafeLoader):
    """Safe YAML in which a key that stands twice is an error, not the last one's victory."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: dict[Any, int] = {}
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key: Any = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if not isinstance(key, str | int | float | bool | None):
                raise SpecError(f"line {line}: a key must be a word or a number, not {type(key).__name__}")
            if key in seen:
                raise SpecError(f"line {line}: the key {key!r} stands in line {seen[key]} already; remove one of them")
            seen[key] = line
        return super().construct_mapping(node, deep)

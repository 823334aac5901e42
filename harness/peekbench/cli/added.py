"""Commands that installed packages add: functions for typer, as entry points of the group `peekbench.commands`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from peekbench.errors import PluginError

GROUP = "peekbench.commands"


@cache
def find_commands() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of commands by name, without importing them; several if packages share a name."""
    points: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name, {}).setdefault(point.value, point)
    return {name: tuple(points[name].values()) for name in sorted(points)}


def summarize_command(name: str) -> str:
    """Return the docstring of a command from its source, so that `peekbench --help` imports no module of a package."""
    point = find_commands()[name][0]
    with suppress(ImportError, AttributeError, OSError, SyntaxError):  # the import tells what is wrong
        spec = find_spec(point.module)
        if spec is None or spec.origin is None:
            return ""
        for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == point.attr:
                return ast.get_docstring(node) or ""
    return ""


def load_command(name: str) -> Callable[..., None]:
    """Import the function of a command.

    Raises
    ------
    PluginError
        If it cannot be imported, or if two packages add a command of this name.
    """
    point, *others = find_commands()[name]
    if others:
        raise PluginError(
            f"two installed packages add a command {name!r}: {point.value} and {others[0].value}; uninstall one of them"
        )
    try:
        function: Callable[..., None] = point.load()
    except Exception as error:
        raise PluginError(
            f"the command {name!r} cannot be imported from {point.value}: {type(error).__name__}: {error}; update or "
            "uninstall the package that adds it"
        ) from error
    return function

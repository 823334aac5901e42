"""Commands that installed distributions add: functions for typer, as entry points of the group `peekbench.commands`.

`peekbench --help` imports their modules for their summaries, so these import heavy packages in the functions only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from peekbench.errors import PluginError, PluginWarning

GROUP = "peekbench.commands"


@cache
def find_commands() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of commands by name, without importing them; one, unless distributions share a name."""
    points: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name, {}).setdefault(point.value, point)
    return {name: tuple(points[name].values()) for name in sorted(points)}


def load_command(name: str) -> Callable[..., None]:
    """Import the function of a command.

    Raises
    ------
    PluginError
        If it cannot be imported, or if two distributions add a command of this name.
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


def load_working_commands() -> dict[str, Callable[..., None]]:
    """Import all commands; those that cannot be imported are warnings."""
    functions = {}
    for name in find_commands():
        try:
            functions[name] = load_command(name)
        except PluginError as error:
            warnings.warn(str(error), PluginWarning, stacklevel=2)
    return functions

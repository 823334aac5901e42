"""Find installed entries by what they do, where neither the spec nor the command names one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress

from peekbench.errors import PluginError, PluginWarning
from peekbench.plugins.collecting import EntryT
from peekbench.plugins.entry_names import join_name
from peekbench.plugins.registry import installed, is_shipped, load


def names_with(entry_type: type[EntryT], has_role: Callable[[EntryT], bool]) -> list[str]:
    """Return the names of the installed entries of a type that have a role; broken plugins are left out.

    Parameters
    ----------
    entry_type
        Class of the entries.
    has_role
        Function that returns whether an entry has the role.
    """
    names = []
    for plugin in installed():
        with suppress(PluginError):
            entries = load(plugin).entries(entry_type)
            names += [join_name(plugin, name) for name, entry in entries.items() if has_role(entry)]
    return names


def find_default(entry_type: type[EntryT], role: str, remedy: str, has_role: Callable[[EntryT], bool]) -> str:
    """Find the entry with a role that is used if neither the spec nor the command names one.

    An entry that comes with peekbench takes precedence, so installing another plugin changes no report. Broken plugins
    are skipped with a `PluginWarning`.

    Parameters
    ----------
    entry_type
        Class of the entry.
    role
        Name of the role for messages, such as 'ranking'.
    remedy
        How to choose among several entries, for messages.
    has_role
        Function that returns whether an entry has the role.

    Returns
    -------
    str
        Name of the entry in specs, `plugin.thing`.

    Raises
    ------
    PluginError
        If no installed plugin has such an entry, or if several have and the choice is not clear.
    """
    shipped = {name for name, (point, *_) in installed().items() if is_shipped(point)}
    for plugins in (shipped, installed().keys() - shipped):
        names = []
        for name in sorted(plugins):
            try:
                entries = load(name).entries(entry_type)
            except PluginError as error:
                warnings.warn(str(error), PluginWarning, stacklevel=2)
                continue
            names += [join_name(name, entry_name) for entry_name, entry in entries.items() if has_role(entry)]
        if len(names) == 1:
            return names[0]
        if names:
            raise PluginError(f"several installed plugins have a {role}: {', '.join(names)}; {remedy}")
    raise PluginError(f"no installed plugin has a {role}; install one with `pip install`")

"""Packages of a plugin."""

from __future__ import annotations

from contextlib import suppress

from peekbench.errors import PluginError
from peekbench.plugins import registry
from peekbench.plugins.local_code import split_name
from peekbench.plugins.references import find_reference


def own_packages(use: str, callee: object) -> frozenset[str]:
    """Return the top-level packages of an entry's function and of its plugin.

    Parameters
    ----------
    use
        Name of the entry in specs.
    callee
        Function of the entry, or a reference to it.
    """
    reference = find_reference(callee)
    modules = [reference.target if reference else str(getattr(callee, "__module__", ""))]
    with suppress(PluginError):  # an entry of no plugin, in a test
        modules.append(registry.load(split_name(use)[0]).module)
    return frozenset(name.partition(":")[0].partition(".")[0] for name in modules)

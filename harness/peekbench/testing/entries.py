"""Contract checks of an entry of any kind, by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from peekbench.errors import PluginError, SpecError
from peekbench.plugins import registry
from peekbench.plugins.entries import TaskGroupEntry
from peekbench.plugins.hookspecs import KINDS
from peekbench.plugins.local_code import is_code, join_name, split_name
from peekbench.records.data import SourceRef
from peekbench.testing.analyses import ANALYSIS_CHECKS, iterate_analysis_checks
from peekbench.testing.audits import AUDIT_CHECKS, iterate_audit_checks
from peekbench.testing.data_sources import SOURCE_CHECKS, iterate_source_checks
from peekbench.testing.executors import EXECUTOR_CHECKS, check_executor
from peekbench.testing.methods import METHOD_CHECKS, iterate_method_checks
from peekbench.testing.observers import OBSERVER_CHECKS, iterate_observer_checks
from peekbench.testing.outcomes import CheckOutcome
from peekbench.testing.report_formats import FORMAT_CHECKS, iterate_format_checks

CHECKS: Mapping[str, Callable[..., Iterable[CheckOutcome]]] = {
    "method": iterate_method_checks,
    "data source": iterate_source_checks,
    "analysis": iterate_analysis_checks,
    "audit": iterate_audit_checks,
    "executor": check_executor,
    "observer": iterate_observer_checks,
    "report format": iterate_format_checks,
}
"""Functions of a name and options that do the checks of an entry, by the kind of the entry."""
CHECK_NAMES: Mapping[str, Iterable[str]] = {
    "method": METHOD_CHECKS,
    "data source": SOURCE_CHECKS,
    "analysis": ANALYSIS_CHECKS,
    "audit": AUDIT_CHECKS,
    "executor": EXECUTOR_CHECKS,
    "observer": OBSERVER_CHECKS,
    "report format": FORMAT_CHECKS,
}
"""Names of the checks, by the kind of the entry."""
CHECKED_ON_TASKS = ("method", "audit")
"""Kinds whose functions also take `source`, the data source to check on."""


def find_kinds(use: str) -> list[str]:
    """Return the kinds of the entries with a name that can be checked.

    Parameters
    ----------
    use
        `plugin.thing`, or the plugin's name alone.

    Raises
    ------
    PluginError
        If no plugin has such an entry, or only one that cannot be checked.
    """
    registry.check_known(use)
    plugin, name = split_name(use)
    offers = registry.load(plugin).offers
    kinds = [kind for kind in KINDS if name in offers[kind.name]]
    if not kinds:
        names = sorted(join_name(plugin, other) for entries in offers.values() for other in entries)
        if is_code(plugin):
            raise registry.explain_missing_function(use, names)
        remedy = registry.suggest(use) or f"{plugin} offers: {', '.join(names)}"
        raise PluginError(f"no entry {use!r}; {remedy}")
    entries = {kind.name: offers[kind.name][name] for kind in kinds}
    for entry in entries.values():
        if isinstance(entry, TaskGroupEntry):
            members = ", ".join(join_name(plugin, member) for member in entry.members)
            raise PluginError(f"{use!r} is a group of data sources; check its members one by one: {members}")
    checked = [kind.name for kind in kinds if kind.name in CHECKS]
    if not checked:
        raise PluginError(
            f"{use!r} is one of the {kinds[0].plural}, which have no contract checks; checked are entries of the kinds "
            f"{', '.join(CHECKS)}"
        )
    return checked


def iterate_checks(
    kind: str, use: str, options: Mapping[str, Any], source: SourceRef | None = None
) -> Iterable[CheckOutcome]:
    """Do all checks of an entry one after the other.

    Parameters
    ----------
    kind
        Kind of the entry, as `find_kinds` returns it.
    use
        Name of the entry.
    options
        Options as in a spec.
    source
        Data source to check methods and audits on, instead of synthetic rows.

    Raises
    ------
    SpecError
        If a source is given, and entries of this kind are not checked on tasks.
    """
    if source is None:
        return CHECKS[kind](use, options)
    if kind not in CHECKED_ON_TASKS:
        raise SpecError(f"{use} is of the kind {kind}, which is not checked on a task; omit the task")
    return CHECKS[kind](use, options, source=source)

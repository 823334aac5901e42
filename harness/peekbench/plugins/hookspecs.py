"""Hooks that a plugin may implement. Hooks register and never compute: each returns a list of entries.

Examples
--------
>>> import peekbench
>>> @peekbench.hookimpl
... def peekbench_methods():
...     return [peekbench.MethodEntry(name="lsa", method="my_package.lsa:fit", summary="LSA")]
>>> [entry.name for entry in peekbench_methods()]
['lsa']
"""

from __future__ import annotations

from dataclasses import dataclass

import pluggy

from peekbench.plugins.entries import (
    AnalyzerEntry,
    AuditEntry,
    DataSourceEntry,
    Entry,
    ExecutorEntry,
    MethodEntry,
    ObserverEntry,
    RendererEntry,
    ReportFormatEntry,
    TaskGroupEntry,
)

GROUP = "peekbench"  # group of the entry points, and pluggy's project name
hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)
"""Decorator that marks a function of a plugin as a hook.

The function has no parameters and the name of one of the hooks, and returns a list of entries. Something that cannot be
called raises a TypeError.

Examples
--------
>>> from peekbench import MethodEntry, hookimpl
>>> @hookimpl
... def peekbench_methods():
...     return [MethodEntry(name="lsa", method="my_package.lsa:fit", summary="LSA and a linear classifier")]
>>> peekbench_methods()[0].name
'lsa'
"""


@hookspec
def peekbench_data_sources() -> list[DataSourceEntry | TaskGroupEntry]:  # type: ignore[empty-body]
    """Return the plugin's data sources and groups of them."""


@hookspec
def peekbench_methods() -> list[MethodEntry]:  # type: ignore[empty-body]
    """Return the plugin's methods."""


@hookspec
def peekbench_analyzers() -> list[AnalyzerEntry]:  # type: ignore[empty-body]
    """Return the plugin's analyses."""


@hookspec
def peekbench_audits() -> list[AuditEntry]:  # type: ignore[empty-body]
    """Return the plugin's audits of the tasks' data."""


@hookspec
def peekbench_executors() -> list[ExecutorEntry]:  # type: ignore[empty-body]
    """Return the plugin's executors."""


@hookspec
def peekbench_observers() -> list[ObserverEntry]:  # type: ignore[empty-body]
    """Return the plugin's observers of runs."""


@hookspec
def peekbench_renderers() -> list[RendererEntry]:  # type: ignore[empty-body]
    """Return the plugin's renderers of figures."""


@hookspec
def peekbench_report_formats() -> list[ReportFormatEntry]:  # type: ignore[empty-body]
    """Return the plugin's formats of report files."""


@dataclass(frozen=True, slots=True)
class PluginKind:
    """A kind of thing that plugins register, such as methods."""

    name: str
    """Name of one such thing in messages, and key of `Plugin.offers`."""
    plural: str
    """Name of several such things in messages."""
    heading: str
    """Heading in `peekbench show`, which is also its argument."""
    hook: str
    """Hook that returns the entries."""
    entry_types: tuple[type[Entry], ...]
    """Types of the entries that the hook may return."""


KINDS = (
    PluginKind("data source", "data sources", "tasks", "peekbench_data_sources", (DataSourceEntry, TaskGroupEntry)),
    PluginKind("method", "methods", "methods", "peekbench_methods", (MethodEntry,)),
    PluginKind("analysis", "analyses", "analyses", "peekbench_analyzers", (AnalyzerEntry,)),
    PluginKind("audit", "audits", "audits", "peekbench_audits", (AuditEntry,)),
    PluginKind("executor", "executors", "executors", "peekbench_executors", (ExecutorEntry,)),
    PluginKind("observer", "observers", "observers", "peekbench_observers", (ObserverEntry,)),
    PluginKind("renderer", "renderers", "renderers", "peekbench_renderers", (RendererEntry,)),
    PluginKind("report format", "report formats", "formats", "peekbench_report_formats", (ReportFormatEntry,)),
)


def kind_of(entry_type: type[object]) -> PluginKind:
    """Return the kind whose hook returns entries of a type.

    Examples
    --------
    >>> from peekbench.plugins import MethodEntry
    >>> kind_of(MethodEntry).hook
    'peekbench_methods'
    """
    return next(kind for kind in KINDS if entry_type in kind.entry_types)

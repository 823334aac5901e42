"""The kinds of things that plugins register, in one table.

To add a kind, add a record to `KINDS`, a hook to `hookspecs`, an entry class to `entries` and the protocol of its
callable to `protocols`. Validation, lists and schemas follow from the fields of the entry class. A kind that specs can
name also needs a class in `peekbench.spec.components`.
"""

from __future__ import annotations

from dataclasses import dataclass

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

    Parameters
    ----------
    entry_type
        Class of `peekbench.plugins.entries`.

    Examples
    --------
    >>> from peekbench.plugins import MethodEntry
    >>> kind_of(MethodEntry).hook
    'peekbench_methods'
    """
    return next(kind for kind in KINDS if entry_type in kind.entry_types)

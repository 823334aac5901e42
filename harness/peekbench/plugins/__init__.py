"""What a plugin needs: the entries that it registers, the protocols of their callables, and the hook marker."""

from peekbench.plugins.entries import (
    AnalyzerEntry,
    AuditEntry,
    DataSourceEntry,
    ExecutorEntry,
    MethodEntry,
    RendererEntry,
    TaskGroupEntry,
)
from peekbench.plugins.hookspecs import hookimpl
from peekbench.plugins.protocols import THREADS_VARIABLE, Form, Options, Outcome
from peekbench.plugins.references import Reference

__all__ = [
    "THREADS_VARIABLE",
    "AnalyzerEntry",
    "AuditEntry",
    "DataSourceEntry",
    "ExecutorEntry",
    "Form",
    "MethodEntry",
    "Options",
    "Outcome",
    "Reference",
    "RendererEntry",
    "TaskGroupEntry",
    "hookimpl",
]

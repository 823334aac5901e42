"""The hooks that a plugin may implement. They register and never compute: each returns a list of entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from peekbench.plugins.entries import (
        AnalyzerEntry,
        AuditEntry,
        DataSourceEntry,
        ExecutorEntry,
        MethodEntry,
        RendererEntry,
        TaskGroupEntry,
    )

GROUP = "peekbench"  # of entry points, and pluggy's project name
hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@hookspec
def peekbench_data_sources() -> list[DataSourceEntry | TaskGroupEntry]:  # type: ignore[empty-body]
    """Tasks that the plugin brings, and groups of them."""


@hookspec
def peekbench_methods() -> list[MethodEntry]:  # type: ignore[empty-body]
    """Methods that the plugin brings."""


@hookspec
def peekbench_analyzers() -> list[AnalyzerEntry]:  # type: ignore[empty-body]
    """Analyses that the plugin brings."""


@hookspec
def peekbench_audits() -> list[AuditEntry]:  # type: ignore[empty-body]
    """Audits of tasks' data that the plugin brings."""


@hookspec
def peekbench_executors() -> list[ExecutorEntry]:  # type: ignore[empty-body]
    """Ways of getting work done that the plugin brings."""


@hookspec
def peekbench_renderers() -> list[RendererEntry]:  # type: ignore[empty-body]
    """What draws figures; reports ask the plugin `figures` for its own of that name."""

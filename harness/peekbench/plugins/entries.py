"""What plugins hand to the core: frozen entries that name a callable, its options model and a one-line summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from peekbench.plugins.protocols import (
    Analyzer,
    Audit,
    CountTokens,
    DataSource,
    Executor,
    Forecast,
    Method,
    Options,
    Pin,
    Prefetch,
    Renderer,
)
from peekbench.plugins.references import CallableField
from peekbench.records.data import Folders, TaskFacts, TaskKind
from peekbench.records.trials import Control

CLASSIFICATION: frozenset[TaskKind] = frozenset({"classification"})


@dataclass(frozen=True, kw_only=True)
class DataSourceEntry:
    """A task, or a family of tasks told apart by options, that a spec can name under `tasks`."""

    name: str
    load: CallableField[DataSource[Any]] = CallableField()
    summary: str
    options: type[Options] = Options
    """The model of what a spec may have under `options`; by default nothing."""
    pin: CallableField[Pin[Any] | None] = CallableField(None)
    """Where what is loaded can change by itself, such as a branch that moves on."""
    facts: CallableField[Callable[[Folders], TaskFacts] | None] = CallableField(None)
    """For lists of tasks; downloads nothing."""


@dataclass(frozen=True, kw_only=True)
class TaskGroupEntry:
    """A name that stands for several data sources of its plugin, such as `docstrings.all`."""

    name: str
    members: tuple[str, ...]
    summary: str


@dataclass(frozen=True, kw_only=True)
class MethodEntry:
    """A method that a spec can name under `methods`."""

    name: str
    method: CallableField[Method[Any]] = CallableField()
    summary: str
    options: type[Options] = Options
    """The model of what a spec may have under `options`; by default nothing."""
    task_kinds: frozenset[TaskKind] = CLASSIFICATION
    unlabeled_options: frozenset[str] = frozenset()
    """Options without effect where `unlabeled` is None."""
    base: str = ""
    """Methods of one plugin that name the same base, and agree in the options that matter there, do the very same thing
    where `unlabeled` is None: the core then computes that arm once. Empty: the method's own name."""
    pin: CallableField[Pin[Any] | None] = CallableField(None)
    """Where what the method downloads can change by itself, such as a model's newest revision."""
    prefetch: CallableField[Prefetch[Any] | None] = CallableField(None)
    """Where the method downloads or makes something that all its fits use, such as a model."""
    count_tokens: CallableField[CountTokens[Any] | None] = CallableField(None)
    """Where the method cuts texts into tokens."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """What the numbers are that its fits record, by name, for those whose name does not say it."""
    control: Control = ""
    """Of a method that is in a run to test the run: 'negative' where the unlabeled texts change nothing for certain,
    'positive' where a bias is planted."""


@dataclass(frozen=True, kw_only=True)
class AnalyzerEntry:
    """An analysis that a spec can name under `analyses`."""

    name: str
    analyze: CallableField[Analyzer[Any]] = CallableField()
    summary: str
    options: type[Options] = Options
    """The model of what a spec may have under `options`; by default nothing."""
    forecast: CallableField[Forecast[Any] | None] = CallableField(None)
    """Where something can be said before anything is run; `peekbench plan SPEC --power` asks for it."""
    sees_controls: bool = False
    """Whether it gets the rows of controls beside those of other methods."""


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """An audit of the tasks' data that a spec can name under `audits`."""

    name: str
    audit: CallableField[Audit[Any]] = CallableField()
    summary: str
    options: type[Options] = Options
    """The model of what a spec may have under `options`; by default nothing."""
    pin: CallableField[Pin[Any] | None] = CallableField(None)
    """Where what the audit downloads can change by itself, such as a model's newest revision."""
    prefetch: CallableField[Prefetch[Any] | None] = CallableField(None)
    """Where the audit downloads or makes something, such as a model."""


@dataclass(frozen=True, kw_only=True)
class ExecutorEntry:
    """A way to get work done that a spec can name under `executor`."""

    name: str
    execute: CallableField[Executor[Any]] = CallableField()
    summary: str
    options: type[Options] = Options
    """The model of what a spec may have under `options`; by default nothing."""


@dataclass(frozen=True, kw_only=True)
class RendererEntry:
    """A way to draw figures, for reports; a spec does not name it."""

    name: str
    paint: CallableField[Renderer] = CallableField()
    summary: str


Entry: TypeAlias = (
    DataSourceEntry | TaskGroupEntry | MethodEntry | AnalyzerEntry | AuditEntry | ExecutorEntry | RendererEntry
)

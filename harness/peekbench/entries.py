"""What plugins hand to the core: frozen entries that name a callable, its options model and a one-line summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from peekbench.protocols import Analyzer, DataSource, Executor, Method, Options
from peekbench.records import TaskKind

CLASSIFICATION: frozenset[TaskKind] = frozenset({"classification"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSourceEntry:
    """A task, or a family of tasks told apart by options, that a spec can name under `tasks`."""

    name: str
    load: DataSource[Any]
    summary: str
    options: type[Options] = Options
    """The model of what a spec may have under `options`; by default nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGroupEntry:
    """A name that stands for several data sources of its plugin, such as `docstrings.all`."""

    name: str
    members: tuple[str, ...]
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodEntry:
    """A method that a spec can name under `methods`."""

    name: str
    method: Method[Any]
    summary: str
    options: type[Options] = Options
    """The model of what a spec may have under `options`; by default nothing."""
    task_kinds: frozenset[TaskKind] = CLASSIFICATION
    unlabeled_options: frozenset[str] = frozenset()
    """Options without effect where `unlabeled` is None."""
    base: str = ""
    """Methods of one plugin that name the same base, and agree in the options that matter there, do the very same thing
    where `unlabeled` is None: the core then computes that arm once. Empty: the method's own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzerEntry:
    """An analysis that a spec can name under `analyses`."""

    name: str
    analyze: Analyzer[Any]
    summary: str
    options: type[Options] = Options
    """The model of what a spec may have under `options`; by default nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorEntry:
    """A way to get work done that a spec can name under `executor`."""

    name: str
    execute: Executor[Any]
    summary: str
    options: type[Options] = Options
    """The model of what a spec may have under `options`; by default nothing."""


Entry: TypeAlias = DataSourceEntry | TaskGroupEntry | MethodEntry | AnalyzerEntry | ExecutorEntry

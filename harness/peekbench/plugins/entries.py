"""Entries that plugins register, and the hooks that return them.

An entry is a frozen record of a name, a callable, its options model and a one-line summary. A callable is a function,
or a reference ``"package.module:function"`` that the core imports at the first call. Hooks never compute.

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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import pluggy

from peekbench.plugins.names import CallableField
from peekbench.plugins.protocols import (
    Analyzer,
    CheckData,
    CheckOptions,
    DataSource,
    Forecast,
    Method,
    Observe,
    Options,
    Pin,
    Prefetch,
    Renderer,
    ResourcesOf,
    WriteReport,
)
from peekbench.plugins.work_protocols import Executor
from peekbench.records.data import Folders, TaskFacts, TaskKind
from peekbench.records.trials import Control

MethodTaskKind: TypeAlias = Literal[TaskKind, "tabular_classification", "tabular_multilabel", "text_regression"]

AnalyzerRole: TypeAlias = Literal["", "check", "estimates", "ranking"]
"""What an analyzer is used for if no spec names it: 'ranking' for `peekbench compare`, 'check' for the warnings of
every report."""


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What a plugin can do before the first fit: optional functions, or references to them.

    Examples
    --------
    >>> from peekbench.plugins import Preparation
    >>> Preparation(prefetch="my_package.download:download").prefetch
    Reference(target='my_package.download:download')
    """

    pin: CallableField[Pin[Any] | None] = CallableField(None)
    """Function that returns the options that pin a version, for downloads that can change, such as a branch."""
    check: CallableField[CheckOptions[Any] | None] = CallableField(None)
    """Function that checks options against libraries and files here without a download, for `validate` and `plan`."""
    check_data: CallableField[CheckData[Any] | None] = CallableField(None)
    """Function that refuses rows of a task that a method cannot use with its options, before the first fit."""
    prefetch: CallableField[Prefetch[Any] | None] = CallableField(None)
    """Function that downloads or builds what all fits share, such as a model."""
    resources: CallableField[ResourcesOf[Any] | None] = CallableField(None)
    """Function that tells what a fit of a method needs: cores, memory, GPUs. By default, one core."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What every entry has."""

    name: str
    """Name in specs, after the plugin's name and a dot."""
    summary: str
    """One line for lists."""


@dataclass(frozen=True, kw_only=True)
class OptionsEntry(Entry):
    """An entry with options. Groups of tasks, renderers and report formats have none."""

    options: type[Options] = Options
    """Model of the options in a spec; by default there are none."""


@dataclass(frozen=True, kw_only=True)
class DataSourceEntry(OptionsEntry):
    """A task, or a family of tasks told apart by options, that a spec can name under `tasks`.

    Examples
    --------
    >>> import peekbench
    >>> def load(*, options, folders):
    ...     return peekbench.Dataset(["sunny", "rainy"], [0, 1], ("good", "bad"))
    >>> entry = peekbench.DataSourceEntry(name="weather", load=load, summary="weather reports")
    """

    load: CallableField[DataSource[Any]] = CallableField()
    """Function that loads the rows, or a reference to it."""
    preparation: Preparation = Preparation()
    """Optional functions that are called before the rows are loaded."""
    facts: CallableField[Callable[[Folders], TaskFacts] | None] = CallableField(None)
    """Function that returns facts for lists of tasks, without a download."""


@dataclass(frozen=True, kw_only=True)
class TaskGroupEntry(Entry):
    """A name for several data sources of its plugin, such as `docstrings.all`.

    Examples
    --------
    >>> from peekbench.plugins import TaskGroupEntry
    >>> entry = TaskGroupEntry(name="all", members=("news", "reviews"), summary="both tasks")
    """

    members: tuple[str, ...]
    """Names of the plugin's data sources that the group contains."""


@dataclass(frozen=True, kw_only=True)
class MethodEntry(OptionsEntry):
    """A method that a spec can name under `methods`.

    Examples
    --------
    >>> import peekbench
    >>> entry = peekbench.MethodEntry(name="lsa", method="my_package.lsa:fit", summary="LSA and a linear classifier")
    >>> entry.method
    Reference(target='my_package.lsa:fit')
    """

    method: CallableField[Method[Any]] = CallableField()
    """Function that fits the method, or a reference to it."""
    task_kinds: frozenset[MethodTaskKind] = frozenset({"classification"})
    """Kinds of tasks that the method supports: 'classification', 'multilabel' and 'text_regression' are of texts, and
    'tabular_classification', 'tabular_multilabel' and 'regression' are of features."""
    unlabeled_options: frozenset[str] = frozenset()
    """Names of options that have no effect if `unlabeled` is None."""
    base: str = ""
    """Name shared by methods of one plugin that do the same if `unlabeled` is None and their other options are equal.
    The core then fits the base arm once for all of them. Default: the method's own name."""
    preparation: Preparation = Preparation()
    """Optional functions that are called before the first fit."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Descriptions, by name, of the metrics that the method's fits record."""
    control: Control = ""
    """Role in testing the run itself: 'negative' if unlabeled texts certainly change nothing, so all arms have the same
    scores; 'positive' if the method has a planted bias and no boost, so extra equals base; empty for other methods."""


@dataclass(frozen=True, kw_only=True)
class AnalyzerEntry(OptionsEntry):
    """An analysis that a spec can name under `analyses`.

    Examples
    --------
    >>> import peekbench
    >>> entry = peekbench.AnalyzerEntry(name="sign", analyze="my_package.sign:test", summary="sign test of the bias")
    >>> entry.sees_controls
    False
    """

    analyze: CallableField[Analyzer[Any]] = CallableField()
    """Function of the results table, or a reference to it."""
    arms: tuple[str, ...] = ("extra", "test")
    """Arms that the results must have. A table of scores without arms is a table of the arm base, so only analyses that
    need no other arm take it."""
    forecast: CallableField[Forecast[Any] | None] = CallableField(None)
    """Function that analyzes a design before a run, for `peekbench plan SPEC --power`."""
    sees_controls: bool = False
    """Whether the results table includes the rows of controls."""
    sees_looks: bool = False
    """Whether `analyze` takes the looks at the run, as the keyword `looks`, and its verdicts account for them. The
    first such analysis of a spec with `design.stop` decides at which look the run stops."""
    sees_predictions: bool = False
    """Whether `analyze` takes the predictions of the run, as the keyword `predictions`."""
    role: AnalyzerRole = ""
    """Role of an analysis of peekbench in commands and reports; empty for analyses that only specs name."""


@dataclass(frozen=True, kw_only=True)
class ExecutorEntry(OptionsEntry):
    """An executor of a run's work that a spec can name under `executor`.

    Examples
    --------
    >>> from peekbench.plugins import ExecutorEntry
    >>> def execute(items, work, *, options):
    ...     for item in items:
    ...         yield list(work(item))
    >>> entry = ExecutorEntry(name="serial", execute=execute, summary="one item after the other")
    """

    execute: CallableField[Executor[Any]] = CallableField()
    """Generator that does the work items, or a reference to it."""


@dataclass(frozen=True, kw_only=True)
class ObserverEntry(OptionsEntry):
    """An observer of runs, such as a tracker, that a spec can name under `observers`.

    Examples
    --------
    >>> from peekbench.plugins import ObserverEntry
    >>> entry = ObserverEntry(name="mail", observe="my_package.mail:observe", summary="mail when a run ends")
    """

    observe: CallableField[Observe[Any]] = CallableField()
    """Function that returns an observer of one run, or a reference to it."""


@dataclass(frozen=True, kw_only=True)
class RendererEntry(Entry):
    """A renderer of a report's figures that a spec can name under `report.renderer`.

    Examples
    --------
    >>> from peekbench.plugins import RendererEntry
    >>> entry = RendererEntry(name="plots", render="my_package.plots:draw", summary="figures as SVG and PNG")
    """

    render: CallableField[Renderer] = CallableField()
    """Function that draws one figure, or a reference to it."""


@dataclass(frozen=True, kw_only=True)
class ReportFormatEntry(Entry):
    """A format of reports that a spec can name under `report.formats`.

    Examples
    --------
    >>> from peekbench.plugins import ReportFormatEntry
    >>> entry = ReportFormatEntry(name="latex", write="my_package.latex:write", suffix=".tex", summary="LaTeX tables")
    """

    write: CallableField[WriteReport] = CallableField()
    """Function that writes a report, or a reference to it."""
    suffix: str = ""
    """Suffix of the file, such as '.tex'; empty for a format that is a folder of files."""


GROUP = "peekbench"
"""Group of the entry points, and pluggy's project name."""
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

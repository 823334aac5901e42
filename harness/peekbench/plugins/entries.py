"""Entries that plugins register: frozen records of a name, a callable, its options model and a one-line summary.

A callable is a function, or a reference ``"package.module:function"`` that the core imports at the first call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard

from peekbench.plugins.protocols import (
    Analyzer,
    Audit,
    CheckOptions,
    CountTokens,
    DataSource,
    Forecast,
    Method,
    Observe,
    Options,
    Pin,
    Plot,
    Prefetch,
    Renderer,
    ResourcesOf,
    WriteReport,
)
from peekbench.plugins.references import CallableField
from peekbench.plugins.work_protocols import Executor
from peekbench.records.data import Folders, TaskFacts, TaskKind
from peekbench.records.trials import Control

MethodTaskKind: TypeAlias = TaskKind | Literal["tabular_classification", "text_regression"]

AnalyzerRole: TypeAlias = Literal["", "check", "comparison", "estimates", "ranking"]
"""What an analyzer is used for if no spec names it: 'comparison' for `peekbench compare`, 'ranking' for `peekbench
leaderboard`, 'check' for the warnings of every report.
"""


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What a plugin can do before the first fit: optional functions, or references to them.

    Examples
    --------
    >>> from peekbench.plugins import Preparation
    >>> Preparation(prefetch="my_package.download:download").prefetch
    Reference('my_package.download:download')
    """

    pin: CallableField[Pin[Any] | None] = CallableField(None)
    """Function that returns the options that pin a version, for downloads that can change, such as a branch."""
    check: CallableField[CheckOptions[Any] | None] = CallableField(None)
    """Function that checks options against libraries and files here without a download, for `validate` and `plan`."""
    prefetch: CallableField[Prefetch[Any] | None] = CallableField(None)
    """Function that downloads or builds what all fits or audits share, such as a model."""
    count_tokens: CallableField[CountTokens[Any] | None] = CallableField(None)
    """Function that counts tokens, for methods with a tokenizer."""
    resources: CallableField[ResourcesOf[Any] | None] = CallableField(None)
    """Function that tells what a fit of a method needs: cores, memory, GPUs. By default, one core."""


@dataclass(frozen=True, kw_only=True)
class DataSourceEntry:
    """A task, or a family of tasks told apart by options, that a spec can name under `tasks`.

    Examples
    --------
    >>> import peekbench
    >>> def load(*, options, folders):
    ...     return peekbench.Dataset(["sunny", "rainy"], [0, 1], ("good", "bad"))
    >>> entry = peekbench.DataSourceEntry(name="weather", load=load, summary="weather reports")
    """

    name: str
    """Name in specs, after the plugin's name and a dot."""
    load: CallableField[DataSource[Any]] = CallableField()
    """Function that loads the rows, or a reference to it."""
    summary: str
    """One line for lists."""
    options: type[Options] = Options
    """Model of the options in a spec; by default there are none."""
    preparation: Preparation = Preparation()
    """Optional functions that are called before the rows are loaded."""
    facts: CallableField[Callable[[Folders], TaskFacts] | None] = CallableField(None)
    """Function that returns facts for lists of tasks, without a download."""


@dataclass(frozen=True, kw_only=True)
class TaskGroupEntry:
    """A name for several data sources of its plugin, such as `docstrings.all`.

    Examples
    --------
    >>> from peekbench.plugins import TaskGroupEntry
    >>> entry = TaskGroupEntry(name="all", members=("news", "reviews"), summary="both tasks")
    """

    name: str
    """Name in specs, after the plugin's name and a dot."""
    members: tuple[str, ...]
    """Names of the plugin's data sources that the group contains."""
    summary: str
    """One line for lists."""


@dataclass(frozen=True, kw_only=True)
class MethodEntry:
    """A method that a spec can name under `methods`.

    Examples
    --------
    >>> import peekbench
    >>> entry = peekbench.MethodEntry(name="lsa", method="my_package.lsa:fit", summary="LSA and a linear classifier")
    >>> entry.method
    Reference('my_package.lsa:fit')
    """

    name: str
    """Name in specs, after the plugin's name and a dot."""
    method: CallableField[Method[Any]] = CallableField()
    """Function that fits the method, or a reference to it."""
    summary: str
    """One line for lists."""
    options: type[Options] = Options
    """Model of the options in a spec; by default there are none."""
    task_kinds: frozenset[MethodTaskKind] = frozenset({"classification"})
    """Kinds of tasks that the method supports: 'classification' and 'text_regression' are of texts, and
    'tabular_classification' and 'regression' are of features."""
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
class AnalyzerEntry:
    """An analysis that a spec can name under `analyses`.

    Examples
    --------
    >>> import peekbench
    >>> entry = peekbench.AnalyzerEntry(name="sign", analyze="my_package.sign:test", summary="sign test of the bias")
    >>> entry.sees_controls
    False
    """

    name: str
    """Name in specs, after the plugin's name and a dot."""
    analyze: CallableField[Analyzer[Any]] = CallableField()
    """Function of the results table, or a reference to it."""
    summary: str
    """One line for lists."""
    options: type[Options] = Options
    """Model of the options in a spec; by default there are none."""
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
    """Role in commands and reports; empty for analyses that only specs name."""


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """An audit of the tasks' data that a spec can name under `audits`.

    Examples
    --------
    >>> from peekbench.plugins import AuditEntry
    >>> entry = AuditEntry(name="lengths", audit="my_package.lengths:measure", summary="text lengths by class")
    """

    name: str
    """Name in specs, after the plugin's name and a dot."""
    audit: CallableField[Audit[Any]] = CallableField()
    """Function of the tasks' rows, or a reference to it."""
    summary: str
    """One line for lists."""
    options: type[Options] = Options
    """Model of the options in a spec; by default there are none."""
    preparation: Preparation = Preparation()
    """Optional functions that are called before the audit."""


@dataclass(frozen=True, kw_only=True)
class ExecutorEntry:
    """An executor of a run's work that a spec can name under `executor`.

    Examples
    --------
    >>> from peekbench.plugins import ExecutorEntry
    >>> def execute(items, work, *, options):
    ...     for item in items:
    ...         yield list(work(item))
    >>> entry = ExecutorEntry(name="serial", execute=execute, summary="one item after the other")
    """

    name: str
    """Name in specs, after the plugin's name and a dot."""
    execute: CallableField[Executor[Any]] = CallableField()
    """Generator that does the work items, or a reference to it."""
    summary: str
    """One line for lists."""
    options: type[Options] = Options
    """Model of the options in a spec; by default there are none."""


@dataclass(frozen=True, kw_only=True)
class ObserverEntry:
    """An observer of runs, such as a tracker, that a spec can name under `observers`.

    Examples
    --------
    >>> from peekbench.plugins import ObserverEntry
    >>> entry = ObserverEntry(name="mail", observe="my_package.mail:observe", summary="mail when a run ends")
    """

    name: str
    """Name in specs, after the plugin's name and a dot."""
    observe: CallableField[Observe[Any]] = CallableField()
    """Function that returns an observer of one run, or a reference to it."""
    summary: str
    """One line for lists."""
    options: type[Options] = Options
    """Model of the options in a spec; by default there are none."""


@dataclass(frozen=True, kw_only=True)
class RendererEntry:
    """A renderer of a report's figures that a spec can name under `report.renderer`.

    Examples
    --------
    >>> from peekbench.plugins import RendererEntry
    >>> entry = RendererEntry(name="plots", render="my_package.plots:draw", summary="figures as SVG and PNG")
    """

    name: str
    """Name in specs, after the plugin's name and a dot."""
    render: CallableField[Renderer] = CallableField()
    """Function that draws one figure, or a reference to it."""
    summary: str
    """One line for lists."""
    plot: CallableField[Plot | None] = CallableField(None)
    """Function that draws one figure on axes of matplotlib, for `FigureView.plot`."""


@dataclass(frozen=True, kw_only=True)
class ReportFormatEntry:
    """A format of reports that a spec can name under `report.formats`.

    Examples
    --------
    >>> from peekbench.plugins import ReportFormatEntry
    >>> entry = ReportFormatEntry(name="latex", write="my_package.latex:write", suffix=".tex", summary="LaTeX tables")
    """

    name: str
    """Name in specs, after the plugin's name and a dot."""
    write: CallableField[WriteReport] = CallableField()
    """Function that writes a report, or a reference to it."""
    suffix: str = ""
    """Suffix of the file, such as '.tex'; empty for a format that is a folder of files."""
    summary: str
    """One line for lists."""


Entry: TypeAlias = (
    DataSourceEntry
    | TaskGroupEntry
    | MethodEntry
    | AnalyzerEntry
    | AuditEntry
    | ExecutorEntry
    | ObserverEntry
    | RendererEntry
    | ReportFormatEntry
)


class EntryWithOptions(Protocol):
    """An entry of a type that has the field `options`."""

    @property
    def summary(self) -> str:
        """One line for lists."""
        ...

    @property
    def options(self) -> type[Options]:
        """Model of the options in a spec."""
        ...


def has_options(entry: Entry) -> TypeGuard[EntryWithOptions]:
    """Return whether the type of an entry has the field `options`, which groups, renderers and report formats lack."""
    return any(field_.name == "options" for field_ in fields(entry))

"""Components of a spec: tasks, methods, analyses, executors, observers, with options of the plugin's model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, cast

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from peekbench.errors import PluginError, SpecError
from peekbench.formatting import shorten
from peekbench.plugins import registry
from peekbench.plugins.entries import (
    AnalyzerEntry,
    DataSourceEntry,
    ExecutorEntry,
    MethodEntry,
    ObserverEntry,
    RendererEntry,
)
from peekbench.plugins.graders import find_grader
from peekbench.plugins.names import GIVE_SPEC, Code, is_refused, names_code, split_name
from peekbench.plugins.protocols import Options
from peekbench.plugins.registry import check_format
from peekbench.plugins.validation import DATA_SUFFIXES
from peekbench.records.runs import DEFAULT_FORMATS
from peekbench.spec.design import Count, Counts, FrozenDict, Name, Origin, SpecModel, freeze
from peekbench.spec.error_messages import Written, describe, problem
from peekbench.yaml_loader import read_yaml


class StoredOptions(Options):
    """Options as a store has them. The plugin's own model, which validated them, may be unavailable or changed now."""

    model_config = ConfigDict(extra="allow")


def merge(options: Options, differing: Mapping[str, Any]) -> Options:
    """Return options with some values replaced, which are given as nested mappings."""
    return type(options).model_validate(_merge_values(options.model_dump(), differing))


def _merge_values(values: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(values)
    for name, other in others.items():
        both = isinstance(merged.get(name), Mapping) and isinstance(other, Mapping)
        merged[name] = _merge_values(merged[name], other) if both else other
    return merged


NamedEntry: TypeAlias = DataSourceEntry | MethodEntry | AnalyzerEntry | ExecutorEntry | ObserverEntry
EntryT = TypeVar("EntryT", bound=NamedEntry)


def _refuse_unknown(use: str, find: Callable[[str], object]) -> None:
    try:
        find(use)
    except PluginError as error:
        raise ValueError(str(error)) from error


class Component(SpecModel, Generic[EntryT]):
    """A thing that a plugin registers, by name, with its options.

    In YAML the name alone is enough: `classic.lsa` is short for `{use: classic.lsa}`.
    """

    entry_type: ClassVar[type[NamedEntry]]
    is_used_by_reports: ClassVar[bool] = False
    """Whether the report of a run calls the entry. Otherwise, a component from a store needs no plugin."""

    use: str
    """`plugin.thing`; a plugin's name alone means its thing of the same name."""
    options: SerializeAsAny[Options] = Field(default_factory=Options, validate_default=True)
    """Options of the plugin; `peekbench show plugin.thing` lists them."""

    @model_validator(mode="before")
    @classmethod
    def _expand_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"use": value}
        return value

    @field_validator("use", mode="wrap")
    @classmethod
    def _locate_entry(cls, value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> str:
        use = Origin.of(info).locate(value if isinstance(value, Code) else check(value))
        if not cls._is_without_plugin(use, info):
            _refuse_unknown(use, cls.find)
        return use

    @field_validator("options", mode="plain")
    @classmethod
    def _validate_options(cls, value: Any, info: ValidationInfo) -> Options:
        if "use" not in info.data:  # the error in `use` is reported already
            return Options()
        use = info.data["use"]
        model = StoredOptions if cls._is_without_plugin(use, info) else cls.find(use).options
        if isinstance(value, Options):
            value = value.model_dump()
        if value is None:
            value = {}
        options: Options = model.model_validate(value)
        return options

    @classmethod
    def find(cls, use: str) -> EntryT:
        """Return the entry of a name, or raise a `PluginError` if there is none."""
        entry: Any = registry.find(use, cls.entry_type)
        return cast("EntryT", entry)

    @property
    def entry(self) -> EntryT:
        """The entry, unless the component is from a store, so that its options are not those of an entry."""
        if isinstance(self.options, StoredOptions):
            raise SpecError(f"{self.use} is code that only a store names, which is not imported; {GIVE_SPEC}")
        return self.find(self.use)

    @classmethod
    def _is_without_plugin(cls, use: str, info: ValidationInfo) -> bool:
        return Origin.of(info).is_stored and (not cls.is_used_by_reports or is_refused(use))

    def raw_options(self) -> dict[str, Any]:
        """Return the options as plain JSON values, with defaults filled in."""
        dumped: dict[str, Any] = self.options.model_dump(mode="json")
        return dumped


class NamedComponent(Component[EntryT]):
    """A component that tables show under a name of its own."""

    name: Name = Field(default="", validate_default=True)
    """Name in tables; by default `use`, or its function. Required if two entries have the same `use`."""

    @field_validator("name", mode="before")
    @classmethod
    def _default_name(cls, name: Any, info: ValidationInfo) -> Any:
        if name != "":
            return name
        use = info.data.get("use", "unnamed")
        if names_code(use):
            return split_name(use)[1]
        return use


class TaskSpec(NamedComponent[DataSourceEntry]):
    """A task of an experiment."""

    entry_type: ClassVar[type[DataSourceEntry]] = DataSourceEntry
    group: ClassVar[str] = "tasks"

    kind: Literal["language_modeling"] | None = None
    """language_modeling: leave out the labels, and score how well a language model predicts the test texts. By default,
    the kind of the data."""
    grader: str = Field(default="", exclude_if=lambda grader: not grader)
    """Grader of generated answers: exact, number, choice, or a function of an answer and a reference in a file, such as
    `my_file.py:grade`. By default, that of the data, which is exact if they name none."""
    num_train: Counts = ()
    """Values of the design's `num_train` that this task uses, one number or several; by default all of them."""
    num_test: Counts = ()
    """Values of the design's `num_test` that this task uses, one number or several; by default all of them."""
    num_subsamples: Count | None = None
    """Number of subsamples of this task at each test size, instead of the design's. Tasks with more noise need
    more. With `stop`, looks at this task are at the same shares as at the others."""

    @field_validator("grader", mode="wrap")
    @classmethod
    def _locate_grader(cls, value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> str:
        origin = Origin.of(info)
        grader = origin.locate(value if isinstance(value, Code) else check(value))
        if not origin.is_stored:
            _refuse_unknown(grader, partial(find_grader, folder=origin.folder))
        return grader

    @field_validator("use", mode="before")
    @classmethod
    def _check_is_no_file(cls, use: Any) -> Any:
        if isinstance(use, str) and use.lower().endswith(DATA_SUFFIXES):
            raise ValueError(
                f"{shorten(repr(use), 100)} is a file, not a data source; name a data source that reads it, and give "
                "the file as its option `path`"
            )
        return use


# Tables name the model, and locks pin its revision, by method.
SAME_FOR_ALL_TASKS = frozenset({"model", "revision", "encoder"})


class MethodSpec(NamedComponent[MethodEntry]):
    """A method of an experiment."""

    entry_type: ClassVar[type[MethodEntry]] = MethodEntry
    group: ClassVar[str] = "methods"

    by_task: dict[str, dict[str, Any]] = Field(default_factory=FrozenDict)
    """Options that differ for some tasks, by the task's name. Of a nested option, give only the parts that differ."""

    @field_validator("by_task")
    @classmethod
    def _check_options_by_task(
        cls, by_task: dict[str, dict[str, Any]], info: ValidationInfo
    ) -> dict[str, dict[str, Any]]:
        if "use" in info.data and isinstance(options := info.data.get("options"), Options):
            for task, differing in by_task.items():
                if shared := SAME_FOR_ALL_TASKS & differing.keys():
                    raise problem(f"{min(shared)!r} must be the same for all tasks; add a second method", task)
                try:
                    merge(options, differing)
                except ValidationError as error:
                    described = describe(error, Written(type(options), differing))
                    raise problem(f"invalid options:\n{described}", task) from error
        frozen: dict[str, dict[str, Any]] = freeze(by_task)
        return frozen

    def options_for(self, task: str, options: Options | None = None) -> Options:
        """Return the options for a task; some, such as pinned ones, can replace the method's own."""
        return merge(options or self.options, self.by_task.get(task, {}))

    @property
    def model(self) -> str:
        """Language model that the options or their `encoder` name; empty if there is none."""
        encoder = getattr(self.options, "encoder", None)
        return str(getattr(self.options, "model", "") or getattr(encoder, "model", ""))

    def base_key(self, task: str = "") -> str:
        """Return a key that is equal for methods with the same base arm in a task."""
        options: dict[str, Any] = self.options_for(task).model_dump(mode="json")
        labeled = {name: value for name, value in options.items() if name not in self.entry.unlabeled_options}
        plugin, entry_name = split_name(self.use)
        return f"{plugin}.{self.entry.base or entry_name} {json.dumps(labeled, sort_keys=True)}"


class AnalysisSpec(Component[AnalyzerEntry]):
    """An analysis of the results."""

    entry_type: ClassVar[type[AnalyzerEntry]] = AnalyzerEntry
    is_used_by_reports: ClassVar[bool] = True


class ExecutorSpec(Component[ExecutorEntry]):
    """The executor of a run's work."""

    entry_type: ClassVar[type[ExecutorEntry]] = ExecutorEntry


class ObserverSpec(Component[ObserverEntry]):
    """An observer of the run, such as a tracker."""

    entry_type: ClassVar[type[ObserverEntry]] = ObserverEntry


def _located_by(find: Callable[[str], object]) -> AfterValidator:
    """Validate the name of what writes reports, which a report of a store may lack."""

    def locate(use: str, info: ValidationInfo) -> str:
        origin = Origin.of(info)
        use = origin.locate(use)
        if not origin.is_stored:
            _refuse_unknown(use, find)
        return use

    return AfterValidator(locate)


def _find_renderer(use: str) -> RendererEntry | None:
    if not use:
        return None
    return registry.find(use, RendererEntry)


class ReportSpec(SpecModel):
    """Files of a report."""

    formats: tuple[Annotated[str, _located_by(check_format)], ...] = DEFAULT_FORMATS
    """Files to write into `reports/<name>/`; 'svg' and 'png' are the figures, in a folder of their own. Plugins add
    formats, which are named `plugin.thing`."""
    allow_incomplete: bool = False
    """Analyze the complete trials if trials are missing, instead of an error. The report says so."""
    renderer: Annotated[str, _located_by(_find_renderer)] = Field(default="", exclude_if=lambda renderer: not renderer)
    """Renderer of the figures, `plugin.thing`; by default the only one that is installed."""


COMPONENTS: tuple[type[Component[Any]], ...] = (TaskSpec, MethodSpec, AnalysisSpec, ExecutorSpec, ObserverSpec)
"""Classes of components."""

PinnableSpec: TypeAlias = TaskSpec | MethodSpec
"""Components whose plugins may pin versions."""
ComponentT = TypeVar("ComponentT", bound=Component[Any])


def make_component(model: type[ComponentT], use: str, options: Mapping[str, Any] | None = None) -> ComponentT:
    """Make a component outside of a spec, such as `make_component(AnalysisSpec, 'summary')`."""
    return validate(model, {"use": use, "options": options}, Origin(Path.cwd()), use)


def parse_analysis(text: str) -> AnalysisSpec:
    """Make an analysis of its name, or of what a spec says about it, as YAML.

    Examples
    --------
    >>> parse_analysis("{use: summary, options: {level: 0.9}}").options.level
    0.9
    """
    if text.startswith("{"):
        return validate(AnalysisSpec, read_yaml(text, "the analysis"), Origin(Path.cwd()), text)
    return make_component(AnalysisSpec, text)


ModelT = TypeVar("ModelT", bound=SpecModel)


def validate(
    model: type[ModelT], value: Any, origin: Origin, name: str, positions: Mapping[str, Sequence[int]] | None = None
) -> ModelT:
    """Return the model that plain values make, or raise a `SpecError` that lists all errors with their places.

    `positions` are those of `Written`.
    """
    try:
        return model.model_validate(value, context=origin)
    except ValidationError as error:
        written = Written(model, value, positions=positions or {}, locate=origin.locate)
        raise SpecError(f"{name} is invalid:\n{describe(error, written)}") from error
    except RecursionError as error:
        raise SpecError(f"{name}: nested too deeply, or an alias that contains itself; unfold it") from error

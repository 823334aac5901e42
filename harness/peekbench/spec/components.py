"""What a spec names: tasks, methods, analyses, audits and executors, with options of the plugin's own model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticSerializationError

from peekbench.errors import PluginError, SpecError
from peekbench.plugins import registry
from peekbench.plugins.entries import AnalyzerEntry, AuditEntry, DataSourceEntry, ExecutorEntry, MethodEntry
from peekbench.plugins.protocols import Options
from peekbench.spec.error_messages import describe
from peekbench.spec.yaml_loader import read_yaml

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Name: TypeAlias = Annotated[str, Field(pattern=NAME, max_length=100)]


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else value


Count: TypeAlias = Annotated[int, Field(ge=1, le=10**7, strict=True)]
Counts: TypeAlias = Annotated[tuple[Count, ...], BeforeValidator(_as_tuple)]


def in_order(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes in ascending order; refuses one that stands twice."""
    if len(set(sizes)) < len(sizes):
        raise ValueError(f"{list(sizes)} has a number twice; remove one")
    return tuple(sorted(sizes))


class SpecModel(BaseModel):
    """Root of the spec's own models."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Component(SpecModel):
    """A thing that a plugin registers, by name, with its options.

    In YAML the name alone will do: `classic.lsa` is short for `{use: classic.lsa}`.
    """

    kind: ClassVar[str]
    entry_type: ClassVar[type[DataSourceEntry | MethodEntry | AnalyzerEntry | AuditEntry | ExecutorEntry]]

    use: str
    """`plugin.thing`; a plugin's name alone means its thing of the same name."""
    options: SerializeAsAny[Options] = Field(default_factory=Options, validate_default=True)
    """What `peekbench show plugin.thing` lists."""

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        return {"use": value} if isinstance(value, str) else value

    @field_validator("use")
    @classmethod
    def _exists(cls, use: str) -> str:
        try:
            registry.find(use, cls.kind, cls.entry_type)
        except PluginError as error:
            raise ValueError(str(error)) from error
        return use

    @field_validator("options", mode="plain")
    @classmethod
    def _plugins_own_model(cls, value: Any, info: ValidationInfo) -> Options:
        if "use" not in info.data:  # reported already
            return Options()
        model = registry.find(info.data["use"], cls.kind, cls.entry_type).options
        if isinstance(value, Options):
            value = value.model_dump()
        options = model.model_validate({} if value is None else value)
        try:
            options.model_dump_json()
        except PydanticSerializationError as error:
            raise ValueError(f"cannot be kept as JSON: {error}; give plain values") from error
        return options

    def raw_options(self) -> dict[str, Any]:
        """Options as plain JSON values, defaults filled in."""
        dumped: dict[str, Any] = self.options.model_dump(mode="json")
        return dumped


U = TypeVar("U", bound=Component)


class NamedComponent(Component):
    name: Name = Field(default="", validate_default=True)
    """What tables call it: by default the same as `use`. Needed where two entries have the same `use`."""

    @field_validator("name", mode="before")
    @classmethod
    def _default_name(cls, name: Any, info: ValidationInfo) -> Any:
        return info.data.get("use", "unnamed") if name == "" else name


class TaskSpec(NamedComponent):
    kind = "data source"
    entry_type = DataSourceEntry

    num_test: Counts = ()
    """Those of the design's `num_test` at which this task is drawn, one number or several; by default all of them."""

    @field_validator("num_test")
    @classmethod
    def _no_repeats(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        return in_order(sizes)

    @property
    def entry(self) -> DataSourceEntry:
        return registry.find(self.use, self.kind, DataSourceEntry)


ONE_FOR_ALL_TASKS = frozenset({"model", "revision"})  # tables name the model, and locks pin its revision, by method


class MethodSpec(NamedComponent):
    kind = "method"
    entry_type = MethodEntry

    by_task: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options that differ for some tasks, by the task's name; of a nested option, only what differs."""

    @field_validator("by_task")
    @classmethod
    def _fit_the_options(cls, by_task: dict[str, dict[str, Any]], info: ValidationInfo) -> dict[str, dict[str, Any]]:
        if isinstance(options := info.data.get("options"), Options):
            for task, exceptions in by_task.items():
                if fixed := ONE_FOR_ALL_TASKS & exceptions.keys():
                    raise ValueError(f"[{task}] has {min(fixed)!r}, which is one for all tasks; add a method for these")
                try:
                    merge(options, exceptions)
                except ValidationError as error:
                    raise ValueError(f"[{task}] does not fit:\n{describe(error)}") from error
        return by_task

    @property
    def entry(self) -> MethodEntry:
        return registry.find(self.use, self.kind, MethodEntry)

    def options_for(self, task: str, options: Options | None = None) -> Options:
        """Options for a task: these, or others that take their place, with the task's exceptions."""
        options = options or self.options
        return merge(options, self.by_task[task]) if task in self.by_task else options

    @property
    def model(self) -> str:
        """The language model that the method works with, where its options name one."""
        return str(getattr(self.options, "model", ""))

    def base_key(self, tasks: Iterable[str] | None = None) -> str:
        """Equal for methods that do the same where there are no unlabeled texts, in these tasks or in all."""
        entry = self.entry

        def that_matter(options: Options) -> dict[str, Any]:
            values: dict[str, Any] = options.model_dump(mode="json")
            return {name: value for name, value in values.items() if name not in entry.unlabeled_options}

        everywhere = that_matter(self.options)
        exceptions = {
            task: that_matter(self.options_for(task)) for task in self.by_task if tasks is None or task in tasks
        }
        by_task = {task: options for task, options in exceptions.items() if options != everywhere}
        plugin, thing = registry.split_use(self.use)
        key = f"{plugin}.{entry.base or thing} {json.dumps(everywhere, sort_keys=True)}"
        return f"{key} {json.dumps(by_task, sort_keys=True)}" if by_task else key


class AnalysisSpec(Component):
    kind = "analysis"
    entry_type = AnalyzerEntry

    @property
    def entry(self) -> AnalyzerEntry:
        return registry.find(self.use, self.kind, AnalyzerEntry)


class AuditSpec(NamedComponent):
    kind = "audit"
    entry_type = AuditEntry

    @property
    def entry(self) -> AuditEntry:
        return registry.find(self.use, self.kind, AuditEntry)


class ExecutorSpec(Component):
    kind = "executor"
    entry_type = ExecutorEntry

    @property
    def entry(self) -> ExecutorEntry:
        return registry.find(self.use, self.kind, ExecutorEntry)


def merge(options: Options, exceptions: Mapping[str, Any]) -> Options:
    """Options with some others in their place, validated by their own model.

    Raises
    ------
    ValidationError
        Where they do not fit.
    """
    return type(options).model_validate(_merged(options.model_dump(), exceptions))


def _merged(values: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(values)
    for name, other in others.items():
        both = isinstance(merged.get(name), Mapping) and isinstance(other, Mapping)
        merged[name] = _merged(merged[name], other) if both else other
    return merged


def parse_options(text: str) -> dict[str, Any]:
    """Read options given as YAML on a command line.

    Raises
    ------
    SpecError
        Where they are no mapping.
    """
    raw = read_yaml(text, "options")
    if not isinstance(raw, dict) or not all(isinstance(key, str) for key in raw):
        raise SpecError(f"options: {text!r} is not a mapping such as '{{name: value}}'")
    return raw


def make_component(model: type[U], use: str, options: Mapping[str, Any] | None = None) -> U:
    """Name a thing outside of a spec: `make_component(AnalysisSpec, 'summary')`.

    Raises
    ------
    SpecError
        Where no plugin offers it, or the options do not fit.
    """
    try:
        return model.model_validate({"use": use, "options": options})
    except ValidationError as error:
        raise SpecError(f"{use} does not fit:\n{describe(error)}") from error

"""YAML to a frozen `ExperimentSpec`, every plugin's options validated by the plugin's own model on the way."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SerializeAsAny,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticSerializationError

from peekbench import plugins
from peekbench.entries import AnalyzerEntry, DataSourceEntry, ExecutorEntry, MethodEntry, TaskGroupEntry
from peekbench.errors import PluginError, SpecError
from peekbench.faults import describe
from peekbench.locking import lock_path, pinned_options, read_lock
from peekbench.protocols import Options
from peekbench.records import Folders, SourceRef
from peekbench.strict_yaml import read_yaml

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Name: TypeAlias = Annotated[str, Field(pattern=NAME, max_length=100)]


class SpecModel(BaseModel):
    """Root of the spec's own models."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Use(SpecModel):
    """A thing that a plugin registers, by name, with its options.

    In YAML the name alone will do: `classic.lsa` is short for `{use: classic.lsa}`.
    """

    kind: ClassVar[str]
    entry_type: ClassVar[type[DataSourceEntry | MethodEntry | AnalyzerEntry | ExecutorEntry]]

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
            plugins.find(use, cls.kind, cls.entry_type)
        except PluginError as error:
            raise ValueError(str(error)) from error
        return use

    @field_validator("options", mode="plain")
    @classmethod
    def _plugins_own_model(cls, value: Any, info: ValidationInfo) -> Options:
        if "use" not in info.data:  # reported already
            return Options()
        model = plugins.find(info.data["use"], cls.kind, cls.entry_type).options
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


U = TypeVar("U", bound=Use)


class NamedUse(Use):
    name: Name = Field(default="", validate_default=True)
    """What tables call it: by default the same as `use`. Needed where two entries have the same `use`."""

    @field_validator("name", mode="before")
    @classmethod
    def _default_name(cls, name: Any, info: ValidationInfo) -> Any:
        return info.data.get("use", "unnamed") if name == "" else name


class TaskSpec(NamedUse):
    kind = "data source"
    entry_type = DataSourceEntry

    @property
    def entry(self) -> DataSourceEntry:
        return plugins.find(self.use, self.kind, DataSourceEntry)


class MethodSpec(NamedUse):
    kind = "method"
    entry_type = MethodEntry

    @property
    def entry(self) -> MethodEntry:
        return plugins.find(self.use, self.kind, MethodEntry)

    @property
    def model(self) -> str:
        """The language model that the method works with, where its options name one."""
        return str(getattr(self.options, "model", ""))

    def base_key(self) -> str:
        """Equal for methods that do the same where there are no unlabeled texts."""
        entry = self.entry
        options = {key: value for key, value in self.raw_options().items() if key not in entry.unlabeled_options}
        plugin, thing = plugins.split_use(self.use)
        return f"{plugin}.{entry.base or thing} {json.dumps(options, sort_keys=True)}"


class AnalysisSpec(Use):
    kind = "analysis"
    entry_type = AnalyzerEntry

    @property
    def entry(self) -> AnalyzerEntry:
        return plugins.find(self.use, self.kind, AnalyzerEntry)


class ExecutorSpec(Use):
    kind = "executor"
    entry_type = ExecutorEntry

    @property
    def entry(self) -> ExecutorEntry:
        return plugins.find(self.use, self.kind, ExecutorEntry)


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else value


Count: TypeAlias = Annotated[int, Field(ge=1, le=10**7, strict=True)]
Counts: TypeAlias = Annotated[tuple[Count, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
Repeats: TypeAlias = Count | dict[Annotated[int, Field(ge=1)], Count]
_ONE: TypeAdapter[int] = TypeAdapter(Count)
_EACH: TypeAdapter[dict[int, int]] = TypeAdapter(dict[Annotated[int, Field(ge=1)], Count])


class Design(SpecModel):
    """How much is drawn, and how often. The design points are all pairs of `num_train` and `num_test`."""

    num_train: Counts
    """Labeled train texts, one number or several; floor(num_train / classes) of each class are drawn."""
    num_test: Counts
    """Test texts, and just as many extra texts; one number or several."""
    num_subsamples: Repeats
    """Repeats; one number, or one for each `num_test`: {50: 100, 500: 20}."""

    @field_validator("num_train", "num_test")
    @classmethod
    def _no_repeats(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(sizes)) < len(sizes):
            raise ValueError(f"{list(sizes)} has a number twice; remove one")
        return tuple(sorted(sizes))

    @field_validator("num_subsamples", mode="before")
    @classmethod
    def _one_or_each(cls, repeats: Any) -> Any:
        """One form or the other, so that a fault is described for the form that was written."""
        if not isinstance(repeats, Mapping):
            return _ONE.validate_python(repeats)
        by_size = _EACH.validate_python(repeats)
        if len(by_size) < len(repeats):
            raise ValueError("two entries are for the same num_test; remove one of them")
        return by_size

    @model_validator(mode="after")
    def _repeats_for_each_size(self) -> Design:
        if isinstance(self.num_subsamples, dict) and set(self.num_subsamples) != set(self.num_test):
            raise ValueError(
                f"num_subsamples has entries for {sorted(self.num_subsamples)}, num_test is {list(self.num_test)}; "
                "give one entry for each num_test, or one number for all"
            )
        return self

    def repeats(self, num_test: int) -> int:
        """Subsamples at this test size."""
        return self.num_subsamples[num_test] if isinstance(self.num_subsamples, dict) else self.num_subsamples

    def points(self) -> Iterator[tuple[int, int]]:
        """Every (num_train, num_test)."""
        return product(self.num_train, self.num_test)


class Arm(SpecModel):
    """What the unlabeled texts are: none, extra texts, test texts, or a mix of the two."""

    kind: Literal["base", "extra", "test", "mix"]
    mix: Annotated[float, Field(ge=0, le=1)]
    """Share of test texts among the unlabeled ones."""

    @property
    def name(self) -> str:
        """As tables have it: 'base', 'extra', 'test' or 'mix-0.25'."""
        return f"mix-{self.mix:.{DOSE_DIGITS}f}".rstrip("0") if self.kind == "mix" else self.kind

    def num_peeked(self, num_test: int) -> int:
        """Test texts among the unlabeled ones, of which there are `num_test`."""
        return round(self.mix * num_test)

    @model_serializer
    def _as_written(self) -> str | dict[str, float]:
        return {"mix": self.mix} if self.kind == "mix" else self.kind


DOSE_DIGITS = 4  # of a share: it is part of the arm's name

BASE, EXTRA, TEST = Arm(kind="base", mix=0), Arm(kind="extra", mix=0), Arm(kind="test", mix=1)


def _read_arm(value: Any) -> Any:
    for arm in (BASE, EXTRA, TEST):
        if value == arm.name:
            return arm
    if isinstance(value, Mapping) and set(value) == {"mix"}:
        share = value["mix"]
        if isinstance(share, float) and 0 < share < 1:
            if round(share, DOSE_DIGITS) != share:
                raise ValueError(f"mix: {share!r} has more than {DOSE_DIGITS} decimals; round it")
            return Arm(kind="mix", mix=share)
        raise ValueError(f"mix: {share!r} is not a share between 0 and 1 (0 is the arm extra, 1 the arm test)")
    if isinstance(value, Arm):
        return value
    raise ValueError(f"{reprlib.repr(value)} is no arm; arms are base, extra, test, and a dose such as `mix: 0.25`")


ArmSpec: TypeAlias = Annotated[Arm, BeforeValidator(_read_arm)]


class ReportSpec(SpecModel):
    formats: tuple[Literal["text", "markdown", "json"], ...] = ("text", "markdown", "json")
    """Files to write into `reports/<name>/`."""
    allow_incomplete: bool = False
    """Analyse a design with holes instead of refusing; the report says so."""


def _expand_groups(tasks: Any) -> Any:
    """Put the members in the place of a group such as `docstrings.all`."""
    if not isinstance(tasks, list | tuple):
        return tasks
    expanded: list[Any] = []
    for task in tasks:
        if isinstance(task, Mapping) and "name" in task and _find_group(task.get("use")) is not None:
            raise ValueError(
                f"[{len(expanded)}].name: {task['use']!r} is a group and its members keep their own names; remove it"
            )
        expanded += _members(task)
    return expanded


def _members(task: Any) -> list[Any]:
    """The tasks that an entry under `tasks` stands for, each with all that was written there."""
    use: Any = task.get("use") if isinstance(task, Mapping) else task
    group = _find_group(use)
    if group is None:
        return [task]
    plugin, _ = plugins.split_use(use)
    written = task if isinstance(task, Mapping) else {}
    return [{**written, "use": f"{plugin}.{member}"} for member in group.members]


def _written_positions(raw: Mapping[str, Any]) -> dict[str, list[int]]:
    """Where under `tasks` each task came from, once groups are expanded."""
    tasks = raw.get("tasks")
    if not isinstance(tasks, list | tuple):
        return {}
    return {"tasks": [position for position, task in enumerate(tasks) for _ in _members(task)]}


def _find_group(use: Any) -> TaskGroupEntry | None:
    if not isinstance(use, str):
        return None
    plugin, thing = plugins.split_use(use)
    try:
        entry = plugins.load(plugin).offers.get("data source", {}).get(thing)
    except PluginError:
        return None  # the task's own validation reports it, with its place
    return entry if isinstance(entry, TaskGroupEntry) else None


# As YAML would have them; validated, and so looked up among the plugins, with the rest of a spec.
DEFAULT_ANALYSES: Any = ("summary", "permutation")
DEFAULT_EXECUTOR: Any = "local"


class ExperimentSpec(SpecModel):
    """One experiment: what is compared on what, how often, and what is made of it."""

    name: Name
    """Names the store `runs/<name>.sqlite` and the folder `reports/<name>/`."""
    seed: Annotated[int, Field(ge=0, lt=2**63, strict=True)] = 0
    """All draws and fits follow from it."""
    tasks: Annotated[tuple[TaskSpec, ...], BeforeValidator(_expand_groups), Field(min_length=1)]
    methods: Annotated[tuple[MethodSpec, ...], Field(min_length=1)]
    design: Design
    arms: tuple[ArmSpec, ...] = (BASE, EXTRA, TEST)
    """base, extra, test, and any number of doses such as `mix: 0.25`, in which that share of the unlabeled texts is
    test text and the rest extra text."""
    analyses: Annotated[tuple[AnalysisSpec, ...], Field(validate_default=True)] = DEFAULT_ANALYSES
    executor: Annotated[ExecutorSpec, Field(validate_default=True)] = DEFAULT_EXECUTOR
    report: ReportSpec = ReportSpec()

    _folder: Path = PrivateAttr(default_factory=Path.cwd)
    _pinned: dict[tuple[str, str], Options] = PrivateAttr(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where relative paths in options start: the spec file's folder."""
        return self._folder

    @field_validator("tasks", "methods")
    @classmethod
    def _unique_names(cls, things: tuple[Any, ...]) -> tuple[Any, ...]:
        seen: set[str] = set()
        for position, thing in enumerate(things):
            if thing.name in seen:
                raise ValueError(f"[{position}].name: {thing.name!r} is taken; give each entry a `name` of its own")
            seen.add(thing.name)
        return things

    @field_validator("arms")
    @classmethod
    def _effect_arms(cls, arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
        names = [arm.name for arm in arms]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"arm {name!r} stands twice; remove one")
        for name in (EXTRA.name, TEST.name):
            if name not in names:
                raise ValueError(f"arm {name!r} is missing: the bias is the score of test minus that of extra; add it")
        return arms

    @model_validator(mode="after")
    def _doses_differ_from_extra_and_test(self) -> ExperimentSpec:
        for position, arm in enumerate(self.arms):
            for num_test in self.design.num_test:
                peeked = arm.num_peeked(num_test)
                if arm.kind == "mix" and peeked in (0, num_test):
                    same = TEST if peeked else EXTRA
                    raise ValueError(
                        f"arms[{position}].mix: {arm.mix:g} of num_test {num_test} is {peeked} texts, as in the arm "
                        f"{same.name}; use a larger num_test, or another share"
                    )
        return self

    def task(self, name: str) -> TaskSpec:
        return next(task for task in self.tasks if task.name == name)

    def method(self, name: str) -> MethodSpec:
        return next(method for method in self.methods if method.name == name)

    def source(self, task: TaskSpec) -> SourceRef:
        """How to load that task's data."""
        options = self._pinned.get(("tasks", task.name), task.options)
        return SourceRef(task.use, options.model_dump(mode="json"), self.folder)

    def options(self, method: MethodSpec) -> Options:
        """What the method is called with: its options, and what the lock file pins."""
        return self._pinned.get(("methods", method.name), method.options)

    def _pin(self, lock: Mapping[str, Any], origin: Path) -> None:
        """Load and fit with the versions of a lock file."""
        for group, things in (("tasks", self.tasks), ("methods", self.methods)):
            for thing in things:
                self._pinned[group, thing.name] = pinned_options(lock, group, thing, origin)

    def with_executor_options(self, **options: Any) -> ExperimentSpec:
        """The same experiment with other settings of its executor, which no number depends on.

        Raises
        ------
        SpecError
            Where the executor has no such option.
        """
        executor = make_use(ExecutorSpec, self.executor.use, {**self.executor.raw_options(), **options})
        return self.model_copy(update={"executor": executor})

    def folders(self) -> Folders:
        from peekbench.cache import cache_folder

        return Folders(spec=self.folder, cache=cache_folder())


def load_spec(path: str | Path, *, locked: bool = True) -> ExperimentSpec:
    """Read and validate a YAML spec.

    Parameters
    ----------
    locked
        Whether a lock file beside it counts.

    Raises
    ------
    SpecError
        Where the file cannot be read, is no YAML, or does not fit, the message lists every fault with its place; or
        where there is a lock file beside it which does not fit.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise SpecError(f"cannot read the spec {path}: {reason}; give the path of a YAML file in UTF-8") from error
    spec = parse_spec(text, folder=path.absolute().parent, origin=str(path))
    if locked and (lock := read_lock(lock_path(path))):
        spec._pin(lock, lock_path(path))
    return spec


def parse_spec(text: str, *, folder: Path, origin: str = "spec") -> ExperimentSpec:
    """Validate the text of a YAML spec; `folder` is where relative paths in it start.

    Raises
    ------
    SpecError
        As `load_spec`.
    """
    raw = read_yaml(text, origin)
    if not isinstance(raw, dict):
        raise SpecError(f"{origin}: a spec is a mapping with name, tasks, methods, design; this is {_kind(raw)}")
    return make_spec(raw, folder=folder, origin=origin)


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


def make_use(model: type[U], use: str, options: Mapping[str, Any] | None = None) -> U:
    """Name a thing outside of a spec: `make_use(AnalysisSpec, 'summary')`.

    Raises
    ------
    SpecError
        Where no plugin offers it, or the options do not fit.
    """
    try:
        return model.model_validate({"use": use, "options": options})
    except ValidationError as error:
        raise SpecError(f"{use} does not fit:\n{describe(error)}") from error


def make_spec(raw: Mapping[str, Any], *, folder: Path, origin: str = "spec") -> ExperimentSpec:
    """Validate a spec given as plain values.

    Raises
    ------
    SpecError
        Where it does not fit; the message lists every fault with its place.
    """
    try:
        spec = ExperimentSpec.model_validate(raw)
    except ValidationError as error:
        raise SpecError(f"{origin} does not fit:\n{describe(error, written=_written_positions(raw))}") from error
    except RecursionError as error:
        raise SpecError(f"{origin}: nested too deeply, or an alias that contains itself; unfold it") from error
    spec._folder = folder
    return spec


def _kind(value: object) -> str:
    return "empty" if value is None else f"a {type(value).__name__}"


def canonical(spec: ExperimentSpec) -> dict[str, Any]:
    """The spec as plain JSON values with every default filled in: what a store keeps and compares."""
    dumped: dict[str, Any] = spec.model_dump(mode="json")
    return dumped

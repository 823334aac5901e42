"""YAML to a frozen `ExperimentSpec`, every plugin's options validated by the plugin's own model on the way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from peekbench.errors import PluginError, SpecError
from peekbench.plugins import registry
from peekbench.plugins.entries import TaskGroupEntry
from peekbench.plugins.protocols import Options
from peekbench.records.data import Folders, SourceRef
from peekbench.spec.components import (
    AnalysisSpec,
    AuditSpec,
    ExecutorSpec,
    MethodSpec,
    Name,
    SpecModel,
    TaskSpec,
    make_component,
)
from peekbench.spec.design import BASE, EXTRA, TEST, Arm, ArmSpec, Design
from peekbench.spec.error_messages import describe
from peekbench.spec.lockfile import lock_path, pinned_options, read_lock
from peekbench.spec.yaml_loader import read_yaml

DEFAULT_FORMATS: Any = ("html", "text", "markdown", "json", "cards")


class ReportSpec(SpecModel):
    formats: tuple[Literal["html", "text", "markdown", "json", "cards", "svg", "png"], ...] = DEFAULT_FORMATS
    """Files to write into `reports/<name>/`; cards are one Markdown file a method, svg and png the figures, each in a
    folder of their own there."""
    allow_incomplete: bool = False
    """Analyze a design with holes instead of refusing; the report says so."""


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
    plugin, _ = registry.split_use(use)
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
    plugin, thing = registry.split_use(use)
    try:
        entry = registry.load(plugin).offers.get("data source", {}).get(thing)
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
    audits: tuple[AuditSpec, ...] = ()
    """What `peekbench audit` examines the tasks' data for; runs and their numbers do not depend on it."""
    executor: Annotated[ExecutorSpec, Field(validate_default=True)] = DEFAULT_EXECUTOR
    report: ReportSpec = ReportSpec()

    _folder: Path = PrivateAttr(default_factory=Path.cwd)
    _pinned: dict[tuple[str, str], Options] = PrivateAttr(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where relative paths in options start: the spec file's folder."""
        return self._folder

    @field_validator("tasks", "methods", "audits")
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
    def _exceptions_name_tasks(self) -> ExperimentSpec:
        names = {task.name for task in self.tasks}
        for position, method in enumerate(self.methods):
            for task in sorted(method.by_task.keys() - names):
                raise ValueError(f"methods[{position}].by_task: there is no task {task!r}; write its name in this spec")
        return self

    @model_validator(mode="after")
    def _tasks_are_drawn_at_sizes_of_the_design(self) -> ExperimentSpec:
        for position, task in enumerate(self.tasks):
            for size in sorted(set(task.num_test) - set(self.design.num_test)):
                raise ValueError(
                    f"tasks[{position}].num_test: {size} is not in the design's num_test {list(self.design.num_test)}; "
                    "add it there, or remove it here"
                )
        return self

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

    def design_of(self, task: TaskSpec) -> Design:
        """The design at the sizes at which that task is drawn."""
        return self.design.only(task.num_test)

    def source(self, task: TaskSpec) -> SourceRef:
        """How to load that task's data."""
        options = self._pinned.get(("tasks", task.name), task.options)
        return SourceRef(task.use, options.model_dump(mode="json"), self.folder)

    def audit_options(self, audit: AuditSpec) -> Options:
        """What the audit is called with: its options, and what the lock file pins."""
        return self._pinned.get(("audits", audit.name), audit.options)

    def options(self, method: MethodSpec, task: str = "") -> Options:
        """What the method is called with: its options, what the lock file pins, and what differs for the task."""
        return method.options_for(task, self._pinned.get(("methods", method.name), method.options))

    def _pin(self, lock: Mapping[str, Any], origin: Path) -> None:
        """Load and fit with the versions of a lock file."""
        for group, things in (("tasks", self.tasks), ("methods", self.methods), ("audits", self.audits)):
            for thing in things:
                self._pinned[group, thing.name] = pinned_options(lock, group, thing, origin)

    def with_executor_options(self, **options: Any) -> ExperimentSpec:
        """The same experiment with other settings of its executor, which no number depends on.

        Raises
        ------
        SpecError
            Where the executor has no such option.
        """
        executor = make_component(ExecutorSpec, self.executor.use, {**self.executor.raw_options(), **options})
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

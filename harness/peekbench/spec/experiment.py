"""The spec of an experiment, from YAML to a frozen `ExperimentSpec`; plugins' own models validate their options."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from peekbench.cache import cache_folder
from peekbench.errors import PluginError, SpecError, public
from peekbench.identity import DIFFERENCES, normalize
from peekbench.plugins import registry
from peekbench.plugins.entries import DataSourceEntry, TaskGroupEntry, kind_of
from peekbench.plugins.names import OF_FEW, Code, find_nearest, split_name
from peekbench.plugins.protocols import Options
from peekbench.records.data import Folders, SourceRef
from peekbench.records.trials import Trial
from peekbench.spec.arms import ALL_TEXTS, BASE, EXTRA, TEST, WITH_FOLDS, Arm, ArmSpec
from peekbench.spec.components import (
    AnalysisSpec,
    Component,
    ExecutorSpec,
    MethodSpec,
    ObserverSpec,
    PinnableSpec,
    ReportSpec,
    TaskSpec,
    make_component,
    merge,
    validate,
)
from peekbench.spec.design import Design, FrozenDict, Name, Origin, SpecModel, list_trials
from peekbench.spec.error_messages import Written, describe, problem
from peekbench.yaml_loader import read_text, read_yaml


def expand_groups(tasks: Any, info: ValidationInfo) -> Any:
    """Replace groups such as `docstrings.all` by their members; a store has the members already."""
    origin = Origin.of(info)
    if not isinstance(tasks, list | tuple) or origin.is_stored:
        return tasks
    expanded: list[Any] = []
    for task in tasks:
        expanded += _members(task, origin)
    return expanded


def _members(task: Any, origin: Origin) -> list[Any]:
    """Return the tasks that an entry under `tasks` means, each with all that was written there."""
    written = task if isinstance(task, Mapping) else {"use": task}
    group = _find_group(written.get("use"), origin)
    if group is None:
        return [task]
    start = written["use"].removesuffix(group.name)  # a plugin's name alone means its group of the same name
    if not start.endswith((".", ":")):
        start = f"{written['use']}."
    return [{**written, "use": f"{start}{member}"} for member in group.members]


def written_positions(raw: Mapping[str, Any], origin: Origin) -> dict[str, list[int]]:
    """Return the position under `tasks` of each task after groups are expanded."""
    tasks = raw.get("tasks")
    if origin.is_stored or not isinstance(tasks, list | tuple):  # stores have no groups, and plugins may be lost
        return {}
    return {"tasks": [position for position, task in enumerate(tasks) for _ in _members(task, origin)]}


def _find_group(use: Any, origin: Origin) -> TaskGroupEntry | None:
    if not isinstance(use, str):
        return None
    plugin, entry_name = split_name(origin.locate(use))
    if not registry.is_known(plugin):  # searching for a similar name takes time
        return None
    try:
        entry = registry.load(plugin).offers[kind_of(DataSourceEntry).name].get(entry_name)
    except PluginError:
        return None  # the validation of the task reports the error with its place
    if isinstance(entry, TaskGroupEntry):
        return entry
    return None


# The only plugins that the core names. They are defaults of the spec, so that the meaning of a spec does not depend on
# which other plugins are installed. Written as in YAML: a spec looks them up and validates them with its other parts.
DEFAULT_ANALYSES: Any = ("summary", "permutation")
ANALYSIS_OF_TEXTS = "summary.texts"  # added to these for a table with rows of single texts
DEFAULT_EXECUTOR: Any = "local"


def _default_arms(validated: Mapping[str, Any]) -> tuple[Arm, ...]:
    design = validated.get("design")
    return WITH_FOLDS if design is not None and design.folds else (BASE, EXTRA, TEST)


def _allow_official(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"const": "official"}, {"$ref": schema.pop("$ref")}]


def _refuse_unwritten(value: Any) -> Any:
    raise PydanticCustomError("extra_forbidden", "Extra inputs are not permitted")


class ExperimentSpec(SpecModel):
    """An experiment: which methods are compared on which tasks, how often, and how the results are analyzed.

    Make one with `load_spec`, or with `peekbench.spec.experiment.make_spec` from plain values. A spec never changes;
    `with_executor_options` and `with_pinned` return new ones.

    Raises
    ------
    ValidationError
        If a value is invalid; `load_spec` raises a `SpecError` that names the place instead.

    Examples
    --------
    >>> import peekbench
    >>> spec = peekbench.ExperimentSpec(
    ...     name="small",
    ...     tasks=["docstrings.stdlib"],
    ...     methods=["classic.lsa"],
    ...     design={"num_train": 50, "num_test": 100, "num_subsamples": 20},
    ... )
    >>> [method.name for method in spec.methods]
    ['classic.lsa']
    """

    name: Name
    """Name of the store `runs/<name>.sqlite` and of the folder `reports/<name>/`."""
    seed: Annotated[int, Field(ge=0, lt=2**63, strict=True)] = 0
    """Seed of all subsamples and fits."""
    tasks: Annotated[tuple[TaskSpec, ...], BeforeValidator(expand_groups), Field(min_length=1)]
    """Tasks, or groups of tasks."""
    methods: Annotated[tuple[MethodSpec, ...], Field(min_length=1)]
    """Methods and controls, each of which is fitted on every task."""
    design: Annotated[Design, Field(json_schema_extra=_allow_official)]
    """Sizes and number of the subsamples; `official`: all rows of the official splits, in folds."""
    arms: tuple[ArmSpec, ...] = Field(default_factory=_default_arms)
    """base, extra, test; doses such as `mix: 0.25`, in which test texts replace that share of the extra texts; and
    rules of adaptation: `cross: 5`, `leave-one-out`, `prequential: 5`, `stream: 5`, `blocks: 5`, `single`,
    `batches: 5`, `alone`, `swap-in: 5` and `swap-in`."""
    analyses: Annotated[tuple[AnalysisSpec, ...], Field(validate_default=True)] = DEFAULT_ANALYSES
    """Analyses of the report; they can be changed at any time."""
    executor: Annotated[ExecutorSpec, Field(validate_default=True)] = DEFAULT_EXECUTOR
    """What runs the trials, on this machine or on several; no number depends on it."""
    observers: tuple[ObserverSpec, ...] = ()
    """Trackers and other observers of the run; no number depends on them."""
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Seconds that a trial may take with all its arms. A trial that takes longer is ended and has failed. By default,
    there is no limit."""
    report: ReportSpec = ReportSpec()
    """Files of the report."""
    folder: SkipJsonSchema[Annotated[Path, BeforeValidator(_refuse_unwritten)]] = Field(
        default_factory=Path.cwd, exclude=True
    )
    """Folder of the spec file, where relative paths in options start. It is no part of the YAML."""
    pinned: SkipJsonSchema[Annotated[Mapping[tuple[str, str], Any], BeforeValidator(_refuse_unwritten)]] = Field(
        default_factory=FrozenDict, exclude=True
    )
    """Options with the versions that the run has used from its start, by group ('tasks', 'methods') and name. They are
    no part of the YAML."""

    @field_validator("tasks", "methods")
    @classmethod
    def _check_names_are_unique(cls, components: tuple[Any, ...]) -> tuple[Any, ...]:
        seen: dict[str, str] = {}
        for position, component in enumerate(components):
            name = component.name
            taken = seen.get(normalize(name))
            if taken is not None:
                text = f"{name!r} differs from {taken!r} only by {DIFFERENCES}; give names that differ more"
                if taken == name:
                    text = f"{name!r} is taken, also by groups such as docstrings.all; give each entry its own `name`"
                raise problem(text, position, "name")
            seen[normalize(name)] = name
        return components

    @field_validator("arms")
    @classmethod
    def _check_arms(cls, arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
        names = [arm.name for arm in arms]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"arm {name!r} is duplicated; remove one")
        for name in (EXTRA.name, TEST.name):
            if name not in names:
                raise ValueError(f"arm {name!r} is missing: the bias is the score of test minus that of extra; add it")
        return arms

    @model_validator(mode="after")
    def _check_task_names(self) -> ExperimentSpec:
        names = {task.name for task in self.tasks}
        for position, method in enumerate(self.methods):
            for task in sorted(method.by_task.keys() - names):
                near = find_nearest(task, sorted(names), OF_FEW)
                remedy = f"did you mean {near}?" if near else f"the tasks are {', '.join(sorted(names)[:10])}"
                raise problem(f"there is no task {task!r}; {remedy}", "methods", position, "by_task")
        return self

    @model_validator(mode="after")
    def _check_sizes_of_tasks(self) -> ExperimentSpec:
        for position, task in enumerate(self.tasks):
            for name in ("num_train", "num_test"):
                allowed = getattr(self.design, name)
                if allowed and (unknown := set(getattr(task, name)) - set(allowed)):
                    remedy = (
                        f"{min(unknown)} is not in the design's {name} {list(allowed)}; add it there, or remove it here"
                    )
                    raise problem(remedy, "tasks", position, name)
        return self

    @model_validator(mode="after")
    def _check_arms_with_folds(self) -> ExperimentSpec:
        names = ", ".join([*(arm.name for arm in WITH_FOLDS), "alone"])
        for position, arm in enumerate(self.arms):
            if self.design.folds and arm not in WITH_FOLDS and arm.kind != "batches":
                remedy = f"use {names}, or numbers instead of all in num_train and num_test, without folds"
                raise problem(f"{arm.name} needs drawn test sets, which design.folds lacks; {remedy}", "arms", position)
            if arm == ALL_TEXTS and not self.design.folds:
                raise problem(f"{arm.name} needs design.folds; remove it, or add `folds: 10`", "arms", position)
        if self.design.folds and ALL_TEXTS not in self.arms:
            raise problem(f"with design.folds, {ALL_TEXTS.name} is the score that they correct; add it", "arms")
        return self

    @model_validator(mode="after")
    def _check_arms_with_shared_texts(self) -> ExperimentSpec:
        for position, arm in enumerate(self.arms):
            if arm.kind == "prequential" and self.design.num_unlabeled:
                remedy = "predicts the first block without unlabeled texts; remove it, or design.num_unlabeled"
                raise problem(f"{arm.name} {remedy}", "arms", position)
        return self

    @model_validator(mode="after")
    def _check_sizes_of_arms(self) -> ExperimentSpec:
        for num_test in self.design.num_test:
            seen: dict[tuple[str, int], Arm] = {}
            for position, arm in enumerate(self.arms):
                place = f"{arm.name} with num_test {num_test}"
                if message := arm.find_problem(num_test, self.design.crossover or 1):
                    raise problem(f"{place} {message}", "arms", position)
                same_arm = seen.setdefault((arm.kind, arm.num_blocks(num_test)), arm)
                if arm.is_rule and same_arm is not arm:
                    raise problem(f"{place} is the same as {same_arm.name}; remove one of them", "arms", position)
        return self

    def task(self, name: str) -> TaskSpec:
        """Return the task of a name."""
        return next(task for task in self.tasks if task.name == name)

    def method(self, name: str) -> MethodSpec:
        """Return the method of a name."""
        return next(method for method in self.methods if method.name == name)

    def base_keys(self) -> dict[tuple[str, str], str]:
        """Return `MethodSpec.base_key` by method and task."""
        return {(method.name, task.name): method.base_key(task.name) for method in self.methods for task in self.tasks}

    def design_of(self, task: TaskSpec) -> Design:
        """Return the design with the test sizes and the number of subsamples of a task."""
        return self.design.for_task(task.num_train, task.num_test, task.num_subsamples)

    def with_sizes(self, rows: Mapping[str, Mapping[str, int]]) -> ExperimentSpec:
        """Return the same experiment with numbers instead of `all` rows of official splits.

        Parameters
        ----------
        rows
            Number of rows of the splits 'train' and 'test', by task, and of private 'extra' texts if it has any.
        """
        tasks = []
        for task in self.tasks:
            update: dict[str, Any] = {}
            if not self.design.num_train:
                update["num_train"] = (rows[task.name]["train"],)
            if not self.design.num_test:
                update["num_test"] = self.design.sizes_of_folds(rows[task.name]["test"])
                if "extra" in rows[task.name]:
                    update["num_test"] = (rows[task.name]["test"],)
            tasks.append(task.model_copy(update=update))
        return self.model_copy(update={"tasks": tuple(tasks)})

    def at_look(self, number: int) -> ExperimentSpec:
        """Return the experiment as far as a planned look, counted from 1."""
        tasks = tuple(
            task.model_copy(update={"num_subsamples": self.design.split_by_looks(task.num_subsamples)[number - 1]})
            if task.num_subsamples
            else task
            for task in self.tasks
        )
        return self.model_copy(update={"design": self.design.at_look(number), "tasks": tasks})

    def trials(self) -> Iterator[Trial]:
        """Yield every trial, subsample by subsample."""
        designs = {task.name: self.design_of(task) for task in self.tasks}
        return list_trials(designs, [method.name for method in self.methods])

    @property
    def largest(self) -> int:
        """Largest number of subsamples of a task and a test size."""
        return max(self.design_of(task).largest for task in self.tasks)

    @property
    def code(self) -> tuple[Code, ...]:
        """Code that the caller gave in this spec, which reports of its run may import."""
        components: tuple[Component[Any], ...] = (
            *self.tasks, *self.methods, *self.analyses, *self.observers, self.executor,
        )  # fmt: skip
        uses = (*(component.use for component in components), *self.report.formats, self.report.renderer)
        return tuple(use for use in uses if isinstance(use, Code))

    @property
    def graders(self) -> dict[str, Code]:
        """Code that grades generated answers, by task."""
        return {task.name: task.grader for task in self.tasks if isinstance(task.grader, Code)}

    def source(self, task: TaskSpec) -> SourceRef:
        """Return a reference to the data of a task, with pinned versions."""
        return SourceRef(task.use, self.pinned_options(task).model_dump(mode="json"), self.folder, task.kind)

    def pinned_options(self, component: PinnableSpec) -> Options:
        """Return the options of a component, pinned versions included."""
        options: Options = self.pinned.get((component.group, component.name), component.options)
        return options

    def options(self, method: MethodSpec, task: str = "") -> Options:
        """Return the options to call a method with on a task, pinned versions included."""
        return method.options_for(task, self.pinned_options(method))

    def pinnable(self) -> tuple[PinnableSpec, ...]:
        """Return the components whose plugins may pin versions."""
        return (*self.tasks, *self.methods)

    def with_pinned(self, pinned: Mapping[tuple[str, str], Mapping[str, Any]], origin: str) -> ExperimentSpec:
        """Return the same experiment with pinned options, given by group and name of the component.

        Raises
        ------
        SpecError
            If an option is invalid; the message starts with the name of its origin.
        """
        validated = {}
        for component in self.pinnable():
            place = (component.group, component.name)
            if place in pinned:
                try:
                    validated[place] = merge(component.options, pinned[place])
                except ValidationError as error:
                    written = Written(type(component.options), pinned[place], at=(*place, "pinned"))
                    raise SpecError(f"{origin} is invalid:\n{describe(error, written)}") from error
        return self.model_copy(update={"pinned": FrozenDict(validated)})

    def with_executor_options(self, **options: Any) -> ExperimentSpec:
        """Return the same experiment with other options of its executor, which do not change any number."""
        executor = make_component(ExecutorSpec, self.executor.use, {**self.executor.raw_options(), **options})
        return self.model_copy(update={"executor": executor})

    def folders(self) -> Folders:
        """Return the folders that plugins may use."""
        return Folders(spec=self.folder, cache=cache_folder())


@public
def load_spec(path: str | Path) -> ExperimentSpec:
    """Read and validate the YAML spec of an experiment.

    Parameters
    ----------
    path
        YAML file in UTF-8.

    Returns
    -------
    ExperimentSpec
        The spec. Relative paths in options start at the file's folder.

    Raises
    ------
    SpecError
        If the file cannot be read or is invalid; the message lists all errors with their places.

    Examples
    --------
    >>> import pathlib, peekbench, tempfile
    >>> text = '''
    ... name: small
    ... tasks: [docstrings.stdlib]
    ... methods: [classic.lsa]
    ... design: {num_train: 50, num_test: 100, num_subsamples: 20}
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "small.yaml"
    ...     _ = path.write_text(text)
    ...     spec = peekbench.load_spec(path)
    >>> spec.design.num_subsamples
    20
    """
    path = Path(path)
    return parse_spec(read_text(path), folder=path.absolute().parent, origin=str(path))


def parse_spec(text: str, *, folder: Path, origin: str = "spec") -> ExperimentSpec:
    """Parse and validate the YAML text of a spec; see `make_spec`."""
    raw = read_yaml(text, origin)
    if not isinstance(raw, dict):
        kind = "empty" if raw is None else f"a {type(raw).__name__}"
        raise SpecError(
            f"{origin}: a spec is a mapping with name, tasks, methods, design; this is {kind}. Write lines of the form "
            "`name: value`, without dashes"
        )
    return make_spec(raw, folder=folder, origin=origin)


def make_spec(
    raw: Mapping[str, Any],
    *,
    folder: Path,
    origin: str = "spec",
    stored: bool = False,
    given: Collection[Code] | None = None,
) -> ExperimentSpec:
    """Validate a spec that is given as plain values; see `parse_spec`.

    Parameters
    ----------
    raw
        The spec as plain values.
    folder
        Folder where relative paths in options start.
    origin
        Name of the spec for messages.
    stored
        Whether the spec is from the store of a run and is used for its report. Then only the plugins of its analyses
        must be installed. The other components, and analyses in files or modules that the caller did not give, keep
        the stored options, and cannot be run.
    given
        Code that the caller gave, such as `ExperimentSpec.code`, which alone is imported; by default, all that the spec
        names, but none that a stored one names.

    Raises
    ------
    SpecError
        If the spec is invalid; the message lists all errors with their places.
    """
    context = Origin(folder.absolute(), stored, () if stored and given is None else given)
    spec = validate(ExperimentSpec, raw, context, origin, written_positions(raw, context))
    return spec.model_copy(update={"folder": folder})


def canonical(spec: ExperimentSpec) -> dict[str, Any]:
    """Return the spec as plain JSON values with all defaults filled in, which a store keeps and compares."""
    dumped: dict[str, Any] = spec.model_dump(mode="json")
    return dumped

"""Prepares what a run needs before its first trial: downloads, checks of files, and the stored part of the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench.data.loading import load_dataset
from peekbench.errors import DataError, PeekbenchError, PluginError, SpecError, StoreError, UnavailableError
from peekbench.execution.planning import make_trials
from peekbench.formatting import pluralize
from peekbench.plugins.exceptions import one_line_errors
from peekbench.plugins.missing_libraries import describe_missing
from peekbench.plugins.protocols import Options
from peekbench.records.trials import Trial
from peekbench.spec.compatibility import Experiment, differences, has_fixed_maximum, refuse_changes
from peekbench.spec.components import AuditSpec, Component, MethodSpec, NamedComponent, TaskSpec
from peekbench.spec.design import Design
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.files import FileState

if TYPE_CHECKING:
    from peekbench.execution.observers import Progress


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The stored part of a run, which is compared with a spec before the store is opened to fill it.

    A spec that is refused, or whose run cannot be prepared, therefore leaves the store as it is.
    """

    path: Path
    sessions: tuple[Mapping[str, Any], ...] = ()
    """Provenance of the sessions, oldest first."""
    session_of: Mapping[Trial, int] = field(default_factory=dict)
    """Finished trials, with the positions of their sessions."""
    experiment: Experiment | None = None
    """What the numbers of the finished trials depend on; None without a store that can be used."""
    stopped_at: int | None = None
    """Subsamples of the planned look at which the run stopped; None if it did not."""
    verified: FileState | None = None
    """State of the files of the store when its checksums were verified; None without a store that can be used."""

    def sessions_with_trials(self) -> list[Mapping[str, Any]]:
        """Return the sessions that finished trials, oldest first."""
        positions = set(self.session_of.values())
        return [session for position, session in enumerate(self.sessions) if position in positions]

    def pending(self, spec: ExperimentSpec, trials: Sequence[Trial]) -> list[Trial]:
        """Return the planned trials to run; none if the run stopped at a planned look and has all trials up to it."""
        number = spec.design.look_number(self.stopped_at)
        if number and all(trial in self.session_of for trial in make_trials(spec.at_look(number))):
            return []
        return [trial for trial in trials if trial not in self.session_of]

    def keep_subsamples(self, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> ExperimentSpec:
        """Return a spec with no fewer subsamples than have finished trials, so that a report uses all of them.

        Parameters
        ----------
        spec
            The spec.
        tasks
            Facts about its data by task.

        Raises
        ------
        StoreError
            If the stored trials are of another experiment.
        """
        if self.experiment is None:
            return spec
        if not has_fixed_maximum(self.experiment.spec):
            spec = self._with_finished_subsamples(spec, self.experiment.finished or {})
        refuse_changes(self.path, self.experiment, spec, tasks)
        return spec

    @staticmethod
    def _with_finished_subsamples(spec: ExperimentSpec, counts: Mapping[tuple[str, str, int], int]) -> ExperimentSpec:
        """Return a spec with at least these subsamples, by method, task and num_test."""
        own = {task.name for task in spec.tasks if task.num_subsamples}
        finished: dict[tuple[str, int], int] = {}
        for (_, task, num_test), number in counts.items():
            key = (task if task in own else "", num_test)
            finished[key] = max(number, finished.get(key, 0))

        def at_least(number: int, task: str, sizes: Sequence[int]) -> int:
            return max(number, *(finished.get((task, num_test), 0) for num_test in sizes))

        design, sizes = spec.design, spec.design.num_test
        if isinstance(design.num_subsamples, int):
            kept: Any = at_least(design.num_subsamples, "", sizes)
        else:
            kept = {num_test: at_least(number, "", [num_test]) for num_test, number in design.num_subsamples.items()}
        components = tuple(
            task.model_copy(update={"num_subsamples": at_least(task.num_subsamples, task.name, sizes)})
            if task.num_subsamples
            else task
            for task in spec.tasks
        )
        design = Design.model_validate({**dict(design), "num_subsamples": kept})
        return spec.model_copy(update={"design": design, "tasks": components})

    @classmethod
    def read(cls, path: Path) -> StoredRun:
        """Read a store. A run is empty without a store, or if it cannot be used, which opening it for the run reports.

        Parameters
        ----------
        path
            Store of the run, which need not exist.
        """
        from peekbench.store.writer import Store  # noqa: PLC0415 - so that `peekbench validate` does not import numpy

        try:
            with Store.open(path) as store:
                return cls(
                    path,
                    tuple(store.sessions()),
                    store.sessions_of_trials(),
                    replace(store.experiment(), finished=store.finished_subsamples()),
                    store.stopped_at(),
                    store.verified,
                )
        except StoreError:
            return cls(path)


def prefetch(spec: ExperimentSpec) -> Iterator[str]:
    """Load every task and prefetch every method and audit, one after the other.

    Yields
    ------
    str
        One line before and one after each download. In between, libraries may show progress bars of their own.

    Raises
    ------
    DataError
        After the last download, if some failed.
    """
    users: list[MethodSpec | AuditSpec] = [*spec.methods, *spec.audits]
    components: list[TaskSpec | MethodSpec | AuditSpec] = [
        *spec.tasks,
        *(user for user in users if user.entry.preparation.prefetch is not None),
    ]
    failed = []
    for number, component in enumerate(components, start=1):
        yield f"[{number}/{len(components)}] {component.name}"
        try:
            yield f"    {_prefetch(spec, component)}"
        except PeekbenchError as error:
            failed.append(component.name)
            yield f"    {error}"
    if failed:
        raise DataError(
            f"{len(failed)} of {len(components)} downloads failed: {', '.join(failed)}; see the messages above, then "
            "try again"
        )


def check_files(spec: ExperimentSpec) -> None:
    """Check libraries, and the options of tasks, methods and audits against the files here, without a download.

    Raises
    ------
    SpecError
        If a run or an audit of the spec would fail, for example because a model does not exist; with a line for each.
    """
    errors = []
    components: list[TaskSpec | MethodSpec | AuditSpec] = [*spec.tasks, *spec.methods, *spec.audits]
    for component in components:
        check = component.entry.preparation.check
        try:
            if check is not None:
                for place, options in _each_options(spec, component):
                    with _placed_errors(place), one_line_errors("`check`", component.use, options):
                        check(options=options, folders=spec.folders())
        except PeekbenchError as error:
            errors.append(str(error))
        else:
            errors += _missing_libraries([component])
    errors += _missing_libraries([spec.executor, *spec.analyses])
    if errors:
        raise SpecError("\n".join(errors))


def _missing_libraries(components: Iterable[Component]) -> list[str]:
    """Return a line on each component whose code imports a library that is not installed."""
    missing = [(component, describe_missing(component.entry)) for component in components]
    return [f"{_place_of(component)}: {problem}" for component, problem in missing if problem]


def _each_options(spec: ExperimentSpec, component: TaskSpec | MethodSpec | AuditSpec) -> Iterator[tuple[str, Options]]:
    """Yield the options of a task, a method or an audit, with their place for messages."""
    if not isinstance(component, MethodSpec):
        yield _place_of(component), spec.pinned_options(component)
        return
    tasks = {_place(component, task.name): task.name for task in spec.tasks}
    for place, task in tasks.items():
        yield place, spec.options(component, task)


def _place(method: MethodSpec, task: str) -> str:
    return f"method {method.name}, task {task}" if task in method.by_task else f"method {method.name}"


def _place_of(component: Component) -> str:
    kind = type(component).__name__.removesuffix("Spec").lower()
    return f"{kind} {component.name if isinstance(component, NamedComponent) else component.use}"


def _prefetch(spec: ExperimentSpec, component: TaskSpec | MethodSpec | AuditSpec) -> str:
    """Download what a component needs, load the rows of a task, and describe both."""
    if isinstance(component, MethodSpec):
        facts: Mapping[str, Any] = prefetch_method(spec, component)
    else:
        facts = _call_prefetch(spec, component, spec.pinned_options(component), _place_of(component))
    if isinstance(component, TaskSpec):
        return pluralize(len(load_dataset(spec.source(component)).labels), "row")
    return ", ".join(f"{name} {value}" for name, value in facts.items() if not isinstance(value, Mapping)) or "done"


def prefetch_method(spec: ExperimentSpec, method: MethodSpec) -> dict[str, Any]:
    """Download or build all that a method needs for the tasks of a spec, once for each set of its options.

    Parameters
    ----------
    spec
        The spec.
    method
        One of its methods, which may have other options for some tasks.

    Returns
    -------
    dict
        Facts for readers, as the method's plugin returned them for the options that tasks share. What differs in a
        task with options of its own has the task's name before it: `{"commit": "1f2e", "news: commit": "a07c"}`; the
        same holds for the files under `sha256`. Empty if the method needs nothing.

    Raises
    ------
    PeekbenchError
        If something is unavailable, of the kind that the plugin raised; the message names the method and the task.
    """
    own = [task.name for task in spec.tasks if task.name in method.by_task]
    shared = [task.name for task in spec.tasks if task.name not in method.by_task]
    known: list[tuple[Options, Mapping[str, Any]]] = []  # options can contain values that no hash or JSON tells apart
    merged: dict[str, Any] | None = None
    for task in [*shared[:1], *own]:
        options = spec.options(method, task)
        facts = next((facts for equal, facts in known if equal == options), None)
        if facts is None:
            facts = _call_prefetch(spec, method, options, _place(method, task))
            known.append((options, facts))
        merged = dict(facts) if merged is None else _add_differing(merged, facts, task)
    return merged or {}


def split_reachable(
    spec: ExperimentSpec, *, with_methods: bool
) -> tuple[ExperimentSpec, dict[str, UnavailableError], dict[str, DataError]]:
    """Return the part of a spec that can be prepared now, and the errors of the data and models out of reach.

    Parameters
    ----------
    spec
        The spec.
    with_methods
        Whether to prefetch for the methods; otherwise, the part has all of them.

    Returns
    -------
    tuple
        The spec without the tasks and methods that cannot be reached, of which it may then have none; the errors of
        the tasks, and those of the methods, by name.
    """
    tasks: dict[str, UnavailableError] = {}
    methods: dict[str, DataError] = {}
    for task in spec.tasks:
        try:
            load_dataset(spec.source(task))
        except UnavailableError as error:
            tasks[task.name] = error
    part = spec.model_copy(update={"tasks": tuple(task for task in spec.tasks if task.name not in tasks)})
    for method in spec.methods if with_methods and part.tasks else ():
        try:
            prefetch_method(part, method)
        except DataError as error:
            if not isinstance(error.__cause__, UnavailableError):
                raise
            methods[method.name] = error
    kept = tuple(method for method in spec.methods if method.name not in methods)
    return part.model_copy(update={"methods": kept}), tasks, methods


def _call_prefetch(
    spec: ExperimentSpec, component: TaskSpec | MethodSpec | AuditSpec, options: Options, place: str
) -> Mapping[str, Any]:
    prefetch = component.entry.preparation.prefetch
    if prefetch is None:
        return {}
    with _placed_errors(place), one_line_errors("`prefetch`", component.use, options):
        return prefetch(options=options, folders=spec.folders())


@contextmanager
def _placed_errors(place: str) -> Iterator[None]:
    """Add the place to errors."""
    try:
        yield
    except PeekbenchError as error:
        kinds = (SpecError, PluginError, DataError)  # derived kinds may take other arguments
        kind = next((kind for kind in kinds if isinstance(error, kind)), PeekbenchError)
        raise kind(f"{place}: {error}") from error


def _add_differing(merged: Mapping[str, Any], facts: Mapping[str, Any], task: str) -> dict[str, Any]:
    """Add the facts of a task that differ from the merged ones, under names that begin with the task's."""
    added = dict(merged)
    for name, value in facts.items():
        known = merged.get(name)
        if isinstance(value, Mapping) and isinstance(known, Mapping | None):
            added[name] = _add_differing(known or {}, value, task)
        elif name not in merged or known != value:
            added[f"{task}: {name}"] = value
    return added


def prepare(spec: ExperimentSpec, progress: Progress) -> dict[str, dict[str, Any]]:
    """Check libraries, and prefetch for each method once, before any worker starts.

    Parameters
    ----------
    spec
        The spec.
    progress
        Receives the name of each method.

    Returns
    -------
    dict
        Facts for readers by method, as `prefetch_method` returns them.

    Raises
    ------
    PluginError
        If a library is not installed.
    """
    if missing := _missing_libraries([*spec.methods, spec.executor, *spec.analyses]):
        raise PluginError("\n".join(missing))
    facts = {}
    for method in spec.methods:
        if method.entry.preparation.prefetch is not None:
            progress.prepare(method.name)
            facts[method.name] = prefetch_method(spec, method)
    return facts


def prepare_same_files(stored: StoredRun, spec: ExperimentSpec, progress: Progress) -> dict[str, dict[str, Any]]:
    """Prepare the methods, and compare their files, such as the weights of a model, with those of stored trials.

    Parameters
    ----------
    stored
        The stored part of the run.
    spec
        The spec.
    progress
        Receives the name of each method.

    Returns
    -------
    dict
        Facts by method.

    Raises
    ------
    StoreError
        If the files have changed.
    """
    facts = prepare(spec, progress)
    makers = sorted({(position, trial.method) for trial, position in stored.session_of.items()})
    known = [(method, stored.sessions[position].get("methods", {})) for position, method in makers]
    used = [{method: methods[method]} for method, methods in known if method in methods]
    tasks = {trial.draw.task for trial in stored.session_of}
    changes = changed_files(used, facts, [task.name for task in spec.tasks if task.name not in tasks])
    if changes:
        raise StoreError(
            f"store {stored.path}: files of its methods have changed:\n  "
            + "\n  ".join(changes)
            + "\nRestore the files, run the spec under another name, or delete the stored trials with `peekbench run "
            "--fresh` (in Python, fresh=True)"
        )
    return facts


def changed_files(
    before: Iterable[Mapping[str, Mapping[str, Any]]],
    now: Mapping[str, Mapping[str, Any]],
    new_tasks: Sequence[str] = (),
) -> list[str]:
    """Return the files of methods that are not those which trials have used.

    Parameters
    ----------
    before
        Facts by method, as `prepare` returned them, of each session that made trials.
    now
        The facts of the same methods now.
    new_tasks
        Tasks without a trial. Files that only they need are no changes.

    Returns
    -------
    list of str
        Method, file and both digests of each file that differs; methods without files in both are left out.
    """
    sessions = [item for methods in before for item in methods.items()]
    digests = [(method, facts["sha256"]) for method, facts in sessions if "sha256" in facts]
    known = {(method, file) for method, files in digests for file in files}
    labels = tuple(f"{task}: " for task in new_tasks)  # of the files of a task; see `prefetch_method`
    changes: dict[str, None] = {}
    for method, files_before in digests:
        files_now = now.get(method, {}).get("sha256")
        for file, old, new in [] if files_now is None else differences("", files_before, files_now):
            is_later = file not in files_before and (file.startswith(labels) or (method, file) in known)
            if not is_later:  # a file of a task that was added after this session
                changes[f"{method}: {file}: SHA-256 {old[:13]} before, {new[:13]} now"] = None
    return list(changes)

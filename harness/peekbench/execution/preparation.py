"""Prepares what a run needs before its first trial: downloads, and checks of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from peekbench.data.loading import load_dataset
from peekbench.errors import DataError, PeekbenchError, PluginError, SpecError
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.protocols import Options
from peekbench.spec.components import MethodSpec, TaskSpec
from peekbench.spec.experiment import ExperimentSpec


def download_all(spec: ExperimentSpec) -> Iterator[str]:
    """Load every task and prefetch every method, one after the other.

    Yields
    ------
    str
        One line before each download. In between, libraries may show progress bars of their own.
    """
    methods = [method for method in spec.methods if method.entry.preparation.prefetch is not None]
    components: list[TaskSpec | MethodSpec] = [*spec.tasks, *methods]
    for number, component in enumerate(components, start=1):
        yield f"[{number}/{len(components)}] {component.name}"
        if isinstance(component, MethodSpec):
            prefetch_method(spec, component)
        else:
            prefetch_component(spec, component)
            load_dataset(spec.source(component))


def check_files(spec: ExperimentSpec) -> None:
    """Check the options of tasks and methods against the files here, without a download.

    Raises
    ------
    SpecError
        If a run of the spec would fail, for example because a model does not exist; with a line for each.
    """
    errors = []
    components: list[TaskSpec | MethodSpec] = [*spec.tasks, *spec.methods]
    for component in components:
        check = component.entry.preparation.check
        try:
            if check is not None:
                for place, options in _each_options(spec, component):
                    with _placed_errors(place):
                        caller = Foreign("`check`", component.use, options)
                        caller.call(check, options=options, folders=spec.folders())
        except PeekbenchError as error:
            errors.append(str(error))
    if errors:
        raise SpecError("\n".join(errors))


def _each_options(spec: ExperimentSpec, component: TaskSpec | MethodSpec) -> Iterator[tuple[str, Options]]:
    """Yield the options of a task or a method, with their place for messages."""
    if not isinstance(component, MethodSpec):
        yield _place_of(component), spec.pinned_options(component)
        return
    tasks = {_place(component, task.name): task.name for task in spec.tasks}
    for place, task in tasks.items():
        yield place, spec.options(component, task)


def _place(method: MethodSpec, task: str) -> str:
    if task in method.by_task:
        return f"method {method.name}, task {task}"
    return _place_of(method)


def _place_of(component: TaskSpec | MethodSpec) -> str:
    kind = type(component).__name__.removesuffix("Spec").lower()
    return f"{kind} {component.name}"


def prefetch_component(spec: ExperimentSpec, component: TaskSpec) -> Mapping[str, Any]:
    """Download or build all that a task needs, and return facts for readers."""
    return _call_prefetch(spec, component, spec.pinned_options(component), _place_of(component))


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
        task with options of its own, and the digests of all its files (`sha256`), have the task's name before theirs:
        `{"commit": "1f2e", "news: commit": "a07c"}`. Empty if the method needs nothing.

    Raises
    ------
    PeekbenchError
        If something is unavailable, of the kind that the plugin raised; the message names the method and the task.
    """
    shared = [task.name for task in spec.tasks if task.name not in method.by_task]
    known: list[tuple[Options, Mapping[str, Any]]] = []  # options can contain values that no hash or JSON tells apart
    merged: dict[str, Any] = {}
    for task in [*shared[:1], *(task.name for task in spec.tasks if task.name in method.by_task)]:
        options = spec.options(method, task)
        facts = next((facts for equal, facts in known if equal == options), None)
        if facts is None:
            facts = _call_prefetch(spec, method, options, _place(method, task))
            known.append((options, facts))
        if task not in method.by_task:
            merged = dict(facts)
            continue
        for name, value in facts.items():
            if name == "sha256" or name not in merged or merged[name] != value:
                merged[f"{task}: {name}"] = value
    return merged


def _call_prefetch(
    spec: ExperimentSpec, component: TaskSpec | MethodSpec, options: Options, place: str
) -> Mapping[str, Any]:
    prefetch = component.entry.preparation.prefetch
    if prefetch is None:
        return {}
    with _placed_errors(place):
        caller = Foreign("`prefetch`", component.use, options)
        facts: Mapping[str, Any] = caller.call(prefetch, returns=Mapping, options=options, folders=spec.folders())
        return facts


@contextmanager
def _placed_errors(place: str) -> Iterator[None]:
    """Add the place to errors."""
    try:
        yield
    except PeekbenchError as error:
        kinds = (SpecError, PluginError, DataError)  # derived kinds may take other arguments
        kind = next((kind for kind in kinds if isinstance(error, kind)), PeekbenchError)
        raise kind(f"{place}: {error}") from error


def prefetch_methods(spec: ExperimentSpec, note: Callable[[str], None] = lambda _: None) -> dict[str, dict[str, Any]]:
    """Prefetch for each method once, before any worker starts.

    Parameters
    ----------
    spec
        The spec.
    note
        Receives a text about each method before it is prepared.

    Returns
    -------
    dict
        Facts for readers by method, as `prefetch_method` returns them.
    """
    facts = {}
    for method in spec.methods:
        if method.entry.preparation.prefetch is not None:
            note(f"preparing {method.name}")
            facts[method.name] = prefetch_method(spec, method)
    return facts

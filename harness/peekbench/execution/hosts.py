"""Prepares a machine for the work of a run: downloads, checks of files, and a comparison with the main process."""

from __future__ import annotations

import json
import os
import platform
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

from peekbench.data.loading import fingerprint, load_dataset
from peekbench.errors import DataError, HostError, PeekbenchError, PluginError, SpecError
from peekbench.execution.provenance import describe_code, describe_machine, identify, package_versions
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.names import find_reference, resolve
from peekbench.plugins.protocols import Options
from peekbench.plugins.work_protocols import NODE_VARIABLE
from peekbench.records.data import Dataset
from peekbench.records.runs import Host
from peekbench.spec.compatibility import spec_from_plain, spec_to_plain
from peekbench.spec.components import MethodSpec, TaskSpec
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.differences import Identity, files_of, find_differences


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
            _prefetch(spec, component, spec.pinned_options(component), _place_of(component))
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
            facts = _prefetch(spec, method, options, _place(method, task))
            known.append((options, facts))
        if task not in method.by_task:
            merged = dict(facts)
            continue
        for name, value in facts.items():
            if name == "sha256" or name not in merged or merged[name] != value:
                merged[f"{task}: {name}"] = value
    return merged


def _prefetch(spec: ExperimentSpec, part: TaskSpec | MethodSpec, options: Options, place: str) -> Mapping[str, Any]:
    prefetch = part.entry.preparation.prefetch
    if prefetch is None:
        return {}
    with _placed_errors(place):
        caller = Foreign("`prefetch`", part.use, options)
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


NOT_FOR_WORK = ("analyses", "executor", "observers", "report")  # parts of a spec on which no trial depends
SHOWN = 12  # characters of a digest in messages


def host_name() -> str:
    """Return the name of this machine: `$PEEKBENCH_NODE`, or its host name."""
    return os.environ.get(NODE_VARIABLE) or platform.node() or "unknown"


def pack(spec: ExperimentSpec, expected: Identity) -> bytes:
    """Return the parts of a spec on which trials depend, and what to expect, for `unpack` on another machine."""
    plain = spec_to_plain(spec)
    parts = {name: part for name, part in plain["spec"].items() if name not in NOT_FOR_WORK}
    return zlib.compress(json.dumps([{**plain, "spec": parts}, asdict(expected)]).encode())


def unpack(packed: bytes) -> tuple[ExperimentSpec, Identity]:
    """Return the object that `pack` packed.

    Raises
    ------
    HostError
        If a plugin of the spec is not installed on this machine, or has other options.
    """
    plain, expected = json.loads(zlib.decompress(packed))
    try:
        return spec_from_plain(plain), Identity(**expected)
    except PeekbenchError as error:
        raise HostError(f"{host_name()} cannot do the work of this run: {error}") from error


def load_expected(spec: ExperimentSpec, task: TaskSpec, expected: Identity) -> Dataset:
    """Load the data of a task.

    Raises
    ------
    DataError
        If they are unavailable, or differ from those of the main process.
    """
    dataset = load_dataset(spec.source(task))
    identifier = expected.data.get(task.name, "")
    if identifier and (found := fingerprint(dataset)) != identifier:
        raise DataError(
            f"task {task.name}: its data have changed since the run started, or are different on {host_name()} "
            f"(fingerprint {identifier[:SHOWN]} at the start, {found[:SHOWN]} here); restore them, or run the spec "
            "under another name"
        )
    return dataset


def prepare_host(spec: ExperimentSpec, expected: Identity) -> Host:
    """Import the methods, load the data, prefetch, and compare everything with the main process.

    Parameters
    ----------
    spec
        The spec.
    expected
        What the main process has.

    Returns
    -------
    Host
        What this machine is.

    Raises
    ------
    HostError
        If anything differs from the main process or is missing; the message lists everything.
    """
    name = host_name()
    here = identify(spec, {}, {})
    here = replace(here, versions={**dict.fromkeys(expected.versions, "no version"), **here.versions})
    problems = find_differences([expected, here])
    for task in spec.tasks:
        try:
            load_expected(spec, task, expected)
        except PeekbenchError as error:
            problems.append(str(error))
    if not problems:  # prefetching may take long
        problems += _prepare_methods(spec, expected)
    if problems:
        raise HostError(
            f"{name} differs from the main process, so its results could differ, too:\n  "
            + "\n  ".join(problems)
            + "\nInstall the same code and versions there, or leave this machine out; the finished trials are stored"
        )
    return Host(name, describe_machine(), package_versions())


def check_code(method: MethodSpec, expected: Identity) -> None:
    """Check that the code of a method that was imported just now is that of the main process.

    A worker that replaces a crashed one imports files that may have been edited since the run started.

    Raises
    ------
    HostError
        If it is not.
    """
    here = Identity(code=describe_code([method.use]))
    for difference in find_differences([Identity(code=expected.code), here]):
        raise HostError(
            f"method {method.name}: its code has changed since the run started, or is different on {host_name()} "
            f"({difference}); restore it and run the spec again, or run the new code under another name. The "
            "finished trials are stored"
        )


def _prepare_methods(spec: ExperimentSpec, expected: Identity) -> Iterator[str]:
    """Import and prefetch every method. Yield what is wrong."""
    facts = {}
    for method in spec.methods:
        try:
            if reference := find_reference(method.entry.method):
                resolve(reference.target)
            facts[method.name] = prefetch_method(spec, method)
        except PeekbenchError as error:
            yield f"method {method.name}: {error}"
    here = Identity(files=files_of(facts))
    yield from find_differences([Identity(files=expected.files), here])

"""Prepares a machine for the work of a run, and compares it with the machine of the main process."""

from __future__ import annotations

import json
import os
import platform
import zlib
from collections.abc import Iterator
from dataclasses import asdict, replace

from peekbench.data.loading import fingerprint, load_dataset
from peekbench.errors import DataError, HostError, PeekbenchError
from peekbench.execution.preparation import prefetch_method
from peekbench.execution.provenance import describe_code, describe_machine, identify, package_versions
from peekbench.plugins.references import find_reference, resolve
from peekbench.plugins.work_protocols import NODE_VARIABLE
from peekbench.records.data import Dataset
from peekbench.records.runs import Host
from peekbench.spec.compatibility import spec_from_plain, spec_to_plain
from peekbench.spec.components import MethodSpec, TaskSpec
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.differences import Identity, files_of, find_differences

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
    """Return what `pack` has packed.

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
    problems = [difference.change for difference in find_differences([expected, here])]
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
            f"({difference.change}); restore it and run the spec again, or run the new code under another name. The "
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
    for difference in find_differences([Identity(files=expected.files), here]):
        yield difference.change

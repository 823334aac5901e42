"""Prepares the methods of a run before its first trial, and checks that their files have not changed."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from peekbench.errors import StoreError
from peekbench.execution.prefetch import prefetch_method
from peekbench.execution.progress import Progress
from peekbench.records.trials import Trial
from peekbench.spec.compatibility import differences
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.writer import Store


def prepare(spec: ExperimentSpec, progress: Progress) -> dict[str, dict[str, Any]]:
    """Prefetch for each method once, before any worker starts.

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
    """
    facts = {}
    for method in spec.methods:
        if method.entry.prefetch is not None:
            progress.prepare(method.name)
            facts[method.name] = prefetch_method(spec, method)
    return facts


def prepare_same_files(
    path: Path, spec: ExperimentSpec, trials: Sequence[Trial], progress: Progress
) -> dict[str, dict[str, Any]] | None:
    """Prepare the methods if stored trials used files of them, such as the weights of a model, and compare the files.

    This happens before the store is opened for the run, so that a refused spec does not extend the stored one.

    Parameters
    ----------
    path
        Store of the run, which need not exist.
    spec
        The spec.
    trials
        Planned trials. If all of them are stored, the files do not matter.
    progress
        Receives the name of each method.

    Returns
    -------
    dict or None
        Facts by method; None if there is nothing to compare, and the methods are not prepared.

    Raises
    ------
    StoreError
        If the files have changed.
    """
    try:
        with Store.open(path) as store:
            done, stored_tasks = store.done(), store.tasks().keys()
            sessions = zip(store.sessions(), store.session_sizes(), strict=True)
            used = [session.get("methods", {}) for session, num_trials in sessions if num_trials]
    except StoreError:  # no store yet, or one that cannot be used, which opening it for the run reports
        return None
    stored_files: dict[str, dict[str, Any]] = {}
    for method, stored in (item for methods in used for item in methods.items()):
        if "sha256" in stored:  # the files of tasks that later sessions added are added
            stored_files[method] = stored_files.get(method, {}) | stored["sha256"]
    if done.issuperset(trials) or not stored_files:
        return None
    facts = prepare(spec, progress)
    changes = [
        f"{method}: {file}: SHA-256 {old[:13]} before, {new[:13]} now"
        for method, before in stored_files.items()
        if (now := facts.get(method, {}).get("sha256")) is not None
        for file, old, new in differences("", before, _without_new_tasks(now, stored_tasks, spec))
    ]
    if changes:
        raise StoreError(
            f"store {path}: files of its methods have changed:\n  "
            + "\n  ".join(changes)
            + "\nRestore the files, or run the spec under another name"
        )
    return facts


def _without_new_tasks(files: Mapping[str, Any], stored: Container[str], spec: ExperimentSpec) -> dict[str, Any]:
    """Return the files without those that only tasks need of which nothing is stored; see `prefetch_method`."""
    new = [f"{task.name}: " for task in spec.tasks if task.name not in stored]
    return {file: digest for file, digest in files.items() if not file.startswith(tuple(new))}

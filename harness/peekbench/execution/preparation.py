"""Prepares the methods of a run before its first trial, and checks that their files have not changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from peekbench.errors import StoreError
from peekbench.execution.prefetch import prefetch_method
from peekbench.execution.progress import Progress
from peekbench.execution.stored_run import StoredRun
from peekbench.records.trials import Trial
from peekbench.spec.compatibility import differences
from peekbench.spec.experiment import ExperimentSpec


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
        if method.entry.preparation.prefetch is not None:
            progress.prepare(method.name)
            facts[method.name] = prefetch_method(spec, method)
    return facts


def prepare_same_files(
    stored: StoredRun, spec: ExperimentSpec, trials: Sequence[Trial], progress: Progress
) -> dict[str, dict[str, Any]] | None:
    """Prepare the methods if stored trials used files of them, such as the weights of a model, and compare the files.

    Parameters
    ----------
    stored
        The stored part of the run.
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
    positions = sorted(set(stored.session_of.values()))
    used = [stored.sessions[position].get("methods", {}) for position in positions]
    has_files = any("sha256" in facts for methods in used for facts in methods.values())
    if not has_files or all(trial in stored.session_of for trial in trials):
        return None
    facts = prepare(spec, progress)
    changes = changed_files(used, facts, [task.name for task in spec.tasks if task.name not in stored.tasks])
    if changes:
        raise StoreError(
            f"store {stored.path}: files of its methods have changed:\n  "
            + "\n  ".join(changes)
            + "\nRestore the files, or run the spec under another name"
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

"""Prepares the methods of a run before its first trial, and checks that their files have not changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peekbench.errors import StoreError
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
        Facts for readers by method, as its plugin returned them.
    """
    facts = {}
    for method in spec.methods:
        if method.entry.prefetch is not None:
            progress.prepare(method.name)
            facts[method.name] = dict(method.entry.prefetch(options=spec.options(method), folders=spec.folders()))
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
            done = store.done()
            sessions = zip(store.sessions(), store.session_sizes(), strict=True)
            used = [session.get("methods", {}) for session, num_trials in sessions if num_trials]
    except StoreError:  # no store yet, or one that cannot be used, which opening it for the run reports
        return None
    if done.issuperset(trials) or not any("sha256" in stored for methods in used for stored in methods.values()):
        return None
    facts = prepare(spec, progress)
    changes: dict[str, None] = {}
    for methods in used:
        for method, stored in methods.items():
            before, now = stored.get("sha256"), facts.get(method, {}).get("sha256")
            if before is not None and now is not None:
                changes |= {
                    f"{method}: {file}: SHA-256 {old[:13]} before, {new[:13]} now": None
                    for file, old, new in differences("", before, now)
                }
    if changes:
        raise StoreError(
            f"store {path}: files of its methods have changed:\n  "
            + "\n  ".join(changes)
            + "\nRestore the files, or run the spec under another name"
        )
    return facts

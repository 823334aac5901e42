"""Compares the jobs whose fragments make up one run: their spec and data, code, versions and prefetched files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from peekbench.errors import StoreError
from peekbench.execution.code import code_hashes, core_hash, describe_code_change
from peekbench.execution.provenance import describe_session
from peekbench.execution.versions import relevant_versions
from peekbench.spec.compatibility import changed_experiment
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.fragments import Fragment

MAX_LISTED = 20
SHOWN = 12  # characters of a digest in messages


def check_experiments(
    spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]], fragments: Iterable[Fragment]
) -> None:
    """Refuse fragments of another experiment.

    Parameters
    ----------
    spec
        The spec, which may extend those of the fragments.
    tasks
        Facts about the data by task.
    fragments
        Fragments, which may lack a header.

    Raises
    ------
    StoreError
        If the spec or the data of a fragment differ, or a file is not a fragment.
    """
    for fragment in fragments:
        if fragment.header is None:
            continue
        experiment = fragment.header.experiment
        changed = changed_experiment(experiment, spec, tasks)
        for one, other in combinations(experiment.base_keys, 2):
            is_shared = experiment.base_keys[one] == experiment.base_keys[other]
            if not changed and is_shared and spec.method(one).base_key() != spec.method(other).base_key():
                changed.append(f"methods {one} and {other} no longer share their base arm, because of `by_task`")
        if changed:
            raise StoreError(
                f"fragment {fragment.path} is of another experiment than the spec. Changed:\n  "
                + "\n  ".join(changed)
                + "\nRestore the spec of the jobs. To extend an experiment, merge its fragments first, then change the "
                "spec and use another folder"
            )


def describe_job(spec: ExperimentSpec) -> dict[str, Any]:
    """Return the provenance of a job, with what all jobs of a run must have in common."""
    code = code_hashes(method.use for method in spec.methods)
    return {**describe_session(spec.folder), "code": code, "core": core_hash(), "versions": relevant_versions(code)}


def find_changes(sessions: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Compare the code and the versions of sessions with those of the first session that has them.

    Parameters
    ----------
    sessions
        Provenance of sessions, each with a name for messages. What a session does not have is not compared.

    Returns
    -------
    list of str
        The differences, each once.
    """
    first: dict[tuple[str, str], tuple[str, Any]] = {}
    changes: dict[str, None] = {}
    for name, session in sessions:
        for plugin, code in session.get("code", {}).items():
            origin, expected = first.setdefault(("plugin", plugin), (name, code))
            if change := describe_code_change(expected, code):
                changes[f"plugin {plugin}: {change} (in {name}, compared with {origin})"] = None
        if "core" in session:
            origin, expected = first.setdefault(("core", ""), (name, session["core"]))
            if session["core"] != expected:
                changes[f"peekbench: other source files in {name} than in {origin}"] = None
        for package, version in session.get("versions", {}).items():
            origin, expected = first.setdefault(("package", package), (name, version))
            if version != expected:
                changes[f"{package}: version {version} in {name}, {expected} in {origin}"] = None
    return list(changes)


def refuse_changed_files(sessions: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Refuse sessions whose methods used different files, such as the weights of a model.

    Raises
    ------
    StoreError
        If a file differs.
    """
    files: dict[tuple[str, str], tuple[str, str]] = {}
    for name, session in sessions:
        for method, facts in session.get("methods", {}).items():
            for file, digest in facts.get("sha256", {}).items():
                origin, expected = files.setdefault((method, file), (name, digest))
                if digest != expected:
                    raise StoreError(
                        f"files of method {method} differ: {file} has the SHA-256 {digest[:SHOWN]} in {name}, "
                        f"{expected[:SHOWN]} in {origin}; give all jobs the same files, for example with "
                        "`peekbench lock`, and remove the fragments that were made with others"
                    )


def describe_changes(changes: Sequence[str]) -> str:
    """Return the first changes, one in each line."""
    others = [f"and {len(changes) - MAX_LISTED} more"] if len(changes) > MAX_LISTED else []
    return "\n  ".join([*changes[:MAX_LISTED], *others])

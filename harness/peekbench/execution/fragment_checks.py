"""Compares the jobs whose fragments make up one run: their spec and data, code, versions and prefetched files."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from peekbench.errors import StoreError
from peekbench.execution.code import code_hashes, core_hash, describe_code_change
from peekbench.execution.provenance import describe_session
from peekbench.execution.versions import relevant_versions
from peekbench.spec.compatibility import Experiment, changed_experiment
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.fragments import Header

MAX_LISTED = 20
SHOWN = 12  # characters of a digest in messages


def describe_job(spec: ExperimentSpec) -> dict[str, Any]:
    """Return the provenance of a job, with what all jobs of a run must have in common."""
    code = code_hashes(method.use for method in spec.methods)
    return {**describe_session(spec.folder), "code": code, "core": core_hash(), "versions": relevant_versions(code)}


class JobComparison:
    """Compares jobs with a spec and with each other.

    Parameters
    ----------
    spec
        The spec, which may extend those of the jobs.
    tasks
        Facts about its data by task.
    """

    def __init__(self, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> None:
        self._spec = spec
        self._tasks = tasks
        self._last: Experiment | None = None
        self._first: dict[tuple[str, ...], tuple[str, Any]] = {}
        self._changes: dict[str, None] = {}

    @property
    def changes(self) -> list[str]:
        """Differences of code and versions, each once."""
        return list(self._changes)

    def add_fragment(self, path: Path, header: Header) -> None:
        """Compare the job of a fragment.

        Raises
        ------
        StoreError
            If it was about another experiment, or used other model files.
        """
        if header.experiment != self._last:
            self._refuse_other_experiment(path, header.experiment)
            self._last = header.experiment
        self.add_session(path.name, header.session)

    def add_session(self, name: str, session: Mapping[str, Any]) -> None:
        """Compare code, versions and model files with those of the first sessions. What a session lacks is left out.

        Parameters
        ----------
        name
            Name of the session for messages.
        session
            Provenance.

        Raises
        ------
        StoreError
            If a method has used other files.
        """
        self._refuse_changed_files(name, session)
        for plugin, code in session.get("code", {}).items():
            origin, expected = self._first.setdefault(("plugin", plugin), (name, code))
            if change := describe_code_change(expected, code):
                self._changes[f"plugin {plugin}: {change} (in {name}, compared with {origin})"] = None
        if "core" in session:
            origin, expected = self._first.setdefault(("core",), (name, session["core"]))
            if session["core"] != expected:
                self._changes[f"peekbench: other source files in {name} than in {origin}"] = None
        for package, version in session.get("versions", {}).items():
            origin, expected = self._first.setdefault(("package", package), (name, version))
            if version != expected:
                self._changes[f"{package}: version {version} in {name}, {expected} in {origin}"] = None

    def _refuse_other_experiment(self, path: Path, experiment: Experiment) -> None:
        changed = changed_experiment(experiment, self._spec, self._tasks)
        keys = experiment.base_keys
        for one, other in combinations(keys, 2):
            was_shared = not changed and keys[one] == keys[other]
            if was_shared and self._spec.method(one).base_key() != self._spec.method(other).base_key():
                changed.append(f"methods {one} and {other} no longer share their base arm, because of `by_task`")
        if changed:
            raise StoreError(
                f"fragment {path} is of another experiment than the spec. Changed:\n  "
                + "\n  ".join(changed)
                + "\nRestore the spec of the jobs. To extend an experiment, merge its fragments first, then change the "
                "spec and use another folder"
            )

    def _refuse_changed_files(self, name: str, session: Mapping[str, Any]) -> None:
        for method, facts in session.get("methods", {}).items():
            for file, digest in facts.get("sha256", {}).items():
                origin, expected = self._first.setdefault(("file", method, file), (name, digest))
                if digest != expected:
                    raise StoreError(
                        f"files of method {method} differ: {file} has the SHA-256 {digest[:SHOWN]} in {name}, "
                        f"{expected[:SHOWN]} in {origin}; give all jobs the same files, for example with "
                        "`peekbench lock`, and remove the fragments that were made with others"
                    )

    def describe_changes(self) -> str:
        """Return the first differences of code and versions, one in each line."""
        others = [f"and {len(self._changes) - MAX_LISTED} more"] if len(self._changes) > MAX_LISTED else []
        return "\n  ".join([*self.changes[:MAX_LISTED], *others])

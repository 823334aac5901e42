"""What results depend on besides the spec, as a machine or a session of a store has it, and how two states differ.

`find_differences` compares sessions and the machines of a run; `find_versions` groups the trials of a resumed
run by the code that made them.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from peekbench.formatting import list_names
from peekbench.plugins.names import SESSION, split_name
from peekbench.records.trials import Trial
from peekbench.spec.experiment import ExperimentSpec

Files: TypeAlias = Mapping[str, str]
"""Digests of files by name."""

SETTINGS = ("seed", "tasks", "methods", "design", "arms")
"""Keys of a spec that determine which trials a run has and which numbers they have."""
DIGITS = 32  # hexadecimal digits: 128 bits, as many as a UUID has
MAX_LISTED = 5  # files in a message


@dataclass(frozen=True, slots=True)
class Identity:
    """What results depend on besides the spec. What is not known is not compared.

    Examples
    --------
    >>> before, now = Identity(versions={"numpy": "2.4.5"}), Identity(versions={"numpy": "2.4.6", "scipy": "1.16"})
    >>> find_differences([before, now])
    ['numpy: 2.4.6 instead of 2.4.5']
    """

    code: Mapping[str, Files] = field(default_factory=dict)
    """Source files by plugin; those of the core by 'peekbench'."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of Python and of the distributions that the plugins need."""
    files: Mapping[str, str | Files] = field(default_factory=dict)
    """Prefetched files, such as weights, and the precision, by method; those of a task with options of its own by
    method and task."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of the data by task."""

    def values(self) -> Iterator[tuple[str, str | Files]]:
        """Yield each value with its name in messages."""
        for plugin, code in self.code.items():
            yield f"plugin {plugin}", code
        yield from self.versions.items()
        for user, files in self.files.items():
            yield f"method {user}", files
        for task, fingerprint in self.data.items():
            yield f"fingerprint of the data of task {task}", fingerprint


NOTHING_KNOWN = Identity()
"""Identity that differs from none."""


def files_of(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, str | Files]:
    """Return the digests of prefetched files, and the precision that `auto` means on this machine.

    Parameters
    ----------
    facts
        Facts of methods as `prefetch_method` returns them.
    """
    found: dict[str, str | Files] = {}
    for method, of_method in facts.items():
        for name, value in of_method.items():
            task, _, key = name.rpartition(": ")
            user = f"{method}, task {task}".removesuffix(", task ")
            if key == "sha256":
                found[user] = value
            elif key == "precision":
                found[f"{user}: precision"] = value
    return found


def find_differences(identities: Iterable[Identity]) -> list[str]:
    """Compare each identity with the first one that knows the same value, and return the changes in words."""
    first: dict[str, str | Files] = {}
    found = []
    for identity in identities:
        for name, value in identity.values():
            if value != first.setdefault(name, value):
                found.append(f"{name}: {describe_change(first[name], value)}")
    return found


def describe_change(before: str | Files, now: str | Files) -> str:
    """Return how two versions, or two sets of files, differ.

    Examples
    --------
    >>> describe_change({"method.py": "12", "helper.py": "34"}, {"method.py": "56", "more.py": "78"})
    'helper.py removed, method.py changed, more.py added'
    """
    if isinstance(before, str) or isinstance(now, str):
        return f"{now} instead of {before}"
    changes = []
    for name in sorted(before.keys() | now.keys()):
        if name not in now:
            changes.append(f"{name} removed")
        elif name not in before:
            changes.append(f"{name} added")
        elif before[name] != now[name]:
            changes.append(f"{name} changed")
    return list_names(changes, MAX_LISTED)


def describe_version_changes(sessions: Iterable[Mapping[str, Any]]) -> str:
    """Return the versions in which sessions differ from the first one that knows them; empty if there are none.

    Examples
    --------
    >>> describe_version_changes([{"versions": {"Python": "3.11.2"}}, {"versions": {"Python": "3.11.7"}}])
    'Python: 3.11.7 instead of 3.11.2'
    """
    found = find_differences(Identity(versions=session.get("versions", {})) for session in sessions)
    return "; ".join(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class CodeVersion:
    """One version of the code of a plugin, with the trials that it made."""

    code: Files
    trials: tuple[Trial, ...]


def find_versions(
    spec: ExperimentSpec, sessions: Sequence[Mapping[str, Any]], session_of: Mapping[Trial, int]
) -> dict[str, list[CodeVersion]]:
    """Return the versions of the code of each method plugin and grader of finished trials, oldest first, by plugin.

    Parameters
    ----------
    spec
        Spec of the run.
    sessions
        Sessions of the run, oldest first.
    session_of
        Position of the session that finished each trial.
    """
    plugins = {method.name: plugin_of(method.use) for method in spec.methods}
    graders = {task: plugin_of(grader) for task, grader in spec.graders.items()}
    found: defaultdict[str, dict[frozenset[tuple[str, str]], list[Trial]]] = defaultdict(dict)
    for trial, position in sorted(session_of.items(), key=lambda item: (item[1], item[0].method)):
        code = sessions[position].get("code", {})
        for plugin in {plugins.get(trial.method, ""), graders.get(trial.draw.task, "")} & code.keys():
            found[plugin].setdefault(frozenset(code[plugin].items()), []).append(trial)
    return {
        plugin: [CodeVersion(dict(code), tuple(trials)) for code, trials in versions.items()]
        for plugin, versions in found.items()
    }


def plugin_of(use: str) -> str:
    """Return the plugin whose code a method uses. Each function of a session is a plugin of its own."""
    if use.startswith(f"{SESSION}:"):
        return use
    return split_name(use)[0]


def run_identifier(
    spec: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]], sessions: Iterable[Mapping[str, Any]]
) -> str:
    """Return the identifier of an experiment.

    It does not depend on the name of the run, its executor, its analyses, its report, or the machine. Pinned
    versions count by what they select: the data of each task and the files of each method.

    Examples
    --------
    >>> spec = {"name": "small", "seed": 1, "tasks": [], "methods": [], "design": {}, "arms": []}
    >>> run_identifier(spec, {"news": {"fingerprint": "ab12"}}, sessions=[])
    '7e9bdca60ee7d626098a521e29b67fa0'
    """
    files: dict[str, str | Files] = {}
    for session in sessions:  # which cannot differ in files, except that later ones have more tasks
        files |= files_of(session.get("methods", {}))
    content = {
        "spec": {key: spec.get(key) for key in SETTINGS},
        "data": {name: facts["fingerprint"] for name, facts in tasks.items()},
        "files": files,
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:DIGITS]

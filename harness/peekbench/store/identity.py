"""The identifier of a run: a hash of what its numbers depend on, equal on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

SETTINGS = ("seed", "tasks", "methods", "design", "arms")
"""Keys of a spec that determine which trials a run has and which numbers they have."""
DIGITS = 32  # hexadecimal digits: 128 bits, as many as a UUID has


def run_identifier(
    spec: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]], sessions: Iterable[Mapping[str, Any]]
) -> str:
    """Return the identifier of an experiment.

    It does not depend on the name of the run, its executor, its analyses, its report, or the machine. Versions that a
    lock file pins count by what they select: the data of each task and the files of each method.

    Parameters
    ----------
    spec
        Canonical form of the spec.
    tasks
        Facts about the data by task, with their `fingerprint`.
    sessions
        Provenance of the sessions; `methods` has the digests of each method's files, such as the weights of a model.

    Returns
    -------
    str
        The first 32 hexadecimal digits of a SHA-256 hash.

    Examples
    --------
    >>> spec = {"name": "small", "seed": 1, "tasks": [], "methods": [], "design": {}, "arms": []}
    >>> run_identifier(spec, {"news": {"fingerprint": "ab12"}}, sessions=[])
    '7e9bdca60ee7d626098a521e29b67fa0'
    """
    content = {
        "spec": {key: spec.get(key) for key in SETTINGS},
        "data": {name: facts["fingerprint"] for name, facts in tasks.items()},
        "files": _digests(sessions),
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:DIGITS]


def _digests(sessions: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return the digests of files by method. Sessions cannot differ in them, except that later ones have more tasks."""
    digests: dict[str, dict[str, str]] = {}
    for session in sessions:
        for method, facts in session.get("methods", {}).items():
            if files := facts.get("sha256"):
                digests.setdefault(method, {}).update(files)
    return digests

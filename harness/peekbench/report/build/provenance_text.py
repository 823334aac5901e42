"""Describes in words what the numbers of a run depend on: versions, commit, machine, command, sessions."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from peekbench.formatting import pluralize
from peekbench.report.build.run_tables import options_in_words

if TYPE_CHECKING:
    from peekbench.spec.experiment import ExperimentSpec

# Packages whose versions readers look for first; the JSON report lists all packages.
MAIN_PACKAGES = (
    "numpy", "scipy", "pandas", "scikit-learn", "gensim", "torch", "transformers", "datasets", "pymc", "bambi",
)  # fmt: skip
MAX_SESSIONS = 3
"""Sessions whose start is shown; the JSON report has all."""
MAX_MACHINES = 10
"""Machines that are named; the JSON report has all."""


def describe_provenance(
    spec: ExperimentSpec,
    sessions: Sequence[Mapping[str, Any]],
    sizes: Sequence[int],
    hosts: Sequence[Mapping[str, Any]] = (),
) -> dict[str, str]:
    """Describe the last session, and warn if earlier ones differ from it.

    Parameters
    ----------
    spec
        Spec of the run.
    sessions
        Sessions of the run, oldest first.
    sizes
        Number of trials that each session finished.
    hosts
        Machines of all sessions, as `Store.hosts` returns them.

    Returns
    -------
    dict[str, str]
        Label to text, in the order in which reports show them; empty if there is no session.
    """
    if not sessions:
        return {}
    last = sessions[-1]
    packages, machine = last["packages"], last["machine"]
    versions = [f"{name} {packages[name]}" for name in MAIN_PACKAGES if name in packages]
    lines = {
        "spec": f"{spec.name}, seed {spec.seed}; report.json has the full spec",
        "peekbench": f"{last['peekbench']}, Python {last['python']}",
        "packages": ", ".join(versions),
        "commit": last["commit"] or "unknown",
        "machine": f"{machine['processor']}, {machine['cores']} cores, {machine['memory'] / 2**30:.0f} GiB, "
        f"{machine['system']}",
        **{f"used by {name}": options_in_words(facts) for name, facts in last.get("methods", {}).items() if facts},
        **_machines_in_words(hosts),
        "command": shlex.join(session_command(last)),
        "sessions": _sessions_in_words(sessions, sizes),
    }
    differing = [
        key
        for key in ("peekbench", "python", "packages", "machine")
        if any(session[key] != last[key] for session in sessions)
    ]
    if differing:
        lines["warning"] = f"sessions differ in {', '.join(differing)}; report.json describes each session"
    return lines


def session_command(session: Mapping[str, Any]) -> list[str]:
    """Return the command of a session as a user types it: Python records `python -m peekbench` as a file name."""
    program, *arguments = session["command"]
    return [*(["python", "-m", "peekbench"] if program == "__main__.py" else [program]), *arguments]


def _machines_in_words(hosts: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Describe the machines with their numbers of trials, if there are several."""
    trials: Counter[str] = Counter()
    machines = {}
    for host in hosts:
        trials[host["name"]] += host["trials"]
        machines[host["name"]] = host["machine"]
    names = [name for name, size in trials.most_common() if size]
    if len(names) < 2:
        return {}
    words = [
        f"{name} ({pluralize(trials[name], 'trial')}; {machines[name]['processor']}, {machines[name]['cores']} cores)"
        for name in names[:MAX_MACHINES]
    ]
    others = len(names) - MAX_MACHINES
    return {"machines": ", ".join([*words, *([f"and {others:,} others"] if others > 0 else [])])}


def _sessions_in_words(sessions: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> str:
    started = [
        f"{session['started']} ({pluralize(size, 'trial')})" for session, size in zip(sessions, sizes, strict=True)
    ]
    shown = ", ".join(started[-MAX_SESSIONS:])
    if len(sessions) > MAX_SESSIONS:
        return f"{len(sessions):,}; the last {MAX_SESSIONS} started {shown}"
    return f"{len(sessions)}, started {shown}"

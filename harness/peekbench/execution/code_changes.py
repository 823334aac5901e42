"""Compares the code of plugins with the code that made the trials of a store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse
from pathlib import Path
from typing import Any

from peekbench.errors import StoreError
from peekbench.execution.code import PluginCode, describe_code_change
from peekbench.execution.planning import make_trials
from peekbench.execution.preparation import StoredRun
from peekbench.formatting import pluralize
from peekbench.plugins.entry_names import split_name
from peekbench.records.trials import Trial
from peekbench.spec.experiment import ExperimentSpec


@dataclass(frozen=True, slots=True)
class CodeVersion:
    """One version of the code of a plugin, with the trials that it made."""

    code: PluginCode
    started: str
    """Start of the first session with this version, in ISO format."""
    trials: tuple[Trial, ...]


def find_versions(
    spec: ExperimentSpec, sessions: Sequence[Mapping[str, Any]], session_of: Mapping[Trial, int]
) -> dict[str, list[CodeVersion]]:
    """Return the versions of the code of each method plugin that made finished trials, oldest first.

    Parameters
    ----------
    spec
        Spec of the run.
    sessions
        Sessions of the run, oldest first.
    session_of
        Position of the session that finished each trial.

    Returns
    -------
    dict
        Versions by name of the plugin.
    """
    plugin_of = _plugins_of_methods(spec)
    found: dict[str, dict[str, tuple[PluginCode, str, list[Trial]]]] = {}
    trials_of: defaultdict[tuple[int, str], list[Trial]] = defaultdict(list)
    for trial, position in session_of.items():
        trials_of[position, trial.method].append(trial)
    for (position, method), trials in sorted(trials_of.items(), key=lambda item: item[0][0]):
        session = sessions[position]
        plugin = plugin_of.get(method, "")
        code: PluginCode | None = session.get("code", {}).get(plugin)
        if code is not None:
            version = found.setdefault(plugin, {}).setdefault(code["sha256"], (code, session["started"], []))
            version[2].extend(trials)
    return {
        plugin: [CodeVersion(code, started, tuple(trials)) for code, started, trials in versions.values()]
        for plugin, versions in found.items()
    }


def find_changed_code(
    stored: StoredRun,
    spec: ExperimentSpec,
    trials: Sequence[Trial],
    code: Mapping[str, PluginCode],
    *,
    is_allowed: bool,
) -> tuple[str, ...]:
    """Compare the code of plugins with the code that made their stored trials.

    Parameters
    ----------
    stored
        The stored part of the run.
    spec
        Spec of the run.
    trials
        Planned trials.
    code
        Present code of the spec's method plugins, as `code_hashes` returns it.
    is_allowed
        Whether trials may be run by code that made none of the stored trials of the same plugin.

    Returns
    -------
    tuple of str
        Plugins that have stored trials of other code.

    Raises
    ------
    StoreError
        If trials would be run by new code and this is not allowed. It names the plugins, the changed files and the
        remedies.
    """
    changed = {
        plugin: versions
        for plugin, versions in find_versions(spec, stored.sessions, stored.session_of).items()
        if any(version.code["sha256"] != code[plugin]["sha256"] for version in versions)
    }
    if not is_allowed:
        pending = _methods_to_run(spec, trials, stored)
        plugins = {plugin for method, plugin in _plugins_of_methods(spec).items() if method in pending}
        _refuse_new_code(stored.path, {plugin: changed[plugin] for plugin in changed if plugin in plugins}, code)
    return tuple(changed)


def _methods_to_run(spec: ExperimentSpec, trials: Sequence[Trial], stored: StoredRun) -> set[str]:
    """Return the methods with trials to run; none if the run stopped at a planned look and has all trials up to it."""
    sizes = spec.design.look_sizes_of_largest()
    if stored.stopped_at in sizes:
        at_stop = spec.at_look(sizes.index(stored.stopped_at) + 1)
        if all(trial in stored.session_of for trial in make_trials(at_stop)):
            return set()
    return {trial.method for trial in filterfalse(stored.session_of.__contains__, trials)}


def _refuse_new_code(path: Path, changed: Mapping[str, Sequence[CodeVersion]], code: Mapping[str, PluginCode]) -> None:
    """Raise an error if code has changed to a version that made none of the stored trials."""
    changes = [
        f"plugin {plugin}, {pluralize(sum(len(version.trials) for version in versions), 'trial')}: "
        f"{describe_code_change(versions[-1].code, code[plugin])}"
        for plugin, versions in changed.items()
        if all(version.code["sha256"] != code[plugin]["sha256"] for version in versions)
    ]
    if changes:
        raise StoreError(
            f"store {path}: code of its methods has changed since their trials were stored:\n  "
            + "\n  ".join(changes)
            + "\nMore trials would mix results of old and new code. To measure the new code alone, run the spec under "
            "another name or move the store; otherwise restore the old code, or resume the run with "
            "--allow-changed-code (in Python, allow_changed_code=True), so that the report separates old and new trials"
        )


def _plugins_of_methods(spec: ExperimentSpec) -> dict[str, str]:
    return {method.name: split_name(method.use)[0] for method in spec.methods}

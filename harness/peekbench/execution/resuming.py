"""What a run that is resumed has already: its finished trials, which are not repeated, and what they depend on.

A spec or code that would mix two experiments in one store is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from peekbench.errors import StoredTrialsError, StoreError
from peekbench.execution.hosts import prefetch_methods
from peekbench.formatting import pluralize
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.names import SESSION
from peekbench.records.trials import Trial
from peekbench.spec.compatibility import Experiment, refuse_changes
from peekbench.spec.components import PinnableSpec
from peekbench.spec.design import Design
from peekbench.spec.experiment import ExperimentSpec, canonical
from peekbench.store.differences import (
    CodeVersion,
    Files,
    Identity,
    describe_change,
    files_of,
    find_differences,
    find_versions,
    plugin_of,
)
from peekbench.store.reader import Store


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The stored part of a run, which is compared with a spec before the store is opened to fill it.

    A spec that is refused, or whose run cannot be prepared, therefore leaves the store as it is.
    """

    path: Path
    sessions: tuple[Mapping[str, Any], ...] = ()
    """Provenance of the sessions, oldest first."""
    session_of: Mapping[Trial, int] = field(default_factory=dict)
    """Finished trials, with the positions of their sessions."""
    experiment: Experiment | None = None
    """What the numbers of the finished trials depend on; None without a store that can be used."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """The spec as it was last run, as JSON values."""
    pins: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    """Its options with pinned versions, by group and name of the component."""
    stopped_at: int | None = None
    """Subsamples of the planned look at which the run stopped; None if it did not."""
    first_maximum: int = 0
    """Largest number of subsamples that the design had at the first look; 0 before any look."""

    def pin(self, spec: ExperimentSpec) -> ExperimentSpec:
        """Return a spec with the versions of data and models that the run has used from its start.

        Those of components that are new or have other options are the present ones.

        Raises
        ------
        PeekbenchError
            If a present version cannot be found.
        """
        written = canonical(spec)
        pinned = {}
        for component in spec.pinnable():
            place = (component.group, component.name)
            if place in self.pins and _find(self.spec, *place) == _find(written, *place):
                pinned[place] = self.pins[place]
            elif pins := _find_version(component, spec):
                pinned[place] = pins
        return spec.with_pinned(pinned, f"the versions for {self.path}")

    def sessions_with_trials(self) -> list[Mapping[str, Any]]:
        """Return the sessions that finished trials, oldest first."""
        positions = set(self.session_of.values())
        return [session for position, session in enumerate(self.sessions) if position in positions]

    def pending(self, spec: ExperimentSpec, trials: Sequence[Trial]) -> list[Trial]:
        """Return the planned trials to run; none if the run stopped at a planned look and has all trials up to it."""
        number = spec.design.look_number(self.stopped_at)
        if number and all(trial in self.session_of for trial in spec.at_look(number).trials()):
            return []
        return [trial for trial in trials if trial not in self.session_of]

    def keep_looks(self, spec: ExperimentSpec) -> ExperimentSpec:
        """Return a spec that plans the looks of the stored run, if one of the two has another number of subsamples.

        The levels of looks depend on the first maximum. A run that is extended looks once more, at its new end. The
        same spec can then resume it.

        Raises
        ------
        StoredTrialsError
            If the spec plans other looks up to the first maximum.
        """
        if self.experiment is None or spec.design.stop is None or not self.first_maximum:
            return spec
        old, new = Design.model_validate(self.experiment.spec["design"]), spec.design
        stored = old.stop and old.stop.looks
        planned, first = old.split_by_looks(old.largest), self.first_maximum
        if old.largest != new.largest:
            looks = tuple(size for size in planned if size < new.largest) or (new.largest,)
        elif isinstance(stored, tuple) and isinstance(spec.design.stop.looks, int):
            looks = stored
        else:
            return spec
        if stored and spec.design.stop.sizes(first, first) != tuple(size for size in planned if size <= first):
            raise StoredTrialsError(
                f"store {self.path}: design.stop.looks has changed, but a run that is extended keeps the looks that it "
                f"has planned; set it to {json.dumps(stored)}, choose another name for the run"
            )
        stop = spec.design.stop.model_copy(update={"looks": looks})
        return spec.model_copy(update={"design": new.model_copy(update={"stop": stop})})

    def refuse_changes(self, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse a spec that is of another experiment than the stored trials; see `compatibility.refuse_changes`."""
        if self.experiment is not None:
            refuse_changes(self.path, self.experiment, spec, tasks)

    def changed_code(
        self, spec: ExperimentSpec, trials: Sequence[Trial], code: Mapping[str, Files], *, is_allowed: bool
    ) -> tuple[str, ...]:
        """Compare the code of plugins with the code that made their stored trials.

        Parameters
        ----------
        spec
            Spec of the run.
        trials
            Planned trials.
        code
            Present code of the spec's method plugins, as `describe_code` returns it.
        is_allowed
            Whether trials may be run by code that made none of the stored trials of the same plugin.

        Returns
        -------
        tuple of str
            Plugins that have stored trials of other code.

        Raises
        ------
        StoreError
            If trials would be run by new code and this is not allowed.
        """
        versions = find_versions(spec, self.sessions, self.session_of)
        if held := [name.partition(":")[2] for name in versions if name.startswith(f"{SESSION}:")]:
            raise StoredTrialsError(
                f"store {self.path}: its trials are of {', '.join(held)} in a session, whose code cannot be compared, "
                "so the run cannot be resumed. A run of a function or estimator in a file can be resumed: give its "
                "name, as in `my_file.py:fit`. Otherwise, choose another name for the run"
            )
        changed = [name for name in versions if any(version.code != code[name] for version in versions[name])]
        if not is_allowed:
            pending = self.pending(spec, trials)
            methods, tasks = {trial.method for trial in pending}, {trial.draw.task for trial in pending}
            needed = {plugin_of(method.use) for method in spec.methods if method.name in methods}
            needed |= {plugin_of(grader) for task, grader in spec.graders.items() if task in tasks}
            new = {
                name: versions[name]
                for name in changed
                if name in needed and all(version.code != code[name] for version in versions[name])
            }
            if new:
                raise self._new_code_error(new, code)
        return tuple(changed)

    def _new_code_error(self, changed: Mapping[str, Sequence[CodeVersion]], code: Mapping[str, Files]) -> StoreError:
        lines = [f"store {self.path}: code of its methods or graders has changed since their trials were stored:"]
        for plugin, versions in changed.items():
            num_trials = sum(len(version.trials) for version in versions)
            change = describe_change(versions[-1].code, code[plugin])
            lines.append(f"  plugin {plugin}, {pluralize(num_trials, 'trial')}: {change}")
        remedy = (
            "More trials would mix results of old and new code. Restore the old code, or resume the run with "
            "--allow-changed-code (in Python, allow_changed_code=True); the report then warns that versions are mixed. "
            "To measure the new code alone, choose another name for the run"
        )
        return StoredTrialsError("\n".join([*lines, remedy]))

    def prefetch_methods(self, spec: ExperimentSpec, note: Callable[[str], None]) -> dict[str, dict[str, Any]]:
        """Prefetch for the methods, and compare their files, such as weights, with those of stored trials.

        Parameters
        ----------
        spec
            The spec.
        note
            Receives a text about each method before it is prepared.

        Returns
        -------
        dict
            Facts by method.

        Raises
        ------
        StoreError
            If files have changed.
        """
        facts = prefetch_methods(spec, note)
        used = []
        for position, method in sorted({(position, trial.method) for trial, position in self.session_of.items()}):
            known = self.sessions[position].get("methods", {})
            used.append(Identity(files=files_of({method: known.get(method, {})})))
        if changes := find_differences([*used, Identity(files=files_of(facts))]):
            raise StoredTrialsError(
                f"store {self.path}: files of its methods have changed:\n  "
                + "\n  ".join(dict.fromkeys(changes))
                + "\nRestore the files, run the spec under another name"
            )
        return facts

    @classmethod
    def read(cls, path: Path) -> StoredRun:
        """Read a store. A run is empty without a store, or if it cannot be used, which opening it for the run reports.

        Parameters
        ----------
        path
            Store of the run, which need not exist.
        """
        try:
            with Store.open(path) as store:
                return cls(
                    path,
                    tuple(store.sessions()),
                    store.sessions_of_trials(),
                    replace(store.experiment(), finished=store.finished_subsamples()),
                    store.spec(),
                    store.pins(),
                    store.stopped_at(),
                    int(next(iter(store.looks()), {"maximum": 0})["maximum"]),
                )
        except StoreError:
            return cls(path)


def _find(spec: Mapping[str, Any], group: str, name: str) -> tuple[Any, ...] | None:
    """Return the entry that a component of a spec uses, with its options; None if the spec does not have it."""
    for component in spec.get(group, ()):
        if component["name"] == name:
            return component["use"], component["options"]
    return None


def _find_version(component: PinnableSpec, spec: ExperimentSpec) -> dict[str, Any]:
    """Ask the plugin of a component for the options that pin its present version."""
    pin = component.entry.preparation.pin
    if pin is None:
        return {}
    caller = Foreign(f"{component.use}: `pin`", component.use, component.options)
    return dict(caller.call(pin, returns=Mapping, options=component.options, folders=spec.folders()))

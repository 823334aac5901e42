"""Checks what an executor yields: each trial once, none that was not planned, and only from prepared machines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from peekbench.errors import ContractError
from peekbench.formatting import shorten
from peekbench.plugins.work_protocols import Outcome
from peekbench.records.trials import Draw, Trial, TrialFailure, TrialResult
from peekbench.spec.experiment import ExperimentSpec

MAX_SHOWN = 200  # characters of a wrong value in messages


class Accounts:
    """Accounts for the trials that an executor was given.

    Parameters
    ----------
    spec
        The spec, whose executor messages name.
    stored_bases
        (draw, base key) of the base arms that the store already has.
    host
        Name of the main process's machine, on which work needs no preparation.
    """

    def __init__(self, spec: ExperimentSpec, stored_bases: Collection[tuple[Draw, str]], host: str) -> None:
        self._executor = spec.executor.use
        self._arms = [arm.name for arm in spec.arms]
        self.base_keys: Mapping[str, str] = {method.name: method.base_key() for method in spec.methods}
        self.bases = set(stored_bases)
        """(draw, base key) of the base arms that the store or an outcome has."""
        self._hosts = {"", host}
        self._open: set[Trial] = set()
        self._closed: set[Trial] = set()

    def expect(self, trials: Iterable[Trial]) -> None:
        """Expect one outcome of each of these trials."""
        self._open.update(trials)
        self._closed.difference_update(self._open)

    def add_host(self, name: str) -> None:
        """Accept outcomes of a machine, which was prepared."""
        self._hosts.add(name)

    def receive(self, outcome: Any) -> Outcome | None:
        """Check an outcome. Return None if the trial has one already.

        Raises
        ------
        ContractError
            If it is no outcome, or that of a trial that the executor was not given, or from a machine that was not
            prepared, or lacks arms, or has a base arm that another outcome has.
        """
        if not isinstance(outcome, TrialResult | TrialFailure):
            raise ContractError(
                f"the executor {self._executor} yielded {shorten(repr(outcome), MAX_SHOWN)} in a batch; yield the "
                "outcomes of the work unchanged"
            )
        trial = outcome.trial
        if trial in self._closed:
            return None
        if trial not in self._open:
            raise ContractError(
                f"the executor {self._executor} yielded the outcome of a trial that it was not given: {trial}"
            )
        if outcome.host not in self._hosts:
            raise ContractError(
                f"the executor {self._executor} yielded an outcome from {outcome.host} without its `Host`; call "
                "`work.prepare()` on each machine, and yield its return value before the first outcome of this machine"
            )
        if isinstance(outcome, TrialResult):
            self._check_arms(outcome)
        self._open.remove(trial)
        self._closed.add(trial)
        return outcome

    def _check_arms(self, outcome: TrialResult) -> None:
        base = (outcome.trial.draw, self.base_keys[outcome.trial.method])
        found = [arm.arm for arm in outcome.arms]
        needed = [arm for arm in self._arms if arm != "base" or base not in self.bases]
        if found != needed:
            raise ContractError(
                f"the executor {self._executor} yielded an outcome with the arms {found} instead of {needed}: "
                f"{outcome.trial}; if some trials of a work item are done again, `has_base` tells whether an outcome "
                "with the base arm was yielded"
            )
        if "base" in found:
            self.bases.add(base)

    def find_missing(self, stopped: Collection[str]) -> Sequence[Trial]:
        """Return the trials without an outcome, except those of stopped methods."""
        return [trial for trial in self._open if trial.method not in stopped]

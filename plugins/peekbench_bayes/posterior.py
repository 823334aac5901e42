"""The result of an engine: draws of the quantities of interest, and diagnostics of the fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from peekbench.records import FloatArray


@dataclass(frozen=True, slots=True)
class Check:
    """One diagnostic of one fit."""

    name: str
    value: float
    limit: str
    """Requirement in words, such as 'below 1.01'."""
    passed: bool
    remedy: str
    """Advice if the check fails."""


@dataclass(frozen=True, slots=True)
class Posterior:
    """Posterior draws of one fit; arrays have the shape (n_chains, n_draws, ...).

    Effects are treatment - control, in units of the score.
    """

    engine: str
    """Name of the engine in reports."""
    average: FloatArray
    """Mean effect over these models and tasks: (n_chains, n_draws)."""
    by_model: FloatArray
    """Mean effect of each model: (n_chains, n_draws, n_models)."""
    by_task: FloatArray
    """Shrunk effect of each task, averaged over models: (n_chains, n_draws, n_tasks)."""
    log_odds: FloatArray | None
    """Effect in log-odds: (n_chains, n_draws); None if scores are not accuracies."""
    other_tasks: FloatArray | None
    """Mean effect over the population of tasks that these tasks are a sample of: (n_chains, n_draws); None if the model
    does not estimate it."""
    spreads: Mapping[str, FloatArray]
    """Standard deviations by name, in units of the score or, for binomial models, in log-odds."""
    checks: tuple[Check, ...]
    """Diagnostics of the fit."""
    parameters: Mapping[str, FloatArray] = field(default_factory=dict)
    """Other draws to save with the posterior, by name."""

    @property
    def failed(self) -> tuple[Check, ...]:
        """Checks that failed."""
        return tuple(check for check in self.checks if not check.passed)

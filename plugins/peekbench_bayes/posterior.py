"""What an engine gives: draws of the quantities of interest, and checks of whether to trust them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peekbench.records import FloatArray


@dataclass(frozen=True, slots=True)
class Check:
    """One diagnostic of one fit."""

    name: str
    value: float
    limit: str
    """In words: 'below 1.01'."""
    passed: bool
    remedy: str
    """What to do where it fails."""


@dataclass(frozen=True, slots=True)
class Posterior:
    """Draws; arrays of shape (n_chains, n_draws, ...). Effects are treatment - control, in units of the score."""

    engine: str
    """As a report names it."""
    average: FloatArray
    """Mean effect over these models and tasks: (n_chains, n_draws)."""
    by_model: FloatArray
    """(n_chains, n_draws, n_models)"""
    by_task: FloatArray
    """Averaged over models, shrunk: (n_chains, n_draws, n_tasks)."""
    log_odds: FloatArray | None
    """The effect in log-odds; None where scores are no accuracies."""
    such_tasks: FloatArray | None
    """Mean effect over tasks of which these are a sample; None where the model does not say."""
    spreads: Mapping[str, FloatArray]
    """Standard deviations by name, in units of the score or, of binomial models, in log-odds."""
    checks: tuple[Check, ...]
    parameters: Mapping[str, FloatArray] = field(default_factory=dict)
    """Further draws worth keeping."""

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)

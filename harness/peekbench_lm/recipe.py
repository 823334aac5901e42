"""Hyperparameters of a training loop. This module imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

from peekbench_lm.types import Optimizer, Schedule


@dataclass(frozen=True, slots=True)
class Recipe:
    """Hyperparameters of a training loop."""

    epochs: int
    """Passes over the texts."""
    batch_size: int
    """Texts per optimizer step."""
    learning_rate: float
    """Peak learning rate."""
    schedule: Schedule
    """Learning rate over the steps: linear decay to zero, or constant."""
    weight_decay: float
    """Weight decay of weight matrices. Biases and normalization weights have none."""
    max_gradient_norm: float
    """Gradients with a larger norm are scaled down to this norm; 0 for no limit."""
    warmup: float = 0.0
    """Fraction of the steps during which the learning rate rises from zero."""
    optimizer: Optimizer = "adamw"

    def rate(self, progress: float) -> float:
        """Return the learning rate after a fraction of the steps.

        Parameters
        ----------
        progress
            Completed fraction of the steps, from 0 to 1.

        Examples
        --------
        >>> recipe = Recipe(1, 16, 2.0, "linear", 0.0, 0.0, warmup=0.25)
        >>> [recipe.rate(progress) for progress in (0, 0.125, 0.5, 1)]
        [0.0, 1.0, 1.0, 0.0]
        """
        share = 1 - progress if self.schedule == "linear" else 1.0
        return self.learning_rate * min(share, progress / self.warmup if self.warmup else 1.0)

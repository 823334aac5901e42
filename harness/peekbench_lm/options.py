"""Options that several methods on language models have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from peekbench import Options
from peekbench_lm.names import Optimizer, Schedule

if TYPE_CHECKING:
    from peekbench_lm.training import Recipe


class Lora(Options):
    """Train low-rank adapters of every linear layer instead of all weights (Hu et al. 2021, arXiv 2106.09685)."""

    rank: int = Field(default=16, ge=1)
    """Rank of an adapter."""
    alpha: int = Field(default=32, ge=1)
    """An adapter's output is scaled by alpha/rank."""
    dropout: float = Field(default=0.05, ge=0, lt=1)
    """Dropout before an adapter."""


class RecipeOptions(Options):
    """How weights are trained; methods have defaults of their own."""

    epochs: int | None = Field(default=None, ge=1)
    """Passes over the texts; None where it depends on the model."""
    batch_size: int = Field(default=16, ge=1)
    """Texts an optimizer step."""
    learning_rate: float = Field(default=1e-4, gt=0)
    """At the start."""
    schedule: Schedule = "linear"
    """Of the learning rate: linear to zero, or constant."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Of weight matrices."""
    max_gradient_norm: float = Field(default=1.0, ge=0)
    """Larger gradients are scaled down to it; 0 for no limit."""

    def make_recipe(self, epochs: int, optimizer: Optimizer = "adamw") -> Recipe:
        """For the training loop."""
        from peekbench_lm.training import Recipe

        return Recipe(
            epochs=epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            weight_decay=self.weight_decay,
            max_gradient_norm=self.max_gradient_norm,
            optimizer=optimizer,
        )

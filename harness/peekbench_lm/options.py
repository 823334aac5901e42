"""Options that several language-model methods share."""

from __future__ import annotations

from pydantic import Field

from peekbench import Options
from peekbench_lm.recipe import Recipe
from peekbench_lm.types import Optimizer, Schedule


class Lora(Options):
    """Low-rank adapters of every linear layer, trained instead of all weights (Hu et al. 2021, arXiv 2106.09685)."""

    rank: int = Field(default=16, ge=1)
    """Rank of each adapter."""
    alpha: int = Field(default=32, ge=1)
    """The output of each adapter is scaled by alpha / rank."""
    dropout: float = Field(default=0.05, ge=0, lt=1)
    """Dropout probability at the input of each adapter."""


class RecipeOptions(Options):
    """Hyperparameters of a training stage. Each method has its own defaults."""

    epochs: int | None = Field(default=None, ge=1)
    """Passes over the texts; null for the default of the model."""
    batch_size: int = Field(default=16, ge=1)
    """Texts per optimizer step."""
    learning_rate: float = Field(default=1e-4, gt=0)
    """Initial learning rate."""
    schedule: Schedule = "linear"
    """Learning rate over the steps: linear decay to zero, or constant."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Weight decay of weight matrices."""
    max_gradient_norm: float = Field(default=1.0, ge=0)
    """Gradients with a larger norm are scaled down to this norm; 0 for no limit."""

    def make_recipe(self, epochs: int, optimizer: Optimizer = "adamw") -> Recipe:
        """Return the hyperparameters for the training loop.

        Parameters
        ----------
        epochs
            Passes over the texts.
        optimizer
            Optimizer of the stage.
        """
        return Recipe(
            epochs=epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            weight_decay=self.weight_decay,
            max_gradient_norm=self.max_gradient_norm,
            optimizer=optimizer,
        )

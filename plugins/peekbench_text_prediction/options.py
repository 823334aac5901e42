"""Options of the methods."""

from __future__ import annotations

from pydantic import Field

from peekbench import Options
from peekbench_lm.options import RecipeOptions, Requirement, TrainedModelOptions


class Ngram(Options):
    """Options of `lm.ngram`."""

    order: int = Field(default=5, ge=0, le=6)
    """Number of preceding bytes that the probability of a byte depends on."""


class Training(RecipeOptions):
    """Training of the model."""

    epochs: int = Field(default=1, ge=1)
    """Passes over the texts."""


class Adaptation(Options):
    """Training on the unlabeled texts one after the other."""

    batch_size: int = Field(default=8, ge=1)
    """Texts per optimizer step. A text is predicted by the model before the step that its place falls into."""
    learning_rate: float = Field(default=1e-4, gt=0)
    """Learning rate of all steps."""
    decay: float = Field(default=0.0, ge=0, lt=1)
    """Share of the distance to the weights after training on train by which the weights move back after each step."""
    max_gradient_norm: float = Field(default=1.0, ge=0)
    """Gradients with a larger norm are scaled down to this norm; 0 for no limit."""


class Pretraining(TrainedModelOptions):
    """Options of `lm.pretraining`."""

    model: str = Field(min_length=1)
    """Id of a causal model on the Hub, a folder or GGUF file (`./` in front; relative to the spec), builtin:gemma-270m
    or builtin:gpt2-nano."""
    context_length: int = Field(default=256, ge=8)
    """Number of tokens that the model reads at once; less if it supports fewer. Longer texts are split, not cut."""
    pretraining: Training = Training()
    """Training on the train and unlabeled texts."""

    @property
    def requirement(self) -> Requirement:
        """What the method requires of the model."""
        return "text probabilities"


class DynamicEvaluation(Pretraining):
    """Options of `lm.dynamic_evaluation`."""

    pretraining: Training = Training()
    """Training on the train texts."""
    adaptation: Adaptation = Adaptation()
    """Training on the unlabeled texts, each after it would have been predicted."""

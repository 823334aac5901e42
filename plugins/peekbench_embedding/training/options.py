"""Options of the methods that train an encoder. This module imports nothing heavy."""

from __future__ import annotations

from pydantic import Field

from peekbench_embedding.options import Linear
from peekbench_lm.options import Precision, RecipeOptions, Schedule


class EncoderTraining(RecipeOptions):
    """Training of an encoder."""

    epochs: int = Field(default=1, ge=1)
    """Passes over the examples."""
    learning_rate: float = Field(default=3e-5, gt=0)
    """Initial learning rate."""
    context_length: int = Field(default=64, ge=8)
    """Maximum number of tokens of each text in training. Predictions read as many as the encoder."""
    precision: Precision = "bf16"
    """Precision of matrix products in training. Weights and predictions are always fp32."""


class SimcseTraining(EncoderTraining):
    """Training of `embedding.simcse`. The defaults are those of the paper for BERT."""

    epochs: int = Field(default=1, ge=1)
    """Passes over the unlabeled texts."""
    batch_size: int = Field(default=64, ge=2)
    """Texts per optimizer step. Each of them is a negative example for the others."""
    context_length: int = Field(default=32, ge=8)
    """Maximum number of tokens of each text in training. Predictions read as many as the encoder."""
    temperature: float = Field(default=0.05, gt=0)
    """Temperature of the softmax over the cosine similarities of a batch."""


class TsdaeTraining(EncoderTraining):
    """Training of `embedding.tsdae`. The defaults are those of the paper, except a larger batch."""

    epochs: int = Field(default=1, ge=1)
    """Passes over the unlabeled texts."""
    batch_size: int = Field(default=16, ge=1)
    """Texts per optimizer step."""
    schedule: Schedule = "constant"
    """Learning rate over the steps: linear decay to zero, or constant."""
    deletion_probability: float = Field(default=0.6, ge=0, lt=1)
    """Probability that a word is deleted from the input of the encoder."""


class SetfitTraining(EncoderTraining):
    """Training of `embedding.setfit`."""

    epochs: int = Field(default=1, ge=1)
    """Passes over the pairs."""
    batch_size: int = Field(default=16, ge=1)
    """Pairs per optimizer step."""
    learning_rate: float = Field(default=2e-5, gt=0)
    """Initial learning rate."""
    pairs_per_text: int = Field(default=10, ge=2)
    """Pairs that each text begins: half with a text of its class, half with one of another class."""


class Simcse(Linear):
    """Options of `embedding.simcse`."""

    training: SimcseTraining = SimcseTraining()
    """Training on the unlabeled texts."""


class Tsdae(Linear):
    """Options of `embedding.tsdae`."""

    training: TsdaeTraining = TsdaeTraining()
    """Training on the unlabeled texts."""


class Setfit(Linear):
    """Options of `embedding.setfit`."""

    training: SetfitTraining = SetfitTraining()
    """Training on pairs of texts with labels or pseudo-labels."""
    min_confidence: float = Field(default=0.8, ge=0, le=1)
    """Probability of its most probable class that a text needs to receive a pseudo-label."""
    max_pseudo_labels: int | None = Field(default=None, ge=1)
    """Maximum number of pseudo-labels of each class, the most confident ones; by default no limit."""

"""Options of the methods. This module imports nothing heavy."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from peekbench_encoders.options import Encoder
from peekbench_lm.options import PrecisionOption, RecipeOptions, Schedule


class Linear(Encoder):
    """Options of the methods with a linear classifier."""

    regularization: float = Field(default=1.0, gt=0)
    """Inverse strength C of the logistic regression's L2 penalty, suited to embeddings of length 1."""


class Whitening(Linear):
    """Options of `embedding.whitening`."""

    num_components: int | None = Field(default=None, ge=1)
    """Number of principal components to keep, fewer if fewer have variance among the unlabeled texts; by default all
    dimensions."""
    shrinkage: Annotated[float, Field(ge=0, le=1)] | Literal["ledoit_wolf"] = "ledoit_wolf"
    """Weight of a multiple of the identity in the covariance, or the estimate of Ledoit and Wolf. With a smaller
    weight, components that few unlabeled texts determine badly become larger. With 0, directions without variance are
    dropped."""


class CorpusContext(Linear):
    """Options of `embedding.context`."""


class AllButTheTop(Linear):
    """Options of `embedding.all_but_the_top`."""

    num_components: int = Field(default=4, ge=1)
    """Number of principal components to remove. The paper recommends a hundredth of the number of dimensions, which is
    384 for builtin:minilm."""


class LabelPropagation(Encoder):
    """Options of `embedding.label_propagation`."""

    gamma: float = Field(default=20.0, gt=0, le=30)
    """Sharpness of the weights exp(-gamma d² / m), where d is the distance of two texts and m is the mean of d² between
    train texts. Larger values connect only close neighbors."""
    rule: Literal["insert", "nearest"] = "insert"
    """Label of a text that is not among the unlabeled texts: its label in the graph with this text as one more
    unlabeled text (insert), or the label of the nearest unlabeled text (nearest). The latter treats unlabeled texts
    differently, which looks like a bias."""


class EncoderTraining(RecipeOptions):
    """Training of an encoder."""

    epochs: int = Field(default=1, ge=1)
    """Passes over the examples."""
    learning_rate: float = Field(default=3e-5, gt=0)
    """Initial learning rate."""
    context_length: int = Field(default=64, ge=8)
    """Maximum number of tokens of each text in training. Predictions read as many as the encoder."""
    precision: PrecisionOption = "auto"
    """Precision of matrix products in training. auto: bf16 if this machine multiplies faster in it, otherwise fp32.
    Weights and predictions are always fp32."""


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
    pseudo_label_share: float = Field(default=0.5, ge=0, le=1)
    """Share of the unlabeled texts of each predicted class that receive a pseudo-label: the most probable ones, rounded
    up. Unlike a threshold on the probability, a share has the same meaning for any number of classes."""

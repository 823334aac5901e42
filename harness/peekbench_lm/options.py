"""Options, hyperparameters and types that language-model methods share. This module imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field

from peekbench import Options

Kind: TypeAlias = Literal["masked", "causal"]
"""Training objective of a model: predict masked tokens, or predict the next token."""
Requirement: TypeAlias = Literal["any", "masked", "pooler", "causal", "text probabilities"]
"""What a method requires of a language model: nothing, a training objective, a masked model with the weights of a
pooler, or probabilities of whole texts."""
Pooling: TypeAlias = Literal["cls", "last", "mean"]
"""Hidden state that represents a text: of the first token, of the last token, or the mean over all tokens."""
Schedule: TypeAlias = Literal["linear", "constant"]
"""Learning rate over the steps: linear decay to zero, or constant."""
DeviceName: TypeAlias = Literal["auto", "cpu", "cuda", "mps"]
Precision: TypeAlias = Literal["bf16", "fp32"]
PrecisionOption: TypeAlias = Literal["auto", "bf16", "fp32"]
"""Data type of matrix products."""
WeightMode: TypeAlias = Literal["trained", "frozen", "nf4"]
"""Weight mode of a model. ``trained``: all weights are trainable, and a copy of them is kept to restore the model.
``frozen``: the weights are fixed and only adapters are trained. ``nf4``: as ``frozen``, quantized to four bits."""
Optimizer: TypeAlias = Literal["adamw", "adamw_8bit"]
"""AdamW with fp32 moments, or with 8-bit moments (paged on a GPU)."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """Files of a model in the format of transformers."""

    path: Path
    """Folder that holds the files."""
    state: str
    """Names, sizes and modification times of the files. Two equal states mean equal files."""


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


class Lora(Options):
    """Low-rank adapters of every linear layer, trained instead of all weights (Hu et al. 2021, arXiv 2106.09685)."""

    rank: int = Field(default=16, ge=1)
    """Rank of each adapter."""
    alpha: int = Field(default=32, ge=1)
    """The output of each adapter is scaled by alpha / rank."""
    dropout: float = Field(default=0.05, ge=0, lt=1)
    """Dropout probability at the input of each adapter."""


class ModelOptions(Options):
    """A model, the number of tokens that it reads of each text, and where it computes."""

    model: str = Field(min_length=1)
    """Id of a model on the Hub, or a folder (`./` in front; relative to the spec)."""
    revision: str = ""
    """Commit or branch of a model on the Hub; by default the newest commit."""
    context_length: int = Field(default=256, ge=8)
    """Maximum number of tokens of each text; less if the model reads fewer."""
    device: DeviceName = "auto"
    """Device of the computation; by default a GPU if there is one."""
    threads: int = Field(default=1, ge=1)
    """CPU threads. They affect the last digits of results. More workers use the cores better than more threads."""


class LanguageModelOptions(ModelOptions):
    """A language model whose weights stay as they are."""

    @property
    def requirement(self) -> Requirement:
        """What the method requires of the model."""
        return "any"

    @property
    def weight_mode(self) -> WeightMode:
        """Weight mode of the model."""
        return "frozen"


class TrainedModelOptions(LanguageModelOptions):
    """A language model that is trained."""

    lora: Lora | None = None
    """Adapters to train instead of all weights."""
    precision: PrecisionOption = "auto"
    """Precision of matrix products in training. auto: bf16 if this machine multiplies faster in it, otherwise fp32.
    Weights and predictions are always fp32."""

    @property
    def weight_mode(self) -> WeightMode:
        """Weight mode of the model."""
        return "frozen" if self.lora else "trained"


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

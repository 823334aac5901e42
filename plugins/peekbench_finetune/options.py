"""What a spec may say of task-adaptive pretraining; the defaults are those of arXiv 2410.00179, section 4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from peekbench import Options
from peekbench_lm.names import DeviceName, Kind, Pooling, Precision
from peekbench_lm.options import Lora, RecipeOptions

if TYPE_CHECKING:
    from peekbench_lm.training import Recipe


class Pretraining(RecipeOptions):
    """How the model is trained on the unlabeled texts."""

    epochs: int | None = Field(default=None, ge=1)
    """Passes over the unlabeled texts; by default 2 for a masked model and 1 for a causal one."""
    mask_probability: float = Field(default=0.15, gt=0, lt=1)
    """Share of tokens that a masked model has to guess."""

    def recipe(self, kind: Kind) -> Recipe:
        """For the training loop."""
        return self.make_recipe(self.epochs or (2 if kind == "masked" else 1))


class Classification(RecipeOptions):
    """How the model, with a linear layer, is trained on the train set."""

    epochs: int = Field(default=3, ge=1)
    """Passes over the train set."""
    learning_rate: float = Field(default=5e-5, gt=0)
    """At the start."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Of weight matrices."""
    pooling: Pooling | None = None
    """Hidden state that stands for a text: of its first token (cls), its last (last), or their mean. By default cls for
    a masked model and last for a causal one."""
    prediction_batch_size: int = Field(default=64, ge=1)
    """Texts that are classified at once; numbers depend on it by rounding alone."""

    def recipe(self) -> Recipe:
        """For the training loop."""
        return self.make_recipe(self.epochs)


class Tapt(Options):
    model: str = Field(min_length=1)
    """A model's id on the Hub, a folder (`./` in front; relative to the spec), or builtin:bert-nano or
    builtin:gpt2-nano."""
    revision: str = ""
    """Commit or branch of a model on the Hub; by default the newest."""
    pretraining: Pretraining = Pretraining()
    """How it is trained on the unlabeled texts."""
    classification: Classification = Classification()
    """How it is trained on the train set."""
    context_length: int = Field(default=256, ge=8)
    """Tokens of a text that are read, where the model can read as many."""
    lora: Lora | None = None
    """Train adapters instead of all weights."""
    precision: Precision = "bf16"
    """Of matrix products in training; weights, and what is computed for predictions, are fp32."""
    device: DeviceName = "auto"
    """By default a GPU where there is one."""
    threads: int = Field(default=1, ge=1)
    """CPU threads of a fit. Numbers differ in the last digits with it; more workers are the better use of cores."""


class Overtrain(Tapt):
    overtraining_epochs: int | None = Field(default=None, ge=2)
    """Passes over the unlabeled texts in the place of `pretraining.epochs`; by default twice as many."""

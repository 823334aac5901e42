"""What a spec may say of training on prompts; the defaults are those of arXiv 2410.00179, section 9, where it has them.

Where it is silent, they are those of transformers' Trainer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from peekbench.errors import SpecError
from peekbench_lm.names import Held, Optimizer, Precision
from peekbench_lm.options import Lora, RecipeOptions
from peekbench_prompting.options import Prompting, Weights

if TYPE_CHECKING:
    from peekbench_lm.model import LanguageModel
    from peekbench_lm.training import Recipe

Attention: TypeAlias = Literal["sequence", "text"]


class Training(RecipeOptions):
    """How the model is trained on prompts."""

    epochs: int = Field(default=1, ge=1)
    """Passes over the prompts."""
    batch_size: int = Field(default=8, ge=1)
    """Prompts an optimizer step; sequences, where several texts share one."""
    learning_rate: float = Field(default=2e-4, gt=0)
    """At the start."""
    optimizer: Literal["auto"] | Optimizer = "auto"
    """AdamW, its running means in fp32 or in eight bits (paged on a GPU); by default the latter for
    weights in four bits on a GPU."""

    def recipe(self, model: LanguageModel) -> Recipe:
        """For the training loop."""
        usual: Optimizer = "adamw_8bit" if model.device.type == "cuda" and model.held == "nf4" else "adamw"
        return self.make_recipe(self.epochs, usual if self.optimizer == "auto" else self.optimizer)


class Adapted(Prompting):
    """What all methods that train are told."""

    weights: Weights = "nf4"
    """How the model's weights are held: in fp32, or in four bits (QLoRA, Dettmers et al. 2023, arXiv 2305.14314)."""
    lora: Lora | None = Lora()
    """The adapters that are trained; null to train all weights, which have to be held in fp32 then."""
    precision: Precision = "bf16"
    """Of matrix products in training."""
    gradient_checkpointing: Literal["auto"] | bool = "auto"
    """Whether layers are computed again in the backward pass, for less memory; by default where there is a GPU."""

    @model_validator(mode="after")
    def _check_adapters(self) -> Self:
        if self.weights == "nf4" and self.lora is None:
            raise ValueError("weights held in four bits cannot be trained; give `lora`, or write `weights: fp32`")
        return self

    @property
    def held(self) -> Held:
        """How the model is held."""
        return super().held if self.lora else "trained"


class Pretrain(Adapted):
    """The model is trained on the unlabeled texts' prompts."""

    pretraining: Training = Training()
    """How it is trained."""


class PackedTraining(Training):
    """How the model is trained on sequences of prompts."""

    batch_size: int = Field(default=1, ge=1)
    """Sequences an optimizer step."""


class Packed(Pretrain):
    """The same, several texts behind one instruction."""

    pretraining: PackedTraining = PackedTraining()
    """How it is trained."""
    sequence_length: int = Field(default=8192, ge=8)
    """Tokens of a sequence of texts; where they see each other, at most what the model can read."""
    attention: Attention = "sequence"
    """What a text's tokens see: all that stands before them in the sequence, or the instruction and the text alone."""

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        if self.sequence_length < self.context_length:
            raise ValueError(
                f"sequence_length: {self.sequence_length} is less than context_length, {self.context_length}, which a "
                "prompt alone may have; give more, or a smaller context_length"
            )
        return self


def check_packing(is_chat: bool, options: Packed) -> None:
    """See that texts that see each other are not in a chat, where all but the first would stand in the reply.

    Raises
    ------
    SpecError
        Where they are.
    """
    if is_chat and options.attention == "sequence":
        raise SpecError(
            f"model {options.model}: its prompts are chats, and packed texts that see each other would stand in the "
            "reply to the first; write `attention: text` or `chat_template: never`"
        )


class Supervised(Adapted):
    """The model is trained on the train set's answers, after training on the unlabeled texts' prompts if wanted."""

    pretrain: bool = True
    """Whether it is trained on the unlabeled texts' prompts first."""
    pretraining: Training = Training()
    """How it is trained on these."""
    finetuning: Training = Training()
    """How it is trained on the train set."""

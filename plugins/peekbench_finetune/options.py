"""Options of the methods. The defaults are those of arXiv 2410.00179, section 4."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias

from pydantic import Field, model_validator

from peekbench_lm.options import Kind, Pooling, Recipe, RecipeOptions, Requirement, TrainedModelOptions

Head: TypeAlias = Literal["linear", "bert", "bert_new_pooler"]
"""Layers on a language model that classify a text."""


class Pretraining(RecipeOptions):
    """Pretraining on the unlabeled texts."""

    epochs: int | None = Field(default=None, ge=1)
    """Passes over the unlabeled texts; by default 2 for a masked model and 1 for a causal one."""
    mask_probability: float = Field(default=0.15, gt=0, lt=1)
    """Fraction of tokens that a masked model predicts."""
    discards_pooler: bool = False
    """Whether the head `bert` has a new pooler after pretraining, but that of the checkpoint without pretraining. This
    defect of arXiv 2410.00179 adds the effect of a new pooler to the boost."""

    def recipe(self, kind: Kind) -> Recipe:
        """Return the hyperparameters for the training loop.

        Parameters
        ----------
        kind
            Training objective of the model.
        """
        return self.make_recipe(self.epochs or (2 if kind == "masked" else 1))


class Classification(RecipeOptions):
    """Finetuning of the model and a linear layer on the train set."""

    epochs: int = Field(default=3, ge=1)
    """Passes over the train set."""
    learning_rate: float = Field(default=5e-5, gt=0)
    """Initial learning rate."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Weight decay of weight matrices."""
    head: Head = "linear"
    """Layers on the language model: a new linear layer (linear); those of BertForSequenceClassification, which are the
    pooler of the checkpoint, dropout and a new linear layer (bert); or the same with a new pooler (bert_new_pooler)."""
    pooling: Pooling | None = None
    """Hidden state that represents a text: of the first token (cls), of the last token (last), or the mean (mean). By
    default cls for a masked model and last for a causal one. The heads of BERT require cls."""
    prediction_batch_size: int = Field(default=64, ge=1)
    """Texts per batch in prediction. It affects results only by rounding."""

    def recipe(self) -> Recipe:
        """Return the hyperparameters for the training loop."""
        return self.make_recipe(self.epochs)

    @model_validator(mode="after")
    def _check_pooling(self) -> Self:
        if self.head != "linear" and self.pooling not in (None, "cls"):
            raise ValueError(f"head: {self.head} takes the first token, not pooling: {self.pooling}; remove `pooling`")
        return self


class Tapt(TrainedModelOptions):
    """Options of task-adaptive pretraining."""

    model: str = Field(min_length=1)
    """Id of a model on the Hub, a folder or GGUF file (`./` in front; relative to the spec), or a built-in model, such
    as builtin:gemma-270m or builtin:bert-nano."""
    pretraining: Pretraining = Pretraining()
    """Pretraining on the unlabeled texts."""
    classification: Classification = Classification()
    """Finetuning on the train set."""
    score_texts: bool = False
    """Whether to score the test texts in bits per byte, too, with the causal model after pretraining and before
    finetuning. It needs memory for two more copies of the trained weights."""

    @property
    def requirement(self) -> Requirement:
        """What the method requires of the model."""
        requirements: dict[Head, Requirement] = {"linear": "any", "bert": "pooler", "bert_new_pooler": "masked"}
        return "text probabilities" if self.score_texts else requirements[self.classification.head]

    @model_validator(mode="after")
    def _check_head(self) -> Self:
        head = self.classification.head
        if self.pretraining.discards_pooler and head != "bert":
            raise ValueError(f"pretraining.discards_pooler: head: {head} has no pretrained pooler; write head: bert")
        if self.score_texts and head != "linear":
            raise ValueError(f"score_texts: needs a causal model, and head: {head} a masked one; remove one of them")
        return self


class Overtrain(Tapt):
    """Options of pretraining for too many epochs."""

    overtraining_epochs: int | None = Field(default=None, ge=2)
    """Passes over the unlabeled texts instead of `pretraining.epochs`; by default twice as many."""

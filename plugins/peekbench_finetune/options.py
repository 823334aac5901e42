"""Options of the methods. The defaults are those of arXiv 2410.00179, section 4."""

from __future__ import annotations

import re
from typing import Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

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


class Finetuning(TrainedModelOptions):
    """Options of every method that finetunes a language model."""

    model: str = Field(min_length=1)
    """Id of a model on the Hub, a folder or GGUF file (`./` in front; relative to the spec), or a built-in model, such
    as builtin:gemma-270m or builtin:bert-nano."""
    classification: Classification = Classification()
    """Finetuning on the train set."""

    @property
    def requirement(self) -> Requirement:
        """What the method requires of the model."""
        requirements: dict[Head, Requirement] = {"linear": "any", "bert": "pooler", "bert_new_pooler": "masked"}
        return requirements[self.classification.head]


class Tapt(Finetuning):
    """Options of task-adaptive pretraining."""

    pretraining: Pretraining = Pretraining()
    """Pretraining on the unlabeled texts."""
    score_texts: bool = False
    """Whether to score the test texts in bits per byte, too, with the causal model after pretraining and before
    finetuning. It needs memory for two more copies of the trained weights."""

    @property
    def requirement(self) -> Requirement:
        """What the method requires of the model."""
        return "text probabilities" if self.score_texts else super().requirement

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


PLACEHOLDER = re.compile(r"(\{text\}|\{mask\})")
"""Placeholders of a pattern."""


PATTERN_STEPS = 250
"""Optimizer steps of each model of the ensemble (arXiv 2001.07676, section 4)."""


class PatternTraining(RecipeOptions):
    """Training of the models of the ensemble on the train set. The defaults are those of Schick and Schütze (2021)."""

    epochs: int | None = Field(default=None, ge=1)
    """Passes over the train set; by default as many as 250 optimizer steps need."""
    learning_rate: float = Field(default=1e-5, gt=0)
    """Initial learning rate."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Weight decay of weight matrices."""
    prediction_batch_size: int = Field(default=64, ge=1)
    """Texts per batch when the models label texts. It affects results only by rounding."""

    def recipe(self, num_texts: int) -> Recipe:
        """Return the hyperparameters for the training loop.

        Parameters
        ----------
        num_texts
            Number of texts of the train set.

        Examples
        --------
        >>> PatternTraining().recipe(50).epochs  # 4 steps each
        63
        """
        steps_per_epoch = max(1, -(-num_texts // self.batch_size))
        return self.make_recipe(self.epochs or -(-PATTERN_STEPS // steps_per_epoch))


class PatternExploiting(Finetuning):
    """Options of pattern-exploiting training.

    The defaults are those of Schick and Schütze (2021), arXiv 2001.07676, appendix B, Table 5, column PET-LM, which is
    training without the auxiliary language-modeling loss: 250 steps of 16 texts, a learning rate of 1e-5 with linear
    decay and no warmup, weight decay 0.01, gradient norm at most 1, 256 tokens, 3 models per pattern, temperature 2,
    and weights by the accuracy before training. Three defaults differ:

    - `classification` has the defaults of `finetune.tapt`, a linear layer and 3 epochs at 5e-5, instead of the head of
      RoBERTa (similar to `head: bert_new_pooler`) and 5,000 steps at 1e-5. For the 20,000 and more unlabeled texts of
      the paper, 5,000 steps are 4 epochs or fewer; for 200 texts, they are 385.
    - `patterns` has four of the paper's six patterns for topics. The others name news or questions, or stand between
      the two parts of a text.
    - All unlabeled texts of the arm are labeled; the paper labels 10,000 for each class.
    """

    patterns: tuple[str, ...] = Field(
        default=("{mask}: {text}", "{text} ({mask})", "{mask} - {text}", "[ Category: {mask} ] {text}"), min_length=1
    )
    """Sentences with the placeholders {text} and {mask}. A masked model fills in {mask}. The defaults are patterns of
    the paper for topics of texts."""
    verbalizers: dict[str, str] = Field(default={})
    """Word or words that stand for a class at {mask}, by class name; by default the class name itself."""
    models_per_pattern: int = Field(default=3, ge=1)
    """Models that are trained for each pattern, with different seeds."""
    weighting: Literal["accuracy", "uniform"] = "accuracy"
    """Weights of the patterns in the ensemble: accuracy on the train set before training, or all equal."""
    pattern_training: PatternTraining = PatternTraining()
    """Training of the models of the ensemble on the train set."""
    temperature: float = Field(default=2.0, gt=0)
    """Temperature of the soft labels: the scores of the ensemble are divided by it before the softmax."""
    classification: Classification = Classification()
    """Finetuning of the final classifier on the soft labels of the unlabeled texts."""

    @property
    def requirement(self) -> Requirement:
        """What the method requires of the model."""
        return "pooler" if self.classification.head == "bert" else "masked"

    @field_validator("patterns")
    @classmethod
    def _check_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if sorted(PLACEHOLDER.findall(pattern)) != ["{mask}", "{text}"]:
                raise ValueError(f"pattern {pattern!r}: write {{text}} and {{mask}} once each")
        return patterns

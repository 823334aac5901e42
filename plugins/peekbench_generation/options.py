"""Options of the methods."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias

from pydantic import Field, model_validator

from peekbench import Options
from peekbench_lm.options import LanguageModelOptions, RecipeOptions, Requirement, TrainedModelOptions

ChatTemplate: TypeAlias = Literal["auto", "never"]


class Answers(Options):
    """How answers are generated."""

    max_tokens: int = Field(default=64, ge=1)
    """Maximum number of tokens of an answer."""
    stop: tuple[str, ...] | None = None
    """Strings that end an answer, as the end-of-text token does. By default a line break, or none if prompts are chat
    messages; an empty list for answers of several lines."""
    num_samples: int = Field(default=1, ge=1)
    """Answers predicted for each prompt. The score of the prompt is the mean of their grades."""
    temperature: float = Field(default=0.0, ge=0)
    """Temperature of the predicted answers; 0 for the most probable token at each position."""
    batch_size: int = Field(default=64, ge=1)
    """Answers that are generated at once; changes results by rounding only."""

    @model_validator(mode="after")
    def _check_samples(self) -> Self:
        if self.num_samples > 1 and not self.temperature:
            raise ValueError("several answers to a prompt would be equal; set `temperature`, such as 1.0")
        return self


class Prompting(LanguageModelOptions):
    """Options of `generation.prompt`."""

    model: str = Field(min_length=1)
    """Id of a causal model on the Hub, a folder or GGUF file (`./` in front; relative to the spec), builtin:gemma-270m
    or builtin:gpt2-nano."""
    context_length: int = Field(default=512, ge=8)
    """Maximum number of tokens of a prompt and its answer; less if the model reads fewer. Longer prompts lose their
    beginning, because the question is often at their end."""
    num_examples: int = Field(default=0, ge=0)
    """Train prompts with their references that precede each prompt."""
    delimiter: str = " "
    """Text between a prompt and its answer, if prompts are not chat messages."""
    chat_template: ChatTemplate = "auto"
    """auto: send the prompt as a user message if the tokenizer has a chat template. never: send it as plain text."""
    answers: Answers = Answers()
    """How answers are generated."""

    @property
    def requirement(self) -> Requirement:
        """What the method requires of the model."""
        return "causal"


class Training(RecipeOptions):
    """Training on prompts and answers."""

    epochs: int = Field(default=1, ge=1)
    """Passes over the prompts."""
    batch_size: int = Field(default=8, ge=1)
    """Answers per optimizer step; prompts if the method samples answers at each step."""
    learning_rate: float = Field(default=5e-5, gt=0)
    """Learning rate of the first step."""


class Finetuned(Prompting, TrainedModelOptions):
    """Options of methods that can train on the references of the train prompts."""

    finetuning: Training | None = None
    """Training on the references of the train prompts; null for none."""

    @model_validator(mode="after")
    def _check_examples(self) -> Self:
        if self.finetuning and self.num_examples:
            raise ValueError("a model trained on references needs no examples; remove num_examples or finetuning")
        return self


class Supervised(Finetuned):
    """Options of `generation.supervised`."""

    finetuning: Training = Training()
    """Training on the references of the train prompts."""


class Sampling(Options):
    """Answers to the unlabeled prompts that the method adapts to."""

    num_samples: int = Field(default=16, ge=2)
    """Answers to each prompt."""
    temperature: float = Field(default=1.0, gt=0)
    """Temperature of the samples."""


class MajorityVote(Finetuned):
    """Options of `generation.majority_vote`."""

    sampling: Sampling = Sampling()
    """Answers to the unlabeled prompts."""
    adaptation: Training = Training()
    """Training on the answers that agree with the majority."""


class PolicyTraining(Training):
    """Steps of the policy gradient."""

    learning_rate: float = Field(default=1e-5, gt=0)
    """Learning rate of the first step."""


class PolicyGradient(Finetuned):
    """Options of `generation.policy_gradient`."""

    sampling: Sampling = Sampling()
    """Answers to the unlabeled prompts, drawn again at each step."""
    adaptation: PolicyTraining = PolicyTraining()
    """Steps of the policy gradient."""

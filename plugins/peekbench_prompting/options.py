"""Options of methods that prompt, and of those that train on prompts.

If arXiv 2410.00179, section 9, gives a value, it is the default; otherwise the default of transformers' Trainer is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from peekbench import Options
from peekbench.errors import SpecError
from peekbench_lm.options import (
    LanguageModelOptions,
    Lora,
    Optimizer,
    PrecisionOption,
    RecipeOptions,
    Requirement,
    TrainedModelOptions,
    WeightMode,
)
from peekbench_prompting.frame import check_template

ChatTemplate: TypeAlias = Literal["auto", "never"]
Weights: TypeAlias = Literal["fp32", "nf4"]
Normalization: TypeAlias = Literal["mean", "sum"]
PriorCorrection: TypeAlias = Literal["none", "content_free"]


class Scoring(Options):
    """How class probabilities are computed from the probabilities of the class names' tokens."""

    normalization: Normalization = "mean"
    """Score of a class name: the mean of its tokens' log probabilities, or their sum, which favors short names. A
    softmax over the classes turns scores into probabilities."""
    prior_correction: PriorCorrection = "none"
    """content_free: divide by the class probabilities of content-free texts (contextual calibration, Zhao et al. 2021,
    arXiv 2102.09690), so that no class is favored for its name alone."""
    batch_size: int = Field(default=32, ge=1)
    """Texts per batch; changes results by rounding only. On a CPU, an untrained model computes one text at a time."""
    precision: PrecisionOption = "auto"
    """Precision of matrix products. With bf16, the prediction for a text depends noticeably on the other texts of its
    batch. auto: bf16 with `weights: nf4`, whose own rounding is larger, if this machine multiplies faster in bf16;
    otherwise fp32."""


class Prompting(LanguageModelOptions):
    """Options of every method that prompts."""

    model: str = Field(min_length=1)
    """Id of a causal model on the Hub, a folder or GGUF file (`./` in front; relative to the spec), builtin:gemma-270m
    or builtin:gpt2-nano."""
    context_length: int = Field(default=512, ge=8)
    """Maximum number of tokens of a prompt and its answer, limited by the model's own maximum. Longer texts are cut."""
    chat_template: ChatTemplate = "auto"
    """auto: send the prompt as a user message if the tokenizer has a chat template. never: send it as plain text."""
    weights: Weights = "fp32"
    """Format of the model's weights: fp32, or nf4 (4-bit NormalFloat, Dettmers et al. 2023, arXiv 2305.14314)."""
    scoring: Scoring = Scoring()
    """How class probabilities are computed."""

    @property
    def requirement(self) -> Requirement:
        """What the method requires of the model."""
        return "causal"

    @property
    def weight_mode(self) -> WeightMode:
        """Weight mode of the model."""
        return "nf4" if self.weights == "nf4" else "frozen"


class ZeroShot(Prompting):
    """Options of `prompting.zero_shot`."""


class FewShot(Prompting):
    """Options of `prompting.few_shot`."""

    context_length: int = Field(default=2048, ge=8)
    """Maximum number of tokens of a prompt and its answer, limited by the model's own maximum. Examples are removed
    before a text is cut."""
    num_examples: int | None = Field(default=None, ge=1)
    """Maximum number of train texts of each class in a prompt. Default: as many as fit."""


class BatchCalibration(ZeroShot):
    """Options of `prompting.batch_calibration`."""

    strength: float = Field(default=1.0, ge=0)
    """Power of the class priors by which probabilities are divided: 1 as in arXiv 2309.17249, 0 for no calibration."""


Selection: TypeAlias = Literal["balanced", "confident"]


class SelfLabeled(ZeroShot):
    """Options of `prompting.self_labeled`."""

    num_examples: int = Field(default=4, ge=1)
    """Number of examples for each class; fewer if they do not fit into the context."""
    selection: Selection = "balanced"
    """Which unlabeled texts become examples. balanced: for each class, the texts that the model finds most probable to
    be of this class. confident: the texts of whose answers the model is most certain, whatever their class."""


Similarity: TypeAlias = Literal["hidden", "tfidf"]


class NeighborVoting(ZeroShot):
    """Options of `prompting.neighbor_voting`."""

    num_neighbors: int = Field(default=10, ge=1)
    """Number of nearest unlabeled texts whose probabilities are averaged with those of the text."""
    similarity: Similarity = "hidden"
    """Cosine similarity of texts. hidden: of the mean of the model's last hidden states. tfidf: of words, weighted by
    their frequency in the unlabeled texts."""
    exclude_self: bool = False
    """Do not let a text vote that equals the text to answer, which has a vote anyway."""


Criterion: TypeAlias = Literal["agreement", "confidence", "mutual_information"]
TEMPLATES = (
    "{instruction}\nAnswer with one of: {class_names}.\n\nText: {text}\nAnswer:",
    "Categories: {class_names}\n\nText: {text}\nCategory:",
    'Which of these fits the text best: {class_names}?\n{instruction}\n\n"{text}"\n\nIt is',
)


class PromptChoice(ZeroShot):
    """Options of `prompting.prompt_choice`."""

    templates: tuple[str, ...] = Field(default=TEMPLATES, min_length=1)
    """Prompts to choose from, besides that of `zero_shot`. Each contains `{text}` once, and may contain
    `{class_names}` and `{instruction}`. The answer, a space and a class name, follows the prompt."""
    criterion: Criterion = "agreement"
    """What the chosen prompt has most of. agreement: answers that equal those of all prompts' mean probabilities.
    confidence: the mean of the answers' probabilities. mutual_information: of texts and answers, which answers that are
    certain and of all classes have."""

    @field_validator("templates")
    @classmethod
    def _check_templates(cls, templates: tuple[str, ...]) -> tuple[str, ...]:
        for template in templates:
            check_template(template)
        return templates


if TYPE_CHECKING:
    from peekbench_lm.language_model import LanguageModel
    from peekbench_lm.options import Recipe


class Training(RecipeOptions):
    """How the model is trained on prompts."""

    epochs: int = Field(default=1, ge=1)
    """Passes over the prompts."""
    batch_size: int = Field(default=8, ge=1)
    """Prompts per optimizer step; sequences per step if prompts are packed."""
    learning_rate: float = Field(default=2e-4, gt=0)
    """Learning rate of the first step."""
    optimizer: Literal["auto"] | Optimizer = "auto"
    """AdamW with 32-bit states, or with 8-bit states (paged on a GPU). auto: 8-bit states if the weights have four bits
    and the device is a GPU."""

    def recipe(self, model: LanguageModel) -> Recipe:
        """Return the settings of the training loop.

        Parameters
        ----------
        model
            Its device and weight mode decide which optimizer `auto` selects.
        """
        default: Optimizer = "adamw_8bit" if model.device.type == "cuda" and model.weight_mode == "nf4" else "adamw"
        return self.make_recipe(self.epochs, default if self.optimizer == "auto" else self.optimizer)


class Adapted(Prompting, TrainedModelOptions):
    """Options of every method that trains."""

    weights: Weights = "nf4"
    """Format of the model's weights: fp32, or nf4 (QLoRA, Dettmers et al. 2023, arXiv 2305.14314)."""
    lora: Lora | None = Lora()
    """LoRA adapters to train; null trains all weights, which requires `weights: fp32`."""

    @model_validator(mode="after")
    def _check_adapters(self) -> Self:
        if self.weights == "nf4" and self.lora is None:
            raise ValueError("four-bit weights cannot be trained; set `lora`, or write `weights: fp32`")
        return self

    @property
    def weight_mode(self) -> WeightMode:
        """Weight mode of the model."""
        return super().weight_mode if self.lora else "trained"


class Pretrain(Adapted):
    """Options of `prompting.pretrain`."""

    pretraining: Training = Training()
    """Training on the prompts of the unlabeled texts."""


class PackedTraining(Training):
    """How the model is trained on sequences of packed prompts."""

    batch_size: int = Field(default=1, ge=1)
    """Sequences per optimizer step."""


class Packed(Pretrain):
    """Options of `prompting.packed`."""

    pretraining: PackedTraining = PackedTraining()
    """Training on the sequences of packed prompts."""
    sequence_length: int = Field(default=8192, ge=8)
    """Maximum number of tokens per sequence, limited by the model's own maximum."""
    texts_per_sequence: int | None = Field(default=None, ge=1)
    """Maximum number of texts per sequence; the code published with arXiv 2410.00179 packs 8. Default: as many as
    fit."""

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        if self.sequence_length < self.context_length:
            raise ValueError(
                f"sequence_length: {self.sequence_length} is less than context_length, {self.context_length}, the "
                "maximum length of a single prompt; increase sequence_length or reduce context_length"
            )
        return self


def check_packing(is_chat: bool, options: Packed) -> None:
    """Check that packed texts are not in a chat, where all except the first would be part of the reply.

    Parameters
    ----------
    is_chat
        Whether prompts are sent as user messages.
    options
        The method's options.

    Raises
    ------
    SpecError
        If they are.
    """
    if is_chat:
        raise SpecError(
            f"model {options.model}: its prompts are chat messages, so packed texts would be part of the reply to the "
            "first one; write `chat_template: never`"
        )


class Supervised(Adapted):
    """Options of `prompting.supervised`."""

    pretrain: bool = True
    """Train on the prompts of the unlabeled texts first."""
    pretraining: Training = Training()
    """Training on the prompts of the unlabeled texts."""
    finetuning: Training = Training()
    """Training on the answers of the train set."""

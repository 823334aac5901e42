"""Options of methods that prompt.

If arXiv 2410.00179, section 9, gives a value, it is the default.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from peekbench import Options
from peekbench_lm.options import LanguageModelOptions, Precision, Requirement, WeightMode

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
    """Texts per batch; changes results by rounding only."""
    precision: Precision = "fp32"
    """Precision of matrix products. With bf16, the prediction for a text depends noticeably on the other texts of its
    batch."""


class Prompting(LanguageModelOptions):
    """Options of every method that prompts."""

    model: str = Field(min_length=1)
    """Id of a causal model on the Hub, a folder (`./` in front; relative to the spec), or builtin:gpt2-nano."""
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


class BatchCalibrationFewShot(FewShot):
    """Options of `prompting.batch_calibration_few_shot`."""

    strength: float = Field(default=1.0, ge=0)
    """Power of the class priors by which probabilities are divided: 1 as in arXiv 2309.17249, 0 for no calibration."""

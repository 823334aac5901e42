"""What a spec may say of prompts; the defaults are those of arXiv 2410.00179, section 9, where it has them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from peekbench import Options
from peekbench_lm.names import DeviceName, Held, Precision

ChatTemplate: TypeAlias = Literal["auto", "never"]
Weights: TypeAlias = Literal["fp32", "nf4"]
Normalization: TypeAlias = Literal["mean", "sum"]
PriorCorrection: TypeAlias = Literal["none", "content_free"]


class Scoring(Options):
    """How a class's probability comes from those of its name's tokens as the answer."""

    normalization: Normalization = "mean"
    """A name's score: the mean of its tokens' log-probabilities, or their sum, which favors short names. The scores'
    exponentials are normalized over the classes."""
    prior_correction: PriorCorrection = "none"
    """content_free: divide by the probabilities of a text that says nothing (contextual calibration, Zhao et al. 2021,
    arXiv 2102.09690), so that no class is favored for its name alone."""
    batch_size: int = Field(default=32, ge=1)
    """Texts that are classified at once; numbers depend on it by rounding alone."""
    precision: Precision = "fp32"
    """Of matrix products. In bf16 what is predicted for a text depends visibly on the texts beside it."""


class Prompting(Options):
    """What all methods of this plugin are told."""

    model: str = Field(min_length=1)
    """A causal model's id on the Hub, a folder (`./` in front; relative to the spec), or builtin:gpt2-nano."""
    revision: str = ""
    """Commit or branch of a model on the Hub; by default the newest."""
    context_length: int = Field(default=512, ge=8)
    """Tokens of a prompt with its answer, where the model can read as many; a text that does not fit is cut."""
    chat_template: ChatTemplate = "auto"
    """Whether a prompt is put as a user's message where the tokenizer has a chat template."""
    weights: Weights = "fp32"
    """How the model's weights are held: in fp32, or in four bits (NF4, Dettmers et al. 2023, arXiv 2305.14314)."""
    scoring: Scoring = Scoring()
    """How a class's probability comes about."""
    device: DeviceName = "auto"
    """By default a GPU where there is one."""
    threads: int = Field(default=1, ge=1)
    """CPU threads of a fit. Numbers differ in the last digits with it; more workers are the better use of cores."""

    @property
    def held(self) -> Held:
        """How the model is held."""
        return "nf4" if self.weights == "nf4" else "frozen"


class ZeroShot(Prompting):
    """Nothing is trained."""


class FewShot(Prompting):
    """Train texts with their classes stand in the prompt; nothing is trained."""

    context_length: int = Field(default=2048, ge=8)
    """Tokens of a prompt with its answer, where the model can read as many; examples go before a text is cut."""
    num_examples: int | None = Field(default=None, ge=1)
    """Train texts of each class; by default as many as fit."""

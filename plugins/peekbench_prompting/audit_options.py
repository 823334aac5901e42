"""Options of the audits."""

from __future__ import annotations

from string import Formatter
from typing import Literal

from pydantic import Field, field_validator, model_validator

from peekbench import Options
from peekbench.records import Split
from peekbench_lm.options import DeviceName, Precision

FIELDS = frozenset({"text", "label", "class_name"})


class Exchangeability(Options):
    """Which model is audited, on which rows, and how precisely."""

    model: str = Field(min_length=1)
    """Id of a causal model on the Hub, a folder (starting with `./`; relative to the spec), or builtin:gpt2-nano."""
    revision: str = ""
    """Commit or branch of a model on the Hub. Default: the newest commit."""
    reference: str = ""
    """Another causal model, which cannot have seen the texts. If it prefers the published order too, a preference of
    `model` is no evidence that `model` has seen the texts."""
    reference_revision: str = ""
    """Commit or branch of the reference model."""
    row: str = "{text}\n"
    """Format of a row, as in the file that the model may have seen. The fields {text}, {label} and {class_name} are
    filled in."""
    max_texts: int = Field(default=1000, ge=2)
    """Maximum number of texts per task; the first rows are used."""
    shards: int = Field(default=50, ge=5)
    """Number of shards: runs of neighboring rows, each shuffled separately."""
    permutations: int = Field(default=50, ge=5)
    """Random orders per shard."""
    level: float = Field(default=0.99, gt=0, lt=1)
    """Confidence level. A model prefers the published order if the adjusted p-value is at most 1 - level."""
    context_length: int = Field(default=2048, ge=8)
    """Maximum number of tokens read at once, limited by the model's own maximum."""
    stride: int | None = Field(default=None, ge=1)
    """For shards longer than the context: new tokens per window. Default: half a context."""
    batch_tokens: int = Field(default=16384, ge=1)
    """Tokens per batch; reduced automatically if the device runs out of memory."""
    precision: Precision = "fp32"
    """Precision of matrix products. bf16 is faster on a GPU; its rounding noise only reduces the test's power."""
    device: DeviceName = "auto"
    """Device to compute on. Default: a GPU if one is available."""
    threads: int = Field(default=1, ge=1)
    """CPU threads. Changes results in the last digits."""

    @field_validator("row")
    @classmethod
    def _check_fields(cls, row: str) -> str:
        fields = {name for _, name, _, _ in Formatter().parse(row) if name is not None}
        if "text" not in fields or not fields <= FIELDS:
            raise ValueError(
                f"{row!r} must contain {{text}} and may contain {{label}} and {{class_name}}; remove other braces"
            )
        return row


class Membership(Options):
    """Which model is audited, and with which texts the texts of a task are compared."""

    model: str = Field(min_length=1)
    """Id of a causal model on the Hub, a folder (starting with `./`; relative to the spec), or builtin:gpt2-nano."""
    revision: str = ""
    """Commit or branch of a model on the Hub. Default: the newest commit."""
    unseen: str = ""
    """Name of a task of the spec whose texts resemble the other tasks' and cannot have been seen by the model, for
    example because they are more recent. Without `unseen` or `unseen_split`, every finding is inconclusive."""
    unseen_split: Split | None = None
    """train or test: the official split of each task that the model cannot have seen. The other split is audited."""
    reference: str = ""
    """Another causal model, which has seen neither the texts nor the unseen texts. Its scores show which texts are
    easy, which makes the audit more sensitive, and whether the unseen texts are harder."""
    reference_revision: str = ""
    """Commit or branch of the reference model."""
    max_texts: int = Field(default=1000, ge=10)
    """Maximum number of texts per task, and of unseen texts; a random sample of the rows."""
    level: float = Field(default=0.99, gt=0, lt=1)
    """Confidence level. A task is exposed if the adjusted p-value is at most 1 - level."""
    context_length: int = Field(default=2048, ge=8)
    """Maximum number of tokens read at once, limited by the model's own maximum. Longer texts are cut."""
    batch_tokens: int = Field(default=16384, ge=1)
    """Tokens per batch; reduced automatically if the device runs out of memory."""
    precision: Precision = "fp32"
    """Precision of matrix products. bf16 is faster on a GPU."""
    device: DeviceName = "auto"
    """Device to compute on. Default: a GPU if one is available."""
    threads: int = Field(default=1, ge=1)
    """CPU threads. Changes results in the last digits."""

    @model_validator(mode="after")
    def _check_unseen(self) -> Membership:
        if self.unseen and self.unseen_split:
            raise ValueError(
                f"both unseen ({self.unseen}) and unseen_split ({self.unseen_split}) are given; remove one"
            )
        return self


class MinK(Membership):
    """How the least likely tokens of a text become its score."""

    k: float = Field(default=0.2, gt=0, le=1)
    """Fraction of the tokens of a text that count, the least likely ones."""
    score: Literal["min_k", "min_k_plus_plus"] = "min_k"
    """min_k: mean log probability of these tokens. min_k_plus_plus: log probabilities are first standardized by their
    mean and standard deviation under the distribution that the model predicts at each position."""


class Codec(Membership):
    """How many examples precede a text."""

    examples: int = Field(default=1, ge=1)
    """Number of texts that precede a text as examples; fewer if the context is too short."""

"""Options of the audit `prompting.exchangeability`."""

from __future__ import annotations

from string import Formatter

from pydantic import Field, field_validator

from peekbench import Options
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

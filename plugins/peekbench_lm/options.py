"""Options that several methods on language models have."""

from __future__ import annotations

from pydantic import Field

from peekbench import Options


class Lora(Options):
    """Train low-rank adapters of every linear layer instead of all weights (Hu et al. 2021, arXiv 2106.09685)."""

    rank: int = Field(default=16, ge=1)
    """Rank of an adapter."""
    alpha: int = Field(default=32, ge=1)
    """An adapter's output is scaled by alpha/rank."""
    dropout: float = Field(default=0.05, ge=0, lt=1)
    """Dropout before an adapter."""

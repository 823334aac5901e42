"""Words that options of language-model methods are made of; imports nothing heavy."""

from __future__ import annotations

from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["masked", "causal"]
"""Trained to fill in masked tokens, or to go on with a text."""
Pooling: TypeAlias = Literal["cls", "last", "mean"]
Schedule: TypeAlias = Literal["linear", "constant"]
DeviceName: TypeAlias = Literal["auto", "cpu", "cuda", "mps"]
Precision: TypeAlias = Literal["bf16", "fp32"]
Held: TypeAlias = Literal["trained", "frozen", "nf4"]
"""How a model's weights are held: to be trained, with a copy of them to go back to; fixed, adapters alone being
trained; the same in four bits."""
Optimizer: TypeAlias = Literal["adamw", "adamw_8bit"]
"""AdamW, its running means in fp32, or in eight bits (and paged, on a GPU)."""

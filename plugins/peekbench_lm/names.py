"""Words that options of language-model methods are made of; imports nothing heavy."""

from __future__ import annotations

from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["masked", "causal"]
"""Trained to fill in masked tokens, or to go on with a text."""
Pooling: TypeAlias = Literal["cls", "last", "mean"]
Schedule: TypeAlias = Literal["linear", "constant"]
DeviceName: TypeAlias = Literal["auto", "cpu", "cuda", "mps"]
Precision: TypeAlias = Literal["bf16", "fp32"]

"""Types and records of language-model methods. This module imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["masked", "causal"]
"""Training objective of a model: predict masked tokens, or predict the next token."""
Requirement: TypeAlias = Literal["any", "masked", "causal", "text probabilities"]
"""What a method requires of a language model: nothing, a training objective, or probabilities of whole texts."""
Pooling: TypeAlias = Literal["cls", "last", "mean"]
"""Hidden state that represents a text: of the first token, of the last token, or the mean over all tokens."""
Schedule: TypeAlias = Literal["linear", "constant"]
"""Learning rate over the steps: linear decay to zero, or constant."""
DeviceName: TypeAlias = Literal["auto", "cpu", "cuda", "mps"]
Precision: TypeAlias = Literal["bf16", "fp32"]
"""Data type of matrix products."""
AttentionKernel: TypeAlias = Literal["auto", "grouped", "varlen"]
"""Implementation of attention in training. ``grouped``: attention matrices of groups of texts of similar length, padded
to the longest one. ``varlen``: flash attention of torch to texts of different lengths, without attention matrices.
``auto``: ``varlen`` where it applies, otherwise ``grouped``."""
WeightMode: TypeAlias = Literal["trained", "frozen", "nf4"]
"""Weight mode of a model. ``trained``: all weights are trainable, and a copy of them is kept to restore the model.
``frozen``: the weights are fixed and only adapters are trained. ``nf4``: as ``frozen``, quantized to four bits."""
Optimizer: TypeAlias = Literal["adamw", "adamw_8bit"]
"""AdamW with fp32 moments, or with 8-bit moments (paged on a GPU)."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """Files of a model in the format of transformers."""

    path: Path
    """Folder that holds the files."""
    state: str
    """Names, sizes and modification times of the files. Two equal states mean equal files."""

"""Gradient checkpointing: layers are computed again in the backward pass, to hold one layer's inner values at a time.

Dropout of a packed model counts its calls to know its masks. What is computed again must count from where the layer
began, or it would draw other masks (Chen et al. 2016, arXiv 1604.06174).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from peekbench_lm.forward_context import replaying


def set_checkpointing(network: nn.Module, wanted: bool) -> bool:
    """Have layers computed again in the backward pass, or not; whether the network has layers that know how."""
    from transformers.modeling_layers import GradientCheckpointingLayer

    layers: list[Any] = [module for module in network.modules() if isinstance(module, GradientCheckpointingLayer)]
    for layer in layers:
        layer.gradient_checkpointing = wanted
        layer._gradient_checkpointing_func = partial(checkpoint, use_reentrant=False, context_fn=_contexts)
    return bool(layers)


def _contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """What a layer is computed in, first and again."""
    return nullcontext(), replaying()

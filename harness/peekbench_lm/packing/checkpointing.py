"""Gradient checkpointing: the backward pass recomputes each layer, so only one layer's activations are in memory.

Source: Chen et al. (2016), https://arxiv.org/abs/1604.06174. Dropout of a packed model identifies its masks by counting
calls. A recomputed layer must therefore restart the count where the layer began, or it would draw other masks.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from peekbench_lm.packing.forward_context import replay_context


def set_checkpointing(network: nn.Module, enabled: bool) -> bool:
    """Enable or disable gradient checkpointing.

    Parameters
    ----------
    network
        Network of a model.
    enabled
        Whether the backward pass recomputes the layers.

    Returns
    -------
    bool
        Whether the network has layers that support checkpointing.
    """
    layers: list[Any] = [module for module in network.modules() if isinstance(module, GradientCheckpointingLayer)]
    for layer in layers:
        layer.gradient_checkpointing = enabled
        layer._gradient_checkpointing_func = partial(checkpoint, use_reentrant=False, context_fn=_contexts)
    return bool(layers)


def _contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return the contexts of a layer's first computation and of its recomputation."""
    return nullcontext(), replay_context()

"""Activations of transformers that torch computes in a single operation."""

from __future__ import annotations

from torch import nn
from transformers.activations import FastGELUActivation, NewGELUActivation

TANH_APPROXIMATIONS = (FastGELUActivation, NewGELUActivation)
"""Layers that compute GELU with a hyperbolic tangent, as in GPT-2, by eight operations that each store a tensor."""


def fuse_activations(module: nn.Module) -> None:
    """Replace the activations of a module by equivalent ones that are faster and store only their input.

    Parameters
    ----------
    module
        Module whose layers are replaced.
    """
    for name, child in module.named_children():
        if isinstance(child, TANH_APPROXIMATIONS):
            setattr(module, name, nn.GELU(approximate="tanh"))
        else:
            fuse_activations(child)

"""Networks whose weights and hidden states have bf16, except the weights of normalization.

The layers of a network with four-bit weights that are not quantized would otherwise keep fp32 weights. Hidden states
would then have fp32 from the word embedding to the head, because the sum of an fp32 and a bf16 tensor has fp32, and
gradient checkpointing would store them so. The choice of data types is that of Dettmers et al. (2023),
https://arxiv.org/abs/2305.14314: normalization computes in fp32, and all else in bf16.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from peekbench_lm.devices import matrix_dtype


class AutocastLinear(nn.Linear):
    """Linear layer with weights of any data type, which computes in that of the current autocast region or in fp32."""

    def forward(self, hidden: Tensor) -> Tensor:
        """Apply the layer to hidden states."""
        dtype = matrix_dtype(hidden.device)
        bias = self._parameters["bias"]
        return linear(hidden.to(dtype), self.weight.to(dtype), None if bias is None else bias.to(dtype))


def store_in_bf16(network: nn.Module) -> None:
    """Round the weights of linear and embedding layers to bf16, and let all layers return the same data type.

    In an autocast region, layers return bf16, also normalization, which computes in fp32. Outside of one, they return
    fp32, computed from the rounded weights. Weights of other layers, and those that they share, are not rounded.

    Parameters
    ----------
    network
        Network with fp32 weights; its quantized layers already compute in the precision of the autocast region.
    """
    rounded: list[nn.Parameter] = []
    kept: set[int] = set()
    for module in network.modules():
        weights = list(module.parameters(recurse=False))
        if type(module) is nn.Linear:
            module.__class__ = AutocastLinear
        elif weights and not _is_quantized(module):
            module.register_forward_hook(_cast_output)
        if type(module) is AutocastLinear or isinstance(module, nn.Embedding) or _is_quantized(module):
            rounded += [weight for weight in weights if weight.is_floating_point()]
        else:
            kept.update(map(id, weights))
    for weight in rounded:
        if id(weight) not in kept:
            weight.data = weight.data.to(torch.bfloat16)


def _is_quantized(module: nn.Module) -> bool:
    """Return whether a module is a linear layer with quantized weights."""
    return isinstance(module, nn.Linear) and not module.weight.is_floating_point()


def _cast_output(module: nn.Module, arguments: Any, output: Any) -> Any:
    """Return the output of an embedding or of normalization in the data type of matrix products."""
    return output.to(matrix_dtype(output.device)) if isinstance(output, Tensor) else output

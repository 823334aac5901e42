"""Weights of matrix products that are rounded to bf16 once per step, in memory that all steps use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary
from transformers.pytorch_utils import Conv1D

from peekbench_lm.models.packed_network import PackedNetwork

PRODUCTS = (nn.Linear, Conv1D)
"""Layers whose weight is only used in a matrix product, which autocast would round in each step."""

_copies: MutableMapping[Tensor, nn.Parameter] = WeakTensorKeyDictionary()
"""Rounded copies of the weights that are trained, by weight. All trainings of a model use their memory."""


class RoundedWeights:
    """Rounded copies of weights, which the layers use in the steps of a training in bf16 on a CPU.

    Products and their gradients are those of autocast, which rounds the weights as well. But their gradients stay in
    bf16 until the optimizer reads them, and no step needs memory for new copies. A weight that several layers share,
    such as a tied embedding, has no copy, because the sum of its gradients would be rounded.

    Parameters
    ----------
    model
        Model to train.
    modules
        Modules with the weights to train.
    """

    def __init__(self, model: PackedNetwork, modules: Sequence[nn.Module]) -> None:
        self._layers: list[tuple[nn.Module, nn.Parameter, nn.Parameter]] = []
        self._by_weight: dict[nn.Parameter, nn.Parameter] = {}
        if model.device.type != "cpu" or model.precision != "bf16":
            return
        trained = dict.fromkeys(layer for module in modules for layer in module.modules())
        every = dict.fromkeys([*model.network.modules(), *trained])
        num_owners = Counter(id(weight) for layer in every for weight in layer.parameters(recurse=False))
        for layer in trained:
            weight = layer.weight if type(layer) in PRODUCTS else None
            if isinstance(weight, nn.Parameter) and _is_rounded(weight) and num_owners[id(weight)] == 1:
                if weight not in _copies:
                    _copies[weight] = nn.Parameter(torch.empty(weight.shape, dtype=torch.bfloat16))
                copy = self._by_weight[weight] = _copies[weight]
                copy.data.copy_(weight.data)
                self._layers.append((layer, weight, copy))

    def copy(self, weight: nn.Parameter) -> nn.Parameter | None:
        """Return the rounded copy of a weight, which has to follow it, or None.

        Parameters
        ----------
        weight
            A weight to train.
        """
        return self._by_weight.get(weight)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let the layers use the rounded copies."""
        for layer, _, copy in self._layers:
            layer.weight = copy
        try:
            yield
        finally:
            for layer, weight, _ in self._layers:
                layer.weight = weight

    def clear_gradients(self) -> None:
        """Delete the gradients of the rounded copies."""
        for _, _, copy in self._layers:
            copy.grad = None

    def collect_gradients(self) -> None:
        """Add the gradients of the rounded copies to those of the weights, in fp32, for a step in several parts."""
        for _, weight, copy in self._layers:
            if copy.grad is not None:
                gradient = copy.grad.float()
                weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)
                copy.grad = None


def _is_rounded(weight: nn.Parameter) -> bool:
    """Return whether autocast would round a weight that is trained."""
    return weight.requires_grad and weight.dtype == torch.float32

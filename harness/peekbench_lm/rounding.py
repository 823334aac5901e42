"""Weights that a forward pass rounds to bf16 together, instead of layer by layer as autocast does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers.pytorch_utils import Conv1D

from peekbench_lm.devices import matrix_dtype

Siblings = tuple[tuple[str, ...], ...]
"""Names of linear layers that compute from the same hidden states, such as query, key and value."""


def find_siblings(body: nn.Module, compute: Callable[[], Any]) -> Siblings:
    """Return the groups of linear layers of one module that get the same tensor.

    Parameters
    ----------
    body
        Network to observe.
    compute
        Function that computes the network for some texts.
    """
    seen: dict[tuple[str, int], list[str]] = {}
    inputs: list[Tensor] = []  # kept until the end, so that no two have the same identity

    def observe(name: str, layer: nn.Module, arguments: tuple[Tensor]) -> None:
        inputs.append(arguments[0])
        seen.setdefault((name.rpartition(".")[0], id(arguments[0])), []).append(name)

    with ExitStack() as hooks:
        for name, layer in body.named_modules():
            if type(layer) is nn.Linear:
                hooks.enter_context(layer.register_forward_pre_hook(partial(observe, name)))
        compute()
    groups = dict.fromkeys(map(tuple, seen.values()))  # once, even if `compute` calls the network several times
    return tuple(names for names in groups if len(names) > 1)


class _Round(torch.autograd.Function):
    """Copies of fp32 weights in bf16: one operation for all of them, and one for their gradients.

    Weights of the same group are rows of one copy.
    """

    @staticmethod
    def forward(ctx: Any, sizes: Sequence[int], *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        remaining = iter(weights)
        groups = [list(islice(remaining, size)) for size in sizes]
        ctx.rows = [[len(weight) for weight in group] for group in groups]
        rounded = [
            group[0].new_empty((sum(rows), *group[0].shape[1:]), dtype=torch.bfloat16)
            for group, rows in zip(groups, ctx.rows, strict=True)
        ]
        torch._foreach_copy_(_split_rows(rounded, ctx.rows), weights)
        return tuple(rounded)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        given = [gradient for gradient in gradients if gradient is not None]
        full = [torch.empty_like(gradient, dtype=torch.float32) for gradient in given]
        torch._foreach_copy_(full, given)
        remaining = iter(full)
        of_weights: list[Tensor | None] = []
        for gradient, rows in zip(gradients, ctx.rows, strict=True):
            of_weights += [None] * len(rows) if gradient is None else torch.split(next(remaining), rows)
        return None, *of_weights


def _split_rows(stacked: Sequence[Tensor], rows: Sequence[Sequence[int]]) -> list[Tensor]:
    """Return the parts of some tensors with these numbers of rows."""
    pairs = zip(stacked, rows, strict=True)
    return list(chain.from_iterable(torch.split(whole, list(sizes)) for whole, sizes in pairs))


class _JointLinear:
    """Linear layers that are computed in one product when the first of them is called."""

    def __init__(self, weight: Tensor, bias: Tensor | None, rows: Sequence[int]) -> None:
        self._weight, self._bias, self._rows = weight, bias, list(rows)
        self._hidden: Tensor | None = None
        self._outputs: Sequence[Tensor] = ()

    def compute(self, position: int, hidden: Tensor) -> Tensor:
        """Return the output of the layer at a position of the group."""
        if hidden is not self._hidden:
            self._hidden = hidden
            self._outputs = torch.split(linear(hidden, self._weight, self._bias), self._rows, -1)
        return self._outputs[position]


@contextmanager
def rounded_weights(body: nn.Module, siblings: Siblings, device: torch.device) -> Iterator[None]:
    """In an autocast region of a GPU, compute linear layers with weights that are rounded when the block begins.

    Results are those of autocast, which rounds the weights of each layer in two operations, and their gradients in two
    more. Siblings are computed in one product. Weights that are not trained or that another kind of layer shares are
    left to autocast; all of them are, if the backward pass recomputes layers after the block, or on a CPU, where
    operations cost little and memory for all gradients costs more.

    Parameters
    ----------
    body
        Network to compute.
    siblings
        Layers that compute from the same hidden states.
    device
        Device of the computation.
    """
    layers = dict(body.named_modules())
    is_recomputed = any(getattr(layer, "gradient_checkpointing", False) for layer in layers.values())
    if device.type == "cpu" or is_recomputed or matrix_dtype(device) != torch.bfloat16:
        yield
        return
    others = [layer for layer in layers.values() if not isinstance(layer, nn.Linear | Conv1D)]
    kept = {id(weight) for layer in others for weight in layer.parameters(recurse=False)}

    def is_rounded(weight: Tensor | None) -> bool:
        return weight is not None and weight.requires_grad and weight.dtype == torch.float32 and id(weight) not in kept

    groups = [[layers[name] for name in names] for names in siblings if all(name in layers for name in names)]
    groups = [
        group
        for group in groups
        if all(type(layer) is nn.Linear and is_rounded(layer.weight) for layer in group)
        and len({layer.bias is None for layer in group}) == 1
        and all(layer.bias is None or is_rounded(layer.bias) for layer in group)
    ]
    joint = {id(layer) for group in groups for layer in group}
    alone = [
        (layer, name, weight)
        for layer in layers.values()
        if isinstance(layer, nn.Linear | Conv1D) and id(layer) not in joint
        for name, weight in layer.named_parameters(recurse=False)
        if is_rounded(weight)
    ]
    stacks = [[layer.weight for layer in group] for group in groups]
    stacks += [[layer.bias for layer in group] for group in groups if group[0].bias is not None]
    stacks += [[weight] for _, _, weight in alone]
    rounded: Iterator[Tensor] = iter(())
    if stacks:
        rounded = iter(_Round.apply([len(stack) for stack in stacks], *chain.from_iterable(stacks)))  # type: ignore[no-untyped-call]
    weights = list(islice(rounded, len(groups)))
    biases = [None if group[0].bias is None else next(rounded) for group in groups]
    try:
        for group, weight, bias in zip(groups, weights, biases, strict=True):
            product = _JointLinear(weight, bias, [len(layer.weight) for layer in group])
            for position, layer in enumerate(group):
                layer.forward = partial(product.compute, position)
        for (layer, name, _), copy in zip(alone, rounded, strict=True):
            place_weight(layer, name, copy)
        yield
    finally:
        for layer in chain.from_iterable(groups):
            vars(layer).pop("forward", None)
        for layer, name, weight in alone:
            place_weight(layer, name, weight)


def place_weight(layer: nn.Module, name: str, weight: Any) -> None:
    """Set a weight of a layer to a tensor, which need not be a parameter.

    Parameters
    ----------
    layer
        Layer to change.
    name
        Name of the weight.
    weight
        Tensor that the layer computes with.
    """
    layer._parameters[name] = weight

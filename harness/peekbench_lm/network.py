"""A network of transformers in memory, which computes packed texts if its architecture allows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers.activations import GELUTanh, NewGELUActivation

from peekbench import DataError
from peekbench.records import FloatArray
from peekbench_lm.attention import ATTENTION_NAME, register_attention
from peekbench_lm.devices import MicroBatch
from peekbench_lm.forward_context import forward_context, replace_dropout, set_checkpointing
from peekbench_lm.layout import Part, Step
from peekbench_lm.options import Precision, WeightMode
from peekbench_lm.tokenizer import context_limit

TOLERANCE = 1e-3  # relative difference; a wrong layout causes differences as large as the values
MAX_PROBE_LENGTH = 160  # tokens of a probe text, more than the attention windows of local models
LAYOUT_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Errors of models that do not support a layout."""


class PackedNetwork:
    """A network with its tokenizer, and the layout in which it computes several texts at once.

    Parameters
    ----------
    network
        Network of transformers on its device.
    tokenizer
        Tokenizer of transformers.
    folder
        Folder of the model.
    weight_mode
        Weight mode of the network.

    Raises
    ------
    DataError
        If the network gives different results if texts are computed together.
    """

    def __init__(self, network: Any, tokenizer: Any, folder: Path, weight_mode: WeightMode = "trained") -> None:
        self.network = network
        """Network of transformers."""
        self.tokenizer = tokenizer
        """Tokenizer of transformers."""
        self.folder = folder
        """Folder of the model."""
        self.weight_mode: WeightMode = weight_mode
        """Weight mode of the network."""
        self.device: torch.device = next(network.parameters()).device
        """Device of the computation."""
        register_attention()
        self.precision: Precision = "fp32"
        """Data type of matrix products in training."""
        self.micro_batch = MicroBatch(self.device)
        """Number of texts that are computed at once."""
        self.tolerance = TOLERANCE
        """Maximum relative difference between the same values computed in two layouts."""
        self.hidden_size = 0
        """Size of the hidden states."""
        self.values: dict[bytes, FloatArray] = {}
        """Values of texts under the loaded weights, which `compute_once` remembers."""
        self._default_attention = ""
        self._first_position: int | None = None
        fuse_activations(network)
        self._choose_layout()
        self._loaded = {name: weight.detach().clone() for name, weight in self._restored_weights()}
        self.restore()

    @property
    def is_packed(self) -> bool:
        """Whether texts are packed into one sequence. Models with their own attention get padded texts instead."""
        return self._first_position is not None

    @property
    def body(self) -> nn.Module:
        """Network without its language-model head."""
        body: nn.Module = self.network.base_model
        return body

    @property
    def first_position(self) -> int:
        """Position of the first token of a text."""
        return self._first_position or 0

    def context_limit(self, requested: int) -> int:
        """Return the number of tokens that the model reads of each text: at most `requested`."""
        return context_limit(self.tokenizer, self.folder, requested, self.first_position)

    def restore(self) -> None:
        """Restore the loaded weights."""
        set_checkpointing(self.network, False)
        for weight in self.network.parameters():
            weight.grad = None
            weight.requires_grad_(self.weight_mode == "trained")
        with torch.no_grad():
            for name, weight in self._restored_weights():
                weight.copy_(self._loaded[name])

    @property
    def is_as_loaded(self) -> bool:
        """Whether the weights are certainly the loaded ones: training requires gradients, which only `restore` ends."""
        return not any(weight.requires_grad for weight in self.network.parameters())

    def freeze(self) -> None:
        """Restore the loaded weights, and make none trainable until the next `restore`.

        Weights that require gradients round differently, even if no gradient is computed, because torch multiplies
        their matrices in another shape.
        """
        self.restore()
        self.network.requires_grad_(False)

    def _restored_weights(self) -> Iterable[tuple[str, nn.Parameter]]:
        """Return the names of the weights that training changes, and the weights."""
        return self.network.named_parameters() if self.weight_mode == "trained" else ()

    def checkpoint_gradients(self) -> None:
        """On a GPU, recompute the layers that support it in the backward pass, which saves memory."""
        set_checkpointing(self.network, self.device.type == "cuda")

    def run_in_parts(self, step: Step, attempt: Callable[[Sequence[Part]], Tensor]) -> Tensor:
        """Compute a step in micro-batches that fit into memory.

        Parameters
        ----------
        step
            Texts of the step.
        attempt
            Function of the micro-batches. It is called again with smaller ones if it runs out of memory.
        """
        return self.micro_batch.run(len(step.texts), lambda size: attempt(step.parts(size, self.device)))

    def hidden(self, part: Part) -> Tensor:
        """Return the last hidden states of the tokens of a part, shared tokens first; shape (num_packed, hidden_size).

        Call it inside `forward_context`.
        """
        hidden: Tensor = self.body(**self.network_inputs(part)).last_hidden_state
        return self._remove_padding(hidden, part)

    def network_inputs(self, part: Part) -> dict[str, Tensor]:
        """Return the arguments of the network for a part, packed or padded."""
        if self._first_position is not None:
            return {"input_ids": part.ids[None], "position_ids": part.positions[None] + self._first_position}
        width = max(part.lengths)
        ids = torch.zeros(len(part.lengths) * width, dtype=torch.long, device=self.device)
        ids[part.padded_indices] = part.ids
        is_real = torch.zeros_like(ids)
        is_real[part.padded_indices] = 1
        return {"input_ids": ids.view(-1, width), "attention_mask": is_real.view(-1, width)}

    def _remove_padding(self, hidden: Tensor, part: Part) -> Tensor:
        """Return hidden states of real tokens; shape (num_tokens, size)."""
        return hidden[0] if self.is_packed else hidden.flatten(0, 1)[part.padded_indices]

    @torch.no_grad()
    def _choose_layout(self) -> None:
        """Choose a layout in which several texts give the same results as each text alone.

        No attribute of a model says whether it uses transformers' attention registry and takes positions as an
        argument, so this method tries the layouts in turn: packed with positions from 0, packed with positions after
        that of the padding token (as in RoBERTa), and padded.
        """
        self.network.eval()
        self.network.config.use_cache = False
        (part,) = Step([self.probe_text(length) for length in (3, 5, self.probe_length)]).parts(3, self.device)
        texts = [self._outputs_alone(part.ids[None, start:stop]) for start, stop in part.spans]
        expected = [torch.cat(outputs) for outputs in zip(*texts, strict=True)]
        self.hidden_size = expected[0].shape[-1]
        default = self._default_attention = self.network.config._attn_implementation
        for first in (0, (getattr(self.network.config, "pad_token_id", None) or 0) + 1, None):
            self._first_position = first
            self.network.set_attn_implementation(default if first is None else ATTENTION_NAME)
            if self._reproduces(part, expected):
                break
        else:
            raise DataError(
                f"{self.folder}: this model gives different results if texts are computed together, which peekbench "
                "requires; choose another model"
            )
        if self.is_packed:
            replace_dropout(self.network)

    @property
    def probe_length(self) -> int:
        """Number of tokens of the longest probe text. RoBERTa reads fewer tokens than its configuration says."""
        return self.context_limit(MAX_PROBE_LENGTH) - 8

    def probe_text(self, length: int) -> list[int]:
        """Return the ids of `length` different tokens."""
        return [token % self.network.config.vocab_size for token in range(7, 7 + length)]

    def _outputs_alone(self, ids: Tensor) -> list[Tensor]:
        """Return the outputs for one text of shape (1, num_tokens), hidden states first; each (num_tokens, size)."""
        return [self.body(ids).last_hidden_state[0]]

    def _outputs(self, part: Part) -> list[Tensor]:
        """Return the outputs for the tokens of a part in the current layout, as `_outputs_alone` does for a text."""
        with forward_context(part, 0, "fp32"):
            return [self.hidden(part)]

    def _reproduces(self, part: Part, expected: Sequence[Tensor]) -> bool:
        """Return whether a part gives these outputs in the current layout."""
        try:
            outputs = self._outputs(part)
        except LAYOUT_ERRORS:
            return False
        return all(map(is_close, outputs, expected, repeat(self.tolerance)))


def fuse_activations(module: nn.Module) -> None:
    """Replace the GELU of GPT-2 by the same function in one operation. That of transformers takes eight."""
    for name, child in module.named_children():
        if type(child) is NewGELUActivation:
            setattr(module, name, GELUTanh())
        else:
            fuse_activations(child)


def is_close(actual: Tensor, expected: Tensor, tolerance: float) -> bool:
    """Return whether two tensors differ by at most `tolerance` times their largest value, or times 1.

    Parameters
    ----------
    actual, expected
        Tensors to compare.
    tolerance
        Maximum relative difference.
    """
    scale = max(1.0, expected.abs().max().item())
    return actual.shape == expected.shape and (actual - expected).abs().max().item() < tolerance * scale

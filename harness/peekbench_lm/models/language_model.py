"""A masked or causal language model in memory, which computes packed texts if its architecture allows it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from peekbench import DataError
from peekbench_lm.devices import keep_freed_memory
from peekbench_lm.models.adapters import ADAPTER_MARK, add_adapters, remove_adapters
from peekbench_lm.models.config import model_kind
from peekbench_lm.models.head_loss import log_probabilities, summed_loss
from peekbench_lm.models.loading import load_network, quiet_transformers
from peekbench_lm.models.micro_batch import MicroBatch
from peekbench_lm.models.tokens import context_limit, load_tokenizer
from peekbench_lm.packing.attention import ATTENTION_NAME
from peekbench_lm.packing.checkpointing import set_checkpointing
from peekbench_lm.packing.dropout import replace_dropout
from peekbench_lm.packing.embeddings import EmbeddingSubset, TiedEmbedding
from peekbench_lm.packing.forward_context import forward_context
from peekbench_lm.packing.layout import Part, Step
from peekbench_lm.types import Kind, Precision, WeightMode

TOLERANCE = 1e-3  # relative difference; a wrong layout causes differences as large as the values
ROUNDING = 1e-5  # relative difference between values computed from the same tokens
PROBE_LENGTH = 160  # tokens of the longest probe text, more than the attention windows of local models
LAYOUT_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Errors of models that do not support a layout."""


class LanguageModel:
    """A masked or causal language model with its tokenizer.

    Parameters
    ----------
    folder
        Folder of the model, in the format of transformers.
    device
        Device of the computation.
    weight_mode
        Weight mode of the model.

    Raises
    ------
    DataError
        If the files are not a language model, lack weights, or do not support the weight mode.
    PeekbenchError
        If the device is out of memory, or bitsandbytes is needed and not installed.
    """

    def __init__(self, folder: Path, device: torch.device, weight_mode: WeightMode = "trained") -> None:
        if device.type == "cpu":
            keep_freed_memory()
        self.kind: Kind = model_kind(folder)
        """Training objective of the model."""
        self.tokenizer = load_tokenizer(folder)
        """Tokenizer of transformers."""
        self.folder = folder
        if self.kind == "masked" and self.tokenizer.mask_token_id is None:
            raise DataError(f"{folder}: the tokenizer has no mask token; give one that has, or a causal model")
        self.weight_mode: WeightMode = weight_mode
        with quiet_transformers():
            self.network = load_network(folder, self.kind, weight_mode, device)
        """Network of transformers, with its language-model head."""
        self.device = device
        self.precision: Precision = "fp32"
        """Data type of matrix products in training."""
        self.micro_batch = MicroBatch(device)
        """Number of texts that are computed at once."""
        self.embedding_override: EmbeddingSubset | TiedEmbedding | None = None
        """Module that replaces the word embedding during training; None for the embedding of the network."""
        self.tolerance = TOLERANCE
        """Maximum relative difference between the same values computed in two layouts."""
        self.supports_trees: bool | None = None
        """Whether the model computes trees of continuations; None before the first check."""
        self._default_attention = ""
        self._first_position: int | None = None
        self._has_linear_head = False
        self.hidden_size = 0
        """Size of the hidden states."""
        self._choose_layout()
        trained = self.network.named_parameters() if weight_mode == "trained" else ()
        self._weights = {name: weight.detach().clone() for name, weight in trained}
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

    @contextmanager
    def default_attention(self) -> Iterator[None]:
        """Use the default attention of transformers, which takes rows of texts and a mask."""
        packed = self.network.config._attn_implementation
        self.network.set_attn_implementation(self._default_attention)
        try:
            yield
        finally:
            self.network.set_attn_implementation(packed)

    def as_mask(self, visible: Tensor) -> Tensor:
        """Convert a boolean mask to the form that the default attention takes.

        Parameters
        ----------
        visible
            True if a query attends to a key; shape (num_texts, 1, num_queries, num_keys).
        """
        if self._default_attention == "sdpa":
            return visible
        mask = torch.zeros(visible.shape, device=visible.device)
        return mask.masked_fill(~visible, torch.finfo(torch.float32).min)

    def context_limit(self, requested: int) -> int:
        """Return the number of tokens that the model reads of each text: at most `requested`."""
        return context_limit(self.tokenizer, self.folder, requested, self.first_position)

    def copy(self) -> LanguageModel:
        """Return a model that can be trained independently. It shares all weights that are never trained."""
        other = copy.copy(self)
        shared = self.network.parameters() if self.weight_mode != "trained" else ()
        other.network = copy.deepcopy(self.network, {id(weight): weight for weight in shared})
        other.micro_batch = MicroBatch(self.device)
        return other

    def add_adapters(self, rank: int, alpha: int, dropout: float, seed: int) -> None:
        """Add new low-rank adapters, and make them the only trainable weights (Hu et al. 2021, arXiv 2106.09685).

        Parameters
        ----------
        rank
            Rank of each adapter.
        alpha
            The output of each adapter is scaled by alpha / rank.
        dropout
            Dropout probability at the input of each adapter.
        seed
            Seed of the initial weights.
        """
        torch.manual_seed(seed)
        add_adapters(self.body, rank, alpha, dropout)
        for name, weight in self.network.named_parameters():
            weight.requires_grad_(ADAPTER_MARK in name)
            if ADAPTER_MARK in name:
                weight.data = weight.data.to(self.device)
        if self.is_packed:
            replace_dropout(self.network)

    @torch.no_grad()
    def restore(self) -> None:
        """Remove adapters and restore the loaded weights."""
        remove_adapters(self.network)
        set_checkpointing(self.network, False)
        for name, weight in self.network.named_parameters():
            weight.grad = None
            weight.requires_grad_(self.weight_mode == "trained")
            if self.weight_mode == "trained":
                weight.copy_(self._weights[name])

    def checkpoint_gradients(self, enabled: bool | None) -> None:
        """Enable or disable gradient checkpointing, which saves memory by recomputing layers in the backward pass.

        Parameters
        ----------
        enabled
            Whether to recompute layers; None to do so on a GPU if the model supports it.

        Raises
        ------
        DataError
            If checkpointing is enabled explicitly and the layers of the model do not support it.
        """
        if enabled is None:
            enabled = self.device.type == "cuda"
        elif enabled and not set_checkpointing(self.network, enabled):
            raise DataError(
                f"{self.folder}: the layers of the model do not support gradient checkpointing; write "
                "gradient_checkpointing: false"
            )
        set_checkpointing(self.network, enabled)

    def run_in_parts(self, step: Step, attempt: Callable[[Sequence[Part]], Tensor]) -> Tensor:
        """Compute a step in micro-batches that fit into memory.

        Parameters
        ----------
        step
            Texts of the step.
        attempt
            Function of the micro-batches. It is called again with smaller ones if it runs out of memory.

        Raises
        ------
        PeekbenchError
            If a single text does not fit into memory.
        """
        return self.micro_batch.run(len(step.texts), lambda size: attempt(step.parts(size, self.device)))

    def hidden(self, part: Part) -> Tensor:
        """Return the last hidden states of the tokens of a part, shared tokens first; shape (num_packed, hidden_size).

        Call it inside `forward_context`.
        """
        hidden: Tensor = self.body(**self._inputs(part)).last_hidden_state
        return self._remove_padding(hidden, part)

    def logits(self, part: Part, indices: Tensor) -> Tensor:
        """Return the output of the language-model head at some tokens of a part; shape (len(indices), vocabulary).

        Call it inside `forward_context`.
        """

        def select(module: nn.Module, arguments: Any, output: Any) -> Any:
            output.last_hidden_state = self._remove_padding(output.last_hidden_state, part)[indices][None]
            return output

        with self.body.register_forward_hook(select):
            logits: Tensor = self.network(**self._inputs(part)).logits[0]
        return logits

    def loss(self, part: Part, indices: Tensor, targets: Tensor, counts: Tensor | None = None) -> Tensor:
        """Return the sum of the cross-entropies at some tokens of a part. Call it inside `forward_context`.

        Parameters
        ----------
        part
            Part of a step.
        indices
            Tokens of the part whose hidden states predict the targets; shape (n,).
        targets
            Token ids to predict; shape (n,).
        counts
            Weight of each target as a float, by default 1; shape (n,).
        """
        if not self._has_linear_head:
            losses = cross_entropy(self.logits(part, indices).float(), targets, reduction="none")
            return (losses if counts is None else losses * counts).sum()
        return summed_loss(self.network.get_output_embeddings(), self._head_inputs(part, indices), targets, counts)

    def log_probabilities(self, part: Part, indices: Tensor, targets: Tensor) -> Tensor:
        """Return natural logarithms of the probabilities of targets; shape (len(indices),).

        The parameters are those of `loss`. Call it inside `forward_context`.
        """
        if not self._has_linear_head:
            return -cross_entropy(self.logits(part, indices).float(), targets, reduction="none")
        return log_probabilities(self.network.get_output_embeddings(), self._head_inputs(part, indices), targets)

    def _head_inputs(self, part: Part, indices: Tensor) -> Tensor:
        """Return the inputs of the linear head at some tokens of a part; shape (len(indices), size)."""
        with patched_forward(self.network.get_output_embeddings(), lambda hidden: hidden):
            return self.logits(part, indices)

    def _inputs(self, part: Part) -> dict[str, Tensor]:
        """Return the arguments of the network for a part, packed or padded."""
        if self._first_position is not None:
            tokens = (
                {"input_ids": part.ids[None]}
                if self.embedding_override is None
                else {"inputs_embeds": self.embedding_override(part.ids)[None]}
            )
            return {**tokens, "position_ids": part.positions[None] + self._first_position}
        width = max(part.lengths)
        ids = torch.zeros(len(part.lengths) * width, dtype=torch.long, device=self.device)
        ids[part.padded_indices] = part.ids
        is_real = torch.zeros_like(ids)
        is_real[part.padded_indices] = 1
        return {"input_ids": ids.view(-1, width), "attention_mask": is_real.view(-1, width)}

    def _remove_padding(self, hidden: Tensor, part: Part) -> Tensor:
        """Return hidden states of real tokens; shape (num_tokens, size)."""
        return hidden.squeeze(0) if self.is_packed else hidden.flatten(0, 1)[part.padded_indices]

    @torch.no_grad()
    def _choose_layout(self) -> None:
        """Choose a layout in which several texts give the same results as each text alone.

        No attribute of a model says whether it uses transformers' attention registry and takes positions as an
        argument, so this method tries the layouts in turn: packed with positions from 0, packed with positions after
        that of the padding token (as in RoBERTa), and padded.
        """
        self.network.eval()
        self.network.config.use_cache = False
        end = self.network.config.vocab_size
        longest = self.context_limit(PROBE_LENGTH) - 8  # RoBERTa reads fewer tokens than its configuration says
        step = Step([[token % end for token in range(7, 7 + length)] for length in (3, 5, longest)])
        (part,) = step.parts(3, self.device)
        texts = [part.ids[None, start:stop] for start, stop in part.spans]
        hidden = torch.cat([self.body(ids).last_hidden_state[0] for ids in texts])  # (num_tokens, hidden_size)
        logits = torch.cat([self.network(ids).logits[0] for ids in texts])  # (num_tokens, vocabulary)
        self.hidden_size = hidden.shape[-1]
        if self.kind == "causal":
            self._check_causality(texts[-1])
        default = self._default_attention = self.network.config._attn_implementation
        for first in (0, (getattr(self.network.config, "pad_token_id", None) or 0) + 1, None):
            self._first_position = first
            self.network.set_attn_implementation(default if first is None else ATTENTION_NAME)
            if self._reproduces(part, hidden, logits):
                break
        else:
            raise DataError(
                f"{self.folder}: this {self.kind} language model gives different results if texts are computed "
                "together, which peekbench requires; choose another model"
            )
        self._has_linear_head = self._ends_in_linear_head(part)
        if self.is_packed:
            replace_dropout(self.network)

    def _ends_in_linear_head(self, part: Part) -> bool:
        """Return whether a linear layer is the last operation on the scores. Some models scale or cap them."""
        head = self.network.get_output_embeddings()
        if type(head) is not nn.Linear:
            return False
        indices = torch.arange(0, len(part.ids), 2, device=self.device)
        scores = torch.linspace(-50, 50, head.out_features, device=self.device).expand(len(indices), -1)
        with forward_context(part, 0, "fp32"), patched_forward(head, lambda _: scores[None]):
            logits = self.logits(part, indices)
        if not torch.equal(logits, scores):
            return False
        try:
            with forward_context(part, 0, "fp32"):
                return self._head_inputs(part, indices).shape == (len(indices), head.in_features)
        except RuntimeError:
            return False  # an operation after the head depends on the size of the vocabulary

    def _reproduces(self, part: Part, hidden: Tensor, logits: Tensor) -> bool:
        """Return whether a part gives these hidden states and logits in the current layout."""
        indices = torch.arange(0, len(hidden), 2, device=self.device)
        try:
            with forward_context(part, 0, "fp32"):
                part_hidden = self.hidden(part)
            with forward_context(part, 0, "fp32"):
                part_logits = self.logits(part, indices)
        except LAYOUT_ERRORS:
            return False
        return _is_close(part_hidden, hidden, self.tolerance) and _is_close(
            part_logits, logits[indices], self.tolerance
        )

    def _check_causality(self, ids: Tensor) -> None:
        """Raise an error if hidden states depend on later tokens."""
        changed = ids.clone()
        changed[0, -1] = ids[0, 0]
        before, after = (self.body(tokens).last_hidden_state[0, :-1] for tokens in (ids, changed))
        if (before - after).abs().max() > ROUNDING * before.abs().max():
            raise DataError(
                f"{self.folder}: the configuration declares a causal language model, but its tokens attend to later "
                "tokens; choose another model, or correct `architectures` or `is_decoder` in its config.json"
            )


def _is_close(actual: Tensor, expected: Tensor, tolerance: float) -> bool:
    scale = max(1.0, expected.abs().max().item())
    return actual.shape == expected.shape and (actual - expected).abs().max().item() < tolerance * scale


@contextmanager
def patched_forward(layer: nn.Module, function: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Replace the computation of a layer.

    Parameters
    ----------
    layer
        Layer to patch.
    function
        Function from the inputs to the outputs of the layer.
    """
    layer.forward = function
    try:
        yield
    finally:
        del layer.forward

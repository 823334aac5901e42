"""A masked or causal language model in memory, which computes packed texts if its architecture allows it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from peekbench import DataError
from peekbench_lm.forward_context import forward_context, replace_dropout
from peekbench_lm.head import log_probabilities, summed_loss
from peekbench_lm.layout import Part, Step
from peekbench_lm.loading import AutocastLinear, load_network, quiet_transformers
from peekbench_lm.network import PackedNetwork
from peekbench_lm.options import Kind, WeightMode
from peekbench_lm.tokenizer import load_tokenizer, model_kind

ADAPTER_MARK = "lora_"
"""Text that the names of all adapter weights contain."""


def add_adapters(body: nn.Module, rank: int, alpha: int, dropout: float) -> None:
    """Add new adapters to every linear layer. Torch's random generator draws their weights.

    Parameters
    ----------
    body
        Network without its language-model head.
    rank
        Rank of each adapter.
    alpha
        The output of each adapter is scaled by alpha / rank.
    dropout
        Dropout probability at the input of each adapter.
    """
    config = LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules="all-linear")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft handles the transposed weights of GPT-2 and warns about them
        inject_adapter_in_model(config, body)


def keep_input_dtype(body: nn.Module) -> None:
    """Let adapters compute with the data type of their inputs, which peft otherwise copies to that of the adapters.

    The weights of adapters have fp32, as in peft: a step of the optimizer may be smaller than the rounding of bf16.
    Matrix products round them in an autocast region, so fp32 copies of hidden states would only take memory.

    Parameters
    ----------
    body
        Network with adapters, whose hidden states have the data type of matrix products.
    """
    for module in body.modules():
        if isinstance(module, LoraLayer):
            module.cast_input_dtype_enabled = False


def remove_adapters(module: nn.Module) -> None:
    """Replace each layer that has an adapter by the original layer."""
    for name, child in module.named_children():
        if hasattr(child, "base_layer"):
            setattr(module, name, child.base_layer)
        else:
            remove_adapters(child)


ROUNDING = 1e-5  # relative difference between values computed from the same tokens


class LanguageModel(PackedNetwork):
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
        If bitsandbytes is needed and not installed.
    """

    def __init__(self, folder: Path, device: torch.device, weight_mode: WeightMode = "trained") -> None:
        self.kind: Kind = model_kind(folder)
        """Training objective of the model."""
        tokenizer = load_tokenizer(folder)
        self.supports_trees: bool | None = None
        """Whether the model computes trees of continuations; None before the first check."""
        self._has_linear_head = False
        with quiet_transformers():
            network = load_network(folder, self.kind, weight_mode, device)
        super().__init__(network, tokenizer, folder, weight_mode)

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
        if self.weight_mode == "nf4":
            keep_input_dtype(self.body)
        for name, weight in self.network.named_parameters():
            weight.requires_grad_(ADAPTER_MARK in name)
            if ADAPTER_MARK in name:
                weight.data = weight.data.to(self.device, torch.float32)  # peft rounds those of quantized layers
        if self.is_packed:
            replace_dropout(self.network)

    def restore(self) -> None:
        """Remove adapters and restore the loaded weights."""
        remove_adapters(self.network)
        super().restore()

    def logits(self, part: Part, indices: Tensor) -> Tensor:
        """Return the output of the language-model head at some tokens of a part; shape (len(indices), vocabulary).

        Call it inside `forward_context`.
        """

        def select(module: nn.Module, arguments: Any, output: Any) -> Any:
            output.last_hidden_state = self._remove_padding(output.last_hidden_state, part)[indices][None]
            return output

        with self.body.register_forward_hook(select):
            logits: Tensor = self.network(**self.network_inputs(part)).logits[0]
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
        with self._sparse_embedding_gradient():
            hidden = self._head_inputs(part, indices)
        return summed_loss(self.network.get_output_embeddings(), hidden, targets, counts)

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

    @contextmanager
    def _sparse_embedding_gradient(self) -> Iterator[None]:
        """Compute only the gradients of tokens that occur, if the gradient of the head has those of all tokens.

        Both are one weight, as in most models. Its rows are added in place, because torch would copy all of them.
        """
        embedding = self.network.get_input_embeddings()
        weight = embedding.weight
        is_tied = weight is self.network.get_output_embeddings().weight and isinstance(embedding, nn.Embedding)
        if not is_tied or not weight.requires_grad or self.device.type != "cpu":
            yield
            return
        rows = weight.detach().requires_grad_()  # the same values with a gradient of its own

        def add_rows(rows: Tensor) -> None:
            assert rows.grad is not None
            gradient, rows.grad = rows.grad.coalesce(), None
            weight.grad.index_add_(0, gradient.indices()[0], gradient.values())  # the head, computed last, comes first

        rows.register_post_accumulate_grad_hook(add_rows)
        embedding.sparse = True
        embedding._parameters["weight"] = rows
        try:
            yield
        finally:
            embedding.sparse = False
            embedding._parameters["weight"] = weight

    @torch.no_grad()
    def _choose_layout(self) -> None:
        if self.kind == "causal":
            self._check_causality()
        super()._choose_layout()
        self._has_linear_head = self._ends_in_linear_head()

    def _outputs_alone(self, ids: Tensor) -> list[Tensor]:
        return [*super()._outputs_alone(ids), self.network(ids).logits[0]]

    def _outputs(self, part: Part) -> list[Tensor]:
        hidden = super()._outputs(part)
        backwards = torch.arange(len(part.ids), device=self.device).flip(0)  # some models ignore the choice of tokens
        with forward_context(part, 0, "fp32"):
            return [*hidden, self.logits(part, backwards).flip(0)]

    def _ends_in_linear_head(self) -> bool:
        """Return whether a linear layer is the last operation on the scores. Some models scale or cap them."""
        head = self.network.get_output_embeddings()
        if type(head) not in (nn.Linear, AutocastLinear):
            return False
        (part,) = Step([self.probe_text(5)]).parts(1, self.device)
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

    def _check_causality(self) -> None:
        """Raise an error if hidden states depend on later tokens."""
        self.network.eval()
        ids = torch.tensor([self.probe_text(self.probe_length)], device=self.device)
        changed = ids.clone()
        changed[0, -1] = ids[0, 0]
        before, after = (self.body(tokens).last_hidden_state[0, :-1] for tokens in (ids, changed))
        if (before - after).abs().max() > ROUNDING * before.abs().max():
            raise DataError(
                f"{self.folder}: the configuration declares a causal language model, but its tokens attend to later "
                "tokens; choose another model, or correct `architectures` or `is_decoder` in its config.json"
            )


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


class Snapshot:
    """Copy of the trainable weights of a model: all weights, or those of its adapters.

    Parameters
    ----------
    model
        Model to copy.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._weights = {
            name: weight.detach().clone() for name, weight in model.network.named_parameters() if weight.requires_grad
        }

    @torch.no_grad()
    def restore(self, share: float = 1.0) -> None:
        """Move the weights of the model back to their values in this copy.

        Parameters
        ----------
        share
            Share of the distance to move; 1 restores the weights exactly.
        """
        for name, weight in self._model.network.named_parameters():
            if name in self._weights:
                if share == 1:
                    weight.copy_(self._weights[name])
                else:
                    weight.lerp_(self._weights[name], share)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Use the weights of this copy, and return to the current weights afterwards."""
        current = Snapshot(self._model)
        self.restore()
        try:
            yield
        finally:
            current.restore()

"""Trains word embeddings without a gradient as large as they are for the few rows that a step looks up.

Most rows are those of tokens that no text has. Their gradient is zero in every step, and all that an optimizer does to
them is weight decay, which can be made up for at once. In a BERT of 6 layers, 384 wide, these rows are half of all
weights. So classification trains the rows that texts use, and none of the others. In pretraining, where the embedding
is also the language-model head, all rows have a gradient from there, and that of the rows looked up is added to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

if TYPE_CHECKING:
    from peekbench_lm.model import LanguageModel
    from peekbench_lm.training import Recipe


class UsedRows(nn.Module):
    """Rows of an embedding, looked up by token ids."""

    def __init__(self, whole: nn.Embedding, texts: Sequence[Sequence[int]]) -> None:
        super().__init__()
        ids = sorted({token for text in texts for token in text})
        self.ids = torch.tensor(ids, device=whole.weight.device)
        self.weight = nn.Parameter(whole.weight.detach()[self.ids])
        self._row = torch.zeros(whole.num_embeddings, dtype=torch.long, device=whole.weight.device)
        self._row[self.ids] = torch.arange(len(ids), device=whole.weight.device)
        self._padding = ids.index(whole.padding_idx) if whole.padding_idx in ids else None

    def forward(self, ids: Tensor) -> Tensor:
        """(n,) to (n, size)."""
        return embedding(self._row[ids], self.weight, self._padding)


class TiedRows(nn.Module):
    """Rows of an embedding that is also the head, looked up by token ids."""

    def __init__(self, whole: nn.Embedding) -> None:
        super().__init__()
        self._whole = [whole]  # in a list, so that its weights are not this module's too

    def forward(self, ids: Tensor) -> Tensor:
        """(n,) to (n, size)."""
        (whole,) = self._whole
        rows = embedding(ids, whole.weight.detach())
        if torch.is_grad_enabled():

            def add(found: Tensor) -> None:
                assert found.grad is not None
                if whole.weight.grad is None:
                    whole.weight.grad = torch.zeros_like(whole.weight)
                real = slice(None) if whole.padding_idx is None else ids != whole.padding_idx
                whole.weight.grad.index_add_(0, ids[real], found.grad[real])

            rows.requires_grad_().register_post_accumulate_grad_hook(add)  # type: ignore[no-untyped-call]
        return rows


@contextmanager
def tied_rows(model: LanguageModel) -> Iterator[None]:
    """Look rows up so, where the embedding is the head and both are trained."""
    whole, head = model.network.get_input_embeddings(), model.network.get_output_embeddings()
    if _is_plain(model, whole) and head is not None and head.weight is whole.weight:
        model.words = TiedRows(whole)
    try:
        yield
    finally:
        model.words = None


def _is_plain(model: LanguageModel, whole: nn.Module | None) -> bool:
    """Whether this is all that the embedding does, and whether it is trained."""
    return (
        model.is_packed and type(whole) is nn.Embedding and whole.max_norm is None and bool(whole.weight.requires_grad)
    )


@contextmanager
def used_rows(model: LanguageModel, texts: Sequence[Sequence[int]], recipe: Recipe, num_steps: int) -> Iterator[None]:
    """Train with these rows only, and leave the whole embedding as a training of all rows would."""
    whole = model.network.get_input_embeddings()
    if not _is_plain(model, whole):
        yield
        return
    whole.weight.requires_grad_(False)
    words = model.words = UsedRows(whole, texts)
    try:
        yield
        decay = 1.0
        for step in range(num_steps):
            decay *= 1 - recipe.rate(step / num_steps) * recipe.weight_decay
        with torch.no_grad():
            whole.weight.mul_(decay)
            whole.weight[words.ids] = words.weight
    finally:
        model.words = None
        whole.weight.requires_grad_(True)

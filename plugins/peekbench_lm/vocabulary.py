"""Trains the rows of a word embedding that texts use, and none of the others.

Most rows are those of tokens that no text has. Their gradient is zero in every step, and all that an optimizer does to
them is weight decay, which can be made up for at once. In a BERT of 6 layers, 384 wide, these rows are half of all
weights. This holds where the embedding is not also the language-model head: in classification, not in pretraining.
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


@contextmanager
def used_rows(model: LanguageModel, texts: Sequence[Sequence[int]], recipe: Recipe, num_steps: int) -> Iterator[None]:
    """Train with these rows only, and leave the whole embedding as a training of all rows would."""
    whole = model.network.get_input_embeddings()
    if (
        not model.is_packed
        or type(whole) is not nn.Embedding
        or whole.max_norm is not None
        or not whole.weight.requires_grad
    ):
        yield  # one that computes something else, or that is not trained
        return
    whole.weight.requires_grad_(False)
    model.words = UsedRows(whole, texts)
    try:
        yield
        decay = 1.0
        for step in range(num_steps):
            decay *= 1 - recipe.rate(step / num_steps) * recipe.weight_decay
        with torch.no_grad():
            whole.weight.mul_(decay)
            whole.weight[model.words.ids] = model.words.weight
    finally:
        model.words = None
        whole.weight.requires_grad_(True)

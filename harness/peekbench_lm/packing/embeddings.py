"""Word embeddings whose gradient has no row for tokens that a step does not look up.

Most rows of a word embedding belong to tokens that no training text contains. Their gradient is zero in every step, and
an optimizer only applies weight decay to them, which can be applied once at the end. In a BERT with 6 layers of width
384, these rows are half of all weights. `EmbeddingSubset` therefore holds only the rows of tokens that occur in the
texts. In pretraining, the embedding is usually also the language-model head, which gives every row a gradient;
`TiedEmbedding` adds the gradient of the looked-up rows to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding


class EmbeddingSubset(nn.Module):
    """Rows of an embedding for the tokens that occur in some texts, as weights of their own.

    Parameters
    ----------
    whole
        Embedding of all tokens.
    texts
        Token ids of each text.
    """

    def __init__(self, whole: nn.Embedding, texts: Sequence[Sequence[int]]) -> None:
        super().__init__()
        ids = sorted({token for text in texts for token in text})
        self.ids = torch.tensor(ids, device=whole.weight.device)
        """Token ids of the rows; shape (num_rows,)."""
        self.weight = nn.Parameter(whole.weight.detach()[self.ids])
        self._rows = torch.zeros(whole.num_embeddings, dtype=torch.long, device=whole.weight.device)
        self._rows[self.ids] = torch.arange(len(ids), device=whole.weight.device)
        self._padding = ids.index(whole.padding_idx) if whole.padding_idx in ids else None

    def forward(self, ids: Tensor) -> Tensor:
        """Look up token ids of shape (n,); return embeddings of shape (n, size)."""
        return embedding(self._rows[ids], self.weight, self._padding)


class TiedEmbedding(nn.Module):
    """Embedding that is also the language-model head. The gradient of looked-up rows is added to that of the head.

    Parameters
    ----------
    whole
        Embedding of all tokens.
    """

    def __init__(self, whole: nn.Embedding) -> None:
        super().__init__()
        self._whole = [whole]  # a list, so that torch does not register the weights twice

    def forward(self, ids: Tensor) -> Tensor:
        """Look up token ids of shape (n,); return embeddings of shape (n, size)."""
        (whole,) = self._whole
        rows = embedding(ids, whole.weight.detach())
        if torch.is_grad_enabled():

            def add_gradient(rows: Tensor) -> None:
                assert rows.grad is not None
                if whole.weight.grad is None:
                    whole.weight.grad = torch.zeros_like(whole.weight)
                if whole.padding_idx is not None:  # without a selection of rows, for which the program would wait
                    rows.grad.masked_fill_((ids == whole.padding_idx)[:, None], 0.0)
                whole.weight.grad.index_add_(0, ids, rows.grad)

            rows.requires_grad_().register_post_accumulate_grad_hook(add_gradient)  # type: ignore[no-untyped-call]
        return rows

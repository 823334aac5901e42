"""How probable each of several continuations is behind each of many texts.

What is the same is computed once: the tokens that all texts begin with, whose keys and values are kept; each text, for
all its continuations; and the tokens that continuations begin with. Behind a text stand all continuations as a tree,
in which a token sees the text and the tokens that lead to it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from peekbench.records import FloatArray
from peekbench_lm.devices import is_out_of_memory
from peekbench_lm.layout import count_shared
from peekbench_lm.likelihood import score_pairs
from peekbench_lm.model import LanguageModel
from peekbench_lm.names import Precision
from peekbench_lm.training import in_parts

NO_NOTION = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What models raise that keep states instead of keys and values, or take masks and positions of another shape."""
WINDOWS = ("sliding_window", "window_size", "attention_chunk_size")  # what configurations call the reach of attention


class Tree:
    """Continuations that share their first tokens, each shared token once."""

    def __init__(self, continuations: Sequence[Sequence[int]]) -> None:
        """Lay out continuations, each at least one token long."""
        self.tokens: list[int] = []
        """At each node; those that lead to a node stand before it. A continuation's last token needs no node."""
        self.parents: list[int] = []
        """Node before a node; -1 for the text's last token."""
        self.depths: list[int] = []
        """Tokens from the text's last one to a node."""
        self.steps: list[list[tuple[int, int]]] = []
        """Of each continuation: at which place (0 is the text's last token, k + 1 is node k) which token follows."""
        nodes: dict[tuple[int, ...], int] = {(): -1}
        for continuation in continuations:
            steps = []
            for length, token in enumerate(continuation):
                before = tuple(continuation[:length])
                if before not in nodes:
                    self.parents.append(nodes[before[:-1]])
                    self.tokens.append(before[-1])
                    self.depths.append(length)
                    nodes[before] = len(self.tokens) - 1
                steps.append((nodes[before] + 1, token))
            self.steps.append(steps)

    def sees(self) -> Tensor:
        """Which nodes (columns) a node (row) sees: itself and those that lead to it; (num_nodes, num_nodes)."""
        seen = torch.eye(len(self.tokens), dtype=torch.bool)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                seen[node] |= seen[parent]
        return seen


@torch.no_grad()
def score_continuations(
    model: LanguageModel,
    texts: Sequence[Sequence[int]],
    continuations: Sequence[Sequence[int]],
    batch_size: int,
    precision: Precision,
) -> FloatArray:
    """Logarithm of each continuation's probability behind each text; (len(texts), len(continuations)).

    Parameters
    ----------
    texts, continuations
        Token ids of each, at least one.
    batch_size
        Texts that are computed at once.

    Raises
    ------
    PeekbenchError
        Where a single text does not fit into memory.
    """
    if computes_trees(model, texts, continuations):
        return _score_trees(model, texts, Tree(continuations), batch_size, precision)
    return score_one_by_one(model, texts, continuations, batch_size, precision)


def computes_trees(
    model: LanguageModel, texts: Sequence[Sequence[int]], continuations: Sequence[Sequence[int]]
) -> bool:
    """Whether trees serve here; one by one takes a model's time once more for each continuation of each text."""
    longest = max(map(len, texts), default=0) + max(map(len, continuations))
    return longest <= _window(model) and try_trees(model)


@torch.no_grad()
def try_trees(model: LanguageModel) -> bool:
    """Find out whether a model takes trees: it has to take keys and values, positions and a mask from its caller.

    That is not written anywhere, so it is tried, once a model.
    """
    if model.takes_trees is None:
        end = model.network.config.vocab_size
        texts = [[token % end for token in range(7, 7 + length)] for length in (9, 4, 12)]
        continuations = [[token % end for token in tokens] for tokens in ((3, 5, 8), (3, 5, 9), (3,), (6, 5))]
        wanted = score_one_by_one(model, texts, continuations, 16, "fp32")
        try:
            found = _score_trees(model, texts, Tree(continuations), 2, "fp32")
        except NO_NOTION as error:
            if isinstance(error, RuntimeError) and is_out_of_memory(error):
                raise
            model.takes_trees = False
        else:
            model.takes_trees = bool(np.abs(found - wanted).max() < model.tolerance * max(1.0, np.abs(wanted).max()))
    return model.takes_trees


def score_one_by_one(
    model: LanguageModel,
    texts: Sequence[Sequence[int]],
    continuations: Sequence[Sequence[int]],
    batch_size: int,
    precision: Precision,
) -> FloatArray:
    """As `score_continuations`, for any model: every text with every continuation is a sequence of its own."""
    pairs = [(text, continuation) for text in texts for continuation in continuations]
    return score_pairs(model, pairs, batch_size, precision).reshape(len(texts), len(continuations))


def _score_trees(
    model: LanguageModel, texts: Sequence[Sequence[int]], tree: Tree, batch_size: int, precision: Precision
) -> FloatArray:
    model.network.eval()
    shared = count_shared(texts)
    scores = np.empty((len(texts), len(tree.steps)))
    order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
    with model.usual_attention(), torch.autocast(model.device.type, torch.bfloat16, enabled=precision == "bf16"):
        kept = _keys_and_values(model, texts[0][:shared]) if shared else []
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]

            def attempt(size: int, rows: Sequence[int] = rows) -> FloatArray:
                parts = [rows[first : first + size] for first in range(0, len(rows), size)]
                return np.concatenate(
                    [_batch(model, [texts[row][shared:] for row in part], tree, kept, shared) for part in parts]
                )

            scores[rows] = in_parts(model, len(rows), attempt)
    return scores


def _keys_and_values(model: LanguageModel, ids: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """Of tokens that stand at the beginning, for each layer; (1, num_heads, len(ids), head_size)."""
    from transformers import DynamicCache

    cache = DynamicCache()
    model.body(
        input_ids=torch.tensor([list(ids)], device=model.device),
        position_ids=torch.arange(len(ids), device=model.device)[None] + model.first_position,
        past_key_values=cache,
        use_cache=True,
    )
    layers: Any = cache.layers
    return [(layer.keys, layer.values) for layer in layers]


def _batch(
    model: LanguageModel,
    texts: Sequence[Sequence[int]],
    tree: Tree,
    kept: Sequence[tuple[Tensor, Tensor]],
    shared: int,
) -> FloatArray:
    """Log-probabilities of continuations; texts without what they share; (len(texts), num_continuations).

    Texts are padded on the left, so that their last tokens, and the trees behind them, stand in the same columns.
    """
    from transformers import DynamicCache

    num_texts, width, num_nodes = len(texts), max(map(len, texts)), len(tree.tokens)
    lengths = torch.tensor([len(text) for text in texts])
    ids = torch.tensor([[*[0] * (width - len(text)), *text, *tree.tokens] for text in texts])
    columns = torch.arange(width) - (width - lengths)[:, None]  # (num_texts, width); negative in the padding
    behind = lengths[:, None] - 1 + torch.tensor(tree.depths, dtype=torch.long)
    positions = torch.cat([columns.clamp(min=0), behind], dim=1) + shared + model.first_position
    real = columns >= 0
    sees = torch.zeros(num_texts, width + num_nodes, shared + width + num_nodes, dtype=torch.bool)
    sees[:, :, :shared] = True
    sees[:, :width, shared : shared + width] = real[:, None, :] & torch.ones(width, width, dtype=torch.bool).tril()
    sees[:, :width, shared : shared + width] |= torch.eye(width, dtype=torch.bool)  # padding has to see something
    sees[:, width:, shared : shared + width] = real[:, None, :]
    sees[:, width:, shared + width :] = tree.sees()
    before = DynamicCache([tuple(kind.expand(num_texts, -1, -1, -1) for kind in layer) for layer in kept])
    inputs: dict[str, Any] = {
        "input_ids": ids.to(model.device),
        "position_ids": positions.to(model.device),
        "attention_mask": model.as_mask(sees[:, None].to(model.device)),
        "past_key_values": before,
        "use_cache": True,
    }

    def choose(module: Any, arguments: Any, output: Any) -> Any:
        output.last_hidden_state = output.last_hidden_state[:, width - 1 :]
        return output

    with model.body.register_forward_hook(choose):
        logits = model.network(**inputs).logits.float()  # (num_texts, 1 + num_nodes, vocabulary)
    steps = [(place, token, which) for which, each in enumerate(tree.steps) for place, token in each]
    places, tokens, of = torch.tensor(steps, device=model.device).T
    each = logits[:, places, tokens] - logits.logsumexp(-1)[:, places]
    sums = torch.zeros(num_texts, len(tree.steps), dtype=torch.float64)
    return sums.index_add_(1, of.cpu(), each.double().cpu()).numpy()


def _window(model: LanguageModel) -> float:
    """Tokens before a token that it sees, where the model limits them."""
    config = model.network.config.get_text_config()
    found = [getattr(config, name, None) for name in WINDOWS]
    return min((size for size in found if isinstance(size, int)), default=float("inf"))

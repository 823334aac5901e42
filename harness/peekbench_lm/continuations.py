"""Trees of continuations that share their first tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from peekbench.records import FloatArray
from peekbench_lm.devices import is_out_of_memory, to_device
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import count_shared
from peekbench_lm.likelihood import score_pairs
from peekbench_lm.options import Precision


class ContinuationTree:
    """Tree of continuations that holds each shared token once.

    Parameters
    ----------
    continuations
        Token ids of each continuation, at least one per continuation.
    """

    def __init__(self, continuations: Sequence[Sequence[int]]) -> None:
        self.tokens: list[int] = []
        """Token id of each node. Parents precede their children. The last token of a continuation needs no node."""
        self.parents: list[int] = []
        """Parent of each node; -1 for the last token of the text."""
        self.depths: list[int] = []
        """Distance of each node from the last token of the text."""
        self.steps: list[list[tuple[int, int]]] = []
        """For each continuation, pairs of a position and the token id that follows it. Position 0 is the last token of
        the text, and position k + 1 is node k."""
        nodes: dict[tuple[int, ...], int] = {(): -1}
        for continuation in continuations:
            steps = []
            for length, token in enumerate(continuation):
                path = tuple(continuation[:length])
                if path not in nodes:
                    self.parents.append(nodes[path[:-1]])
                    self.tokens.append(path[-1])
                    self.depths.append(length)
                    nodes[path] = len(self.tokens) - 1
                steps.append((nodes[path] + 1, token))
            self.steps.append(steps)

    def visible_nodes(self) -> Tensor:
        """Return True if a node (row) attends to a node (column): itself or an ancestor; (num_nodes, num_nodes)."""
        visible = torch.eye(len(self.tokens), dtype=torch.bool)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                visible[node] |= visible[parent]
        return visible


KeysAndValues: TypeAlias = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer, both of shape (num_texts, num_heads, num_tokens, head_size)."""

UNSUPPORTED_ERRORS = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Errors of models that keep other states than keys and values, or need masks and positions of another shape."""
WINDOW_KEYS = ("sliding_window", "window_size", "attention_chunk_size")
"""Keys of the attention window in the configurations of different models."""
LAYER_TYPES = {"full_attention", "sliding_attention"}
"""Types of layers whose masks are known."""


@torch.no_grad()
def score_continuations(
    model: LanguageModel,
    texts: Sequence[Sequence[int]],
    continuations: Sequence[Sequence[int]],
    batch_size: int,
    precision: Precision,
    beginning: Beginning | None = None,
) -> FloatArray:
    """Return the natural log probability of each continuation after each text; shape (len(texts), len(continuations)).

    Parameters
    ----------
    model
        A causal model.
    texts, continuations
        Token ids of each, at least one.
    batch_size
        Number of texts that are computed at once; fewer if the device is out of memory.
    precision
        Data type of matrix products.
    beginning
        First tokens of every text, but not all tokens of one, whose keys and values a single text uses again. Several
        texts use those of all tokens that they share.
    """
    if supports_trees(model, texts, continuations):
        return _score_trees(model, texts, ContinuationTree(continuations), batch_size, precision, beginning)
    return score_separately(model, texts, continuations, batch_size, precision)


def supports_trees(
    model: LanguageModel, texts: Sequence[Sequence[int]], continuations: Sequence[Sequence[int]]
) -> bool:
    """Return whether the model can score all continuations of a text at once.

    If it cannot, each continuation takes as much time as a text.

    Parameters
    ----------
    model
        A causal model.
    texts, continuations
        Token ids of each, at least one.
    """
    longest = max(map(len, texts), default=0) + max(map(len, continuations))
    return check_tree_support(model) and (longest <= attention_window(model) or _knows_window(model))


def _knows_window(model: LanguageModel) -> bool:
    """Return whether it is known which tokens the attention window of each layer hides."""
    config = model.network.config.get_text_config()
    is_known = getattr(config, "sliding_window", None) == attention_window(model)
    return is_known and LAYER_TYPES.issuperset(getattr(config, "layer_types", None) or ())


@torch.no_grad()
def check_tree_support(model: LanguageModel) -> bool:
    """Return whether a model takes keys and values, positions, and a mask as arguments, as trees require.

    No attribute of a model says so. The first call compares the scores of trees with those of separate sequences; later
    calls return the same answer.

    Parameters
    ----------
    model
        A causal model.
    """
    if model.supports_trees is None:
        texts = [_probe(model, length) for length in (9, 4, 12)]
        continuations = [[3, 5, 8], [3, 5, 9], [3], [6, 5]]
        model.supports_trees = _agree(model, texts, continuations)
    return model.supports_trees


def _probe(model: LanguageModel, length: int) -> list[int]:
    """Return token ids, of which a model's vocabulary has enough."""
    return [token % model.network.config.vocab_size for token in range(7, 7 + length)]


def _agree(model: LanguageModel, texts: Sequence[Sequence[int]], continuations: Sequence[Sequence[int]]) -> bool:
    """Return whether the scores of trees are those of separate sequences."""
    end = model.network.config.vocab_size
    continuations = [[token % end for token in tokens] for tokens in continuations]
    expected = score_separately(model, texts, continuations, 16, "fp32")
    try:
        actual = _score_trees(model, texts, ContinuationTree(continuations), 2, "fp32")
    except UNSUPPORTED_ERRORS as error:
        if isinstance(error, RuntimeError) and is_out_of_memory(error):
            raise
        return False
    tolerance = model.tolerance * max(1.0, np.abs(expected).max())
    return bool(np.abs(actual - expected).max() < tolerance)


def score_separately(
    model: LanguageModel,
    texts: Sequence[Sequence[int]],
    continuations: Sequence[Sequence[int]],
    batch_size: int,
    precision: Precision,
) -> FloatArray:
    """Return the scores of `score_continuations`, with one sequence for each pair of text and continuation.

    This works for every causal model. The parameters are those of `score_continuations`.
    """
    pairs = [(text, continuation) for text in texts for continuation in continuations]
    return score_pairs(model, pairs, batch_size, precision).reshape(len(texts), len(continuations))


def _score_trees(
    model: LanguageModel,
    texts: Sequence[Sequence[int]],
    tree: ContinuationTree,
    batch_size: int,
    precision: Precision,
    beginning: Beginning | None = None,
) -> FloatArray:
    """Return the scores of `score_continuations` for the continuations of a tree."""
    model.network.eval()
    if beginning is None or len(texts) > 1:
        beginning = Beginning(texts[0][: count_shared(texts)])
    num_shared = len(beginning.ids)
    scores = np.empty((len(texts), len(tree.steps)))
    order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
    with model.default_attention(), torch.autocast(model.device.type, torch.bfloat16, enabled=precision == "bf16"):
        prefix = beginning.keys_and_values(model)
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]

            def attempt(size: int, rows: Sequence[int] = rows) -> FloatArray:
                chunks = [rows[first : first + size] for first in range(0, len(rows), size)]
                return np.concatenate(
                    [
                        _score_batch(model, [texts[row][num_shared:] for row in chunk], tree, prefix, num_shared)
                        for chunk in chunks
                    ]
                )

            scores[rows] = model.micro_batch.run(len(rows), attempt)
    return scores


class Beginning:
    """First tokens of texts, whose keys and values are computed at most once, with one model and precision.

    Parameters
    ----------
    ids
        Token ids.
    """

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = ids
        """Token ids."""
        self._keys_and_values: KeysAndValues = []

    def keys_and_values(self, model: LanguageModel) -> KeysAndValues:
        """Return keys and values, none without tokens. Call it inside `LanguageModel.default_attention`."""
        if self.ids and not self._keys_and_values:
            self._keys_and_values = compute_prefix(model, self.ids)
        return self._keys_and_values


def compute_prefix(model: LanguageModel, ids: Sequence[int]) -> KeysAndValues:
    """Return the keys and values of tokens that begin all texts, for a single text.

    Call it inside `LanguageModel.default_attention`.

    Parameters
    ----------
    model
        A causal model.
    ids
        Token ids, at least one.
    """
    cache = DynamicCache()
    model.body(
        input_ids=to_device(torch.tensor([list(ids)]), model.device),
        position_ids=torch.arange(len(ids), device=model.device)[None] + model.first_position,
        past_key_values=cache,
        use_cache=True,
    )
    layers: Any = cache.layers
    return [(layer.keys, layer.values) for layer in layers]


def _score_batch(
    model: LanguageModel,
    texts: Sequence[Sequence[int]],
    tree: ContinuationTree,
    prefix: KeysAndValues,
    num_shared: int,
) -> FloatArray:
    """Return the log probabilities of continuations; shape (len(texts), num_continuations).

    Padding is on the left, so the last tokens of all texts, and the trees after them, are in the same columns.

    Parameters
    ----------
    model
        A causal model.
    texts
        Token ids of each text, without the tokens that all texts share.
    tree
        Continuations.
    prefix
        Keys and values of the shared tokens.
    num_shared
        Number of shared tokens.
    """
    num_texts, width = len(texts), max(map(len, texts))
    lengths = torch.tensor([len(text) for text in texts])
    ids = torch.tensor([[*[0] * (width - len(text)), *text, *tree.tokens] for text in texts])
    columns = torch.arange(width) - (width - lengths)[:, None]  # (num_texts, width); negative for padding
    node_positions = lengths[:, None] - 1 + torch.tensor(tree.depths, dtype=torch.long)  # (num_texts, num_nodes)
    positions = torch.cat([columns.clamp(min=0), node_positions], dim=1) + num_shared + model.first_position
    visible = _visible_tokens(columns, tree, num_shared)
    keys_and_values = DynamicCache([tuple(kind.expand(num_texts, -1, -1, -1) for kind in layer) for layer in prefix])
    inputs: dict[str, Any] = {
        "input_ids": to_device(ids, model.device),
        "position_ids": to_device(positions, model.device),
        "attention_mask": _make_mask(model, visible, positions - model.first_position, num_shared),
        "past_key_values": keys_and_values,
        "use_cache": True,
    }

    def select(module: Any, arguments: Any, output: Any) -> Any:
        output.last_hidden_state = output.last_hidden_state[:, width - 1 :]
        return output

    with model.body.register_forward_hook(select):
        logits = model.network(**inputs).logits.float()  # (num_texts, 1 + num_nodes, vocabulary)
    steps = [(index, token, row) for row, pairs in enumerate(tree.steps) for index, token in pairs]
    indices, tokens, rows = torch.tensor(steps).T
    indices, tokens = to_device(indices, model.device), to_device(tokens, model.device)
    log_probabilities = logits[:, indices, tokens] - logits.logsumexp(-1)[:, indices]  # (num_texts, num_steps)
    sums = torch.zeros(num_texts, len(tree.steps), dtype=torch.float64)
    return sums.index_add_(1, rows, log_probabilities.double().cpu()).numpy()


def _visible_tokens(columns: Tensor, tree: ContinuationTree, num_shared: int) -> Tensor:
    """Return True if a token attends to a key; shape (num_texts, width + num_nodes, num_shared + width + num_nodes).

    Parameters
    ----------
    columns
        Position of each token in its text, negative for padding; shape (num_texts, width).
    tree
        Continuations.
    num_shared
        Number of shared tokens.
    """
    (num_texts, width), num_nodes = columns.shape, len(tree.tokens)
    is_real = columns >= 0
    visible = torch.zeros(num_texts, width + num_nodes, num_shared + width + num_nodes, dtype=torch.bool)
    visible[:, :, :num_shared] = True
    text = slice(num_shared, num_shared + width)
    visible[:, :width, text] = is_real[:, None, :] & torch.ones(width, width, dtype=torch.bool).tril()
    visible[:, :width, text] |= torch.eye(width, dtype=torch.bool)  # padding must attend to some token
    visible[:, width:, text] = is_real[:, None, :]
    visible[:, width:, num_shared + width :] = tree.visible_nodes()
    return visible


def _make_mask(model: LanguageModel, visible: Tensor, positions: Tensor, num_shared: int) -> Any:
    """Return the mask that a model takes: one for all layers, or one for each type of layer.

    Parameters
    ----------
    model
        A causal model.
    visible
        True if a token attends to a key; shape (num_texts, num_tokens, num_shared + num_tokens).
    positions
        Position of each token in its text; shape (num_texts, num_tokens).
    num_shared
        Number of shared tokens.
    """

    def convert(visible: Tensor) -> Tensor:
        return model.as_mask(to_device(visible[:, None], model.device))

    window = attention_window(model)
    if positions.max() < window:
        return convert(visible)
    keys = torch.cat([torch.arange(num_shared).expand(len(positions), -1), positions], dim=1)
    nearby = visible & (positions[:, :, None] - keys[:, None] < window)
    types = getattr(model.network.config.get_text_config(), "layer_types", None)
    if not types:
        return convert(nearby)
    return {"full_attention": convert(visible), "sliding_attention": convert(nearby)}


def attention_window(model: LanguageModel) -> float:
    """Return the number of tokens that a token attends to; infinite for no limit."""
    config = model.network.config.get_text_config()
    sizes = [getattr(config, key, None) for key in WINDOW_KEYS]
    return min((size for size in sizes if isinstance(size, int)), default=math.inf)

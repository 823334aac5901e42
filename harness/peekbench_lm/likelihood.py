"""Log-probabilities of sequences of any length, and of continuations of texts, under a causal model.

Sequences that are longer than the context of the model are scored in windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from peekbench import Inputs
from peekbench.records import FloatArray
from peekbench_lm.devices import to_device
from peekbench_lm.forward_context import forward_context
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import Part, Step
from peekbench_lm.options import Precision
from peekbench_lm.tokenizer import encode_whole


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens of a sequence that the model reads at once."""

    start: int
    """Position of the first token."""
    end: int
    """Position after the last token."""
    num_scored: int
    """Number of last tokens that count. Earlier windows score the tokens before them."""


def make_windows(length: int, size: int, stride: int) -> list[Window]:
    """Return windows that cover a sequence and score each token once.

    In sequences longer than one window, all tokens after the first window have at least `size` - `stride` tokens of
    context.

    Parameters
    ----------
    length
        Number of tokens of the sequence.
    size
        Number of tokens of a window.
    stride
        Number of tokens that each window after the first adds; at most `size`.
    """
    windows = [Window(0, min(size, length), min(size, length))]
    while (scored := windows[-1].end) < length:
        end = min(scored + stride, length)
        windows.append(Window(end - size, end, end - scored))
    return windows


@torch.no_grad()
def log_likelihoods(
    model: LanguageModel, sequences: Sequence[Sequence[int]], context_length: int, stride: int, batch_tokens: int
) -> list[float]:
    """Return the sum of the natural log probabilities of the tokens of each sequence.

    Each window begins with the beginning-of-text token. If the model has none, the first token of a sequence has no
    probability and does not count.

    Parameters
    ----------
    model
        A causal model.
    sequences
        Token ids of each sequence, without special tokens.
    context_length
        Number of tokens that the model reads at once.
    stride
        Number of tokens that each window after the first adds.
    batch_tokens
        Number of tokens that are computed at once; fewer if the device is out of memory.

    Raises
    ------
    PeekbenchError
        If a single window does not fit into memory.
    """
    model.network.eval()
    first = model.tokenizer.bos_token_id
    prefix = [] if first is None else [first]
    size = context_length - len(prefix)
    pairs: list[tuple[list[int], list[int]]] = []
    owners: list[int] = []  # position of the sequence that each pair belongs to
    for position, sequence in enumerate(sequences):
        for window in make_windows(len(sequence), size, min(stride, size)):
            ids = [*prefix, *sequence[window.start : window.end]]
            if num_scored := min(window.num_scored, len(ids) - 1):
                pairs.append((ids[:-num_scored], ids[-num_scored:]))
                owners.append(position)
    sums = score_pairs(model, pairs, max(1, batch_tokens // context_length), model.precision)
    totals: list[float] = np.bincount(owners, sums, minlength=len(sequences)).tolist()
    return totals


@torch.no_grad()
def score_pairs(
    model: LanguageModel,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    batch_size: int,
    precision: Precision,
) -> FloatArray:
    """Return the natural log probability of the continuation of each pair; shape (len(pairs),).

    Parameters
    ----------
    model
        A causal model.
    pairs
        Token ids of a text and of its continuation, at least one each.
    batch_size
        Number of pairs that are computed at once; fewer if the device is out of memory.
    precision
        Data type of matrix products.

    Raises
    ------
    PeekbenchError
        If a single pair does not fit into memory.
    """
    model.network.eval()
    scores = np.empty(len(pairs))
    for start in range(0, len(pairs), batch_size):
        batch = pairs[start : start + batch_size]
        step = Step([[*text, *continuation[:-1]] for text, continuation in batch])
        targets = [batch[position][1] for position in step.order]
        sums = model.run_in_parts(step, partial(_sum_log_probabilities, model, targets, precision))
        scores[[start + position for position in step.order]] = sums.numpy()
    return scores


def _sum_log_probabilities(
    model: LanguageModel, targets: Sequence[Sequence[int]], precision: Precision, parts: Sequence[Part]
) -> Tensor:
    """Sum the log probabilities of the targets of each text, in fp64 on the CPU; shape (num_texts,)."""
    sums = []
    for part in parts:
        part_targets = targets[part.texts]
        indices = torch.cat(
            [torch.arange(end - len(tokens), end) for (_, end), tokens in zip(part.spans, part_targets, strict=True)]
        )  # (num_targets of the part,)
        ids = to_device(torch.tensor(list(chain.from_iterable(part_targets))), model.device)
        with forward_context(part, 0, precision):
            log_probabilities = model.log_probabilities(part, to_device(indices, model.device), ids).cpu().double()
        sums += [text.sum() for text in torch.split(log_probabilities, list(map(len, part_targets)))]
    return torch.stack(sums)


BATCH_TOKENS = 8192
"""Number of tokens that are computed at once. It affects results only by rounding."""


def text_log_likelihoods(model: LanguageModel, texts: Inputs, context_length: int) -> FloatArray:
    """Return the natural logarithm of the probability of each text, including its end; shape (len(texts),).

    A text begins after the beginning-of-text token, or after the end-of-text token if the model has no other. Texts
    that are longer than the context are scored in windows, so that each token has at least half a window of context.
    The result is computed in fp32: in bf16 it would depend visibly on the other texts of a batch.

    Parameters
    ----------
    model
        A causal model.
    texts
        Texts to score.
    context_length
        Number of tokens that the model reads at once.

    Raises
    ------
    DataError
        If the tokenizer has no end-of-text token, or changes a text.
    PeekbenchError
        If a single window does not fit into memory.
    """
    sequences = encode_whole(model.tokenizer, texts)
    if model.tokenizer.bos_token_id is None:  # the first token of a sequence then counts as given
        sequences = [[model.tokenizer.eos_token_id, *ids] for ids in sequences]
    precision, model.precision = model.precision, "fp32"
    try:
        totals = log_likelihoods(model, sequences, context_length, max(1, context_length // 2), BATCH_TOKENS)
    finally:
        model.precision = precision
    return np.minimum(totals, 0.0)  # rounding may exceed the probability 1


def split_for_training(model: LanguageModel, texts: Inputs, context_length: int) -> list[list[int]]:
    """Return token ids whose prediction, one token after the other, trains a model on whole texts.

    Each sequence begins as in `text_log_likelihoods`. Texts that are longer than the context become several sequences.

    Parameters
    ----------
    model
        A causal model.
    texts
        Texts to train on.
    context_length
        Maximum number of tokens of a sequence.

    Raises
    ------
    DataError
        If the tokenizer has no end-of-text token, or changes a text.
    """
    tokenizer = model.tokenizer
    first = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    size = context_length - 1
    return [
        [first, *ids[start : start + size]]
        for ids in encode_whole(tokenizer, texts)
        for start in range(0, len(ids), size)
    ]

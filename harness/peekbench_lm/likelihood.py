"""Log-probabilities of sequences of any length, and of continuations of texts, under a causal model.

Sequences that are longer than the context of the model are scored in windows.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def make_windows(length: int, size: int, stride: int) -> list[tuple[int, int, int]]:
    """Return windows that cover a sequence and score each token once: first and last position, and tokens to score.

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
    windows = [(0, min(size, length), min(size, length))]
    while (scored := windows[-1][1]) < length:
        end = min(scored + stride, length)
        windows.append((end - size, end, end - scored))
    return windows


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
    """
    tokenizer = model.tokenizer
    size, prefix = context_length, [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    size -= len(prefix)
    pairs: list[tuple[list[int], list[int]]] = []
    owners: list[int] = []  # position of the text that each pair belongs to
    for position, ids in enumerate(encode_whole(tokenizer, texts)):
        # The first token of a sequence counts as given.
        sequence = ids if prefix else [tokenizer.eos_token_id, *ids]
        for start, end, num_new in make_windows(len(sequence), size, min(max(1, context_length // 2), size)):
            window = [*prefix, *sequence[start:end]]
            if num_scored := min(num_new, len(window) - 1):
                pairs.append((window[:-num_scored], window[-num_scored:]))
                owners.append(position)
    sums = score_pairs(model, pairs, max(1, BATCH_TOKENS // context_length), "fp32")
    totals = np.bincount(owners, sums, minlength=len(texts)).astype(np.float64)
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

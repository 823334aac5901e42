"""How probable a causal language model finds continuations of texts, and sequences of any length.

Sequences that exceed its context are read in windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from peekbench.records import FloatArray
from peekbench_lm.forward_context import computing
from peekbench_lm.layout import Part, Step
from peekbench_lm.model import LanguageModel
from peekbench_lm.names import Precision
from peekbench_lm.training import fitting


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a sequence that is read at once."""

    start: int
    end: int
    num_scored: int
    """How many of its last tokens count; those before them were scored by an earlier window."""


def windows(length: int, room: int, stride: int) -> list[Window]:
    """Cover a sequence so that each token counts once.

    Where it does not fit into one window, all tokens but those of the first have at least `room - stride` before them.

    Parameters
    ----------
    length
        Tokens of the sequence.
    room
        Tokens that a window holds.
    stride
        Tokens that each window but the first adds; at most `room`.
    """
    cover = [Window(0, min(room, length), min(room, length))]
    while (done := cover[-1].end) < length:
        end = min(done + stride, length)
        cover.append(Window(end - room, end, end - done))
    return cover


@torch.no_grad()
def log_likelihoods(
    model: LanguageModel, sequences: Sequence[Sequence[int]], context_length: int, stride: int, batch_tokens: int
) -> list[float]:
    """Sum of the natural log probabilities of each sequence's tokens.

    Every window begins with the token that begins texts. A model without one gives the first token of a sequence no
    probability, and it does not count.

    Parameters
    ----------
    sequences
        Token ids, without special tokens.
    context_length
        Tokens that the model reads at once.
    stride
        As of `windows`.
    batch_tokens
        Tokens that are computed together; fewer where memory runs out.
    """
    model.network.eval()
    first = model.tokenizer.bos_token_id
    head = [] if first is None else [first]
    room = context_length - len(head)
    pairs: list[tuple[list[int], list[int]]] = []
    owners: list[int] = []
    for number, sequence in enumerate(sequences):
        for window in windows(len(sequence), room, min(stride, room)):
            read = [*head, *sequence[window.start : window.end]]
            if num_scored := min(window.num_scored, len(read) - 1):
                pairs.append((read[:-num_scored], read[-num_scored:]))
                owners.append(number)
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
    """Logarithm of the probability of a continuation behind a text, for each pair of them; (len(pairs),).

    Parameters
    ----------
    pairs
        Token ids of a text and of its continuation, at least one each.
    batch_size
        Pairs that are computed at once; fewer where memory runs out.

    Raises
    ------
    PeekbenchError
        Where a single pair does not fit into memory.
    """
    model.network.eval()
    scores = np.empty(len(pairs))
    for start in range(0, len(pairs), batch_size):
        some = pairs[start : start + batch_size]
        step = Step([[*text, *continuation[:-1]] for text, continuation in some])
        targets = [some[position][1] for position in step.order]
        sums = fitting(model, partial(_sums, model, targets, precision), step)
        scores[[start + position for position in step.order]] = sums.numpy()
    return scores


def _sums(
    model: LanguageModel, targets: Sequence[Sequence[int]], precision: Precision, parts: Sequence[Part]
) -> Tensor:
    """Log probabilities of what follows the last tokens of each text, summed, in fp64 on the CPU; (num_texts,)."""
    found = []
    for part in parts:
        mine = targets[part.texts]
        places = torch.cat(
            [torch.arange(end - len(tokens), end) for (_, end), tokens in zip(part.spans, mine, strict=True)]
        )
        wanted = torch.tensor(list(chain.from_iterable(mine)), device=model.device)
        with computing(part, 0, precision):
            said = model.log_probabilities(part, places.to(model.device), wanted).cpu().double()
        found += [piece.sum() for piece in torch.split(said, list(map(len, mine)))]
    return torch.stack(found)

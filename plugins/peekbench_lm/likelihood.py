"""How probable a causal language model finds sequences of any length, in windows where they exceed its context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from peekbench_lm.layout import Part, Step
from peekbench_lm.model import LanguageModel
from peekbench_lm.situation import computing
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
    pieces: list[tuple[int, list[int], int]] = []  # the sequence, what is read, how much of its end counts
    for number, sequence in enumerate(sequences):
        for window in windows(len(sequence), room, min(stride, room)):
            read = [*head, *sequence[window.start : window.end]]
            pieces.append((number, read, min(window.num_scored, len(read) - 1)))
    totals = [0.0] * len(sequences)
    size = max(1, batch_tokens // context_length)
    for start in range(0, len(pieces), size):
        some = pieces[start : start + size]
        step = Step([read for _, read, _ in some])
        counts = [some[position][2] for position in step.order]
        sums = fitting(model, partial(_sums, model, counts), step).tolist()
        for position, total in zip(step.order, sums, strict=True):
            totals[some[position][0]] += total
    return totals


def _sums(model: LanguageModel, counts: Sequence[int], parts: Sequence[Part]) -> Tensor:
    """Log probabilities of the last tokens of each text, summed, in fp64; (num_texts,)."""
    found = []
    for part in parts:
        mine = counts[part.texts]
        places = torch.cat(
            [torch.arange(end - 1 - count, end - 1) for (_, end), count in zip(part.spans, mine, strict=True)]
        ).to(model.device)
        with computing(part, 0, model.precision):
            said = model.log_probabilities(part, places, part.ids[places + 1]).cpu().double()
        found += [piece.sum() for piece in torch.split(said, list(mine))]
    return torch.stack(found)

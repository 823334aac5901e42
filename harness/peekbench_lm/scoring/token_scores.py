"""Scores of the single tokens of texts under a causal model: their log probabilities, plain or standardized."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

import torch
from torch import Tensor

from peekbench.records import FloatArray
from peekbench_lm.devices import to_device
from peekbench_lm.models.language_model import LanguageModel
from peekbench_lm.packing.forward_context import forward_context
from peekbench_lm.packing.layout import Part, Step
from peekbench_lm.types import Precision

MIN_VARIANCE = 1e-12  # of the log probability of a random word; a model that is certain has none


@torch.no_grad()
def score_tokens(
    model: LanguageModel, texts: Sequence[Sequence[int]], batch_size: int, precision: Precision, *, standardized: bool
) -> list[FloatArray]:
    """Return a score of each token of each text after the first one.

    Parameters
    ----------
    model
        A causal model.
    texts
        Token ids of each text, special tokens included, at least two each.
    batch_size
        Number of texts that are computed at once; fewer if the device is out of memory.
    precision
        Data type of matrix products.
    standardized
        Whether to return (log p - mean) / standard deviation, over the distribution that the model predicts at the
        position of the token (Zhang et al. 2024, arXiv 2404.02936, equation 3), instead of the log probability.

    Returns
    -------
    list of array
        One array per text, of shape (number of tokens - 1,); natural logarithms.

    Raises
    ------
    PeekbenchError
        If a single text does not fit into memory.
    """
    model.network.eval()
    scores: list[FloatArray] = []
    for start in range(0, len(texts), batch_size):
        batch = texts[start : start + batch_size]
        step = Step([text[:-1] for text in batch])
        targets = [batch[position][1:] for position in step.order]
        moments = model.run_in_parts(step, partial(_token_moments, model, targets, precision))
        values = (moments[:, 0] - moments[:, 1]) / moments[:, 2].clamp(min=MIN_VARIANCE).sqrt()
        in_order = torch.split(values if standardized else moments[:, 0], list(map(len, targets)))
        scores += [in_order[place].numpy() for place in sorted(range(len(batch)), key=list(step.order).__getitem__)]
    return scores


def _token_moments(
    model: LanguageModel, targets: Sequence[Sequence[int]], precision: Precision, parts: Sequence[Part]
) -> Tensor:
    """Return the moments of all targets, in fp64 on the CPU; shape (num_targets, 3)."""
    moments = []
    for part in parts:
        indices = torch.cat([torch.arange(start, end) for start, end in part.spans])  # (num_targets of the part,)
        ids = to_device(torch.tensor(list(chain.from_iterable(targets[part.texts]))), model.device)
        with forward_context(part, 0, precision):
            moments.append(model.token_moments(part, to_device(indices, model.device), ids).cpu().double())
    return torch.cat(moments)

"""Training that minimizes the perplexity of the unlabeled texts alone (Hu et al. 2025, arXiv 2505.20633)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.data import PromptFrame
from peekbench.records import FloatArray
from peekbench_lm.devices import to_device
from peekbench_lm.fit import load_for_fit
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import Part, Step
from peekbench_lm.likelihood import score_pairs
from peekbench_lm.seeds import derive_seed
from peekbench_lm.tokenizer import encode
from peekbench_lm.training_loop import Batch, Epochs, shuffle_batches, train
from peekbench_prompting.examples import ExamplePrompts
from peekbench_prompting.fit import make_encoder, make_predictor
from peekbench_prompting.training import prepare
from peekbench_prompting.training_options import InputPerplexity


def input_perplexity(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: InputPerplexity, context: Context
) -> Predictor:
    """Minimize the perplexity of the unlabeled texts that have a high perplexity, then prompt the model for classes.

    The texts stand alone, without the prompt. The parameters and errors are those of `training.pretrain`.

    Source: Hu et al. (2025), arXiv 2505.20633.
    """
    metrics: dict[str, float] = {}
    with load_for_fit(options, context, metrics) as lease:
        model = lease.model
        prompts = ExamplePrompts(partial(make_encoder, model, task, options))
        if unlabeled is None:
            model.freeze()  # so that the result is exactly that of `zero_shot`, which shares this arm
        else:
            prepare(model, options, context.seed)
            limit = model.context_limit(options.context_length)
            texts = encode(model.tokenizer, [PromptFrame.cut(text) for text in unlabeled], limit)
            metrics |= _minimize_perplexity(model, texts, options, derive_seed(context.seed, "pretraining"))
        return make_predictor(lease, prompts, options, metrics)


def _minimize_perplexity(
    model: LanguageModel, texts: Sequence[Sequence[int]], options: InputPerplexity, seed: int
) -> dict[str, float]:
    """Train on the texts with a high perplexity; return the metrics."""
    batch_size = options.scoring.batch_size
    before = log_perplexities(model, texts, batch_size)
    chosen = [texts[row] for row in np.flatnonzero(before > np.log(options.perplexity_threshold)).tolist()]
    metrics = {"perplexity_before": float(np.exp(before.mean())), "share_selected": len(chosen) / len(texts)}
    if not chosen:
        return metrics
    recipe = options.pretraining.recipe(model)
    positions = shuffle_batches(len(chosen), recipe, seed)
    batches = ([make_batch(model, [chosen[row] for row in rows], options) for rows in epoch] for epoch in positions)
    epochs = Epochs(batches, sum(map(len, positions)))
    trained = train(model, [model.network], epochs, recipe, derive_seed(seed, "dropout"))
    after = log_perplexities(model, texts, batch_size)
    return metrics | trained.metrics("pretraining") | {"perplexity_after": float(np.exp(after.mean()))}


def log_perplexities(model: LanguageModel, texts: Sequence[Sequence[int]], batch_size: int) -> FloatArray:
    """Return the natural logarithm of the perplexity of each text; shape `(len(texts),)`.

    It is the mean negative log probability of all tokens except the first one, and 0 for a text of a single token.

    Parameters
    ----------
    model
        A causal language model.
    texts
        Token ids of each text.
    batch_size
        Number of texts that are computed at once.
    """
    perplexities = np.zeros(len(texts))
    rows = [row for row, text in enumerate(texts) if len(text) > 1]
    pairs = [(texts[row][:1], texts[row][1:]) for row in rows]
    perplexities[rows] = -score_pairs(model, pairs, batch_size, model.precision)
    perplexities[rows] /= [len(continuation) for _, continuation in pairs]
    return perplexities


def make_batch(model: LanguageModel, texts: Sequence[Sequence[int]], options: InputPerplexity) -> Batch:
    """Return an optimizer step that minimizes the weighted perplexities of texts.

    Parameters
    ----------
    model
        A causal language model.
    texts
        Token ids of each text, at least two per text.
    options
        Threshold and weight of perplexities.
    """

    def loss(part: Part) -> Tensor:
        own = [torch.arange(start, end) for start, end in part.spans]
        indices = to_device(torch.cat([span[:-1] for span in own]), model.device)
        losses = -model.log_probabilities(part, indices, part.ids[indices + 1])  # (num_tokens - num_texts,)
        means = torch.stack([tokens.mean() for tokens in torch.split(losses, [len(span) - 1 for span in own])])
        return weighted_perplexity(means, options)

    return Batch(Step(texts), len(texts), loss)


def weighted_perplexity(log_perplexity: Tensor, options: InputPerplexity) -> Tensor:
    """Return the sum of the perplexities of texts, each weighted by S(x): a scalar.

    Source: Hu et al. (2025), arXiv 2505.20633, equations 5 and 6. S(x) is a constant for the gradient.

    Parameters
    ----------
    log_perplexity
        Mean negative log probability of the tokens of each text; shape `(num_texts,)`.
    options
        Threshold and weight of perplexities.
    """
    perplexity = log_perplexity.exp()
    weights = options.perplexity_weight * perplexity.detach() / options.perplexity_threshold
    weights = weights * (perplexity.detach() > options.perplexity_threshold)
    return (weights * perplexity).sum()

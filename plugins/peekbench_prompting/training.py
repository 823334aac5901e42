"""Fits that train: on prompts of the unlabeled texts, on the texts alone, and on the answers of the train set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_lm.completions import Completion, train_completions
from peekbench_lm.devices import to_device
from peekbench_lm.fit import load_for_fit, prepare_training
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import Part, Step
from peekbench_lm.likelihood import score_pairs
from peekbench_lm.memory import count_step_tokens
from peekbench_lm.seeds import seed_for
from peekbench_lm.tokenizer import encode
from peekbench_lm.training_loop import Batch, Epochs, shuffle_batches, train
from peekbench_prompting.fit import make_encoder, make_predictor
from peekbench_prompting.frame import PromptFrame
from peekbench_prompting.options import Adapted, InputPerplexity, Packed, Pretrain, Supervised, Training, check_packing
from peekbench_prompting.prompts import ExamplePrompts, Prompt, PromptEncoder


def pretrain(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Pretrain, context: Context) -> Predictor:
    """Train the model to continue the prompts of the unlabeled texts, then prompt it for classes.

    `packed` uses this function too, with the options `Packed`. Source: arXiv 2410.00179, section 9.

    Parameters
    ----------
    unlabeled
        Texts to train on; None for the arm `base`, in which nothing is trained.
    train
        Ignored.
    task
        Its class names and instruction are part of every prompt.
    options
        Model, prompts and training.
    context
        Seed and folders.

    Raises
    ------
    SpecError, DataError
        As for `fit.prompt`.
    PeekbenchError
        If bitsandbytes is required but not installed.
    """
    return _fit(unlabeled, None, task, options, context)


def supervised(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Supervised, context: Context
) -> Predictor:
    """Train the model on prompts of the unlabeled texts, then on the answers of the train set, and prompt it.

    The unlabeled texts are ignored if `options.pretrain` is false. The other parameters and the errors are those of
    `pretrain`.
    """
    return _fit(unlabeled if options.pretrain else None, train, task, options, context)


def _fit(
    unlabeled: Inputs | None, train: Labeled | None, task: Task, options: Pretrain | Supervised, context: Context
) -> Predictor:
    """Train on the prompts of the unlabeled texts, then on the answers of the train set, and return a predictor.

    A stage without texts is skipped. The stage of the train set requires options with `finetuning`.
    """
    metrics: dict[str, float] = {}
    with load_for_fit(options, context, metrics) as lease:
        prompts = ExamplePrompts(partial(make_encoder, lease.model, task, options))
        (batch,) = prompts.build([""])
        encoder = batch.encoder
        if unlabeled is None and train is None:
            lease.model.freeze()  # so that the result is exactly that of `zero_shot`, which shares this arm
        else:
            prepare(lease.model, options, context.seed)
        if unlabeled is not None:
            encoded = encoder.encode(list(unlabeled))
            rows: Iterable[Sequence[Completion]] = ([Completion(prompt.ids)] for prompt in encoded)
            if isinstance(options, Packed):
                rows = pack(encoder, encoded, lease.model, options, seed_for(context.seed, "packing"))
            metrics["pretraining_share_cut"] = sum(prompt.is_cut for prompt in encoded) / len(encoded)
            _train("pretraining", lease.model, list(rows), options.pretraining, context.seed, metrics)
        if train is not None:
            assert isinstance(options, Supervised)
            encoded = encoder.encode(list(train.inputs))
            answers = [
                [_complete_answer(encoder, prompt, int(label))]
                for prompt, label in zip(encoded, train.labels, strict=True)
            ]
            metrics["finetuning_share_cut"] = sum(prompt.is_cut for prompt in encoded) / len(encoded)
            _train("finetuning", lease.model, answers, options.finetuning, context.seed, metrics)
        return make_predictor(lease, prompts, options, metrics)


def _complete_answer(encoder: PromptEncoder, prompt: Prompt, label: int) -> Completion:
    """Return the sequence of a prompt and its answer, in which only the answer's tokens are training targets."""
    return Completion(encoder.with_answer(prompt, label), len(prompt.ids) - encoder.answer_tokens(prompt).num_replaced)


def prepare(model: LanguageModel, options: Adapted, seed: int) -> None:
    """Set precision, adapters and gradient checkpointing for training.

    Parameters
    ----------
    model
        The untrained model.
    options
        What is trained, and how.
    seed
        Seed of the fit.
    """
    prepare_training(model, options, seed)
    enabled = None if options.gradient_checkpointing == "auto" else options.gradient_checkpointing
    model.checkpoint_gradients(enabled, count_step_tokens(options))


def _train(
    stage: str,
    model: LanguageModel,
    rows: Sequence[Sequence[Completion]],
    training: Training,
    seed: int,
    metrics: dict[str, float],
) -> None:
    trained = train_completions(model, rows, training.recipe(model), seed_for(seed, stage))
    metrics.update(trained.metrics(stage) | trained.epoch_losses(stage))


def pack(
    encoder: PromptEncoder, prompts: Sequence[Prompt], model: LanguageModel, options: Packed, seed: int
) -> list[list[Completion]]:
    """Pack texts, in random order, into sequences that start with one instruction.

    Parameters
    ----------
    encoder
        The encoder that made the prompts.
    prompts
        One prompt per text.
    model
        Limits the length of a sequence if `options.attention` is `sequence`.
    options
        Length of a sequence, number of its texts and what texts attend to.
    seed
        Seed of the random order.

    Returns
    -------
    list of list of Completion
        One list per sequence. If texts attend to the texts before them, a sequence is a single completion. Otherwise
        each text is a completion that starts with the same instruction; only the first completion of a sequence trains
        on the instruction.

    Raises
    ------
    SpecError
        If texts attend to each other in a chat: all except the first would be part of the reply.
    """
    is_separate = options.attention == "text"
    check_packing(encoder.is_chat, options)
    limit = options.sequence_length if is_separate else model.context_limit(options.sequence_length)
    sequences: list[list[Prompt]] = []
    length = limit
    for position in np.random.default_rng(seed).permutation(len(prompts)):
        prompt = prompts[position]
        num_own = len(prompt.ids) - prompt.num_leading
        is_full = bool(sequences) and len(sequences[-1]) == options.texts_per_sequence
        if is_full or length + num_own > limit or not sequences:
            sequences.append([])
            length = prompt.num_leading
        sequences[-1].append(prompt)
        length += num_own
    if is_separate:
        return [
            [Completion(prompt.ids, prompt.num_leading if row else 1) for row, prompt in enumerate(sequence)]
            for sequence in sequences
        ]
    return [[Completion(ids)] for sequence in sequences for ids in _join(encoder, sequence, limit)]


def _join(encoder: PromptEncoder, sequence: Sequence[Prompt], limit: int) -> list[list[int]]:
    """Return the token ids of a packed sequence, split in halves while it is longer than the limit.

    Tokenizing texts together can give more tokens than tokenizing each by itself.
    """
    ids = encoder.join(sequence)
    if len(ids) <= limit or len(sequence) == 1:
        return [ids]
    half = len(sequence) // 2
    return [*_join(encoder, sequence[:half], limit), *_join(encoder, sequence[half:], limit)]


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
            metrics |= _minimize_perplexity(model, texts, options, seed_for(context.seed, "pretraining"))
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
    trained = train(model, [model.network], epochs, recipe, seed_for(seed, "dropout"))
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

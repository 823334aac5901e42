"""Fits that train: on prompts of the unlabeled texts, and on the answers of the train set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench_lm.completions import Completion, train_completions
from peekbench_lm.continuations import check_tree_support
from peekbench_lm.fit import load_for_fit, prepare_training
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.seeds import seed_for
from peekbench_prompting.fit import make_encoder, make_predictor
from peekbench_prompting.options import Adapted, Packed, Pretrain, Supervised, Training, check_packing
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
            rows = [prompt.ids for prompt in encoded]
            if isinstance(options, Packed):
                rows = pack(encoder, encoded, lease.model, options, seed_for(context.seed, "packing"))
            metrics["pretraining_share_cut"] = sum(prompt.is_cut for prompt in encoded) / len(encoded)
            _train("pretraining", lease.model, list(map(Completion, rows)), options.pretraining, context.seed, metrics)
        if train is not None:
            assert isinstance(options, Supervised)
            encoded = encoder.encode(list(train.inputs))
            answers = [
                _complete_answer(encoder, prompt, int(label))
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
    check_tree_support(model)  # before training, which may diverge: the process remembers the answer
    prepare_training(model, options, seed)
    model.checkpoint_gradients()


def _train(
    stage: str,
    model: LanguageModel,
    rows: Sequence[Completion],
    training: Training,
    seed: int,
    metrics: dict[str, float],
) -> None:
    trained = train_completions(model, rows, training.recipe(model), seed_for(seed, stage))
    metrics.update(trained.metrics(stage) | trained.epoch_losses(stage))


def pack(
    encoder: PromptEncoder, prompts: Sequence[Prompt], model: LanguageModel, options: Packed, seed: int
) -> list[list[int]]:
    """Pack texts, in random order, into sequences that start with one instruction; return their token ids.

    Parameters
    ----------
    encoder
        The encoder that made the prompts.
    prompts
        One prompt per text.
    model
        Limits the length of a sequence.
    options
        Length of a sequence, and number of its texts.
    seed
        Seed of the random order.

    Raises
    ------
    SpecError
        If prompts are chat messages: all texts except the first would be part of the reply.
    """
    check_packing(encoder.is_chat, options)
    limit = model.context_limit(options.sequence_length)
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
    return [ids for sequence in sequences for ids in _join(encoder, sequence, limit)]


def _join(encoder: PromptEncoder, sequence: Sequence[Prompt], limit: int) -> list[list[int]]:
    """Return the token ids of a packed sequence, split in halves while it is longer than the limit.

    Tokenizing texts together can give more tokens than tokenizing each by itself.
    """
    ids = encoder.join(sequence)
    if len(ids) <= limit or len(sequence) == 1:
        return [ids]
    half = len(sequence) // 2
    return [*_join(encoder, sequence[:half], limit), *_join(encoder, sequence[half:], limit)]

"""Fits that train: on the unlabeled texts' prompts, one by one or packed, and on the train set's answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench_lm.completions import Completion, complete
from peekbench_lm.training import derive
from peekbench_prompting.examples import Questions
from peekbench_prompting.fit import fitting_model, make_predictor, make_prompts
from peekbench_prompting.prompts import Prompt, Prompts
from peekbench_prompting.training_options import check_packing

if TYPE_CHECKING:
    from peekbench_lm.model import LanguageModel
    from peekbench_prompting.training_options import Adapted, Packed, Pretrain, Supervised, Training


def fit_pretrain(unlabeled: Inputs | None, task: Task, options: Pretrain, context: Context) -> Predictor:
    """Train on the unlabeled texts' prompts, if there are any."""
    return _fit(unlabeled, None, task, options, context)


def fit_supervised(
    unlabeled: Inputs | None, train: Labeled, task: Task, options: Supervised, context: Context
) -> Predictor:
    """Train on the unlabeled texts' prompts, if there are any and it is wanted, then on the train set's answers."""
    return _fit(unlabeled if options.pretrain else None, train, task, options, context)


def _fit(
    unlabeled: Inputs | None, train: Labeled | None, task: Task, options: Pretrain | Supervised, context: Context
) -> Predictor:
    from peekbench_prompting.training_options import Packed, Supervised

    metrics: dict[str, float] = {}
    with fitting_model(options, context, metrics) as loan:
        questions = Questions(partial(make_prompts, loan.model, task, options))
        (prompts,) = (each for _, each, _, _ in questions.put([""]))
        if unlabeled is not None or train is not None:
            _prepare(loan.model, options, context.seed)
        if unlabeled is not None:
            asked = prompts.prompts(list(unlabeled))
            rows: Iterable[Sequence[Completion]] = ([Completion(prompt.ids)] for prompt in asked)
            if isinstance(options, Packed):
                rows = pack(prompts, asked, loan.model, options, derive(context.seed, "packing"))
            metrics["pretraining_share_cut"] = sum(prompt.is_cut for prompt in asked) / len(asked)
            _train("pretraining", loan.model, list(rows), options.pretraining, context.seed, metrics)
        if train is not None:
            assert isinstance(options, Supervised)
            asked = prompts.prompts(list(train.inputs))
            answered = [
                [
                    Completion(
                        prompts.with_answer(prompt, int(label)), len(prompt.ids) - prompts.answers(prompt).num_replaced
                    )
                ]
                for prompt, label in zip(asked, train.labels, strict=True)
            ]
            metrics["finetuning_share_cut"] = sum(prompt.is_cut for prompt in asked) / len(asked)
            _train("finetuning", loan.model, answered, options.finetuning, context.seed, metrics)
        return make_predictor(loan, questions, options, metrics)


def _prepare(model: LanguageModel, options: Adapted, seed: int) -> None:
    """Have the model train what is to be trained."""
    model.precision = options.precision
    if options.lora is not None:
        model.add_adapters(options.lora.rank, options.lora.alpha, options.lora.dropout, derive(seed, "adapters"))
    model.checkpoint_gradients(None if options.gradient_checkpointing == "auto" else options.gradient_checkpointing)


def _train(
    stage: str,
    model: LanguageModel,
    rows: Sequence[Sequence[Completion]],
    training: Training,
    seed: int,
    metrics: dict[str, float],
) -> None:
    trained = complete(model, rows, training.recipe(model), derive(seed, stage))
    metrics.update(trained.metrics(stage))
    metrics.update({f"{stage}_loss_{epoch}": loss for epoch, loss in enumerate(trained.losses, start=1)})


def pack(
    prompts: Prompts, asked: Sequence[Prompt], model: LanguageModel, options: Packed, seed: int
) -> list[list[Completion]]:
    """Sequences of as many texts, in an order that is drawn, as fit behind one instruction.

    Returns
    -------
    list of list
        Sequences. Where a text sees what stands before it, a sequence is one completion. Where it does not, each text
        is one, behind the same instruction, which the first of a sequence alone has to say.

    Raises
    ------
    SpecError
        Where texts would see each other in a chat: all but the first would stand in the reply.
    """
    is_apart = options.attention == "text"
    check_packing(prompts.is_chat, options)
    limit = options.sequence_length if is_apart else model.limit(options.sequence_length)
    sequences: list[list[Prompt]] = []
    length = limit
    for place in np.random.default_rng(seed).permutation(len(asked)):
        prompt = asked[place]
        own = len(prompt.ids) - prompt.num_leading
        if length + own > limit or not sequences:
            sequences.append([])
            length = prompt.num_leading
        sequences[-1].append(prompt)
        length += own
    if is_apart:
        return [
            [Completion(prompt.ids, prompt.num_leading if row else 1) for row, prompt in enumerate(sequence)]
            for sequence in sequences
        ]
    return [[Completion(ids)] for sequence in sequences for ids in _joined(prompts, sequence, limit)]


def _joined(prompts: Prompts, sequence: Sequence[Prompt], limit: int) -> list[list[int]]:
    """A sequence's tokens; of its halves where texts together are more tokens than each by itself, and too many."""
    ids = prompts.joined(sequence)
    if len(ids) <= limit or len(sequence) == 1:
        return [ids]
    half = len(sequence) // 2
    return [*_joined(prompts, sequence[:half], limit), *_joined(prompts, sequence[half:], limit)]

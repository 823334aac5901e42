"""The methods `zero_shot`, `few_shot`, `pretrain`, `packed` and `supervised`, as the core calls them."""

from __future__ import annotations

from functools import partial

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench_lm.seeds import derive_seed
from peekbench_prompting.examples import ExamplePrompts, choose_examples
from peekbench_prompting.fit import load_for_fit, make_encoder, make_predictor
from peekbench_prompting.options import FewShot, ZeroShot
from peekbench_prompting.training import fit_trained
from peekbench_prompting.training_options import Pretrain, Supervised


def zero_shot(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: ZeroShot, context: Context
) -> Predictor:
    """Prompt the model for the class of each text, without training and without examples.

    Source: arXiv 2410.00179, section 9.

    Parameters
    ----------
    unlabeled, train
        Ignored.
    task
        Its class names and instruction are part of every prompt.
    options
        Model and prompts.
    context
        Seed and folders.

    Raises
    ------
    SpecError
        If the device does not exist, the model is not causal, or the instruction does not fit into the context.
    DataError
        If the model is unavailable.
    """
    metrics: dict[str, float] = {}
    with load_for_fit(options, context, metrics) as lease:
        prompts = ExamplePrompts(partial(make_encoder, lease.model, task, options))
        return make_predictor(lease, prompts, options, metrics)


def few_shot(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: FewShot, context: Context) -> Predictor:
    """Prompt the model for the class of each text, after train texts with their classes.

    Source: Brown et al. (2020), arXiv 2005.14165.

    Parameters
    ----------
    unlabeled
        Ignored.
    train
        Texts and labels to choose the examples from.
    task
        Its class names and instruction are part of every prompt.
    options
        Model, prompts and number of examples.
    context
        Seed and folders.

    Raises
    ------
    SpecError, DataError
        As for `zero_shot`.
    """
    metrics: dict[str, float] = {}
    with load_for_fit(options, context, metrics) as lease:
        examples = choose_examples(train, task, options.num_examples, derive_seed(context.seed, "examples"))
        prompts = ExamplePrompts(partial(make_encoder, lease.model, task, options), examples)
        metrics["num_examples"] = prompts.num_examples
        return make_predictor(lease, prompts, options, metrics)


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
        As for `zero_shot`.
    PeekbenchError
        If bitsandbytes is required but not installed.
    """
    return fit_trained(unlabeled, None, task, options, context)


def supervised(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Supervised, context: Context
) -> Predictor:
    """Train the model on prompts of the unlabeled texts, then on the answers of the train set, and prompt it.

    Parameters
    ----------
    unlabeled
        Texts to train on first; ignored if `options.pretrain` is false.
    train
        Texts and labels to train on.
    task
        Its class names and instruction are part of every prompt.
    options
        Model, prompts and training.
    context
        Seed and folders.

    Raises
    ------
    SpecError, DataError, PeekbenchError
        As for `pretrain`.
    """
    return fit_trained(unlabeled if options.pretrain else None, train, task, options, context)

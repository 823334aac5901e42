"""The methods as the core calls them. torch and transformers take seconds to import, and are so when one is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from peekbench import Context, Folders, Inputs, Labeled, Predictor, Task
from peekbench.data import PromptFrame
from peekbench.errors import SpecError
from peekbench.records import TokenCounts
from peekbench_lm.installed import check_four_bits, check_installed
from peekbench_lm.provision import prefetch as prefetch_model

if TYPE_CHECKING:
    from peekbench_lm.names import Kind
    from peekbench_prompting.options import FewShot, Prompting, ZeroShot
    from peekbench_prompting.training_options import Pretrain, Supervised


def zero_shot(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: ZeroShot, context: Context
) -> Predictor:
    """Ask the model for the class of each text, with neither training nor examples.

    Source: arXiv 2410.00179, section 9

    Raises
    ------
    SpecError, DataError
        Where there is no such device or model, or the instruction does not fit into its context.
    """
    check_installed()
    from peekbench_prompting.fit import fit_zero_shot

    return fit_zero_shot(task, options, context)


def few_shot(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: FewShot, context: Context) -> Predictor:
    """Ask the model for the class of each text, train texts with theirs in front (Brown et al. 2020, arXiv 2005.14165).

    Raises
    ------
    SpecError, DataError
        As `zero_shot`.
    """
    check_installed()
    from peekbench_prompting.fit import fit_few_shot

    return fit_few_shot(train, task, options, context)


def pretrain(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Pretrain, context: Context) -> Predictor:
    """Train the model to go on with the unlabeled texts' prompts, then ask it for classes; `packed` does it, too.

    Source: arXiv 2410.00179, section 9

    Raises
    ------
    SpecError, DataError
        As `zero_shot`.
    PeekbenchError
        Where bitsandbytes is needed, and not installed.
    """
    check_installed()
    from peekbench_prompting.training import fit_pretrain

    return fit_pretrain(unlabeled, task, options, context)


def supervised(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Supervised, context: Context
) -> Predictor:
    """Train the model on the train set's answers, after the unlabeled texts' prompts where wanted, and ask it.

    Raises
    ------
    SpecError, DataError, PeekbenchError
        As `pretrain`.
    """
    check_installed()
    from peekbench_prompting.training import fit_supervised

    return fit_supervised(unlabeled, train, task, options, context)


def prefetch(*, options: Prompting, folders: Folders) -> Mapping[str, Any]:
    """Download the model, or make it, where it is not here yet; see that it is one for prompts, and can be held so.

    Raises
    ------
    SpecError, DataError, PeekbenchError
        Where it cannot be had, is not causal, or bitsandbytes is needed and not installed.
    """
    stages = [getattr(options, stage, None) for stage in ("pretraining", "finetuning")]
    if options.weights == "nf4" or any(stage and stage.optimizer == "adamw_8bit" for stage in stages):
        check_four_bits()
    about = prefetch_model(options=options, folders=folders)
    from peekbench_lm.folder import find_model, model_kind
    from peekbench_lm.tokens import load_tokenizer
    from peekbench_prompting.training_options import Packed, check_packing

    folder = find_model(options.model, options.revision, folders).path
    check_causal(options.model, model_kind(folder))
    if isinstance(options, Packed):
        check_packing(options.chat_template == "auto" and bool(load_tokenizer(folder).chat_template), options)
    return about


def check_causal(model: str, kind: Kind) -> None:
    """See that a model goes on with a text.

    Raises
    ------
    SpecError
        Where it does not.
    """
    if kind != "causal":
        raise SpecError(
            f"model {model}: prompts are for models that go on with a text, and this one fills in masked tokens; "
            "choose a causal language model"
        )


def count_tokens(texts: Sequence[str], *, options: Prompting, folders: Folders) -> TokenCounts:
    """Tokens of each text as it stands in a prompt; how many fit beside the instruction depends on the task."""
    check_installed()
    from peekbench_lm.folder import find_model
    from peekbench_lm.tokens import count, load_tokenizer

    tokenizer = load_tokenizer(find_model(options.model, options.revision, folders).path)
    return TokenCounts(count(tokenizer, [PromptFrame.cut(text) for text in texts]))

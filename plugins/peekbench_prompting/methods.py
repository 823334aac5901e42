"""The methods as the core calls them. torch and transformers take seconds to import, and are so when one is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peekbench import Context, Folders, Inputs, Labeled, Predictor, PromptFrame, Task, TokenCounts
from peekbench_lm.installed import check_installed

if TYPE_CHECKING:
    from peekbench_prompting.options import FewShot, Prompting, ZeroShot


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


def count_tokens(texts: Sequence[str], *, options: Prompting, folders: Folders) -> TokenCounts:
    """Tokens of each text as it stands in a prompt; how many fit beside the instruction depends on the task."""
    check_installed()
    from peekbench_lm.folder import find_model
    from peekbench_lm.tokens import count, load_tokenizer

    tokenizer = load_tokenizer(find_model(options.model, options.revision, folders).path)
    return TokenCounts(count(tokenizer, [PromptFrame.cut(text) for text in texts]))

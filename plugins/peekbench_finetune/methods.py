"""The methods as the core calls them. torch and transformers take seconds to import, and are so when one is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench_lm.installed import check_installed

if TYPE_CHECKING:
    from peekbench_finetune.options import Overtrain, Tapt


def tapt(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Tapt, context: Context) -> Predictor:
    """Pretrain on the unlabeled texts, if there are any, then finetune on train.

    Source: Gururangan et al. (2020), https://arxiv.org/abs/2004.10964, as in arXiv 2410.00179, section 4

    Raises
    ------
    SpecError, DataError
        Where there is no such device, or no such model.
    """
    check_installed()
    from peekbench_finetune.fit import fit

    return fit(unlabeled, train, task, options, context, overtraining=None)


def overtrain(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Overtrain, context: Context
) -> Predictor:
    """The same with more epochs of pretraining.

    Plain pretraining is done before, for its loss alone, which is `plain_pretraining_loss` among the metrics.

    Source: https://arxiv.org/abs/2410.00179, section 8

    Raises
    ------
    SpecError, DataError
        As `tapt`.
    """
    check_installed()
    from peekbench_finetune.fit import fit

    return fit(unlabeled, train, task, options, context, overtraining=options.overtraining_epochs or 0)

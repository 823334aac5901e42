"""A sentence on fits that differ if they are made twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from peekbench.records.trials import Repeat, Trial

TEXT = (
    "{method} depends on randomness that no seed controls: two fits to the same rows of {task} with the same seed "
    "gave the scores {first:.4f} and {second:.4f}, and {changed} of {all} predictions differ. This noise is part "
    "of all intervals, so the verdicts hold, but a repeated run gives different scores. peekbench seeds Python, "
    "NumPy and PyTorch; pass `seed` (in plugins, `context.seed`) to all other generators; those of a grader "
    "count, too"
)


def warn_of_repeats(repeats: Iterable[tuple[Trial, Repeat]]) -> Iterator[str]:
    """Yield a warning about each fit that differed when made twice.

    Examples
    --------
    >>> from peekbench.records.trials import Draw
    >>> trial = Trial(Draw("news", 100, 40, 0), "net")
    >>> [text.partition(":")[0] for text in warn_of_repeats([(trial, Repeat(12, 40, 0.4875, 0.5))])]
    ['net depends on randomness that no seed controls']
    """
    for trial, repeat in repeats:
        if repeat.num_changed:
            yield TEXT.format(
                method=trial.method,
                task=trial.draw.task,
                first=repeat.first,
                second=repeat.second,
                changed=repeat.num_changed,
                all=repeat.num_predictions,
            )

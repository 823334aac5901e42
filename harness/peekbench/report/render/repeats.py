"""Sentences on fits and grades that differ if they are made twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from peekbench.records.trials import Repeat, Trial

TEXTS = {
    "fit": (
        "{method} depends on randomness that no seed controls: two fits to the same rows of {task} with the same seed "
        "gave the scores {first:.4f} and {second:.4f}, and {changed} of {all} predictions differ. This noise is part "
        "of all intervals, so the verdicts hold, but a repeated run gives different scores. peekbench seeds Python, "
        "NumPy and PyTorch; pass `seed` (in plugins, `context.seed`) to all other generators"
    ),
    "grades": (
        "The grader of {task} gives different grades to the same answers: graded twice, those of {method} have the "
        "scores {first:.4f} and {second:.4f}, and {changed} of {all} grades differ. This noise is part of all "
        "intervals, so the verdicts hold, but a repeated run gives different scores. Let the grader depend only on the "
        "answer and the reference"
    ),
}


def warn_of_repeats(repeats: Iterable[tuple[Trial, Repeat]]) -> Iterator[str]:
    """Yield a warning about each fit, and about the grades of each task, that differed when made twice.

    Examples
    --------
    >>> from peekbench.records.trials import Draw
    >>> trial = Trial(Draw("news", 100, 40, 0), "net")
    >>> [text.partition(":")[0] for text in warn_of_repeats([(trial, Repeat("fit", 12, 40, 0.4875, 0.5))])]
    ['net depends on randomness that no seed controls']
    """
    for trial, repeat in repeats:
        if repeat.num_changed:
            yield TEXTS[repeat.subject].format(
                method=trial.method,
                task=trial.draw.task,
                first=repeat.first,
                second=repeat.second,
                changed=repeat.num_changed,
                all=repeat.num_predictions,
            )

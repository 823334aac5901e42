"""What all logs have: the score of each answer to each text of a task."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from peekbench.errors import ResultsError

TOLERANCE = 1e-6  # of averages, which tools compute in another order


@dataclass(frozen=True, slots=True)
class TaskAnswers:
    """Scores of the answers to the texts of one task, in one log or in several of the same arm."""

    origin: Path
    """File, for messages."""
    metric: str
    """Metric of the scores, as the log names it."""
    scores: dict[str, list[float]] = field(default_factory=dict)
    """Text to the scores of its answers, from 0 to 1; several if a log has repeated answers."""
    hashes: dict[str, str] = field(default_factory=dict)
    """Text to a hash of its content, if the log has one."""

    def add(self, text: str, score: float, content: str = "") -> None:
        """Add an answer.

        Raises
        ------
        ResultsError
            If the score is not a fraction, or the text has another content than before.
        """
        if not (math.isfinite(score) and 0 <= score <= 1):
            raise ResultsError(
                f"{self.origin}: the score of text {text} is {score}, not between 0 and 1; choose a metric that is a "
                "share of correct answers with --metric"
            )
        self.scores.setdefault(text, []).append(score)
        if self.hashes.setdefault(text, content) != content:
            raise ResultsError(f"{self.origin}: two texts have the number {text}; import the log of a single task")

    def check_average(self, stated: object) -> None:
        """Refuse answers that are not those of the results, such as those of an interrupted copy.

        Raises
        ------
        ResultsError
            If the log states another average.
        """
        scores = [score for repeats in self.scores.values() for score in repeats]
        mean = math.fsum(scores) / len(scores)
        if isinstance(stated, int | float) and not math.isclose(mean, stated, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            raise ResultsError(
                f"{self.origin}: the mean of {self.metric} is {mean:.6g}, and the results state {stated:.6g}; the "
                "files do not belong together, or lines are missing, or this metric is not a mean over texts"
            )


TasksOfLog = Mapping[str, Callable[[Sequence[str]], TaskAnswers]]
"""Tasks of a log; each with a function that reads its answers, given the names of metrics to choose from."""


def choose_metric(wanted: Sequence[str], available: Iterable[str], origin: Path) -> str:
    """Return the one metric of a task that was asked for, or its only one.

    Parameters
    ----------
    wanted
        Metrics for all tasks, such as 'acc' or 'exact_match,strict-match'; without a part after the comma, any.
    available
        Metrics of this task.
    origin
        File of the task, for messages.

    Raises
    ------
    ResultsError
        If there is none, or there are several.

    Examples
    --------
    >>> choose_metric(["acc", "f1"], ["acc,none", "acc_norm,none"], Path("samples.jsonl"))
    'acc,none'
    """
    names = list(dict.fromkeys(available))
    chosen = [name for name in names if not wanted or is_metric(name, wanted)]
    if len(chosen) == 1:
        return chosen[0]
    problem = "several metrics" if chosen else f"no metric {' or '.join(wanted)}" if wanted else "no metric"
    several = " (give the option once for each kind of task)" if wanted and not chosen else ""
    raise ResultsError(
        f"{origin} has {problem}; choose one with --metric{several}: {', '.join(names) or 'the log has none'}"
    )


def is_metric(name: str, wanted: Sequence[str]) -> bool:
    """Return whether a metric is one of those that were asked for."""
    return name in wanted or name.partition(",")[0] in wanted

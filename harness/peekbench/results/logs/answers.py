"""What all logs have: the score of each answer to each text of a task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from peekbench.errors import ResultsError


@dataclass(frozen=True, slots=True)
class TaskAnswers:
    """Scores of the answers to the texts of one task, in one log."""

    origin: Path
    """File, for messages."""
    task: str
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


def choose_metric(metric: str, available: Iterable[str], origin: Path) -> str:
    """Return the metric that was asked for, or the only one that a log has.

    Raises
    ------
    ResultsError
        If there is none, or there are several.
    """
    names: Sequence[str] = list(dict.fromkeys(available))
    chosen = [name for name in names if metric in ("", name, name.partition(",")[0])]
    if len(chosen) == 1:
        return chosen[0]
    problem = "several metrics" if chosen else f"no metric {metric!r}" if metric else "no metric"
    raise ResultsError(f"{origin} has {problem}; choose one with --metric: {', '.join(names) or 'the log has none'}")

"""What all logs have: the score of each answer to each text of a task. Reads their JSON within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from peekbench.errors import ResultsError
from peekbench.formatting import shorten
from peekbench.results.read import check_regular

TOLERANCE = 1e-6  # of averages, which tools compute in another order
MAX_OBJECT = 2**25  # bytes of one JSON object, which takes up to 25 times as much memory
MAX_MESSAGE = 300  # characters of a problem in a message


class Part(BaseModel):
    """A part of a log; what is not declared is not read."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=True)


PartT = TypeVar("PartT", bound=Part)


def parse(model: type[PartT], content: str | bytes, place: object) -> PartT:
    """Return a JSON object as a part of a log.

    Parameters
    ----------
    model
        Class of the part.
    content
        The JSON object.
    place
        File and line, for messages.

    Raises
    ------
    ResultsError
        If the object is too large, is not valid JSON, or lacks what is declared.
    """
    if len(content) > MAX_OBJECT:
        raise ResultsError(f"{place}: an object has more than {MAX_OBJECT:,} bytes; write a log without long fields")
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        problem = shorten(f"{where}: {first['msg']}" if where else first["msg"], MAX_MESSAGE)
        raise ResultsError(f"{place}: {problem}; copy the log again, or give another one") from error


def read_bounded(file: Path) -> bytes:
    """Return the content of a file of at most `MAX_OBJECT` bytes.

    Raises
    ------
    ResultsError
        If it is larger, or no regular file.
    """
    check_regular(file)
    with file.open("rb") as opened:
        return opened.read(MAX_OBJECT + 1)


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
    settings: Mapping[str, Any] = field(default_factory=dict)
    """How the task was run, such as the number of examples in prompts, which must not differ between arms."""
    is_lower_better: bool = False
    """Whether the log says that a lower value of the metric is better. Then, `scores` are 1 - value."""

    def add(self, text: str, score: float, content: str = "") -> None:
        """Add an answer.

        Raises
        ------
        ResultsError
            If the score is not a fraction, or the text has another content than before.
        """
        if not 0 <= score <= 1:
            raise ResultsError(
                f"{self.origin}: the score of text {text} is {shorten(str(score), MAX_MESSAGE)}, not between 0 "
                "and 1; choose a metric that is a share of correct answers with --metric"
            )
        self.scores.setdefault(text, []).append(float(1 - score if self.is_lower_better else score))
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
        mean = 1 - mean if self.is_lower_better else mean
        if stated is None:
            return
        if isinstance(stated, bool) or not isinstance(stated, int | float):
            raise ResultsError(
                f"{self.origin}: the results state {shorten(repr(stated), MAX_MESSAGE)} as the mean of {self.metric}, "
                "which is not a number; copy the log again"
            )
        if not 0 <= stated <= 1 or not math.isclose(mean, stated, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            raise ResultsError(
                f"{self.origin}: the mean of {self.metric} is {mean:.6g}, and the results state "
                f"{shorten(str(stated), 20)}; the files do not belong together, or lines are missing, or this metric "
                "is not a mean over texts"
            )


TasksOfLog = Mapping[str, Callable[[Sequence[str]], TaskAnswers]]
"""Tasks of a log; each with a function that reads its answers, given the names of metrics to choose from."""


@dataclass(frozen=True, slots=True)
class Log:
    """A log of one run of another tool."""

    file: Path
    """Its main file."""
    tasks: TasksOfLog


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

"""Logs of Inspect (inspect_ai) in JSON."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from peekbench.errors import ResultsError
from peekbench.formatting import shorten
from peekbench_logs.tables import Part, ScoredAnswer, TaskLog, find_file, is_number, parse

GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Values of grades: correct, partially correct, incorrect, no answer. They are those of Inspect's metric `accuracy`."""
MEANS = (None, "mean")
"""Reducers of the answers to a text that are means."""


class Metric(Part):
    """A statistic of the scores of a scorer."""

    value: Any = None


class ScorerResults(Part):
    """Statistics of a scorer."""

    name: str | None = None
    scorer: str | None = None
    reducer: str | None = None
    metrics: dict[str, Metric] = Field(default_factory=dict)


class Results(Part):
    """Statistics of all scorers."""

    scores: list[ScorerResults] | None = None


class Evaluation(Part):
    """The task and how it was run."""

    task: str
    task_version: Any = None
    task_args: Any = None
    model_generate_config: Any = None


class ScorerValue(Part):
    """Value of a scorer."""

    value: Any = None


class Sample(Part):
    """An answer to a text with its scores."""

    id: int | str
    scores: dict[str, ScorerValue] | None = None
    input: Any = None
    choices: Any = None
    target: Any = None


class EvalLog(Part):
    """A log."""

    status: str
    invalidated: bool = False
    evaluation: Evaluation = Field(alias="eval")
    results: Results | None = None
    samples: list[Sample] | None = None


def read_inspect(path: Path) -> dict[str, TaskLog]:
    """Read a log, which has one task.

    Parameters
    ----------
    path
        A log in JSON, or a folder that contains a single one.

    Raises
    ------
    ResultsError
        If the log cannot be read, is incomplete or was invalidated.
    """
    file = find_file(path, "*.json", "inspect")
    if zipfile.is_zipfile(file):
        raise ResultsError(
            f"{file} is not in JSON; convert it: "
            f"`inspect log convert {shlex.quote(str(file))} --to json --output-dir converted`"
        )
    log = parse(EvalLog, file.read_bytes(), f"{file} is not a log of Inspect")
    if log.invalidated:
        raise ResultsError(f"{file}: it was invalidated; repeat the evaluation with `inspect eval`")
    if log.status != "success":
        raise ResultsError(
            f"{file}: answers can be missing, because its status is {shorten(repr(log.status), 100)}; finish the "
            f"evaluation: `inspect eval-retry {shlex.quote(str(file))}`"
        )
    if not any(sample.scores for sample in log.samples or ()):
        raise ResultsError(
            f"{file} has no scores of samples (--no-score, --no-log-samples); score it: "
            f"`inspect score {shlex.quote(str(file))} --overwrite`"
        )
    answers = [
        ScoredAnswer(
            str(sample.id),
            {
                name: value
                for scorer, score in (sample.scores or {}).items()
                for name, value in _values(scorer, score).items()
            },
            _hash(sample),
        )
        for sample in log.samples or ()
    ]
    settings = log.evaluation.model_dump(exclude={"task"})
    task = log.evaluation.task
    return {task.rpartition("/")[2] or task: _task_log(file, answers, log.results or Results(), settings)}


def _values(scorer: str, score: ScorerValue) -> dict[str, Any]:
    """Return the value of a scorer, or its values by 'SCORER,NAME'."""
    if not isinstance(score.value, dict):
        return {scorer: _grade(score.value)}
    return {",".join(filter(None, (scorer, name))): _grade(value) for name, value in score.value.items()}


def _grade(value: Any) -> Any:
    """Return the number that Inspect takes a text for."""
    if not isinstance(value, str):
        return value
    if (grade := GRADES.get(value, GRADES.get(value.lower()))) is not None:
        return grade
    try:
        number = float(value)
    except ValueError:
        return value
    if math.isfinite(number):
        return number
    return value


def _hash(sample: Sample) -> str:
    question = sample.input
    if isinstance(question, list):  # messages, whose ids differ between logs
        question = [
            [message.get("role"), message.get("content")] if isinstance(message, dict) else message
            for message in question
        ]
    text = json.dumps([question, sample.choices, sample.target], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _task_log(file: Path, answers: Sequence[ScoredAnswer], results: Results, settings: Mapping[str, Any]) -> TaskLog:
    """Return a task with what its log states about each metric.

    The scores of `perplexity` and `target_perplexity` are losses in nats per token, whose mean is the log of one of
    their metrics.

    Raises
    ------
    ResultsError
        If the answers to a text are reduced by another function than their mean.
    """
    stated: dict[str, Any] = {}
    losses = set()
    for score in results.scores or ():
        if score.scorer is None:
            continue
        if score.reducer not in MEANS:
            raise ResultsError(
                f"{file}: the answers to each text are reduced by {shorten(str(score.reducer), 100)}, but scores are "
                f"means of answers; evaluate again with `inspect eval --epochs-reducer mean`"
            )
        parts = [score.scorer]
        if score.name not in (score.scorer, None):
            parts.append(str(score.name))
        name = ",".join(parts)
        values = {kind: entry.value for kind, entry in score.metrics.items()}
        mean = next((value for kind, value in values.items() if kind in ("accuracy", "mean")), None)
        perplexity = values.get("perplexity_per_seq")
        if "perplexity_per_seq" in values or "perplexity_per_token" in values:
            losses.add(name)
        if is_number(perplexity) and perplexity > 0:
            mean = math.log(perplexity)
        if mean is not None:
            stated[name] = mean
    return TaskLog(file, answers, stated, settings, losses=frozenset(losses))

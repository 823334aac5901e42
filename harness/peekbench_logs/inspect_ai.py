"""Logs of Inspect (inspect_ai) in JSON."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import zipfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from peekbench.errors import ResultsError
from peekbench.formatting import shorten
from peekbench_logs.tables import (
    MAX_METRICS,
    Log,
    Part,
    ScoredAnswer,
    TaskLog,
    find_file,
    is_number,
    parse,
    read_bounded,
    text_id,
)

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

    completed_samples: int | None = None
    scores: list[ScorerResults] | None = Field(default=None, max_length=MAX_METRICS)


class Evaluation(Part):
    """The task and how it was run."""

    task: str
    task_version: Any = None
    task_args: Any = None
    model_generate_config: Any = None


class ScorerValue(Part):
    """Value of a scorer."""

    value: Any = None


class ReducedScore(ScorerValue):
    """Value of a scorer for all answers to a text."""

    sample_id: int | str | None = None


class Reductions(Part):
    """Values of a scorer for each text, reduced from the values of its answers."""

    scorer: str
    reducer: str | None = None
    samples: list[ReducedScore]


class Sample(Part):
    """An answer to a text with its scores."""

    id: int | str
    scores: dict[str, ScorerValue] | None = Field(default=None, max_length=MAX_METRICS)
    error: Any = None
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
    reductions: list[Reductions] | None = Field(default=None, max_length=MAX_METRICS)


def read_inspect(path: Path) -> Log:
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
    file = find_file(path, "*.json")
    if zipfile.is_zipfile(file):
        raise ResultsError(
            f"{file} is not in JSON; convert it: "
            f"`inspect log convert {shlex.quote(str(file))} --to json --output-dir converted`"
        )
    log = parse(EvalLog, read_bounded(file, "inspect"), f"{file} is not a log of Inspect")
    if log.invalidated:
        raise ResultsError(f"{file}: it was invalidated; repeat the evaluation with `inspect eval`")
    if log.status != "success":
        raise ResultsError(
            f"{file}: answers can be missing, because its status is {shorten(repr(log.status), 100)}; finish the "
            f"evaluation: `inspect eval-retry {shlex.quote(str(file))}`"
        )
    if not log.samples:
        raise ResultsError(
            f"{file} has no samples; repeat the evaluation with `inspect eval` and without --no-log-samples"
        )
    results = log.results or Results()
    if all(sample.error is not None for sample in log.samples):
        raise ResultsError(f"{file}: all samples failed with an error; correct it, and repeat the evaluation")
    if not any(sample.scores for sample in log.samples):
        raise ResultsError(
            f"{file} has no scores (--no-score); score it: `inspect score {shlex.quote(str(file))} --overwrite`"
        )
    completed = sum(sample.error is None for sample in log.samples)
    if results.completed_samples not in (None, 0, completed, len(log.samples)):  # 0: not stated by a converted log
        raise ResultsError(
            f"{file} has {completed} samples without an error, and its results state {results.completed_samples}; copy "
            "it again"
        )
    reduced = _read_reductions(log, results, file)
    scorers = {scorer for by_name in reduced.values() for scorer, _ in by_name}
    answers = []
    for sample in log.samples:
        values = {
            name: value
            for scorer, score in (sample.scores or {}).items()
            if scorer not in scorers
            for name, value in _values(scorer, score).items()
        }
        text = text_id(sample.id, file)
        for (scorer, reducer), score in reduced.pop(text, {}).items():  # once: by the first answer
            values |= {f"{name},{reducer}": value for name, value in _values(scorer, score).items()}
        answers.append(ScoredAnswer(text, values, _hash(sample)))
    settings = log.evaluation.model_dump(exclude={"task"})
    task = log.evaluation.task
    return Log(file, {task.rpartition("/")[2] or task: _task_log(file, answers, results, settings, scorers)})


def _read_reductions(log: EvalLog, results: Results, file: Path) -> dict[str, dict[tuple[str, str], ReducedScore]]:
    """Return the reduced scores by text, scorer and reducer, of scorers with other reducers than the mean."""
    scorers = {score.scorer for score in results.scores or () if score.reducer not in MEANS}
    wanted = {
        (score.scorer, score.reducer)
        for score in results.scores or ()
        if score.scorer in scorers and score.reducer is not None
    }
    reduced: dict[str, dict[tuple[str, str], ReducedScore]] = {}
    for reduction in log.reductions or ():
        if reduction.reducer is None or (reduction.scorer, reduction.reducer) not in wanted:
            continue
        wanted.remove((reduction.scorer, reduction.reducer))
        for score in reduction.samples:
            reduced.setdefault(text_id(score.sample_id or 0, file), {})[reduction.scorer, reduction.reducer] = score
    if wanted:
        scorer, reducer = min(wanted, key=str)
        raise ResultsError(
            f"{file}: the answers to each text are reduced by {shorten(str(reducer), 100)}, and the log has no reduced "
            f"scores of {shorten(str(scorer), 100)}; compute them: `inspect score {shlex.quote(str(file))} --action "
            "overwrite --overwrite`"
        )
    return reduced


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


def _task_log(
    file: Path, answers: Sequence[ScoredAnswer], results: Results, settings: Mapping[str, Any], reduced: Collection[str]
) -> TaskLog:
    """Return a task with what its log states about each metric.

    The scores of `perplexity` and `target_perplexity` are losses in nats per token, whose mean is the log of one of
    their metrics.
    """
    stated: dict[str, Any] = {}
    aggregates: dict[str, list[str]] = {}
    losses = set()
    for score in results.scores or ():
        if score.scorer is None:
            continue
        parts: list[str | None] = [score.scorer]
        if score.name != score.scorer:
            parts.append(score.name)
        if score.scorer in reduced:
            parts.append(score.reducer)
        name = ",".join(filter(None, parts))
        values = {kind: entry.value for kind, entry in score.metrics.items()}
        aggregates.setdefault(name, []).extend(values)
        mean = next((value for kind, value in values.items() if kind in ("accuracy", "mean")), None)
        perplexity = values.get("perplexity_per_seq")
        if "perplexity_per_seq" in values or "perplexity_per_token" in values:
            losses.add(name)
        if is_number(perplexity) and perplexity > 0:
            mean = math.log(perplexity)
        if mean is not None:
            stated[name] = mean
    return TaskLog(file, answers, stated, aggregates, settings, losses=frozenset(losses))

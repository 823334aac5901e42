"""Logs of Inspect (inspect_ai) in JSON."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from pathlib import Path
from typing import Any

from pydantic import Field

from peekbench.errors import ResultsError
from peekbench.formatting import shorten
from peekbench.results.logs.tables import Answer, Log, Part, TaskLog, find_file, parse, read_bounded

GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Values of grades: correct, partially correct, incorrect, no answer. They are those of Inspect's metric `accuracy`."""


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
    scores: list[ScorerResults] | None = None


class Evaluation(Part):
    """The task and how it was run."""

    task: str
    task_version: Any = None
    task_args: Any = None
    model_generate_config: Any = None


class Score(Part):
    """Value of a scorer."""

    value: Any = None


class Sample(Part):
    """A text with its scores."""

    id: int | str
    scores: dict[str, Score] | None = None
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
            f"{file} is not in JSON; convert it: `inspect log convert {file} --to json --output-dir json`"
        )
    log = parse(EvalLog, read_bounded(file), f"{file} is not a log of Inspect")
    if log.status != "success" or log.invalidated or not log.samples:
        status = "it was invalidated" if log.invalidated else f"its status is {shorten(repr(log.status), 100)}"
        problem = status if log.samples or log.status != "success" else "it has no samples (--no-log-samples)"
        raise ResultsError(f"{file}: answers can be missing, because {problem}; finish or repeat the evaluation")
    results = log.results or Results()
    if results.completed_samples not in (None, len(log.samples)):
        raise ResultsError(
            f"{file} has {len(log.samples)} samples, and its results state {results.completed_samples}; copy it again"
        )
    answers = [_read_answer(sample) for sample in log.samples]
    settings = log.evaluation.model_dump(exclude={"task"})
    stated, losses = _averages(results)
    task = TaskLog(file, answers, stated, settings, losses=losses)
    return Log(file, {log.evaluation.task.rpartition("/")[2]: task})


def _read_answer(sample: Sample) -> Answer:
    """Return the values of the scorers of a sample; those of a scorer with several values as 'SCORER,NAME'."""
    values: dict[str, Any] = {}
    for scorer, score in (sample.scores or {}).items():
        parts = score.value if isinstance(score.value, dict) else {"": score.value}
        for name, value in parts.items():
            grade = GRADES.get(value, value) if isinstance(value, str) else value
            values[f"{scorer},{name}" if name else scorer] = grade
    question = sample.input
    if isinstance(question, list):  # messages, whose ids differ between logs
        question = [[each.get("role"), each.get("content")] if isinstance(each, dict) else each for each in question]
    text = json.dumps([question, sample.choices, sample.target], sort_keys=True)
    return Answer(str(sample.id), values, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())


def _averages(results: Results) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the averages over texts that a log states, by metric, and the metrics that are losses.

    The scores of `perplexity` and `target_perplexity` are losses in nats per token, whose mean is the log of one of
    their metrics.
    """
    averages, losses = {}, set()
    for score in results.scores or ():
        if score.reducer not in (None, "mean") or score.scorer is None:  # of the repeats of a text
            continue
        name = score.scorer if score.name == score.scorer else f"{score.scorer},{score.name}"
        values = {kind: entry.value for kind, entry in score.metrics.items()}
        averages[name] = next((value for kind, value in values.items() if kind in ("accuracy", "mean")), None)
        perplexity = values.get("perplexity_per_seq")
        if "perplexity_per_seq" in values or "perplexity_per_token" in values:
            losses.add(name)
        if isinstance(perplexity, int | float) and perplexity > 0:
            averages[name] = math.log(perplexity)
    return averages, frozenset(losses)

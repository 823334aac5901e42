"""Logs of lm-evaluation-harness that were written with `--log_samples`.

A run writes `results_TIME.json` with the averages, and `samples_TASK_TIME.jsonl` with a line for each text and filter.
If its `--output_path` is a file `NAME.json`, the first one is `NAME_TIME.json`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from peekbench.errors import ResultsError
from peekbench.formatting import shorten
from peekbench.results.logs.tables import MAX_BYTES, Answer, Log, Part, TaskLog, find_file, parse, read_bounded
from peekbench.results.read import check_regular

TIME = re.compile(r"_(\d{4}-\d\d-\d\dT[\d.-]+)$")
"""End of the name of a file with results, by which its samples are found."""


BITS = "bits_per_byte"
LIKELIHOODS = {"perplexity", "word_perplexity", "byte_perplexity", BITS}
"""Metrics whose lines have log-likelihoods, of which lm-evaluation-harness states functions of the (weighted) mean."""


class Results(Part):
    """Averages and settings of a run, by task."""

    results: dict[str, dict[str, Any]]
    group_subtasks: dict[str, Any] | None = None
    higher_is_better: dict[str, dict[str, bool | None] | None] | None = None
    """Direction of each metric."""
    num_fewshot: dict[str, Any] | None = Field(default=None, alias="n-shot")
    versions: dict[str, Any] | None = None


class Line(Part):
    """Scores of a text, each in a field of the name of its metric."""

    model_config = ConfigDict(extra="allow")

    doc_id: int | str
    filter: str = "none"
    metrics: list[str] | None = None
    doc_hash: str | None = None


def read_lm_eval(path: Path) -> Log:
    """Read a log.

    Parameters
    ----------
    path
        A file `results_TIME.json`, or a folder that contains a single one.

    Raises
    ------
    ResultsError
        If files are missing or malformed.
    """
    file = find_file(path, "results_*.json")
    time = TIME.search(file.stem)
    if time is None:
        raise ResultsError(f"{file} has no results; give the file results_TIME.json that lm-evaluation-harness wrote")
    content = parse(Results, read_bounded(file), file)
    groups = {name for name, members in (content.group_subtasks or {}).items() if members}
    tasks = {}
    for task in content.results:
        samples = file.with_name(f"samples_{task}_{time[1]}.jsonl")
        if "/" not in task and samples.is_file():
            tasks[task] = _read_task(samples, task, content)
        elif task not in groups:  # groups of tasks have averages only
            raise ResultsError(
                f"{file}: there is no {shorten(samples.name, 200)} beside it; run lm_eval with --log_samples"
            )
    return Log(file, tasks)


def _read_task(file: Path, task: str, content: Results) -> TaskLog:
    directions = (content.higher_is_better or {}).get(task) or {}
    answers = list(_read_answers(file))
    names = dict.fromkeys(name for each in answers for name in each.values)
    losses = frozenset(name for name in names if name.partition(",")[0] in LIKELIHOODS)
    stated = dict(content.results[task])
    for name in losses:
        answers = _as_losses(answers, name)
        value = stated.get(name)
        if not name.startswith(BITS) and isinstance(value, int | float) and value > 0:
            stated[name] = math.log(value)
    settings = {
        "n-shot": content.num_fewshot,
        "version": content.versions,
        "higher_is_better": content.higher_is_better,
    }
    return TaskLog(
        file,
        answers,
        stated,
        {name: (by_task or {}).get(task) for name, by_task in settings.items()},
        frozenset(name for name in names if directions.get(name.partition(",")[0]) is False),
        losses,
    )


def _as_losses(answers: list[Answer], name: str) -> list[Answer]:
    """Replace log-likelihoods by losses, whose mean over texts is the loss per word, byte or text of all texts.

    A log-likelihood can have a weight, its number of words or bytes: each text counts by its share of all of them. A
    value that has another form stays as it is.
    """
    values: list[Any] = [each.values.get(name) for each in answers]
    pairs = [value if isinstance(value, list) else [value, 1] for value in values]
    if not all(len(pair) == 2 and all(isinstance(part, int | float) for part in pair) for pair in pairs):
        return answers
    total = math.fsum(weight for _, weight in pairs)
    scale = len(pairs) / (total or math.nan) / (math.log(2) if name.startswith(BITS) else 1)
    return [
        replace(each, values={**each.values, name: -likelihood * scale})
        for each, (likelihood, _) in zip(answers, pairs, strict=True)
    ]


def _read_answers(file: Path) -> Iterator[Answer]:
    check_regular(file)
    with file.open("rb") as opened:
        for number, text in enumerate(iter(lambda: opened.readline(MAX_BYTES + 2), b""), 1):
            if text.strip():
                line = parse(Line, text, f"{file}, line {number}")
                values = {f"{name},{line.filter}": (line.model_extra or {}).get(name) for name in line.metrics or ()}
                yield Answer(str(line.doc_id), values, line.doc_hash or "")

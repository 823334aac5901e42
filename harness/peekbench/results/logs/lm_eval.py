"""Logs of lm-evaluation-harness that were written with `--log_samples`.

A run writes `results_TIME.json` with the averages, and `samples_TASK_TIME.jsonl` with a line for each text and filter.
If its `--output_path` is a file `NAME.json`, the first one is `NAME_TIME.json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from peekbench.errors import ResultsError
from peekbench.formatting import shorten
from peekbench.results.logs.answers import MAX_OBJECT, Log, Part, TaskAnswers, choose_metric, parse, read_bounded
from peekbench.results.read import check_regular

TIME = re.compile(r"_(\d{4}-\d\d-\d\dT[\d.-]+)$")
"""End of the name of a file with results, by which its samples are found."""
NO_FILTER = "none"


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
    filter: str = NO_FILTER
    metrics: list[str] | None = None
    doc_hash: str | None = None


def read_lm_eval(path: Path) -> Log:
    """Find the tasks of a run.

    Parameters
    ----------
    path
        A file `results_TIME.json`, or a folder that contains a single one.

    Raises
    ------
    ResultsError
        If files are missing or malformed. The functions that read a task also raise it if the samples of the task do
        not have the average that the results state.
    """
    file = _find_results(path)
    time = TIME.search(file.stem)
    if time is None:
        raise ResultsError(f"{file} has no results; give the file results_TIME.json that lm-evaluation-harness wrote")
    content = parse(Results, read_bounded(file), file)
    groups = {name for name, members in (content.group_subtasks or {}).items() if members}
    tasks = {}
    for task in content.results:
        samples = file.with_name(f"samples_{task}_{time[1]}.jsonl")
        if "/" not in task and samples.is_file():
            tasks[task] = partial(_read_task, samples, task, content)
        elif task not in groups:  # groups of tasks have averages only
            raise ResultsError(
                f"{file}: there is no {shorten(samples.name, 200)} beside it; run lm_eval with --log_samples"
            )
    return Log(file, tasks)


def _find_results(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = sorted(path.rglob("results_*.json"))
    if len(found) != 1:
        several = f"several results, such as {found[-1]}" if found else "no results_TIME.json"
        raise ResultsError(f"{path} contains {several}; give one file results_TIME.json")
    return found[0]


def _read_task(file: Path, task: str, content: Results, metrics: Sequence[str]) -> TaskAnswers:
    lines = list(_read_lines(file))
    available = [f"{name},{line.filter}" for line in lines for name in line.metrics or ()]
    metric = choose_metric(metrics, available, file)
    name, _, filter_ = metric.partition(",")
    settings = {"n-shot": (content.num_fewshot or {}).get(task), "version": (content.versions or {}).get(task)}
    direction = ((content.higher_is_better or {}).get(task) or {}).get(name)
    answers = TaskAnswers(file, metric, settings=settings, is_lower_better=direction is False)
    for line in lines:
        if line.filter == filter_:
            score = (line.model_extra or {}).get(name)
            if not isinstance(score, int | float):
                raise ResultsError(
                    f"{file}: {metric} of text {line.doc_id} is {shorten(repr(score), 100)}, not a number; choose "
                    "another metric with --metric"
                )
            answers.add(str(line.doc_id), score, line.doc_hash or "")
    answers.check_average(content.results[task].get(metric))
    return answers


def _read_lines(file: Path) -> Iterator[Line]:
    """Iterate over the lines, without the fields that are no scores."""
    check_regular(file)
    with file.open("rb") as opened:
        number = 0
        while text := opened.readline(MAX_OBJECT + 2):
            number += 1
            if text.strip():
                line = parse(Line, text, f"{file}, line {number}")
                extra = line.model_extra or {}
                scores = {name: extra.get(name) for name in line.metrics or ()}
                yield line.model_construct(**{**line.model_dump(include=set(Line.model_fields)), **scores})

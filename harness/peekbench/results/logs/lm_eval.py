"""Logs of lm-evaluation-harness that were written with `--log_samples`.

A run writes `results_TIME.json` with the averages, and `samples_TASK_TIME.jsonl` with a line for each text and filter.
If its `--output_path` is a file `NAME.json`, the first one is `NAME_TIME.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from peekbench.errors import ResultsError
from peekbench.results.logs.answers import TaskAnswers, TasksOfLog, choose_metric

TIME = re.compile(r"_(\d{4}-\d\d-\d\dT[\d.-]+)$")
"""End of the name of a file with results, by which its samples are found."""


def read_lm_eval(path: Path) -> TasksOfLog:
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
    content = _load(file.read_text(encoding="utf-8"), file)
    results, time = content.get("results"), TIME.search(file.stem)
    if not isinstance(results, dict) or time is None:
        raise ResultsError(f"{file} has no results; give the file results_TIME.json that lm-evaluation-harness wrote")
    groups = {name for name, members in (content.get("group_subtasks") or {}).items() if members}
    tasks = {}
    for task, averages in results.items():
        samples = file.with_name(f"samples_{task}_{time[1]}.jsonl")
        if samples.is_file():
            tasks[task] = partial(_read_task, samples, averages)
        elif task not in groups:  # groups of tasks have averages only
            raise ResultsError(f"{file}: there is no {samples.name} beside it; run lm_eval with --log_samples")
    return tasks


def _find_results(path: Path) -> Path:
    if path.is_file():
        return path
    found = sorted(path.rglob("results_*.json"))
    if len(found) != 1:
        several = f"several results, such as {found[-1]}" if found else "no results_TIME.json"
        raise ResultsError(f"{path} contains {several}; give one file results_TIME.json")
    return found[0]


def _read_task(file: Path, averages: Mapping[str, Any], metrics: Sequence[str]) -> TaskAnswers:
    lines = list(_read_lines(file))
    available = [f"{name},{line.get('filter', 'none')}" for line in lines for name in line.get("metrics", ())]
    answers = TaskAnswers(file, choose_metric(metrics, available, file))
    name, _, filter_ = answers.metric.partition(",")
    for line in lines:
        if line.get("filter", "none") == filter_:
            score = line.get(name)
            if not isinstance(score, int | float):
                raise ResultsError(f"{file}: {answers.metric} of text {line['doc_id']} is {score!r}, not a number")
            answers.add(str(line["doc_id"]), float(score), str(line.get("doc_hash", "")))
    answers.check_average(averages.get(answers.metric))
    return answers


def _read_lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for number, text in enumerate(lines, 1):
            if text.strip():
                line = _load(text, f"{file}, line {number}")
                if "doc_id" not in line:
                    raise ResultsError(
                        f"{file}, line {number}: has no doc_id; lm-evaluation-harness 0.4 or later writes it"
                    )
                yield line


def _load(text: str, place: object) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ResultsError(f"{place}: not valid JSON ({error}); copy the file again") from error
    if not isinstance(content, dict):
        raise ResultsError(f"{place}: not an object; give a file that lm-evaluation-harness wrote")
    return content

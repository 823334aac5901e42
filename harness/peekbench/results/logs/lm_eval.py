"""Logs of lm-evaluation-harness that were written with `--log_samples`.

A run writes `results_TIME.json` with the averages, and `samples_TASK_TIME.jsonl` with a line for each text and filter.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from peekbench.errors import ResultsError
from peekbench.results.logs.answers import TaskAnswers, choose_metric

TOLERANCE = 1e-6  # of averages, which the tool computes in another order


def read_lm_eval(path: Path, metric: str) -> list[TaskAnswers]:
    """Read the answers of a run to all its tasks.

    Parameters
    ----------
    path
        A file `results_TIME.json`, or a folder that contains a single one.
    metric
        Name of a metric, such as 'acc', with its filter if there are several: 'exact_match,strict-match'. If it is
        empty, the only one of each task.

    Raises
    ------
    ResultsError
        If files are missing, malformed, or do not agree with each other.
    """
    results_file = _find_results(path)
    results = _load(results_file.read_text(encoding="utf-8"), results_file).get("results")
    if not isinstance(results, dict):
        raise ResultsError(f"{results_file} has no results; give a file that lm-evaluation-harness wrote")
    time = results_file.stem.removeprefix("results_")
    answers = []
    for task, averages in results.items():
        samples = results_file.with_name(f"samples_{task}_{time}.jsonl")
        if samples.is_file():  # groups of tasks have averages only
            answers.append(_read_task(samples, task, metric, averages))
    if not answers:
        raise ResultsError(
            f"{results_file}: there is no samples_TASK_{time}.jsonl beside it; run lm_eval with --log_samples"
        )
    return answers


def _find_results(path: Path) -> Path:
    if path.is_file():
        return path
    found = sorted(path.rglob("results_*.json"))
    if len(found) != 1:
        several = f"several results, such as {found[-1]}" if found else "no results_TIME.json"
        raise ResultsError(f"{path} contains {several}; give one file results_TIME.json")
    return found[0]


def _read_task(file: Path, task: str, metric: str, averages: Mapping[str, Any]) -> TaskAnswers:
    lines = list(_read_lines(file))
    available = [f"{name},{line.get('filter', 'none')}" for line in lines for name in line.get("metrics", ())]
    chosen = choose_metric(metric, available, file)
    name, _, filter_ = chosen.partition(",")
    answers = TaskAnswers(file, task)
    for line in lines:
        if line.get("filter", "none") == filter_:
            score = line.get(name)
            if not isinstance(score, int | float):
                raise ResultsError(f"{file}: {chosen} of text {line.get('doc_id')} is {score!r}, not a number")
            answers.add(str(line["doc_id"]), float(score), str(line.get("doc_hash", "")))
    _check_average(answers, chosen, averages.get(chosen))
    return answers


def _check_average(answers: TaskAnswers, metric: str, stated: object) -> None:
    """Refuse samples that are not those of the results, such as those of an interrupted copy."""
    scores = [score for repeats in answers.scores.values() for score in repeats]
    mean = math.fsum(scores) / len(scores)
    if isinstance(stated, int | float) and not math.isclose(mean, stated, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        raise ResultsError(
            f"{answers.origin}: the mean of {metric} is {mean:.6g}, and the results state {stated:.6g}; the files do "
            "not belong together, or lines are missing, or this metric is not a mean over texts"
        )


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

"""Logs of Inspect (inspect_ai), as `.eval` files or as JSON."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from peekbench.errors import ResultsError
from peekbench.results.logs.answers import TaskAnswers, choose_metric

GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Values of grades: correct, partially correct, incorrect, no answer. They are those of Inspect's metric `accuracy`."""
CONVERT = "convert the log with `inspect log convert --to json`"


def read_inspect(path: Path, metric: str) -> list[TaskAnswers]:
    """Read the answers of a log, which has one task.

    Parameters
    ----------
    path
        A log: an `.eval` file or a JSON file.
    metric
        Name of a scorer; if it is empty, the only one of the log. Answers of several epochs are repeats of a text.

    Raises
    ------
    ResultsError
        If the log cannot be read, is incomplete, or has scores that are not grades or fractions.
    """
    if not path.is_file():
        raise ResultsError(f"{path} is not a file; give one log of Inspect for each arm")
    header, samples = _read_eval(path) if zipfile.is_zipfile(path) else _read_json(path)
    if (status := header.get("status")) != "success":
        raise ResultsError(f"{path}: the status of this log is {status!r}, so answers can be missing; finish it")
    if not samples:
        raise ResultsError(f"{path} has no samples; run Inspect without --no-log-samples")
    scorer = choose_metric(metric, (name for sample in samples for name in sample.get("scores") or {}), path)
    answers = TaskAnswers(path, str(header["eval"]["task"]).rpartition("/")[2])
    for sample in samples:
        text = str(sample["id"])
        score = (sample.get("scores") or {}).get(scorer)
        if score is None:
            raise ResultsError(f"{path}: sample {text} has no score of {scorer}; repeat the failed samples")
        answers.add(text, _as_number(score.get("value"), f"{path}, sample {text}"), _content(sample))
    return [answers]


def _read_eval(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if "header.json" not in names:
            raise ResultsError(f"{path} has no header.json, so it is not a complete log of Inspect; finish its run")
        samples = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
        try:
            return json.loads(archive.read("header.json")), [json.loads(archive.read(name)) for name in samples]
        except (NotImplementedError, zipfile.BadZipFile, ValueError) as error:
            raise ResultsError(f"{path}: {error}; {CONVERT}") from error


def _read_json(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return content, list(content.get("samples") or ())
    except (ValueError, AttributeError) as error:
        raise ResultsError(f"{path} is not a log of Inspect ({error}); give an .eval or JSON file") from error


def _as_number(value: object, place: str) -> float:
    if isinstance(value, str) and value in GRADES:
        return GRADES[value]
    if isinstance(value, bool | int | float):
        return float(value)
    raise ResultsError(f"{place}: the score {value!r} is not a grade or a number; choose another scorer with --metric")


def _content(sample: dict[str, Any]) -> str:
    """Return what must be equal in all arms: the question and its answer."""
    return json.dumps([sample.get("input"), sample.get("target")], sort_keys=True)

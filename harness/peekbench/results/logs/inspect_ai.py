"""Logs of Inspect (inspect_ai), as `.eval` files or as JSON."""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from peekbench.errors import ResultsError
from peekbench.results.logs.answers import TaskAnswers, TasksOfLog, choose_metric

GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Values of grades: correct, partially correct, incorrect, no answer. They are those of Inspect's metric `accuracy`."""
ZSTANDARD = 93
"""Compression of Inspect's files in a ZIP archive, which `zipfile` cannot read before Python 3.14."""
LOCAL_HEADER = struct.Struct("<4s5H3I2H")
"""Header of a file in a ZIP archive; the last two numbers are the lengths of its name and of its extra field."""
CONVERT = "convert the log with `inspect log convert --to json`"


def read_inspect(path: Path) -> TasksOfLog:
    """Find the task of a log, which has one.

    Parameters
    ----------
    path
        A log, which is an `.eval` file or a JSON file; or a folder that contains a single one.

    Raises
    ------
    ResultsError
        If the log cannot be read, is incomplete or was invalidated. The function that reads the task also raises it if
        scores are not grades or fractions, or the samples do not have the average that the results state.
    """
    file = _find_log(path)
    header, samples = _read_eval(file) if zipfile.is_zipfile(file) else _read_json(file)
    if (status := header.get("status")) != "success":
        raise ResultsError(f"{file}: the status of this log is {status!r}, so answers can be missing; finish it")
    if header.get("invalidated"):
        raise ResultsError(f"{file}: this log was invalidated; repeat its invalid samples")
    if not samples:
        raise ResultsError(f"{file} has no samples; run Inspect without --no-log-samples")
    results = header.get("results") or {}
    if (stated := results.get("completed_samples", len(samples))) != len(samples):
        raise ResultsError(f"{file} has {len(samples)} samples, and its results state {stated}; copy the file again")
    task = str(header["eval"]["task"]).rpartition("/")[2]
    return {task: partial(_read_task, file, samples, results)}


def _find_log(path: Path) -> Path:
    if path.is_file():
        return path
    found = sorted(file for file in path.rglob("*") if file.suffix in (".eval", ".json") and file.is_file())
    if len(found) != 1:
        several = f"several logs, such as {found[-1]}" if found else "no log of Inspect"
        raise ResultsError(f"{path} contains {several}; give one .eval or JSON file")
    return found[0]


def _read_task(
    file: Path, samples: Sequence[Mapping[str, Any]], results: Mapping[str, Any], metrics: Sequence[str]
) -> TaskAnswers:
    scores = [_scores(sample) for sample in samples]
    answers = TaskAnswers(file, choose_metric(metrics, (name for each in scores for name in each), file))
    for sample, values in zip(samples, scores, strict=True):
        text = str(sample["id"])
        if answers.metric not in values:
            raise ResultsError(f"{file}: sample {text} has no score of {answers.metric}; repeat the failed samples")
        answers.add(text, _as_number(values[answers.metric], f"{file}, sample {text}"), _content(sample))
    answers.check_average(_stated_average(results, answers.metric))
    return answers


def _scores(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the scorers of a sample; those of a scorer with several values as 'SCORER,NAME'."""
    values: dict[str, Any] = {}
    for scorer, score in (sample.get("scores") or {}).items():
        value = score.get("value")
        if isinstance(value, dict):
            values |= {f"{scorer},{name}": part for name, part in value.items()}
        else:
            values[scorer] = value
    return values


def _stated_average(results: Mapping[str, Any], metric: str) -> object:
    """Return the average over texts that a log states, or None if it states only other statistics."""
    scorer, _, name = metric.partition(",")
    for score in results.get("scores") or ():
        is_mean = score.get("reducer") in (None, "mean")  # of the repeats of a text
        if is_mean and (score.get("scorer"), score.get("name")) == (scorer, name or scorer):
            averages = [entry.get("value") for kind, entry in score["metrics"].items() if kind in ("accuracy", "mean")]
            return averages[0] if averages else None
    return None


def _read_eval(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if "header.json" not in names:
            raise ResultsError(f"{path} has no header.json, so it is not a complete log of Inspect; finish its run")
        samples = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
        try:
            return _read_member(archive, "header.json"), [_read_member(archive, name) for name in samples]
        except (NotImplementedError, OSError, zipfile.BadZipFile, ValueError) as error:
            raise ResultsError(f"{path}: {error}; {CONVERT}") from error


def _read_member(archive: zipfile.ZipFile, name: str) -> Any:
    """Return the content of a JSON file of an archive, also if it is compressed with Zstandard, as Inspect does."""
    info = archive.getinfo(name)
    if info.compress_type != ZSTANDARD:
        return json.loads(archive.read(name))
    assert archive.fp is not None
    archive.fp.seek(info.header_offset)
    header = archive.fp.read(LOCAL_HEADER.size)
    name_size, extra_size = LOCAL_HEADER.unpack(header)[-2:]
    archive.fp.seek(name_size + extra_size, os.SEEK_CUR)
    content = pa.decompress(archive.fp.read(info.compress_size), info.file_size, codec="zstd", asbytes=True)
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"{name} is damaged")
    return json.loads(content)


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


def _content(sample: Mapping[str, Any]) -> str:
    """Return what must be equal in all arms: the question, its choices and its answer."""
    question = sample.get("input")
    if isinstance(question, list):  # messages, whose ids differ between logs
        question = [[message.get("role"), message.get("content")] for message in question]
    return json.dumps([question, sample.get("choices"), sample.get("target")], sort_keys=True)

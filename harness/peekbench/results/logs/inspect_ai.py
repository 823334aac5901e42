"""Logs of Inspect (inspect_ai), as `.eval` files or as JSON."""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from peekbench.errors import ResultsError
from peekbench.results.logs.answers import TaskAnswers, choose_metric

GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Values of grades: correct, partially correct, incorrect, no answer. They are those of Inspect's metric `accuracy`."""
ZSTANDARD = 93
"""Compression of Inspect's files in a ZIP archive, which `zipfile` cannot read before Python 3.14."""
LOCAL_HEADER = struct.Struct("<4s5H3I2H")
"""Header of a file in a ZIP archive; the last two numbers are the lengths of its name and of its extra field."""
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


def _content(sample: dict[str, Any]) -> str:
    """Return what must be equal in all arms: the question and its answer."""
    return json.dumps([sample.get("input"), sample.get("target")], sort_keys=True)

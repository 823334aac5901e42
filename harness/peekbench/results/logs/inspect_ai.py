"""Logs of Inspect (inspect_ai), as `.eval` files or as JSON."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from peekbench.data.loading import size_limit
from peekbench.errors import ResultsError
from peekbench.formatting import shorten
from peekbench.plugins.references import Reference
from peekbench.results.logs.answers import MAX_OBJECT, Log, Part, TaskAnswers, choose_metric, parse, read_bounded
from peekbench.results.read import check_regular

GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Values of grades: correct, partially correct, incorrect, no answer. They are those of Inspect's metric `accuracy`."""
ZSTANDARD = 93
"""Compression of Inspect's files in a ZIP archive, which `zipfile` cannot read before Python 3.14."""
LOCAL_HEADER = struct.Struct("<4s5H3I2H")
"""Header of a file in a ZIP archive; the last two numbers are the lengths of its name and of its extra field."""
MAX_MEMBERS = 10_000_000  # samples of an archive
CONVERT = "convert the log with `inspect log convert --to json`"


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


class Header(Part):
    """A log without its samples."""

    status: str
    invalidated: bool = False
    evaluation: Evaluation = Field(alias="eval")
    results: Results | None = None


class WholeLog(Header):
    """A log in JSON."""

    samples: list[Sample] | None = None


Answer = tuple[str, Mapping[str, Any], str]
"""Text, values of its scorers, and a hash of its content."""


def read_inspect(path: Path) -> Log:
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
    check_regular(file)
    header, samples = _read_eval(file) if zipfile.is_zipfile(file) else _read_json(file)
    if header.status != "success":
        status = shorten(repr(header.status), 100)
        raise ResultsError(f"{file}: the status of this log is {status}, so answers can be missing; finish it")
    if header.invalidated:
        raise ResultsError(f"{file}: this log was invalidated; repeat its invalid samples")
    if not samples:
        raise ResultsError(f"{file} has no samples; run Inspect without --no-log-samples")
    results = header.results or Results()
    if results.completed_samples not in (None, len(samples)):
        raise ResultsError(
            f"{file} has {len(samples)} samples, and its results state {results.completed_samples}; copy the file again"
        )
    task = header.evaluation.task.rpartition("/")[2]
    return Log(file, {task: partial(_read_task, file, samples, header.evaluation, results)})


def _find_log(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = sorted(file for file in path.rglob("*") if file.suffix in (".eval", ".json") and file.is_file())
    if len(found) != 1:
        several = f"several logs, such as {found[-1]}" if found else "no log of Inspect"
        raise ResultsError(f"{path} contains {several}; give one .eval or JSON file")
    return found[0]


def _read_task(
    file: Path, samples: Sequence[Answer], evaluation: Evaluation, results: Results, metrics: Sequence[str]
) -> TaskAnswers:
    metric = choose_metric(metrics, (name for _, values, _ in samples for name in values), file)
    answers = TaskAnswers(file, metric, settings=evaluation.model_dump(exclude={"task"}))
    for text, values, content in samples:
        if metric not in values:
            raise ResultsError(f"{file}: sample {text} has no score of {metric}; repeat the failed samples")
        answers.add(text, _as_number(values[metric], f"{file}, sample {text}"), content)
    answers.check_average(_stated_average(results, metric))
    return answers


def _read_sample(sample: Sample) -> Answer:
    """Return the values of the scorers of a sample; those of a scorer with several values as 'SCORER,NAME'."""
    values: dict[str, Any] = {}
    for scorer, score in (sample.scores or {}).items():
        if isinstance(score.value, dict):
            values |= {f"{scorer},{name}": part for name, part in score.value.items()}
        else:
            values[scorer] = score.value
    return str(sample.id), values, _content(sample)


def _stated_average(results: Results, metric: str) -> object:
    """Return the average over texts that a log states, or None if it states only other statistics."""
    scorer, _, name = metric.partition(",")
    for score in results.scores or ():
        is_mean = score.reducer in (None, "mean")  # of the repeats of a text
        if is_mean and (score.scorer, score.name) == (scorer, name or scorer):
            return next((entry.value for kind, entry in score.metrics.items() if kind in ("accuracy", "mean")), None)
    return None


def _read_eval(path: Path) -> tuple[Header, list[Answer]]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "header.json" not in names:
                raise ResultsError(f"{path} has no header.json, so it is not a complete log of Inspect; finish its run")
            samples = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
            unpacked, limit = sum(info.file_size for info in archive.infolist()), size_limit(path.stat().st_size)
            if unpacked > limit or len(names) > MAX_MEMBERS:
                raise ResultsError(
                    f"{path}: its {len(names):,} files have {unpacked:,} bytes when they are unpacked, more than the "
                    f"{limit:,} that are read; evaluate fewer samples at a time, or without long messages"
                )
            header = parse(Header, _read_member(archive, "header.json"), f"{path}, header.json")
            return header, list(_read_samples(archive, samples, path))
    except (
        NotImplementedError,
        OSError,
        zipfile.BadZipFile,
        zlib.error,
        ValueError,
        RuntimeError,
        struct.error,
    ) as error:
        raise ResultsError(f"{path}: {shorten(str(error), 300)}; {CONVERT}") from error


def _read_samples(archive: zipfile.ZipFile, names: Sequence[str], path: Path) -> Iterator[Answer]:
    for name in names:
        yield _read_sample(parse(Sample, _read_member(archive, name), f"{path}, {shorten(name, 100)}"))


def _read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the content of a JSON file of an archive, also if it is compressed with Zstandard, as Inspect does."""
    info = archive.getinfo(name)
    if info.file_size > MAX_OBJECT:
        raise zipfile.BadZipFile(f"{name} has more than {MAX_OBJECT:,} bytes")
    if info.compress_type != ZSTANDARD:
        return archive.read(name)
    assert archive.fp is not None
    archive.fp.seek(info.header_offset)
    header = archive.fp.read(LOCAL_HEADER.size)
    name_size, extra_size = LOCAL_HEADER.unpack(header)[-2:]
    archive.fp.seek(name_size + extra_size, os.SEEK_CUR)
    unpack = Reference("peekbench.data.parquet:unpack_zstandard")  # pyarrow is optional
    content: bytes = unpack(archive.fp.read(info.compress_size), info.file_size)
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"{name} is damaged")
    return content


def _read_json(path: Path) -> tuple[Header, list[Answer]]:
    content = parse(WholeLog, read_bounded(path), f"{path} is not a log of Inspect")
    return content, [_read_sample(sample) for sample in content.samples or ()]


def _as_number(value: object, place: str) -> float:
    if isinstance(value, str) and value in GRADES:
        return GRADES[value]
    if isinstance(value, bool | int | float):
        return value
    raise ResultsError(
        f"{place}: the score {shorten(repr(value), 100)} is not a grade or a number; choose another scorer with "
        "--metric"
    )


def _content(sample: Sample) -> str:
    """Return a hash of what must be equal in all arms: the question, its choices and its answer."""
    question = sample.input
    if isinstance(question, list):  # messages, whose ids differ between logs
        question = [[each.get("role"), each.get("content")] if isinstance(each, dict) else each for each in question]
    text = json.dumps([question, sample.choices, sample.target], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

"""Logs of lm-evaluation-harness that were written with `--log_samples`.

A run writes `results_TIME.json` with the averages, and `samples_TASK_TIME.jsonl` with a line for each text and filter.
If its `--output_path` is a file `NAME.json`, the first one is `NAME_TIME.json`. Older versions write no TIME, and
`MODEL_ARGS_TASK.jsonl` for the samples. Their lines name neither their filter nor their metrics, which are those of the
averages: the first line of a text is that of the first filter.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from peekbench.errors import ResultsError
from peekbench.formatting import shorten
from peekbench.results.read import check_regular
from peekbench_logs.tables import Part, ScoredAnswer, TaskLog, find_file, is_number, parse

TIME = r"_\d{4}-\d\d-\d\dT[\d.-]+"
"""End of the name of a file with results, by which its samples are found."""
OF_ANSWERS = ("output_type", "generation_kwargs", "repeats")
"""Settings of a task that say how answers are obtained. Prompts may differ, if they contain unlabeled texts."""
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
    configs: dict[str, dict[str, Any]] | None = None
    config: dict[str, Any] | None = None
    """How the program was called."""


class Line(Part):
    """Scores of a text, each in a field of the name of its metric."""

    model_config = ConfigDict(extra="allow")

    doc_id: int | str
    filter: str | None = None
    metrics: list[str] | None = None
    doc_hash: str | None = None


def read_lm_eval(path: Path) -> dict[str, TaskLog]:
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
    file = find_file(path, "results*.json", "lm-eval")
    content = parse(Results, file.read_bytes(), file)
    groups = {name for name, members in (content.group_subtasks or {}).items() if members}
    tasks = {}
    for task in content.results:
        samples = _find_samples(file, task, (content.config or {}).get("model_args"))
        if samples is not None:
            tasks[task] = _read_task(samples, task, content)
        elif task not in groups:  # groups of tasks have averages only
            raise ResultsError(
                f"{file}: there are no samples of task {shorten(repr(task), 200)} beside it; use --log_samples, and "
                "run lm_eval again"
            )
    return tasks


def _find_samples(file: Path, task: str, model_args: Any) -> Path | None:
    """Return the file with the samples of a task, which has the time of the results in its name if they have one."""
    time = TIME
    if own := re.search(f"{TIME}$", file.stem):
        time = re.escape(own[0])
    beginning = re.escape(re.sub("[/=]", "__", str(model_args)))
    name = rf"(samples|{beginning})_{re.escape(task)}({time})?\.jsonl"
    found = sorted(path for path in file.parent.iterdir() if re.fullmatch(name, path.name))
    if len(found) > 1:
        raise ResultsError(f"{file}: {found[0].name} and {found[1].name} can both be its samples; remove one")
    return next(iter(found), None)


def _read_task(file: Path, task: str, content: Results) -> TaskLog:
    directions = (content.higher_is_better or {}).get(task) or {}
    stated = dict(content.results[task])
    answers = list(_read_answers(file, stated))
    names = dict.fromkeys(name for answer in answers for name in answer.values)
    losses = frozenset(name for name in names if name.partition(",")[0] in LIKELIHOODS)
    for name in losses:
        answers = _as_losses(answers, name)
        value = stated.get(name)
        if not name.startswith(BITS) and is_number(value) and value > 0:
            stated[name] = math.log(value)
    by_setting = {
        "n-shot": content.num_fewshot,
        "version": content.versions,
        "higher_is_better": content.higher_is_better,
    }
    config = (content.configs or {}).get(task) or {}
    settings = {name: (by_task or {}).get(task) for name, by_task in by_setting.items()}
    settings |= {name: config.get(name) for name in OF_ANSWERS}
    return TaskLog(
        file,
        answers,
        {name: value for name, value in stated.items() if value == value},  # NaN says nothing
        settings=settings,
        lower_is_better=frozenset(name for name in names if directions.get(name.partition(",")[0]) is False),
        losses=losses,
    )


def _as_losses(answers: list[ScoredAnswer], name: str) -> list[ScoredAnswer]:
    """Replace log-likelihoods by losses, whose mean over texts is the loss per word, byte or text of all texts.

    A log-likelihood can have a weight, its number of words or bytes: each text counts by its share of all of them. A
    value that has another form stays as it is.
    """
    values: list[Any] = [answer.values.get(name) for answer in answers]
    pairs = [value if isinstance(value, list) else [value, 1] for value in values]
    if not all(len(pair) == 2 and all(map(is_number, pair)) for pair in pairs):
        return answers
    total = math.fsum(weight for _, weight in pairs)
    scale = len(pairs) / (total or math.nan)
    if name.startswith(BITS):
        scale /= math.log(2)
    return [
        replace(answer, values={**answer.values, name: -likelihood * scale})
        for answer, (likelihood, _) in zip(answers, pairs, strict=True)
    ]


def _read_answers(file: Path, stated: Collection[str]) -> Iterator[ScoredAnswer]:
    """Read the samples of a task; `stated` has the names of its averages."""
    check_regular(file)
    averages = [name.partition(",") for name in stated if not name.partition(",")[0].endswith("_stderr")]
    filters = list(dict.fromkeys(name for _, _, name in averages if name))
    num_lines: Counter[str] = Counter()
    with file.open("rb") as lines:
        for number, content in enumerate(lines, 1):
            line = parse(Line, content, f"{file}, line {number}")
            fields = line.model_extra or {}
            text, own = str(line.doc_id), line.filter
            if own is None:
                own = next(islice(filters, num_lines[text], None), "none")
                num_lines[text] += 1
            metrics = line.metrics
            if metrics is None:
                metrics = [name for name, _, of_filter in averages if of_filter == own and name in fields]
            yield ScoredAnswer(text, {f"{name},{own}": fields.get(name) for name in metrics}, line.doc_hash or "")

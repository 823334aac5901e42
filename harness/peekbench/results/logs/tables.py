"""Makes a table of scores from logs, one or more for each arm: a row for each text, arm and log.

The logs of an arm, such as those of several training seeds, are the subsamples. With a single log for each arm, the
texts are the subsamples. Repeated answers to a text within a log are averaged: they are neither.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from peekbench.errors import ResultsError
from peekbench.formatting import shorten
from peekbench.plugins.references import Reference
from peekbench.plugins.similar_names import find_nearest
from peekbench.results.cells import natural_key
from peekbench.results.columns import is_arm
from peekbench.results.read import check_regular

TOLERANCE = 1e-6  # of averages, which tools compute in another order
MAX_BYTES = 2**28  # of one JSON object, which takes up to 25 times as much memory
MAX_SHOWN = 300  # characters of a text of a log in a message


class Part(BaseModel):
    """A part of a log; what is not declared is not read."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=True)


PartT = TypeVar("PartT", bound=Part)


def parse(model: type[PartT], content: str | bytes, place: object) -> PartT:
    """Return a JSON object as a part of a log; `place` is its file and line, for messages."""
    if len(content) > MAX_BYTES:
        raise ResultsError(f"{place}: an object has more than {MAX_BYTES:,} bytes; write a log without long fields")
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        problem = ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
        raise ResultsError(f"{place}: {shorten(problem, MAX_SHOWN)}; copy the log again") from error


def find_file(path: Path, pattern: str) -> Path:
    """Return the main file of a log, which is given itself or as a folder that contains a single one."""
    found = sorted(path.rglob(pattern)) if path.is_dir() else [path]
    if not found and any(path.rglob("*.eval")):
        raise ResultsError(
            f"{path} has logs of Inspect that are not in JSON; convert each: "
            "`inspect log convert LOG --to json --output-dir json`"
        )
    if len(found) != 1:
        raise ResultsError(
            f"{path} contains {len(found)} files {pattern}; give one of them, or a folder with a single one"
        )
    check_regular(found[0])
    return found[0]


def read_bounded(file: Path) -> bytes:
    """Return the content of a file that is not too large for `parse`."""
    with file.open("rb") as opened:
        return opened.read(MAX_BYTES + 1)


@dataclass(frozen=True, slots=True)
class Answer:
    """The values of one answer to a text."""

    text: str
    values: Mapping[str, Any]
    """Values by metric, such as 'acc,none'."""
    content: str = ""
    """Hash of the text, if the log has one. It must be the same in all arms."""


@dataclass(frozen=True, slots=True)
class TaskLog:
    """What a log has about one task."""

    origin: Path
    answers: Sequence[Answer]
    stated: Mapping[str, Any]
    """Average of each metric as the log states it."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """How the task was run, such as the number of examples in prompts, which must not differ between arms."""
    lower_is_better: frozenset[str] = frozenset()
    """Metrics of which the log says that a lower value is better."""
    losses: frozenset[str] = frozenset()
    """Metrics whose values are losses, which have no upper bound, such as bits per byte."""


@dataclass(frozen=True, slots=True)
class Log:
    """A log of one run of another tool."""

    file: Path
    tasks: Mapping[str, TaskLog]


LOG_FORMATS: Mapping[str, Callable[[Path], Log]] = {
    "lm-eval": Reference("peekbench.results.logs.lm_eval:read_lm_eval"),
    "inspect": Reference("peekbench.results.logs.inspect_ai:read_inspect"),
}
"""Functions that read a log, by the name of the tool that wrote it.

Examples
--------
>>> sorted(LOG_FORMATS)
['inspect', 'lm-eval']
"""


def import_logs(
    tool: str,
    logs: Sequence[tuple[str, Path]],
    *,
    metrics: Sequence[str] = (),
    tasks: Sequence[str] = (),
    method: str = "method",
) -> pd.DataFrame:
    """Return a table of scores from the logs of the arms.

    Parameters
    ----------
    tool
        Tool that wrote the logs, see `LOG_FORMATS`.
    logs
        Arm and path of each log. Each arm has as many logs of each task, such as one for each training seed; those of
        different arms are paired in this order.
    metrics
        Metrics or scorers, of which each task must have exactly one; if there are none, the only one of each task.
        If the metric has several values or filters, they follow a comma: 'exact_match,strict-match'.
    tasks
        Tasks to import; by default all.
    method
        Label of the method.

    Returns
    -------
    pandas.DataFrame
        Columns task, method, arm, text, score and metric. If there are several logs for each arm, `subsample` numbers
        them. If all scores are counts of correct answers, num_correct; if texts have several answers, num_test is their
        number. If the log says that a lower value of a metric is better, scores are 1 - value, and `metric` says so;
        perplexities become losses in nats, and bits per byte those in bits, in the column `loss` instead of `score`.

    Raises
    ------
    ResultsError
        If an arm, task or metric is unknown or missing, a log cannot be read, or the arms do not have the same texts.

    Examples
    --------
    >>> logs = [(arm, Path("logs") / arm) for arm in ("base", "extra", "test")]
    >>> scores = import_logs("lm-eval", logs, method="my-model")
    >>> scores.groupby("arm")["score"].mean().round(2).to_dict()
    {'base': 0.33, 'extra': 0.5, 'test': 0.67}
    """
    if tool not in LOG_FORMATS:
        raise ResultsError(f"there is no log format {tool!r}; formats are {', '.join(LOG_FORMATS)}")
    arms = list(dict.fromkeys(arm for arm, _ in logs))
    if unknown := [arm for arm in arms if not is_arm(arm)]:
        raise ResultsError(f"{unknown[0]!r} is not an arm; write --arm base=LOG, --arm extra=LOG and --arm test=LOG")
    if missing := {"extra", "test"} - set(arms):
        raise ResultsError(f"there is no log of the arm {min(missing)}; a bias is the difference of test and extra")
    read = [(arm, _read(tool, path)) for arm, path in logs]
    _refuse_copies(read)
    names = list(dict.fromkeys(task for _, log in read for task in log.tasks))
    for task in tasks:
        if task not in names:
            near = find_nearest(task, names)
            remedy = f"did you mean {near}?" if near else f"the tasks are {', '.join(names)}"
            raise ResultsError(f"--task {task}: no log has this task; {remedy}")
    rows: list[tuple[Any, ...]] = []
    for task in dict.fromkeys(tasks or names):
        of_task = {a: [log.tasks[task] for arm, log in read if arm == a and task in log.tasks] for a in arms}
        rows += _rows(task, of_task, metrics)
    table = pd.DataFrame(
        rows, columns=["task", "subsample", "arm", "text", "score", "loss", "num_correct", "num_test", "metric"]
    )
    if table["loss"].nunique() and table["score"].nunique():
        with_losses = ", ".join(table.loc[table["loss"].notna(), "task"].unique())
        raise ResultsError(f"scores and losses have no common average; import {with_losses} alone, with --task")
    used = {str(name).removeprefix("1 - ") for name in table["metric"].unique()}
    if unused := [metric for metric in metrics if not any(_is_metric(name, [metric]) for name in used)]:
        raise ResultsError(f"--metric {unused[0]} is a metric of no task; the metrics are {', '.join(sorted(used))}")
    is_accuracy = table["num_correct"].notna().all()  # in all rows or in none
    superfluous = {
        "subsample": table["subsample"].max() == 0,
        "score": table["score"].isna().all(),
        "loss": table["loss"].isna().all(),
        "num_correct": not is_accuracy,
        "num_test": not is_accuracy or table["num_test"].max() == 1,
    }
    table = table.drop(columns=[name for name, is_superfluous in superfluous.items() if is_superfluous])
    table.insert(1, "method", method)
    return table


def _read(tool: str, path: Path) -> Log:
    try:
        return LOG_FORMATS[tool](path)
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror or error}") from error


def _refuse_copies(logs: Sequence[tuple[str, Log]]) -> None:
    """Refuse a log that is given twice: its answers would show no bias, or count as another draw."""
    known: dict[str, tuple[str, Path]] = {}
    for arm, log in logs:
        digest = hashlib.sha256(log.file.read_bytes()).hexdigest()
        if digest in known:
            other_arm, other = known[digest]
            raise ResultsError(
                f"the arms {other_arm} and {arm} have the same log ({other}, {log.file}); give another one"
            )
        known[digest] = arm, log.file


def _rows(task: str, by_arm: Mapping[str, Sequence[TaskLog]], metrics: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    if len({len(logs) for logs in by_arm.values()}) > 1:
        listed = ", ".join(f"{arm} {len(logs)}" for arm, logs in by_arm.items())
        raise ResultsError(
            f"task {task}: the arms have different numbers of logs ({listed}), and the logs of the arms are paired in "
            "their order; give each arm as many logs, such as one for each training seed"
        )
    first = next(iter(by_arm.values()))[0]
    metric = _choose_metric(metrics, first)
    scores = {arm: [_read_scores(log, metric) for log in logs] for arm, logs in by_arm.items()}
    for arm, logs in by_arm.items():
        for log, found in zip(logs, scores[arm], strict=True):
            _check_equal(task, first, log)
            if len({len(each) for each in (*found.values(), *scores[next(iter(by_arm))][0].values())}) > 1:
                raise ResultsError(
                    f"task {task}: the texts have different numbers of answers ({log.origin}); evaluate all models "
                    "with the same number of epochs"
                )
    is_lower_better = metric in first.lower_is_better
    for number in range(len(next(iter(by_arm.values())))):
        for text in sorted({answer.text for answer in first.answers}, key=natural_key):  # logs have any order
            for arm in by_arm:
                values = scores[arm][number][text]
                if metric in first.losses:
                    yield task, number, arm, text, None, sum(values) / len(values), None, len(values), metric
                    continue
                values = [1 - value if is_lower_better else value for value in values]
                correct = int(sum(values)) if set(values) <= {0.0, 1.0} else None
                name = f"1 - {metric}" if is_lower_better else metric
                yield task, number, arm, text, sum(values) / len(values), None, correct, len(values), name


def _choose_metric(wanted: Sequence[str], log: TaskLog) -> str:
    """Return the one metric of a task that was asked for, or its only one."""
    available = list(dict.fromkeys(name for answer in log.answers for name in answer.values))
    chosen = [name for name in available if not wanted or _is_metric(name, wanted)]
    if len(chosen) == 1:
        return chosen[0]
    problem = "several metrics" if chosen else f"no metric {' or '.join(wanted)}"
    raise ResultsError(
        f"{log.origin} has {problem}; choose one for each kind of task with --metric: "
        f"{', '.join(available) or 'the log has none'}"
    )


def _is_metric(name: str, wanted: Sequence[str]) -> bool:
    return name in wanted or name.partition(",")[0] in wanted


def _read_scores(log: TaskLog, metric: str) -> dict[str, list[float]]:
    """Return the scores of the answers to each text, whose mean must be what the log states."""
    scores: dict[str, list[float]] = {answer.text: [] for answer in log.answers}
    for answer in log.answers:
        if metric in answer.values:
            value = answer.values[metric]
            is_allowed = math.isfinite if metric in log.losses else lambda number: 0 <= number <= 1
            if not isinstance(value, int | float) or not is_allowed(value):
                raise ResultsError(
                    f"{log.origin}: the score of text {answer.text} is {shorten(repr(value), MAX_SHOWN)}, not between "
                    "0 and 1; choose another one with --metric, such as a share of correct answers or bits per byte"
                )
            scores[answer.text].append(float(value))
    if missing := [text for text, values in scores.items() if not values]:
        raise ResultsError(f"{log.origin}: text {missing[0]} has no score of {metric}; evaluate it again")
    values = [value for repeats in scores.values() for value in repeats]
    mean, stated = math.fsum(values) / len(values), log.stated.get(metric)
    is_close = isinstance(stated, int | float) and math.isclose(mean, stated, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if stated is not None and not is_close:
        raise ResultsError(
            f"{log.origin}: the mean of {metric} is {mean:.6g}, and the results state {shorten(repr(stated), 20)}; the "
            "files do not belong together, or lines are missing, or this metric is not a mean over texts"
        )
    return scores


def _check_equal(task: str, first: TaskLog, log: TaskLog) -> None:
    """Refuse logs with other settings or texts, which cannot be paired."""
    for name, value in first.settings.items():
        if (other := log.settings.get(name)) != value:
            one, two = (shorten(repr(each), MAX_SHOWN) for each in (value, other))
            raise ResultsError(
                f"task {task}: {name} is {one} in {first.origin} and {two} in {log.origin}; run all arms with the same "
                "settings"
            )
    texts = [{(answer.text, answer.content) for answer in each.answers} for each in (first, log)]
    if different := texts[0] ^ texts[1]:
        raise ResultsError(
            f"task {task}: {first.origin} and {log.origin} have different texts, such as {min(different)[0]}; evaluate "
            "all models on the same texts"
        )
    if len({text for text, _ in texts[1]}) < len(texts[1]):
        raise ResultsError(f"{log.origin}: two texts have the same number; import the log of a single task")

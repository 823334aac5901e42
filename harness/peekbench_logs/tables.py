"""Makes a table of scores from logs, one or more for each arm: a row for each text, arm and log.

The logs of an arm, such as those of several training seeds, are the subsamples. With a single log for each arm, the
texts are the subsamples. Repeated answers to a text within a log are averaged: they are neither.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, TypeGuard, TypeVar

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from peekbench.errors import ResultsError
from peekbench.formatting import list_names, pluralize, shorten, visible
from peekbench.identity import DIFFERENCES, find_alike
from peekbench.plugins.names import Reference, find_nearest
from peekbench.results.cells import natural_key
from peekbench.results.columns import ARMS, is_arm
from peekbench.results.read import check_regular, find_tool

TOLERANCE = 1e-6  # of averages, which tools compute in another order
MAX_SHOWN = 300  # characters of a text of a log in a message
MAX_LISTED = 10  # texts or metrics in a message
COLUMNS = ["task", "subsample", "arm", "text", "score", "loss", "num_correct", "num_test", "metric"]


class Part(BaseModel):
    """A part of a log; what is not declared is not read."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=True)


PartT = TypeVar("PartT", bound=BaseModel)


def parse(model: type[PartT], content: str | bytes, place: object) -> PartT:
    """Return a JSON object as a part of a log; `place` is its file and line, for messages."""
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        problem = ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
        raise ResultsError(
            f"{place}: {shorten(problem, MAX_SHOWN)}; copy the log again, or evaluate again with a newer version of "
            "the tool, such as lm-evaluation-harness 0.4.7"
        ) from error


def find_file(path: Path, pattern: str, tool: str) -> Path:
    """Return the main file of a log of a tool, which is given itself or as a folder that contains a single one."""
    found = [path]
    if path.is_dir():
        found = sorted(path.rglob(pattern))
    if len(found) != 1:
        raise ResultsError(
            f"{path} contains {len(found)} files {pattern}; give one of them, or the folder in which lm_eval writes a "
            "single one with --output_path and --log_samples, or inspect with --log-dir and --log-format json"
        )
    check_regular(found[0])
    if (other := find_tool(found[0])) not in (None, tool):
        raise ResultsError(f"{found[0]} is a log of {other}, not of {tool}; write `peekbench import {other}`")
    return found[0]


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """The values of one answer to a text."""

    text: str
    values: Mapping[str, Any]
    """Values by metric, such as 'acc,none'; None or NaN if the answer has no score."""
    content: str = ""
    """Hash of the text, if the log has one. It must be the same in all arms."""


@dataclass(frozen=True, slots=True)
class TaskLog:
    """What a log has about one task."""

    origin: Path
    answers: Sequence[ScoredAnswer]
    stated: Mapping[str, Any]
    """Average of each metric as the log states it."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """How the task was run, such as the number of examples in prompts, which must not differ between arms."""
    lower_is_better: frozenset[str] = frozenset()
    """Metrics of which the log says that a lower value is better."""
    losses: frozenset[str] = frozenset()
    """Metrics whose values are losses, which have no upper bound, such as bits per byte."""

    @property
    def metrics(self) -> list[str]:
        """Names of all metrics of single texts."""
        return list(dict.fromkeys(name for answer in self.answers for name in answer.values))


@dataclass(frozen=True, slots=True)
class ImportedScores:
    """A table of scores from logs.

    Examples
    --------
    >>> logs = [(arm, Path("logs") / arm) for arm in ("extra", "test")]
    >>> import_logs("lm-eval", logs).table["arm"].unique().tolist()
    ['extra', 'test']
    """

    table: pd.DataFrame
    """Scores of single texts, one row for each arm."""
    notes: Sequence[str] = ()
    """What was left out, and which comparisons with the logs were impossible."""


LOG_FORMATS: Mapping[str, Callable[[Path], Mapping[str, TaskLog]]] = {
    "lm-eval": Reference("peekbench_logs.lm_eval:read_lm_eval"),
    "inspect": Reference("peekbench_logs.inspect_ai:read_inspect"),
}
"""Functions that read the tasks of a log, by the name of the tool that wrote it.

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
) -> ImportedScores:
    """Make a table of scores from the logs of the arms.

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
    ImportedScores
        Its table has the columns task, method, arm, text, score and metric. If there are several logs for each arm,
        `subsample` numbers them. If all scores are counts of correct answers, num_correct; if texts have several
        answers, num_test is their number. If the log says that a lower value of a metric is better, scores are
        1 - value, and `metric` says so; values above 1, perplexities in nats and bits per byte are losses, in the
        column `loss` instead of `score`. Texts without a score in one of the logs are left out of all.

    Raises
    ------
    ResultsError
        If an arm, task or metric is unknown or missing, a log cannot be read, or the arms do not have the same texts.

    Examples
    --------
    >>> logs = [(arm, Path("logs") / arm) for arm in ("base", "extra", "test")]
    >>> scores = import_logs("lm-eval", logs, method="my-model").table
    >>> scores.groupby("arm")["score"].mean().round(2).to_dict()
    {'base': 0.33, 'extra': 0.5, 'test': 0.67}
    """
    if tool not in LOG_FORMATS:
        raise ResultsError(f"there is no log format {tool!r}; formats are {', '.join(LOG_FORMATS)}")
    arms = list(dict.fromkeys(arm for arm, _ in logs))
    for arm in arms:
        if not is_arm(arm):
            remedy = "write --arm base=LOG, --arm extra=LOG and --arm test=LOG"
            if near := find_nearest(arm, ARMS):
                remedy = f"did you mean {near}?"
            raise ResultsError(f"--arm {arm}=LOG: {arm!r} is not an arm; {remedy}")
    for arm in ("extra", "test"):
        if arm not in arms:
            raise ResultsError(
                f"there is no log of the arm {arm}; add --arm {arm}=LOG: a bias is the difference of test and extra"
            )
    paths = Counter(path.resolve() for _, path in logs)
    for path, count in paths.items():
        if count > 1:  # it would show no bias, or count as another draw
            raise ResultsError(f"{path} is given for two logs; give another one")
    read = [(arm, _read(tool, path)) for arm, path in logs]
    names = list(dict.fromkeys(task for _, log in read for task in log))
    for one, other, *_ in find_alike(names):
        raise ResultsError(
            f"the tasks {one!r} and {other!r} differ only by {DIFFERENCES}; rename one, and evaluate again"
        )
    for task in tasks:
        if task not in names:
            remedy = f"the tasks are {', '.join(names)}"
            if near := find_nearest(task, names):
                remedy = f"did you mean {near}?"
            raise ResultsError(f"--task {task}: no log has this task; {remedy}")
    rows: list[tuple[Any, ...]] = []
    notes: list[str] = []
    for task in dict.fromkeys(tasks or names):
        of_task = {a: [log[task] for arm, log in read if arm == a and task in log] for a in arms}
        of_task_rows, of_task_notes = _rows(task, of_task, metrics)
        rows += of_task_rows
        notes += of_task_notes
    table = pd.DataFrame(rows, columns=COLUMNS)
    used = {str(name).removeprefix("1 - ") for name in table["metric"].unique()}
    if unused := [metric for metric in metrics if not any(_is_metric(name, [metric]) for name in used)]:
        raise ResultsError(f"--metric {unused[0]} is a metric of no task; the metrics are {', '.join(sorted(used))}")
    is_loss = table["score"].isna()
    if is_loss.any() and not is_loss.all():
        task = min(table.loc[is_loss, "task"])
        raise ResultsError(f"losses and scores have no common average; import {task} alone, with --task")
    is_accuracy = table["num_correct"].notna().all()  # in all rows or in none
    superfluous = {
        "subsample": table["subsample"].max() == 0,
        "score": is_loss.all(),
        "loss": not is_loss.any(),
        "num_correct": not is_accuracy,
        "num_test": not is_accuracy or table["num_test"].max() == 1,
    }
    table = table.drop(columns=[name for name, is_superfluous in superfluous.items() if is_superfluous])
    table.insert(1, "method", method)
    return ImportedScores(table, notes)


def _read(tool: str, path: Path) -> Mapping[str, TaskLog]:
    try:
        return LOG_FORMATS[tool](path)
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror or error}") from error


def _rows(
    task: str, by_arm: Mapping[str, Sequence[TaskLog]], metrics: Sequence[str]
) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Return the rows of a task, and notes about them."""
    if len({len(logs) for logs in by_arm.values()}) > 1:
        listed = ", ".join(f"{arm} {len(logs)}" for arm, logs in by_arm.items())
        raise ResultsError(
            f"task {task}: the arms have different numbers of logs ({listed}), and the logs of the arms are paired in "
            "their order; give each arm as many logs, such as one for each training seed"
        )
    logs = [log for of_arm in by_arm.values() for log in of_arm]
    first = logs[0]
    metric = _choose_metric(metrics, first)
    scores = {arm: [_read_scores(log, metric) for log in of_arm] for arm, of_arm in by_arm.items()}
    for log in logs:
        _check_equal(task, first, log)
    texts = sorted({answer.text for answer in first.answers}, key=natural_key)  # logs have any order
    unscored = {
        arm: [text for text in texts if not all(of_log[text] for of_log in of_arm)] for arm, of_arm in scores.items()
    }
    left_out = {text for of_arm in unscored.values() for text in of_arm}
    kept = [text for text in texts if text not in left_out]
    counts = ", ".join(f"{arm} {len(of_arm)}" for arm, of_arm in unscored.items())
    if not kept:
        raise ResultsError(
            f"task {task}: no text has a score of {metric} in all logs ({counts} of {len(texts)} without); score or "
            "evaluate all models again"
        )
    notes = []
    if unchecked := [log.origin for log in logs if log.stated.get(metric) is None]:
        notes.append(f"task {task}: {unchecked[0]} states no mean of {metric}, with which scores could be compared")
    if left_out:
        notes.append(
            f"task {task}: {len(left_out)} of {pluralize(len(texts), 'text')} are left out in all arms, because they "
            f"have no score of {metric} in a log ({counts}): {_listed([text for text in texts if text in left_out])}"
        )
    kept_scores = [
        (text, number, arm, scores[arm][number][text])
        for number in range(len(next(iter(by_arm.values()))))
        for text in kept
        for arm in by_arm
    ]
    return _make_rows(task, metric, first, kept_scores), notes


def _make_rows(
    task: str, metric: str, log: TaskLog, scores: Sequence[tuple[str, int, str, list[float]]]
) -> list[tuple[Any, ...]]:
    """Return the rows of a task from the scores of each text, log and arm."""
    is_share = all(0 <= value <= 1 for *_, values in scores for value in values)
    is_lower_better = metric in log.lower_is_better
    is_loss = metric in log.losses or (is_lower_better and not is_share)
    has_counts = len({len(values) for *_, values in scores}) == 1
    rows: list[tuple[Any, ...]] = []
    for text, number, arm, values in scores:
        if is_loss:
            rows.append((task, number, arm, text, None, sum(values) / len(values), None, len(values), metric))
            continue
        name, correct = metric, None
        if is_lower_better:
            name, values = f"1 - {metric}", [1 - value for value in values]
        if has_counts and set(values) <= {0.0, 1.0}:
            correct = int(sum(values))
        rows.append((task, number, arm, text, sum(values) / len(values), None, correct, len(values), name))
    return rows


def _listed(names: Sequence[str]) -> str:
    return list_names([shorten(visible(name), MAX_SHOWN) for name in names], MAX_LISTED)


def _choose_metric(wanted: Sequence[str], log: TaskLog) -> str:
    """Return the one metric of a task that was asked for, or its only one."""
    available = log.metrics
    chosen = [name for name in available if not wanted or _is_metric(name, wanted)]
    if len(chosen) == 1:
        return chosen[0]
    if not available:
        raise ResultsError(f"{log.origin} has no scores of single texts; score or evaluate it again")
    problem = "several metrics"
    if not chosen:
        problem = f"no metric {_listed(wanted)}"
    raise ResultsError(
        f"{log.origin} has {problem}; choose one for each kind of task with --metric: {_listed(chosen or available)}"
    )


def _is_metric(name: str, wanted: Sequence[str]) -> bool:
    return name in wanted or name.partition(",")[0] in wanted


def _read_scores(log: TaskLog, metric: str) -> dict[str, list[float]]:
    """Return the scores of the answers to each text, whose mean must be what the log states."""
    others = _listed([name for name in log.metrics if name != metric])
    remedy = f"choose another metric with --metric: {others}"
    if not others:
        remedy = "add a metric that gives each text a number to the task, and evaluate again"
    scores: dict[str, list[float]] = {answer.text: [] for answer in log.answers}
    for answer in log.answers:
        value = answer.values.get(metric)
        if value is None or value != value:  # NaN: the tool could not score this answer
            continue
        if not is_number(value):
            raise ResultsError(
                f"{log.origin}: the score of text {_listed([answer.text])} is {shorten(repr(value), MAX_SHOWN)}, not a "
                f"number; {remedy}"
            )
        scores[answer.text].append(float(value))
    scored = [values for values in scores.values() if values]
    stated = log.stated.get(metric)
    if stated is None or not scored:
        return scores
    means = {fmean([fmean(values) for values in scored]), fmean([value for values in scored for value in values])}
    if not any(
        is_number(stated) and math.isclose(mean, stated, rel_tol=TOLERANCE, abs_tol=TOLERANCE) for mean in means
    ):
        raise ResultsError(
            f"{log.origin}: the mean of {metric} is {min(means):.6g}, and the results state "
            f"{shorten(repr(stated), 20)}; copy the files of one evaluation again, unless {metric} is not a mean over "
            f"texts: {remedy}"
        )
    return scores


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value of a log is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def _check_equal(task: str, first: TaskLog, log: TaskLog) -> None:
    """Refuse logs with other settings or texts, which cannot be paired."""
    for name, value in first.settings.items():
        if (other := log.settings.get(name)) != value:
            one, two = (shorten(repr(found), MAX_SHOWN) for found in (value, other))
            raise ResultsError(
                f"task {task}: {name} is {one} in {first.origin} and {two} in {log.origin}; run all arms with the same "
                "settings"
            )
    texts = [Counter((answer.text, answer.content) for answer in compared.answers) for compared in (first, log)]
    if different := texts[0].keys() ^ texts[1].keys():
        raise ResultsError(
            f"task {task}: {first.origin} and {log.origin} have different texts, such as "
            f"{_listed([min(different)[0]])}; evaluate all models on the same texts"
        )
    if len({*texts[0].values(), *texts[1].values()}) > 1:
        raise ResultsError(
            f"task {task}: the texts have different numbers of answers ({log.origin}); evaluate all models with the "
            "same number of epochs"
        )
    if len({text for text, _ in texts[1]}) < len(texts[1]):
        raise ResultsError(f"{log.origin}: two texts have the same id; give each its own, and evaluate again")

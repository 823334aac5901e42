"""Makes a table of scores from logs, one or more for each arm: a row for each text, arm and log.

The logs of an arm, such as those of several training seeds, are the subsamples. With a single log for each arm, the
texts are the subsamples. Repeated answers to a text within a log are averaged: they are neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from peekbench.errors import ResultsError
from peekbench.formatting import pluralize, shorten
from peekbench.plugins.similar_names import find_nearest
from peekbench.results.cells import natural_key
from peekbench.results.columns import is_arm
from peekbench.results.logs.answers import Log, TaskAnswers, TasksOfLog, is_metric
from peekbench.results.logs.inspect_ai import read_inspect
from peekbench.results.logs.lm_eval import read_lm_eval

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG_FORMATS: Mapping[str, Callable[[Path], Log]] = {"lm-eval": read_lm_eval, "inspect": read_inspect}
"""Functions that find the tasks of a log, by the name of the tool that wrote it.

Examples
--------
>>> sorted(LOG_FORMATS)
['inspect', 'lm-eval']
"""

MAX_NAMED = 3  # texts named in an error
MAX_SHOWN = 100  # characters of a setting in an error


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
        number. If the log says that a lower value of a metric is better, scores are 1 - value, and `metric` says so.

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
    for arm, _ in logs:
        if not is_arm(arm):
            raise ResultsError(f"{arm!r} is not an arm; write --arm base=LOG, --arm extra=LOG and --arm test=LOG")
    arms = list(dict.fromkeys(arm for arm, _ in logs))
    if missing := {"extra", "test"} - set(arms):
        raise ResultsError(
            f"there is no log of the arm {sorted(missing)[0]}; a bias is the difference of test and extra"
        )
    opened = [(arm, _open(LOG_FORMATS[tool], path)) for arm, path in logs]
    _refuse_copies(opened)
    found = [(arm, log.tasks) for arm, log in opened]
    chosen = _choose_tasks(found, tasks)
    by_arm = {arm: _read([log for other, log in found if other == arm], chosen, metrics) for arm in arms}
    _check_tasks(by_arm)
    for task in by_arm[arms[0]]:
        _check_equal(task, {arm: logs_of_tasks[task] for arm, logs_of_tasks in by_arm.items()})
    used = {answers.metric for task_logs in by_arm[arms[0]].values() for answers in task_logs}
    if unused := [metric for metric in metrics if not any(is_metric(name, [metric]) for name in used)]:
        raise ResultsError(f"--metric {unused[0]} is a metric of no task; the metrics are {', '.join(sorted(used))}")
    rows = [row for task in by_arm[arms[0]] for row in _rows(task, {arm: by_arm[arm][task] for arm in arms})]
    table = pd.DataFrame(
        rows, columns=["task", "subsample", "arm", "text", "score", "num_correct", "num_test", "metric"]
    )
    is_accuracy = table["num_correct"].notna().all()  # in all rows or in none
    superfluous = {
        "subsample": table["subsample"].max() == 0,
        "num_correct": not is_accuracy,
        "num_test": not is_accuracy or table["num_test"].max() == 1,
    }
    table = table.drop(columns=[name for name, is_superfluous in superfluous.items() if is_superfluous])
    table.insert(1, "method", method)
    return table


def _open(find: Callable[[Path], Log], path: Path) -> Log:
    try:
        return find(path)
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror or error}") from error


def _refuse_copies(logs: Sequence[tuple[str, Log]]) -> None:
    """Refuse a log that is given twice: its answers would show no bias, or count as another draw."""
    known: dict[bytes, tuple[str, Path]] = {}
    for arm, log in logs:
        with log.file.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        if digest in known:
            other_arm, other = known[digest]
            arms = f"the arms {other_arm} and {arm} have" if arm != other_arm else f"the arm {arm} has twice"
            raise ResultsError(f"{arms} the same log ({other}, {log.file}); give the log of another run")
        known[digest] = arm, log.file


def _choose_tasks(logs: Sequence[tuple[str, TasksOfLog]], wanted: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(task for _, log in logs for task in log))
    for task in wanted:
        if task not in names:
            near = find_nearest(task, names)
            remedy = f"did you mean {near}?" if near else f"the tasks are {', '.join(names)}"
            raise ResultsError(f"--task {task}: no log has this task; {remedy}")
    return list(dict.fromkeys(wanted)) or names


def _read(logs: Sequence[TasksOfLog], tasks: Sequence[str], metrics: Sequence[str]) -> dict[str, list[TaskAnswers]]:
    """Read the logs of an arm, by task. A log can have some of the tasks."""
    found: dict[str, list[TaskAnswers]] = {}
    for task, read in ((task, log[task]) for log in logs for task in tasks if task in log):
        found.setdefault(task, []).append(read(metrics))
    return found


def _check_tasks(by_arm: Mapping[str, Mapping[str, object]]) -> None:
    first, *others = by_arm
    for arm in others:
        if different := set(by_arm[arm]) ^ set(by_arm[first]):
            raise ResultsError(f"only one of the arms {first} and {arm} has the task {sorted(different)[0]!r}")


def _check_equal(task: str, by_arm: Mapping[str, Sequence[TaskAnswers]]) -> None:
    """Refuse logs with other numbers, metrics, texts or numbers of answers, which cannot be paired."""
    first_arm, (first, *_) = next(iter(by_arm.items()))
    if len({len(logs) for logs in by_arm.values()}) > 1:
        listed = ", ".join(f"{arm} {len(logs)}" for arm, logs in by_arm.items())
        raise ResultsError(
            f"task {task}: the arms have different numbers of logs ({listed}), and the logs of the arms are paired in "
            "their order; give each arm as many logs, such as one for each training seed"
        )
    for arm, answers in ((arm, answers) for arm, logs in by_arm.items() for answers in logs):
        if answers.metric != first.metric:
            raise ResultsError(
                f"task {task}: the metric is {first.metric} in {first.origin} and {answers.metric} in {answers.origin}"
                "; choose one with --metric"
            )
        for name, value in first.settings.items():
            if answers.settings.get(name) != value:
                one, other = (shorten(repr(each), MAX_SHOWN) for each in (value, answers.settings.get(name)))
                raise ResultsError(
                    f"task {task}: {name} is {one} in {first.origin} and {other} in {answers.origin}; run all arms "
                    "with the same settings"
                )
        for kind, ours, theirs in (
            ("texts", first.scores.keys(), answers.scores.keys()),
            ("contents of texts", first.hashes.items(), answers.hashes.items()),
        ):
            if different := {str(item[0] if isinstance(item, tuple) else item) for item in ours ^ theirs}:
                logs = f"the arms {first_arm} and {arm}" if arm != first_arm else f"two logs of the arm {arm}"
                raise ResultsError(
                    f"task {task}: {logs} have other {kind} ({answers.origin}): "
                    f"{', '.join(sorted(different)[:MAX_NAMED])}; evaluate all models on the same texts"
                )
    counts = {len(scores) for logs in by_arm.values() for answers in logs for scores in answers.scores.values()}
    if len(counts) > 1:
        raise ResultsError(
            f"task {task}: texts have {min(counts)} to {pluralize(max(counts), 'answer')}; evaluate all models with "
            "the same number of epochs"
        )


def _rows(task: str, by_arm: Mapping[str, Sequence[TaskAnswers]]) -> Iterator[tuple[object, ...]]:
    texts = sorted(next(iter(by_arm.values()))[0].scores, key=natural_key)  # logs can have the order of completion
    for number in range(len(next(iter(by_arm.values())))):
        for text in texts:
            for arm, logs in by_arm.items():
                scores = logs[number].scores[text]
                correct = int(sum(scores)) if set(scores) <= {0.0, 1.0} else None
                metric = f"1 - {logs[number].metric}" if logs[number].is_lower_better else logs[number].metric
                yield task, number, arm, text, sum(scores) / len(scores), correct, len(scores), metric

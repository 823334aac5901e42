"""Makes a table of scores from logs, one or more for each arm: a row for each text and arm.

The texts are the draws of this table, so an analysis pairs the arms text by text, and its intervals are for other texts
like these. Repeated answers to a text are averaged first: they are no further texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from peekbench.errors import ResultsError
from peekbench.formatting import pluralize
from peekbench.plugins.nearest import find_nearest
from peekbench.results.columns import is_arm
from peekbench.results.logs.answers import TaskAnswers, TasksOfLog, is_metric
from peekbench.results.logs.inspect_ai import read_inspect
from peekbench.results.logs.lm_eval import read_lm_eval
from peekbench.results.row_order import natural_key

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG_FORMATS: Mapping[str, Callable[[Path], TasksOfLog]] = {"lm-eval": read_lm_eval, "inspect": read_inspect}
"""Functions that find the tasks of a log, by the name of the tool that wrote it.

Examples
--------
>>> sorted(LOG_FORMATS)
['inspect', 'lm-eval']
"""

MAX_NAMED = 3  # texts named in an error


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
        Arm and path of each log. Each arm has as many logs, such as one for each random seed.
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
        Columns task, method, num_test, subsample, arm, score and, if all scores are 0 or 1, num_correct. `subsample`
        numbers the texts of a task, and `num_test` is the number of answers to each.

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
    found = [(arm, LOG_FORMATS[tool](path)) for arm, path in logs]
    chosen = _choose_tasks(found, tasks)
    by_arm = {arm: _merge([log for other, log in found if other == arm], chosen, metrics) for arm in arms}
    _check_equal(by_arm)
    used = {answers.metric for answers in by_arm[arms[0]].values()}
    if unused := [metric for metric in metrics if not any(is_metric(name, [metric]) for name in used)]:
        raise ResultsError(f"--metric {unused[0]} is a metric of no task; the metrics are {', '.join(sorted(used))}")
    rows = [row for task in by_arm[arms[0]] for row in _rows(task, {arm: by_arm[arm][task] for arm in arms})]
    table = pd.DataFrame(rows, columns=["task", "num_test", "subsample", "arm", "score", "num_correct"])
    if table["num_correct"].isna().any():  # accuracies are shares of correct answers in all rows or in none
        table = table.drop(columns="num_correct")
    table.insert(1, "method", method)
    return table


def _choose_tasks(logs: Sequence[tuple[str, TasksOfLog]], wanted: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(task for _, log in logs for task in log))
    for task in wanted:
        if task not in names:
            near = find_nearest(task, names)
            remedy = f"did you mean {near}?" if near else f"the tasks are {', '.join(names)}"
            raise ResultsError(f"--task {task}: no log has this task; {remedy}")
    return list(dict.fromkeys(wanted)) or names


def _merge(logs: Sequence[TasksOfLog], tasks: Sequence[str], metrics: Sequence[str]) -> dict[str, TaskAnswers]:
    """Read the logs of an arm and join its repeats, by task."""
    merged: dict[str, TaskAnswers] = {}
    for task, read in ((task, log[task]) for log in logs for task in tasks if task in log):
        answers = read(metrics)
        target = merged.setdefault(task, TaskAnswers(answers.origin, answers.metric))
        if target.metric != answers.metric:
            raise _other_metric(task, target, answers)
        for text, scores in answers.scores.items():
            for score in scores:
                target.add(text, score, answers.hashes[text])
    return merged


def _other_metric(task: str, first: TaskAnswers, other: TaskAnswers) -> ResultsError:
    return ResultsError(
        f"task {task}: the metric is {first.metric} in {first.origin} and {other.metric} in {other.origin}; choose one "
        "with --metric"
    )


def _check_equal(by_arm: Mapping[str, Mapping[str, TaskAnswers]]) -> None:
    """Refuse arms with other tasks, texts or numbers of answers, which cannot be paired."""
    first, *others = by_arm
    for arm in others:
        if different := set(by_arm[arm]) ^ set(by_arm[first]):
            raise ResultsError(f"only one of the arms {first} and {arm} has the task {sorted(different)[0]!r}")
        for task, answers in by_arm[arm].items():
            expected = by_arm[first][task]
            if answers.metric != expected.metric:
                raise _other_metric(task, expected, answers)
            for kind, one, other in (
                ("texts", expected.scores.keys(), answers.scores.keys()),
                ("contents of texts", expected.hashes.items(), answers.hashes.items()),
            ):
                if different := {str(item[0] if isinstance(item, tuple) else item) for item in one ^ other}:
                    raise ResultsError(
                        f"task {task}: the arms {first} and {arm} have other {kind} ({answers.origin}): "
                        f"{', '.join(sorted(different)[:MAX_NAMED])}; evaluate all arms on the same texts"
                    )
    for task in by_arm[first]:
        counts = {len(scores) for arms in by_arm.values() for scores in arms[task].scores.values()}
        if len(counts) > 1:
            raise ResultsError(
                f"task {task}: texts have {min(counts)} to {pluralize(max(counts), 'answer')}; give each arm the same "
                "number of complete logs"
            )


def _rows(task: str, arms: Mapping[str, TaskAnswers]) -> Iterator[tuple[object, ...]]:
    texts = sorted(next(iter(arms.values())).scores, key=natural_key)  # logs can have the order in which texts ended
    for number, text in enumerate(texts):
        for arm, answers in arms.items():
            scores = answers.scores[text]
            correct = int(sum(scores)) if set(scores) <= {0.0, 1.0} else None
            yield task, len(scores), number, arm, sum(scores) / len(scores), correct

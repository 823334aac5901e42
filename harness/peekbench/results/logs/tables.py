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
from peekbench.results.columns import is_arm
from peekbench.results.logs.answers import TaskAnswers
from peekbench.results.logs.inspect_ai import read_inspect
from peekbench.results.logs.lm_eval import read_lm_eval

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG_FORMATS: Mapping[str, Callable[[Path, str], list[TaskAnswers]]] = {
    "lm-eval": read_lm_eval,
    "inspect": read_inspect,
}
"""Functions that read a log by the name of the tool that wrote it.

Examples
--------
>>> sorted(LOG_FORMATS)
['inspect', 'lm-eval']
"""

MAX_NAMED = 3  # texts named in an error


def import_logs(
    tool: str, logs: Sequence[tuple[str, Path]], *, metric: str = "", method: str = "method"
) -> pd.DataFrame:
    """Return a table of scores from the logs of the arms.

    Parameters
    ----------
    tool
        Tool that wrote the logs, see `LOG_FORMATS`.
    logs
        Arm and path of each log. Each arm has as many logs, such as one for each random seed.
    metric
        Metric or scorer; if it is empty, the only one of each log.
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
        If an arm is unknown or missing, a log cannot be read, or the arms do not have the same tasks and texts.

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
    by_arm = {arm: _merge([LOG_FORMATS[tool](path, metric) for other, path in logs if other == arm]) for arm in arms}
    _check_equal(by_arm)
    rows = [row for task in by_arm[arms[0]] for row in _rows(task, {arm: by_arm[arm][task] for arm in arms})]
    table = pd.DataFrame(rows, columns=["task", "num_test", "subsample", "arm", "score", "num_correct"])
    if table["num_correct"].isna().any():  # accuracies are shares of correct answers in all rows or in none
        table = table.drop(columns="num_correct")
    table.insert(1, "method", method)
    return table


def _merge(logs: Sequence[Sequence[TaskAnswers]]) -> dict[str, TaskAnswers]:
    """Join the repeats of an arm, by task."""
    merged: dict[str, TaskAnswers] = {}
    for answers in (answers for log in logs for answers in log):
        target = merged.setdefault(answers.task, TaskAnswers(answers.origin, answers.task))
        for text, scores in answers.scores.items():
            for score in scores:
                target.add(text, score, answers.hashes[text])
    return merged


def _check_equal(by_arm: Mapping[str, Mapping[str, TaskAnswers]]) -> None:
    """Refuse arms with other tasks, texts or numbers of answers, which cannot be paired."""
    first, *others = by_arm
    for arm in others:
        if different := set(by_arm[arm]) ^ set(by_arm[first]):
            raise ResultsError(f"only one of the arms {first} and {arm} has the task {sorted(different)[0]!r}")
        for task, answers in by_arm[arm].items():
            expected = by_arm[first][task]
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
    texts = next(iter(arms.values())).scores
    for number, text in enumerate(texts):
        for arm, answers in arms.items():
            scores = answers.scores[text]
            correct = int(sum(scores)) if set(scores) <= {0.0, 1.0} else None
            yield task, len(scores), number, arm, sum(scores) / len(scores), correct

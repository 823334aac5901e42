"""Finds the test texts whose answers change if a method sees them: the arm test against the arm extra."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from peekbench.data.labels import name_labels
from peekbench.data.loading import fingerprint, load_dataset
from peekbench.errors import PluginError, ResultsError
from peekbench.formatting import shorten
from peekbench.plugins.names import GIVE_SPEC, Code, is_refused
from peekbench.records.answers import GRADED, find_grades, find_true_probabilities
from peekbench.records.data import Reference, SourceRef, TaskKind
from peekbench.records.report import Cell, Column, Table
from peekbench.spec.design import Origin
from peekbench.store.reader import Store

if TYPE_CHECKING:
    from peekbench.records.data import Dataset, FloatArray

MAX_TEXTS = 10  # of each method, in each direction
MAX_CHARACTERS = 400  # of a text
OPEN_LICENSE = re.compile(
    r"(apache|mit|bsd|isc|psf|python|cc0|cc-by|odc-by|odbl|pddl|cdla-permissive|unlicense|l?gpl|agpl|mpl)\b(?!.*-nd)",
    re.I,
)
"""Licenses that permit everybody to show extracts of texts."""
MEANS = ("right, extra", "right, test", "probability, extra", "probability, test")
COUNTS = (Column("method"), *(Column(name, "count") for name in ("texts", "turned right", "turned wrong")))
PLACE = tuple(Column(name) for name in ("method", "task", "text", "label"))
CHANGE = Column("change", "difference")
COUNT = Column("trials", "count")
ANSWERS = ("answer, extra", "answer, test")


def changed_texts(path: Path, given: Collection[Code] = ()) -> tuple[Table, ...]:
    """Return tables on the test texts whose answers change between the arms extra and test of a run.

    Parameters
    ----------
    path
        Store of the run.
    given
        Code that the caller gave, such as `ExperimentSpec.code`; no other code is imported.

    Returns
    -------
    tuple of Table
        The number of texts that each method turns right and wrong, and the texts that change most.

    Raises
    ------
    ResultsError
        If no task of the run has texts that a report may show, or a task's data are not those of the run.
    StoreError
        If predictions are missing or damaged.

    Examples
    --------
    >>> counts, texts = changed_texts(Path("runs/quickstart.sqlite"))
    >>> [row[2:4] for row in counts.rows if row[0] == "controls.null"]
    [(0, 0)]
    """
    with Store.open(path, verified=False) as store:
        tasks = store.tasks()
        reasons = {task: reason for task, facts in tasks.items() if (reason := _refuse(facts))}
        datasets = {
            task["name"]: _load(_source(task, store.folder(), given), task, tasks)
            for task in store.spec()["tasks"]
            if task["name"] not in reasons
        }
        for name in [name for name, data in datasets.items() if not isinstance(data.inputs, Sequence)]:
            reasons[name] = "its rows are features, not texts"
            del datasets[name]
        refused = "; ".join(f"{task}: {reason}" for task, reason in reasons.items())
        if not datasets:
            raise ResultsError(f"{path}: no task has texts that a report may show. {refused}")
        by_method = {method: _compare(store, method, datasets) for method in store.methods()}
    answers, means = _columns(next(iter(datasets.values())).kind)
    left_out = ""
    if refused:
        left_out = f" Left out: {refused}."
    return (
        Table(
            "Answers that change between extra and test",
            (*COUNTS, CHANGE),
            tuple(_count(method, texts) for method, texts in by_method.items() if len(texts)),
            "A text counts as turned right if its answers are right more often in the arm test than in the arm extra. "
            f"Change: mean over the texts of the {_quantity(bool(answers))}, test minus extra.{left_out}",
        ),
        Table(
            "Texts that change most",
            (*PLACE, *map(Column, answers), CHANGE, *(Column(name, "fraction") for name in means), COUNT),
            tuple(row for method, texts in by_method.items() for row in _select(method, texts, datasets)),
            f"At most {MAX_TEXTS} texts of each method that its test texts turn right, and as many that they turn "
            f"wrong, cut after {MAX_CHARACTERS} characters. {_explain(bool(answers))} Single answers also change by "
            "chance, in both directions.",
        ),
    )


def _columns(kind: TaskKind) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the columns of answers, which only generation has, and of means."""
    if kind == "generation":
        return ANSWERS, MEANS[:2]
    return (), MEANS


def _quantity(is_generated: bool) -> str:
    return "grade" if is_generated else "probability of the label"


def _explain(is_generated: bool) -> str:
    if is_generated:
        return (
            "Right: mean grade over the trials that test the text, whose reference is the label. Answers: those of the "
            "trial in which the grade changes most."
        )
    return (
        "Right: share of right answers over the trials that test the text. Probability: mean probability of its label."
    )


def _refuse(facts: Mapping[str, Any]) -> str:
    """Return why a report cannot show the texts of a task; empty if it can."""
    if facts["kind"] not in GRADED:
        return "it has no classes, so answers are neither right nor wrong"
    stated = str(facts["details"].get("license", ""))
    if stated and not OPEN_LICENSE.match(stated):
        return f"its license ({stated}) is not known to permit showing its texts"
    return ""


def _source(task: Mapping[str, Any], folder: Path, given: Collection[Code]) -> SourceRef:
    use = Origin(folder, given=given).locate(task["use"])
    if is_refused(use):
        raise PluginError(f"{use} is code that only a store names, which is not imported; {GIVE_SPEC}")
    return SourceRef(use, task["options"], folder, task.get("kind"))


def _load(source: SourceRef, task: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]]) -> Dataset:
    name, dataset = task["name"], load_dataset(source)
    if fingerprint(dataset) != tasks[name]["fingerprint"]:
        raise ResultsError(f"task {name}: its data are not those of the run; restore the version that the run used")
    return dataset


def _compare(store: Store, method: str, datasets: Mapping[str, Dataset]) -> pd.DataFrame:
    """Return one row for each text that a method was tested on: means over trials, and their changes."""
    # By task, sums over trials in the order of `MEANS`, and the number of trials: (5, n_rows).
    sums: dict[str, FloatArray] = {task: np.zeros((5, len(data.labels))) for task, data in datasets.items()}
    examples: dict[tuple[str, int], tuple[float, Reference, Reference]] = {}  # by task and row
    for trial in sorted((trial for trial in store.done() if trial.method == method), key=str):
        if (total := sums.get(trial.draw.task)) is not None:
            labels, rows = store.test_rows(trial.draw)
            kind = datasets[trial.draw.task].kind
            predictions, answers = store.predictions(trial), store.generated(trial)
            for position, arm in enumerate(("extra", "test")):
                found = predictions[arm].by_fit(len(rows))
                own = grades = find_grades(kind, found, labels)
                if kind != "generation":
                    own = find_true_probabilities(found.numbers, labels).reshape(len(found), len(rows), -1).mean(axis=2)
                total[position, rows] += grades.mean(axis=0)
                total[position + 2, rows] += own.mean(axis=0)
            total[4, rows] += 1
            for place, row in enumerate(rows.tolist() if answers else ()):
                size = abs(float(predictions["test"].numbers[place] - predictions["extra"].numbers[place]))
                if size >= examples.get((trial.draw.task, row), (0.0,))[0]:
                    examples[trial.draw.task, row] = size, answers["extra"][place], answers["test"][place]
    tables = []
    for task, total in sums.items():
        rows = np.flatnonzero(total[4])
        means = dict(zip(MEANS, total[:4, rows] / total[4, rows], strict=True))
        shown = [tuple(map(_show, examples[task, row][1:])) for row in rows.tolist() if (task, row) in examples]
        table = pd.DataFrame({"task": task, "row": rows, "trials": total[4, rows], **means})
        tables.append(table.assign(answers=pd.Series(shown or [()] * len(rows), dtype=object)))
    texts = pd.concat(tables, ignore_index=True)
    change = texts["probability, test"] - texts["probability, extra"]
    turned = ((texts["right, test"] - texts["right, extra"]) * texts["trials"]).round(9)
    return texts.assign(change=change, turned=turned).sort_values(["turned", "change"], ascending=False, kind="stable")


def _count(method: str, texts: pd.DataFrame) -> tuple[Cell, ...]:
    turned = texts["turned"]
    return method, len(texts), int((turned > 0).sum()), int((turned < 0).sum()), float(texts["change"].mean())


def _select(method: str, texts: pd.DataFrame, datasets: Mapping[str, Dataset]) -> Iterator[tuple[Cell, ...]]:
    """Yield the texts that turn right in most trials, then those that turn wrong in most."""
    for part in (texts[texts["turned"] > 0].head(MAX_TEXTS), texts[texts["turned"] < 0].tail(MAX_TEXTS)):
        for task, row, answers in part[["task", "row", "answers"]].itertuples(index=False):
            data = datasets[task]
            _, means = _columns(data.kind)
            numbers = part.loc[(part["task"] == task) & (part["row"] == row), ["change", *means, "trials"]].iloc[0]
            label: Any = data.labels[row]
            if data.kind != "generation":
                (label,) = name_labels(data.labels[row : row + 1], data.class_names)
            yield (method, task, _show(data.inputs[row]), _show(label), *answers, *map(float, numbers))


def _show(text: Reference) -> str:
    """Return a text, or several labels, references or answers, as they are shown."""
    return shorten(text if isinstance(text, str) else ", ".join(text) or "none", MAX_CHARACTERS)

"""Checks before any trial runs: errors if data, methods and design do not fit, and warnings of doubtful results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from peekbench.data.dataset_checks import class_counts
from peekbench.data.loading import fingerprint, load_dataset, make_task
from peekbench.data.overlap import check_copies, count_copied, count_repeated, expected_share, find_copies, name_rows
from peekbench.data.sizes import check_sizes
from peekbench.errors import ContractError, DataError, PluginError, UnavailableError
from peekbench.formatting import list_names, pluralize
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.entries import MethodEntry, MethodTaskKind, kind_of
from peekbench.plugins.graders import GRADERS
from peekbench.plugins.registry import find, installed_names
from peekbench.records.data import Dataset, Split, Task, TaskKind, as_texts
from peekbench.spec.components import TaskSpec
from peekbench.spec.design import Design
from peekbench.spec.experiment import ExperimentSpec

MAX_NAMED = 3  # tasks named in an error about all tasks
MAX_OVERLAP = 0.05  # share of the test rows of a subsample that may also be among its extra or its train rows
MAX_USES = 20  # subsamples that test the same text
MAX_MAJORITY = 0.7  # share of one class in test sets of methods that are trained on balanced train sets
MAX_LISTED = 3  # tasks in a warning
MAX_METHODS = 12  # methods in an error about a kind of task


def check_tasks(spec: ExperimentSpec) -> None:
    """Load the data of every task and check that the design and the methods fit them.

    Raises
    ------
    DataError
        If data are unavailable or have too few rows. The message names all affected tasks.
    PluginError
        If a method does not support the kind of a task, or its inputs.
    """
    errors: dict[str, DataError] = {}
    kinds: dict[TaskKind, str] = {}
    for task in spec.tasks:
        try:
            dataset = load_dataset(spec.source(task))
            if task.grader and dataset.kind != "generation":
                raise DataError(
                    f"task {task.name} is {dataset.kind}, which has no answers to grade by `grader`; remove it, or "
                    "give the data source the option `kind: generation`"
                )
            check_sizes(dataset, spec.design_of(task), task.name)
            check_copies(dataset, task.name)
            if dataset.kind == "generation":
                _check_grader(make_task(spec, task), list(dataset.labels))
            if dataset.groups:
                from peekbench.data.sampling import check_groups  # noqa: PLC0415 - others validate without numpy

                check_groups(dataset, spec.design_of(task), spec.seed, task.name)
        except DataError as error:
            errors[task.name] = error
        else:
            _check_methods(spec, task.name, dataset)
            kinds.setdefault(dataset.kind, task.name)
    if len(kinds) > 1:
        listed = ", ".join(f"{name} is {kind}" for kind, name in kinds.items())
        raise DataError(
            f"tasks of different kinds have scores without a common average: {listed}; put them into different specs"
        )
    if len(errors) == 1:
        raise next(iter(errors.values()))
    if errors:
        raise DataError("\n".join(list_errors(errors, len(spec.tasks))))


def _check_grader(task: Task, references: list[Any]) -> None:
    """Refuse a grader that fails for a reference, before the first fit; a user's grader, which can be slow, grades one.

    Raises
    ------
    DataError
        If it raises an error, or returns no grade.
    """
    if task.grader not in GRADERS.values():
        references = references[:1]
    for reference in references:
        for text in as_texts(reference):
            try:
                task.grade(text, text)
            except ContractError as error:
                raise DataError(str(error)) from error


def list_errors(errors: Mapping[str, DataError], num_tasks: int) -> Iterator[str]:
    """Yield one line per error of a task, and only one for tasks that are unavailable for the same reason."""
    names_by_cause: dict[object, list[str]] = {}
    for name, error in errors.items():
        cause: object = error
        if isinstance(error, UnavailableError):
            cause = error.reason
        names_by_cause.setdefault(cause, []).append(name)
    for cause, names in names_by_cause.items():
        if len(names) == 1:
            yield str(errors[names[0]])
        else:  # if all tasks are affected, readers need only a few names
            count = f"{len(names)} tasks"
            if len(names) == num_tasks and len(names) > MAX_NAMED + 1:
                names[MAX_NAMED:] = ["..."]
            yield f"{count} ({', '.join(names)}): {cause}"


def _check_methods(spec: ExperimentSpec, task: str, dataset: Dataset) -> None:
    for method in spec.methods:
        check_data = method.entry.preparation.check_data
        if check_data is not None:
            try:
                caller = Foreign(f"method {method.name}: `check_data`", method.use)
                caller.call(check_data, {"dataset": dataset}, options=spec.options(method, task))
            except DataError as error:
                raise DataError(f"method {method.name} ({method.use}), task {task}: {error}") from error
        if mismatch := find_mismatch(method.entry, dataset, f"task {task}"):
            remedy = _remedy(dataset, len(spec.tasks))
            raise PluginError(f"method {method.name} ({method.use}) {mismatch}; {remedy}")


def find_mismatch(entry: MethodEntry, dataset: Dataset, task: str) -> str:
    """Return a clause that says why a method cannot be used on a task; empty if it can.

    Parameters
    ----------
    entry
        The method.
    dataset
        Rows of the task.
    task
        The task in the clause.

    Examples
    --------
    >>> import numpy as np
    >>> entry = MethodEntry(name="lsa", method="my_package.lsa:fit", summary="LSA")
    >>> find_mismatch(entry, Dataset(np.zeros((2, 3)), [0, 1], ("low", "high")), "task iris")
    'supports classification, but task iris is tabular_classification'
    """
    kind = _method_task_kind(dataset)
    if kind in entry.task_kinds:
        return ""
    return f"supports {' and '.join(sorted(entry.task_kinds))}, but {task} is {kind}"


def _method_task_kind(dataset: Dataset) -> MethodTaskKind:
    kind: MethodTaskKind = dataset.kind
    if dataset.kind == "classification" and dataset.input_kind == "features":
        kind = "tabular_classification"
    elif dataset.kind == "multilabel" and dataset.input_kind == "features":
        kind = "tabular_multilabel"
    elif dataset.kind == "regression" and dataset.input_kind == "texts":
        kind = "text_regression"
    return kind


def _remedy(dataset: Dataset, num_tasks: int) -> str:
    kind = _method_task_kind(dataset)
    entries = {use: find(use, MethodEntry) for use in installed_names(kind_of(MethodEntry))}
    fitting = [use for use, entry in entries.items() if kind in entry.task_kinds and not entry.control]
    remedy = f"choose a method for this kind of task: {list_names(fitting, MAX_METHODS) or 'none is installed'}"
    if num_tasks > 1:
        remedy += "; or put the tasks into different specs"
    if kind == "language_modeling":
        remedy += ", or use the labels: remove `kind` from the task, and `label` null from its options"
    return remedy


def describe_tasks(spec: ExperimentSpec) -> dict[str, dict[str, Any]]:
    """Return facts about each task's data by name, after the checks of `check_tasks`."""
    check_tasks(spec)
    return {task.name: describe_data(spec, task) for task in spec.tasks}


def describe_data(spec: ExperimentSpec, task: TaskSpec) -> dict[str, Any]:
    """Return facts about one task's data.

    Raises
    ------
    DataError
        If the data are unavailable or malformed.
    """
    dataset = load_dataset(spec.source(task))
    facts = {
        "use": task.use,
        "kind": dataset.kind,
        "rows": len(dataset.labels),
        "class_names": list(dataset.class_names),
        "class_counts": _list_class_counts(dataset),
        "splits": {
            split: {"rows": rows, "class_counts": _list_class_counts(dataset, split)}
            for split, rows in Counter(dataset.splits).items()
        },
        "fingerprint": fingerprint(dataset),
        "details": dict(dataset.details),
        "row_name": name_rows(dataset),
        "copies": find_copies(dataset),
    }
    if dataset.groups:
        facts["groups"] = len(set(dataset.groups))
    if len(dataset.extra):
        facts["extra"] = len(dataset.extra)
    return facts


def _list_class_counts(dataset: Dataset, split: Split | None = None) -> list[int]:
    """Return the number of rows of each class or label; empty for other tasks."""
    counts = class_counts(dataset, split)
    return [counts.get(label, 0) for label in range(len(dataset.class_names))]


def describe_rows(spec: ExperimentSpec) -> Iterator[str]:
    """Yield lines on each task with official splits or groups."""
    for task in spec.tasks:
        dataset = load_dataset(spec.source(task))
        if sizes := Counter(dataset.splits):
            yield (
                f"task {task.name}: official splits, {pluralize(sizes['train'], 'row')} for train sets, "
                f"{pluralize(sizes['test'], 'row')} for extra and test sets"
            )
        if len(dataset.extra):
            yield f"task {task.name}: {pluralize(len(dataset.extra), 'private extra text')} in the place of folds"
        if counts := Counter(dataset.groups).values():
            yield (
                f"task {task.name}: {pluralize(len(counts), 'group')} of {min(counts):,} to {max(counts):,} rows, each "
                "in one set at most"
            )


def majority_share(facts: Mapping[str, Any]) -> float | None:
    """Return the share of the largest class among the rows that test sets are drawn from; None for other tasks.

    Parameters
    ----------
    facts
        Facts about a task's data, as `describe_data` returns them.
    """
    counts: list[int] = facts["splits"].get("test", facts)["class_counts"]
    if facts["kind"] != "classification":
        return None
    return max(counts) / sum(counts)


def warn_of_design(designs: Mapping[str, Design], facts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield warnings about rows in several sets and about small tasks, the most serious first.

    Parameters
    ----------
    designs
        Design of each task.
    facts
        Facts about each task's data, as `describe_tasks` returns them.

    Examples
    --------
    >>> design = Design(num_train=10, num_test=80, num_subsamples=60)
    >>> facts = {"news": {"rows": 200, "splits": {}, "class_names": ["a", "b"], "class_counts": [100, 100]}}
    >>> for warning in warn_of_design({"news": design}, facts):
    ...     print(warning.partition(":")[0])
    Subsamples share many rows
    """
    yield from warn_of_copies(designs, facts)
    if crowded := _worst({name: uses for name, uses in count_uses(designs, facts).items() if uses > MAX_USES}):
        listed = ", ".join(f"{uses:.0f} times in {name}" for name, uses in crowded[:MAX_LISTED])
        yield (
            f"Subsamples share many rows: each row is tested about {listed}. More subsamples settle verdicts on these "
            "rows only. For others, read the analysis `summary.texts`, and add rows to make it more precise"
        )
    if any(design.repeats(size) == 1 for design in designs.values() for size in design.num_test):
        yield "A single subsample has no interval, so no verdict is possible: increase num_subsamples"


def warn_of_copies(designs: Mapping[str, Design], facts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield warnings about test rows that are also train or extra rows.

    Parameters
    ----------
    designs, facts
        As for `warn_of_design`.
    """
    tasks = {name: task for name, task in facts.items() if task.get("copies")}
    copied = {name: count_copied(task["copies"]) for name, task in tasks.items()}
    if leaking := [(name, number) for name, number in _worst(copied) if number]:
        noun = _name_rows(tasks, [name for name, _ in leaking])
        listed = [f"{number:,} of {tasks[name]['copies']['rows']['test']:,} in {name}" for name, number in leaking]
        yield (
            f"Test {noun} are also train {noun}: {list_names(listed, MAX_LISTED)}. Scores on them are not scores on "
            f"new {noun}: {_how_to_drop(noun)}"
        )
    private = {name: task["copies"]["pairs"].get("extra-test", (0, 0))[1] for name, task in tasks.items()}
    if shared := [(name, number) for name, number in _worst(private) if number]:
        noun = _name_rows(tasks, [name for name, _ in shared])
        listed = [f"{number:,} of {tasks[name]['copies']['rows']['extra']:,} in {name}" for name, number in shared]
        yield (
            f"Private extra {noun} are also test {noun}: {list_names(listed, MAX_LISTED)}. Both arms adapt to them, "
            f"which hides bias: {_how_to_drop(noun)}"
        )
    shares = {name: max(share_of_copies(designs[name], task).values()) for name, task in tasks.items()}
    if duplicated := [name for name, share in _worst(shares) if share >= MAX_OVERLAP]:
        noun = _name_rows(tasks, duplicated)
        listed = [_describe_copies(name, designs[name], tasks[name]) for name in duplicated]
        yield (
            f"Test {noun} are also extra or train {noun}: {list_names(listed, MAX_LISTED)}. Both arms adapt to those "
            f"that are extra {noun}, which hides bias, and train {noun} raise all scores: {_how_to_drop(noun)}"
        )


def _name_rows(tasks: Mapping[str, Mapping[str, Any]], affected: Sequence[str]) -> str:
    nouns = {tasks[name]["row_name"] for name in affected}
    return nouns.pop() if len(nouns) == 1 else "rows"


def _how_to_drop(noun: str) -> str:
    if noun == "rows":
        return "remove the copies from the data (in `measure`, set the option `drop_duplicates` to exact)"
    return (
        "remove the copies (in tasks of `files`, `hf` and `docstrings`, and in `measure`, set the option "
        "`drop_duplicates` to near)"
    )


def _describe_copies(name: str, design: Design, task: Mapping[str, Any]) -> str:
    """Say how many rows of a task are copies, and which shares of the test rows they make extra and train rows."""
    copies = task["copies"]
    number = count_repeated(copies)
    noun = task["row_name"]
    shares = [f"{share:.0%} are also {arm} {noun}" for arm, share in share_of_copies(design, task).items()]
    return (
        f"in {name}, {number:,} of {copies['drawn']:,} rows have copies, so of the test {noun} of a subsample, "
        f"{' and '.join(shares)}"
    )


def share_of_copies(design: Design, task: Mapping[str, Any]) -> dict[str, float]:
    """Return the expected shares of the test rows of a subsample that are also extra rows and train rows.

    Those of official train splits are not expected but known, see `find_copies`.

    Parameters
    ----------
    design
        Design of the task, with numbers of rows.
    task
        Facts about its data, as `describe_data` returns them.
    """
    copies = task["copies"]
    if design.folds:
        return {"extra": expected_share(copies, round(copies["drawn"] * (1 - 1 / max(design.folds))))}
    shares = {"extra": expected_share(copies, design.num_unlabeled or max(design.num_test))}
    if not task["splits"]:
        shares["train"] = expected_share(copies, max(design.num_train))
    return shares


def count_uses(designs: Mapping[str, Design], facts: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the expected number of subsamples that test each text, at the test size with the most, by task.

    Parameters
    ----------
    designs, facts
        As for `warn_of_design`.
    """
    uses = {}
    for name, task in facts.items():
        design = designs[name]
        uses[name] = max(design.repeats(size) * _uses_of_one(size, design, task) for size in design.num_test)
    return uses


def _uses_of_one(num_test: int, design: Design, task: Mapping[str, Any]) -> float:
    """Return the probability that one subsample tests a given text; the sum over sets with crossover scoring.

    With folds, it is zero: the result is about the texts of the test split, however often each is tested.
    """
    if design.folds:
        return 0.0
    num_rows: int = task["splits"].get("test", task)["rows"]
    return num_test * (design.crossover or 1) / num_rows


def count_supported(designs: Mapping[str, Design], facts: Mapping[str, Mapping[str, Any]]) -> dict[int, int]:
    """Return the number of subsamples per task that the rows of every task support, by test size.

    More would test each text more than `MAX_USES` times: they would hardly tell more about other texts, and the
    interval for these texts is then a fraction of that for others.

    Parameters
    ----------
    designs, facts
        As for `warn_of_design`.

    Examples
    --------
    >>> design = Design(num_train=10, num_test=80, num_subsamples=60)
    >>> count_supported({"news": design}, {"news": {"rows": 200, "splits": {}}})
    {80: 25}
    """
    supported: dict[int, int] = {}
    for name, task in facts.items():
        for size in designs[name].num_test:
            if uses := _uses_of_one(size, designs[name], task):
                number = int(MAX_USES / uses)
                supported[size] = min(number, supported.get(size, number))
    return supported


def warn_of_classes(designs: Mapping[str, Design], facts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a warning about balanced train sets of tasks with a very frequent class.

    Parameters
    ----------
    designs
        Design of each task.
    facts
        Facts about each task's data, as `describe_tasks` returns them.
    """
    shares = {name: majority_share(task) or 0.0 for name, task in facts.items() if designs[name].train == "balanced"}
    if frequent := _worst({name: share for name, share in shares.items() if share > MAX_MAJORITY}):
        yield (
            f"Most rows have one class: {_list_shares(frequent)}. Train sets are balanced, so accuracy is often lower: "
            "compare macro-F1, or set `train` to natural in the design"
        )


def warn_of_texts(spec: ExperimentSpec) -> Iterator[str]:
    """Yield a warning about texts without a visible character."""
    empty = {task.name: find_empty_texts(load_dataset(spec.source(task))) for task in spec.tasks}
    if affected := _worst({name: len(rows) for name, rows in empty.items() if rows}):
        counts = ", ".join(f"{number:,.0f} in {name}" for name, number in affected[:MAX_LISTED])
        name = affected[0][0]
        yield (
            f"Texts are empty: {counts}; the first in {name} is that of row {empty[name][0]}. They are drawn like "
            "other texts: remove the rows, or check the column of the text"
        )


def find_empty_texts(dataset: Dataset) -> list[int]:
    """Return the rows, counted from 0, whose texts have no visible character.

    Parameters
    ----------
    dataset
        Rows of a task. Features have no texts.

    Examples
    --------
    >>> find_empty_texts(Dataset(["a", " ", "b", ""], [0, 1, 0, 1], ("x", "y")))
    [1, 3]
    """
    if dataset.input_kind == "features":
        return []
    return [row for row, text in enumerate(dataset.inputs) if not text.strip()]


def warn_of_data(spec: ExperimentSpec, facts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield all warnings that are possible before a run.

    Parameters
    ----------
    spec
        Spec of the run.
    facts
        Facts about each task's data, as `describe_tasks` returns them.
    """
    designs = {task.name: spec.design_of(task) for task in spec.tasks}
    yield from warn_of_design(designs, facts)
    yield from warn_of_classes(designs, facts)
    yield from warn_of_texts(spec)


def _worst(values: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(values.items(), key=lambda item: -item[1])


def _list_shares(tasks: Sequence[tuple[str, float]]) -> str:
    """List the first tasks, and count the others: '27% in spam, 12% in news and 3 more tasks'."""
    listed = ", ".join(f"{share:.0%} in {name}" for name, share in tasks[:MAX_LISTED])
    if len(tasks) > MAX_LISTED:
        listed += f" and {pluralize(len(tasks) - MAX_LISTED, 'more task')}"
    return listed

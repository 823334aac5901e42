"""Checks before any trial runs: errors if data, methods and design do not fit, and warnings of doubtful results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from peekbench.data.dataset_checks import check_sizes, class_counts
from peekbench.data.loading import fingerprint, load_dataset, make_task
from peekbench.data.overlap import (
    check_copies,
    count_copied,
    count_in_words,
    count_repeated,
    expected_share,
    find_copies,
    name_rows,
)
from peekbench.errors import ContractError, DataError, PluginError
from peekbench.formatting import list_names
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.entries import MethodEntry, MethodTaskKind
from peekbench.plugins.graders import GRADERS
from peekbench.records.data import Dataset, Split, Task, TaskKind, as_texts
from peekbench.records.trials import RowLimit
from peekbench.spec.components import TaskSpec
from peekbench.spec.design import Design
from peekbench.spec.experiment import ExperimentSpec

MAX_OVERLAP = 0.05  # share of the test rows of a subsample that may also be among its extra or its train rows
MAX_USES = 20  # subsamples that test the same text
MAX_LISTED = 3  # tasks in a warning


def check_tasks(spec: ExperimentSpec) -> None:
    """Load the data of every task and check that the design and the methods fit them.

    Raises
    ------
    DataError
        If data are unavailable or have too few rows. The message names all affected tasks.
    PluginError
        If a method does not support the kind of a task, or its inputs.
    """
    errors: list[DataError] = []
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
            errors.append(error)
        else:
            _check_methods(spec, task.name, dataset)
            kinds.setdefault(dataset.kind, task.name)
    if len(kinds) > 1:
        listed = ", ".join(f"{name} is {kind}" for kind, name in kinds.items())
        raise DataError(
            f"tasks of different kinds have scores without a common average: {listed}; put them into different specs"
        )
    if errors:
        raise DataError("\n".join(map(str, errors)))


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
            raise PluginError(
                f"method {method.name} ({method.use}) {mismatch}; choose a method for this kind of task, which "
                "`peekbench show methods` tells, or put the tasks into different specs"
            )


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
    if names := [name for name, design in designs.items() if facts[name]["splits"] and not design.folds]:
        yield (
            f"Test and extra rows are drawn from the official test split of {list_names(names, MAX_LISTED)}, so scores "
            "are not those of the whole split. For these, write `design: official`, or omit num_test in `measure`"
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
    private = {name: task["copies"]["pairs"].get("extra-test", (0, 0))[1] for name, task in tasks.items()}
    for numbers, pair, problem in (
        (copied, "test-train", "Test rows are also train rows: {}. Scores on them are not scores on new rows: {}"),
        (private, "extra-test", "Private extra rows are also test rows: {}. Both arms adapt to them and hide bias: {}"),
    ):
        if found := [name for name, number in _worst(numbers) if number]:
            listed = [f"{count_in_words(tasks[name]['copies'], numbers[name], pair)} in {name}" for name in found]
            yield problem.format(list_names(listed, MAX_LISTED), _name_remedy(found, tasks))
    shares = {name: max(share_of_copies(designs[name], task).values()) for name, task in tasks.items()}
    if duplicated := [name for name, share in _worst(shares) if share >= MAX_OVERLAP]:
        listed = [_describe_copies(name, designs[name], tasks[name]) for name in duplicated]
        yield (
            f"Test rows are also extra or train rows: {list_names(listed, MAX_LISTED)}. Both arms adapt to those that "
            f"are extra rows, which hides bias, and train rows raise all scores: {_name_remedy(duplicated, tasks)}"
        )


def _describe_copies(name: str, design: Design, task: Mapping[str, Any]) -> str:
    """Say how many rows of a task are copies, and which shares of the test rows they make extra and train rows."""
    copies = task["copies"]
    pair = "test-test" if "test" in copies["rows"] else "all-all"
    shares = [f"{share:.0%} are also {arm} rows" for arm, share in share_of_copies(design, task).items()]
    return (
        f"in {name}, the copies are {count_in_words(copies, count_repeated(copies), pair)}, so of the test rows of a "
        f"subsample, {' and '.join(shares)}"
    )


def _name_remedy(names: Sequence[str], facts: Mapping[str, Mapping[str, Any]]) -> str:
    """Say how to remove the copies of the first of these tasks; those of the others are removed likewise."""
    name, use = names[0], facts[names[0]]["use"]
    if ":" in use:  # data of a session of Python
        return 'to remove the copies, call `measure` with drop_duplicates="near"'
    how = f'add `drop_duplicates: near` to the options of {name} (for a file in `measure`, drop_duplicates="near")'
    if use == name:
        how = f'write the task as {{"use": "{use}", "options": {{"drop_duplicates": "near"}}}}, in a spec or `measure`'
    return f"to remove the copies, {how}, and run the changed spec with `--fresh` (fresh=True) or under another name"


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
    return num_test * (design.crossover or 1) / _count_rows(task)


def _count_rows(task: Mapping[str, Any]) -> int:
    """Return the number of rows of a task from which test sets are drawn."""
    number: int = task["splits"].get("test", task)["rows"]
    return number


def count_supported(designs: Mapping[str, Design], facts: Mapping[str, Mapping[str, Any]]) -> dict[int, RowLimit]:
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
    {80: RowLimit(num_subsamples=25, task='news', num_rows=200)}
    """
    supported: dict[int, RowLimit] = {}
    for name, task in facts.items():
        for size in designs[name].num_test:
            if uses := _uses_of_one(size, designs[name], task):
                limit = RowLimit(int(MAX_USES / uses), name, _count_rows(task))
                supported[size] = min(limit, supported.get(size, limit))
    return supported


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


def _worst(values: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(values.items(), key=lambda item: -item[1])

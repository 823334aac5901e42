"""Warnings about data that make the results of a design doubtful, known before any trial runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from peekbench.data.loading import load_dataset
from peekbench.data.preflight import majority_share
from peekbench.formatting import pluralize
from peekbench.records.data import Dataset
from peekbench.spec.design import Design
from peekbench.spec.experiment import ExperimentSpec

MAX_OVERLAP = 0.05  # share of the test texts that may also be among the extra texts
MAX_USES = 20  # subsamples that test the same text
MAX_MAJORITY = 0.7  # share of one class in test sets of methods that are trained on balanced train sets
MAX_LISTED = 3  # tasks in a warning
MAX_READ = 1_000_000  # texts that are read from a disk, which takes two seconds


def warn_of_design(
    designs: Mapping[str, Design], facts: Mapping[str, Mapping[str, Any]], overlaps: Mapping[str, float]
) -> Iterator[str]:
    """Yield warnings about texts in several sets and about small tasks, the most serious first.

    Parameters
    ----------
    designs
        Design of each task.
    facts
        Facts about each task's data, as `peekbench.data.preflight.describe_tasks` returns them.
    overlaps
        Share of the test texts that are also among the extra texts, by task, where it is known.

    Examples
    --------
    >>> design = Design(num_train=10, num_test=80, num_subsamples=60)
    >>> facts = {"news": {"rows": 200, "splits": {}, "class_names": ["a", "b"], "class_counts": [100, 100]}}
    >>> for warning in warn_of_design({"news": design}, facts, {"news": 0.27}):
    ...     print(warning.partition(":")[0])
    Test texts are also extra texts
    Subsamples share many rows
    """
    if duplicated := _worst({name: share for name, share in overlaps.items() if share >= MAX_OVERLAP}):
        yield (
            f"Test texts are also extra texts: {_list_shares(duplicated)}. The method sees them in both arms, which "
            "hides bias: remove duplicates from the data (in tasks of `files`, `hf` and `docstrings`, set the option "
            "`drop_duplicates` to near)"
        )
    if crowded := _worst({name: uses for name, uses in count_uses(designs, facts).items() if uses > MAX_USES}):
        listed = ", ".join(f"{uses:.0f} times in {name}" for name, uses in crowded[:MAX_LISTED])
        yield (
            f"Subsamples share many rows: each row is tested about {listed}. More subsamples settle verdicts on these "
            "rows only. For others, read the analysis `summary.texts`, and add rows to make it more precise"
        )
    if any(design.repeats(size) == 1 for design in designs.values() for size in design.num_test):
        yield "A single subsample has no interval, so no verdict is possible: increase num_subsamples"


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
    """Return the probability that one subsample tests a given text; the sum over sets with crossover scoring."""
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
            number = int(MAX_USES / _uses_of_one(size, designs[name], task))
            supported[size] = min(number, supported.get(size, number))
    return supported


def warn_of_classes(designs: Mapping[str, Design], facts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a warning about balanced train sets of tasks with a very frequent class.

    Parameters
    ----------
    designs
        Design of each task.
    facts
        Facts about each task's data, as `peekbench.data.preflight.describe_tasks` returns them.
    """
    shares = {name: majority_share(task) or 0.0 for name, task in facts.items() if designs[name].train == "balanced"}
    if frequent := _worst({name: share for name, share in shares.items() if share > MAX_MAJORITY}):
        yield (
            f"Most rows have one class: {_list_shares(frequent)}. Train sets are balanced, so accuracy is often lower: "
            "compare macro-F1, or set `train` to natural in the design"
        )


def warn_of_texts(spec: ExperimentSpec) -> Iterator[str]:
    """Yield warnings about texts without a visible character, and about tasks with too many texts to read them all."""
    datasets = {task.name: load_dataset(spec.source(task)) for task in spec.tasks}
    empty = {name: find_empty_texts(dataset) for name, dataset in datasets.items()}
    if affected := _worst({name: len(rows) for name, rows in empty.items() if rows}):
        counts = ", ".join(f"{number:,.0f} in {name}" for name, number in affected[:MAX_LISTED])
        name = affected[0][0]
        yield (
            f"Texts are empty: {counts}; the first in {name} is that of row {empty[name][0]}. They are drawn like "
            "other texts: remove the rows, or check the column of the text"
        )
    unread = {
        name: len(dataset.inputs)
        for name, dataset in datasets.items()
        if isinstance(dataset.inputs, Sequence) and not _is_readable(dataset)
    }
    if unread:
        counts = ", ".join(f"{number:,} in {name}" for name, number in _worst(unread)[:MAX_LISTED])
        yield f"Not all texts were checked for empty and equal ones, because they are on a disk: {counts}"


def _is_readable(dataset: Dataset) -> bool:
    """Return whether all texts can be read quickly: those in memory, and not too many on a disk."""
    return isinstance(dataset.inputs, list | tuple) or (
        isinstance(dataset.inputs, Sequence) and len(dataset.inputs) <= MAX_READ
    )


def find_empty_texts(dataset: Dataset) -> list[int]:
    """Return the rows, counted from 0, whose texts have no visible character.

    Parameters
    ----------
    dataset
        Rows of a task. Features have no texts, and more than a million texts on a disk are not read.

    Examples
    --------
    >>> find_empty_texts(Dataset(["a", " ", "b", ""], [0, 1, 0, 1], ("x", "y")))
    [1, 3]
    """
    if not _is_readable(dataset):
        return []
    return [row for row, text in enumerate(dataset.inputs) if not text.strip()]


def warn_of_data(
    spec: ExperimentSpec, facts: Mapping[str, Mapping[str, Any]], overlaps: Mapping[str, float]
) -> Iterator[str]:
    """Yield all warnings that are possible before a run.

    Parameters
    ----------
    spec
        Spec of the run.
    facts
        Facts about each task's data, as `peekbench.data.preflight.describe_tasks` returns them.
    overlaps
        Share of the test texts that are also among the extra texts, by task, where it is known.
    """
    designs = {task.name: spec.design_of(task) for task in spec.tasks}
    yield from warn_of_design(designs, facts, overlaps)
    yield from warn_of_classes(designs, facts)
    yield from warn_of_texts(spec)


def measured_overlaps(texts: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the share of the test texts that are also among the extra texts, exactly or nearly, by task.

    Parameters
    ----------
    texts
        Descriptions of each task's texts, as `peekbench.data.text_statistics.describe_texts` returns them.
    """
    return {name: text["overlap"]["near"]["test-extra"] for name, text in texts.items() if text}


def expected_overlaps(spec: ExperimentSpec) -> dict[str, float]:
    """Return the expected share of test texts that exactly equal an extra text, by task, without drawing any."""
    return {
        task.name: expected_overlap(
            load_dataset(spec.source(task)), spec.design.num_unlabeled or max(spec.design_of(task).num_test)
        )
        for task in spec.tasks
    }


def expected_overlap(dataset: Dataset, num_extra: int) -> float:
    """Return the expected share of test texts that exactly equal an extra text.

    If n of N rows are extra rows, a test text with c - 1 further copies has one among them with a probability of about
    1 - (1 - n / (N - 1))**(c - 1).

    Parameters
    ----------
    dataset
        Rows of the task.
    num_extra
        Number of extra texts, with unlabeled texts that all fits share.

    Returns
    -------
    float
        Expected share; 0 for features, and for more than a million texts on a disk.

    Examples
    --------
    >>> round(expected_overlap(Dataset(["a", "a", "b", "c"], [0, 1, 0, 1], ("x", "y")), 1), 3)
    0.167
    """
    if not _is_readable(dataset):
        return 0.0
    places = dataset.splits or repeat("test")
    texts = (text for text, place in zip(dataset.inputs, places, strict=False) if place == "test")
    copies = Counter(Counter(map(hash, texts)).values())  # hashes need less memory than texts
    num_rows = sum(count * number for count, number in copies.items())
    missed = max(0.0, 1 - num_extra / max(1, num_rows - 1))
    return sum(number * count * (1 - missed ** (count - 1)) for count, number in copies.items()) / num_rows


def _worst(values: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(values.items(), key=lambda item: -item[1])


def _list_shares(tasks: Sequence[tuple[str, float]]) -> str:
    """List the first tasks, and count the others: '27% in spam, 12% in news and 3 more tasks'."""
    listed = ", ".join(f"{share:.0%} in {name}" for name, share in tasks[:MAX_LISTED])
    if len(tasks) > MAX_LISTED:
        listed += f" and {pluralize(len(tasks) - MAX_LISTED, 'more task')}"
    return listed

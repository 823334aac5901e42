"""Chooses the texts that an audit examines, and the unseen texts that they are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from peekbench import DataError, Dataset
from peekbench.errors import SpecError
from peekbench.plugins.names import find_nearest
from peekbench.records import Split


@dataclass(frozen=True, slots=True)
class ComparedTexts:
    """Texts of a task and texts that cannot have been seen.

    Examples
    --------
    >>> ComparedTexts(("a", "b"), ("c",)).pooled
    ('a', 'b', 'c')
    """

    audited: tuple[str, ...]
    unseen: tuple[str, ...]
    """Empty if there is nothing to compare with."""
    num_common: int = 0
    """Number of different texts that were among both, and are now in neither."""

    @property
    def pooled(self) -> tuple[str, ...]:
        """The audited texts, followed by the unseen ones."""
        return self.audited + self.unseen


def all_texts(name: str, dataset: Dataset) -> Sequence[str]:
    """Return the texts of a task.

    Parameters
    ----------
    name
        Name of the task, for error messages.
    dataset
        Its rows.

    Raises
    ------
    DataError
        If the inputs are not texts.

    Examples
    --------
    >>> all_texts("tickets", Dataset(["It crashes.", "How do I log in?"], [0, 1]))
    ['It crashes.', 'How do I log in?']
    """
    if not isinstance(dataset.inputs, Sequence):
        raise DataError(f"task {name}: its inputs are not texts, which the audit needs; remove the task from the spec")
    return dataset.inputs


def find_unseen(tasks: Mapping[str, Dataset], unseen: str) -> list[str]:
    """Return the names of the audited tasks, all but the one with unseen texts.

    Parameters
    ----------
    tasks
        All tasks of a spec.
    unseen
        Name of the task with unseen texts; '' if there is none.

    Raises
    ------
    SpecError
        If there is no such task, or no other one.

    Examples
    --------
    >>> tasks = {"tickets": Dataset([], []), "new_tickets": Dataset([], [])}
    >>> find_unseen(tasks, "new_tickets")
    ['tickets']
    """
    if unseen and unseen not in tasks:
        near = find_nearest(unseen, tasks) or min(tasks)
        raise SpecError(f"unseen: no task {unseen!r} in the spec; did you mean {near!r}? Otherwise add the task")
    audited = [name for name in tasks if name != unseen]
    if not audited:
        raise SpecError(f"unseen: {unseen!r} is the only task of the spec; add the tasks to audit")
    return audited


def choose_texts(
    tasks: Mapping[str, Dataset], unseen: str, unseen_split: Split | None, max_texts: int, seed: int
) -> dict[str, ComparedTexts]:
    """Choose a random sample of the texts of each audited task, and of its unseen texts.

    Parameters
    ----------
    tasks
        All tasks of a spec.
    unseen
        Name of the task with unseen texts; '' if there is none.
    unseen_split
        Official split with unseen texts; the other split is audited. None if there is none.
    max_texts
        Maximum number of texts of each group.
    seed
        Seed of the samples.

    Returns
    -------
    dict
        Texts by audited task.

    Raises
    ------
    SpecError
        If there is no such task, or no other one.
    DataError
        If the inputs of a task are not texts, or it has no official splits.

    Examples
    --------
    >>> tasks = {"old": Dataset(["a", "b", "c"], [0, 1, 0]), "new": Dataset(["c", "d"], [0, 1])}
    >>> choose_texts(tasks, "new", None, 100, seed=1)["old"]
    ComparedTexts(audited=('a', 'b'), unseen=('d',), num_common=1)
    """
    chosen = {}
    for name in find_unseen(tasks, unseen):
        texts = all_texts(name, tasks[name])
        others: Sequence[str] = all_texts(unseen, tasks[unseen]) if unseen else ()
        if unseen_split is not None:
            splits = tasks[name].splits
            if not splits:
                raise DataError(
                    f"task {name}: it has no official splits, so unseen_split: {unseen_split} selects no texts; set "
                    "`splits: official` in the options of its data source, or use `unseen`"
                )
            others = [text for text, split in zip(texts, splits, strict=True) if split == unseen_split]
            texts = [text for text, split in zip(texts, splits, strict=True) if split != unseen_split]
        common = set(texts) & set(others)
        groups = ([text for text in group if text not in common] for group in (texts, others))
        audited, reference = (
            _sample(group, max_texts, [seed, number, *name.encode()]) for number, group in enumerate(groups)
        )
        chosen[name] = ComparedTexts(audited, reference, len(common))
    return chosen


def _sample(texts: Sequence[str], number: int, seed: Sequence[int]) -> tuple[str, ...]:
    """Return a random sample in the order of the rows."""
    if len(texts) <= number:
        return tuple(texts)
    rows = np.random.default_rng(seed).choice(len(texts), number, replace=False)
    return tuple(texts[row] for row in sorted(rows.tolist()))

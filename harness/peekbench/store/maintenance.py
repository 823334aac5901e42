"""Copies a store, also during its run, and checks everything in it."""

from __future__ import annotations

import math
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from peekbench.errors import PeekbenchError, StoreError
from peekbench.records.scores import SCORES, ScoringInput, average_scores, score_all
from peekbench.records.trials import Draw
from peekbench.store.files import log_path, real_path, refuse_lost_log
from peekbench.store.reader import SELECT_DRAW, Store
from peekbench.store.schema import (
    SCORE_COLUMNS,
    compare_predictions,
    decode_labels,
    decode_predictions,
    find_damage,
    integrity_errors,
    quote,
    refuse_other_tables,
    size_of_sets,
    translate_errors,
)

MAX_PROBLEMS = 50
RELATIVE_TOLERANCE = 1e-9
"""Scores of another version of numpy may differ in the last digits."""


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """What a check of a store found."""

    trials: int
    """Finished trials."""
    arms: int
    """Arms whose scores were computed again."""
    problems: tuple[str, ...]
    """The first problems found, one line each."""


def back_up(path: Path, copy: Path) -> None:
    """Write a copy of a store with all trials saved so far.

    Parameters
    ----------
    path
        The store. A run may be adding trials to it.
    copy
        File to create. It needs no write-ahead log.

    Raises
    ------
    StoreError
        If the store is damaged, or the copy exists or cannot be written.
    """
    with Store.open(path) as store, translate_errors(copy):
        target = real_path(copy)
        refuse_lost_log(copy, target)
        if target.exists():
            raise StoreError(f"{copy} exists; give the path of a new file")
        part = target.parent / f".{secrets.token_hex(16)}.part"
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            with closing(sqlite3.connect(part, isolation_level=None)) as connection:
                store._connection.backup(connection)
                connection.execute("PRAGMA journal_mode = DELETE")  # no companion files
            os.link(part, target)  # fails if another process created the file
        finally:
            for leftover in (part, log_path(part), part.with_name(part.name + "-shm")):
                leftover.unlink(missing_ok=True)


def check_store(path: Path) -> StoreCheck:
    """Check a store: SQLite's integrity, all hashes, and all scores, which are computed from the predictions again.

    Parameters
    ----------
    path
        The store. It is not modified.

    Returns
    -------
    StoreCheck
        Numbers of trials and arms, and the problems found.

    Raises
    ------
    StoreError
        If the file is not a store that this version can read.
    """
    with Store.open(path, verified=False) as store:
        problems = []
        try:
            problems = list(islice(_find_problems(store), MAX_PROBLEMS))
            trials, arms = store.count()
        except (sqlite3.Error, UnicodeDecodeError, PeekbenchError) as error:
            problems.append(quote(error))
            trials = arms = 0
    return StoreCheck(trials, arms, tuple(problems))


def _find_problems(store: Store) -> Iterator[str]:
    connection = store._connection
    refuse_other_tables(store.path, connection)
    yield from integrity_errors(connection)
    damaged = False
    for find in (find_damage, find_damaged_predictions):
        for problem in find(connection):
            damaged = True
            yield problem
    if not damaged:
        yield from _find_wrong_scores(store)


def _find_wrong_scores(store: Store) -> Iterator[str]:
    """Compute the scores of all arms again, and describe those that differ from the stored ones."""
    tasks, spec = store.tasks(), store.spec()
    query = f"""
    SELECT draws.task, num_train, num_test, subsample, owner, arms.arm, test_labels, numbers, labels,
           {", ".join(f"arms.{name}" for name in SCORE_COLUMNS)}
    FROM arms JOIN draws ON draws.id = arms.draw JOIN predictions ON predictions.arm = arms.id
    """  # noqa: S608 - constants only
    for task, num_train, num_test, subsample, owner, arm, truth, numbers, chosen, *stored in store._connection.execute(
        query
    ):
        num_classes = len(tasks[task]["class_names"])
        kind = tasks[task]["kind"]
        predicted = decode_predictions(numbers, chosen, tasks[task])
        of_all_sets = decode_labels(truth, tasks[task])
        labels: Any = np.resize(of_all_sets, (len(predicted), *of_all_sets.shape[1:]))
        size = size_of_sets(spec, num_test, len(of_all_sets))
        sets = [
            ScoringInput(predicted[first : first + size], labels[first : first + size], num_classes)
            for first in range(0, len(predicted), size)
        ]
        averages = average_scores([score_all(kind, data) for data in sets], len(of_all_sets) // size)
        for score, value in zip(SCORES, stored, strict=True):
            computed = averages[score.name]
            if score.name == "bits_per_byte" and kind == "classification":
                continue  # the store keeps predictions of classes, but no log-likelihoods of texts
            if not _is_equal(value, computed):
                place = describe_arm(Draw(task, num_train, num_test, subsample), owner, arm)
                yield quote(f"{place}: {score.name} is {value}, but {computed} from its predictions")


def _is_equal(stored: float | None, computed: float | None) -> bool:
    if stored is None or computed is None:
        return stored is computed
    return math.isclose(stored, computed, rel_tol=RELATIVE_TOLERANCE, abs_tol=RELATIVE_TOLERANCE)


def find_damaged_predictions(connection: sqlite3.Connection) -> Iterator[str]:
    """Compare all predictions with the hashes of their arms, and yield what is missing or changed."""
    query = (
        f"{SELECT_DRAW}, arms.owner, arms.arm, arms.predictions_checksum, predictions.numbers, predictions.labels, "
        "predictions.answers FROM arms JOIN draws ON draws.id = arms.draw "
        "LEFT JOIN predictions ON predictions.arm = arms.id"
    )
    for row in connection.execute(query):
        *draw, owner, arm, checksum = row[:-3]
        if damage := compare_predictions(row[-3:], checksum):
            yield quote(f"the predictions of {describe_arm(Draw(*draw), owner, arm)} are {damage}")
    ((extra,),) = connection.execute("SELECT count(*) FROM predictions WHERE arm NOT IN (SELECT id FROM arms)")
    if extra:
        yield f"the table predictions has {extra} rows without an arm"


def describe_arm(draw: Draw, owner: str, arm: str) -> str:
    """Return an arm in words. Its owner is a method, or the key of a base arm that methods may share."""
    place = f"num_train {draw.num_train}, num_test {draw.num_test}, subsample {draw.subsample}"
    return f"arm {arm} of task {draw.task}, {place}, method or base arm {owner}"

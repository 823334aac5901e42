"""Contract checks that compare this process with a new one, in which all that must not matter is different.

In the new process, hashes of texts, process id and time are different, the cache has no files of earlier fits, the same
fits run in reverse order, and `load_dataset(task.source)` gives other labels for the rows outside the train sets. If
all predictions are equal, the method passes several checks at the cost of one process. Otherwise, further processes
that differ in one respect find the cause.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from peekbench.data.loading import remember
from peekbench.errors import ContractError
from peekbench.execution.arms import read_only
from peekbench.records.data import Dataset, FloatArray, Inputs, IntArray, Labeled
from peekbench.testing.cache_view import view_cache
from peekbench.testing.case import Case
from peekbench.testing.fit_checks import is_deterministic
from peekbench.testing.fresh_process import Answer, Surroundings, call
from peekbench.testing.outcomes import preserved_state
from peekbench.testing.packages import own_packages
from peekbench.testing.prediction_checks import are_equal, observe
from peekbench.testing.process_state import used_memory
from peekbench.testing.repeated_call import require_unchanged_state

Cause: TypeAlias = Literal["process", "cache", "labels"]
"""What predictions depend on: the process, earlier fits with the same seed, or labels outside the train set."""
MAX_GROWTH = 50e6
"""Bytes by which a fit may increase the memory of its process; allocators cause smaller increases."""
Predictions: TypeAlias = Mapping[str, FloatArray | str]
"""Predictions by fit, or the exception that the fit raised, in words."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Arguments of a fit with seed 1."""

    unlabeled: Inputs | None
    train: Labeled


@dataclass(frozen=True, slots=True)
class Conditions:
    """In which respects a new process differs from that of the checks."""

    surroundings: Surroundings
    is_reversed: bool
    has_other_labels: bool


def check_process_independence(case: Case) -> None:
    """Check that predictions do not depend on hashes of texts, the process id, the time or other state."""
    _raise_if_found(case, "process")


def check_cache_keys(case: Case) -> None:
    """Check that a fit uses nothing that a fit with the same seed and other inputs has stored."""
    _raise_if_found(case, "cache")


def check_hidden_labels(case: Case) -> None:
    """Check that predictions do not depend on labels outside the train set, unless the entry is a positive control."""
    _raise_if_found(case, "labels")


def check_process_state(case: Case) -> None:
    """Check that a method leaves the state of its process unchanged, and no thread or process behind."""
    answer, _ = _compare(case)
    require_unchanged_state(answer)


def check_memory(case: Case) -> None:
    """Check that the memory of the process does not grow with every fit."""
    answer, _ = _compare(case)
    growth = answer.value.growth
    if growth > MAX_GROWTH:
        raise ContractError(
            f"it keeps about {growth / 1e6:.0f} MB per fit, and a worker does thousands of fits; keep neither data nor "
            "models in the module or in caches without a limit"
        )


def check_network(case: Case) -> str | None:
    """Return a warning if fits connect to other machines, which a method that calls a service must do."""
    answer, _ = _compare(case)
    if not answer.hosts:
        return None
    return (
        f"warning: it connects to {', '.join(answer.hosts)}; download files in `prefetch`, and store the answers of a "
        "service in context.folders.cache, so that a run can be repeated"
    )


def _raise_if_found(case: Case, cause: Cause) -> None:
    _, problems = _compare(case)
    if cause in problems:
        raise ContractError(problems[cause])


def _compare(case: Case) -> tuple[Answer, dict[Cause, str]]:
    """Return what a new process did, and the problem with its predictions by cause; once for all checks."""
    return case.share("another process", partial(_find_problems, case))


def _find_problems(case: Case) -> tuple[Answer, dict[Cause, str]]:
    fits = _list_fits(case)
    with preserved_state():  # a new process inherits some of it
        expected = {
            name: observe(case, fit.unlabeled).predictions
            if fit.train is case.train
            else case.predict(fit.unlabeled, train=fit.train)
            for name, fit in fits.items()
        }
    surroundings = Surroundings(own_packages=own_packages(case.use, case.entry.method))
    conditions = Conditions(surroundings, is_reversed=True, has_other_labels=case.entry.control != "positive")
    # Times in whole seconds then differ, also those that are not shifted, such as of `datetime`.
    time.sleep(max(0.0, observe(case, case.unlabeled).time + 1 - time.monotonic()))
    answer = _fit_elsewhere(case, fits, conditions)
    found = answer.value.predictions
    is_determined = all(is_deterministic(case, unlabeled) for unlabeled in (None, case.unlabeled))
    if _find_difference(expected, found) is None or not is_determined:  # another check reports the latter
        return answer, {}
    return answer, _find_cause(case, fits, conditions, expected, found)


def _find_cause(
    case: Case, fits: Mapping[str, Fit], conditions: Conditions, expected: Predictions, found: Predictions
) -> dict[Cause, str]:
    """Find the first respect in which processes must differ for other predictions."""
    surroundings = conditions.surroundings
    changes: tuple[tuple[Cause, str, Conditions], ...] = (
        ("process", "differ in every process; do not use the process id, the time or addresses", conditions),
        (
            "labels",
            "depend on labels outside the train set, which `load_dataset(task.source)` gives; use only the labels in "
            "`train`, or declare control='positive' if the method simulates contamination",
            replace(conditions, has_other_labels=False),
        ),
        (
            "cache",
            "depend on earlier fits with the same seed and other inputs, as if a cache in memory or in "
            "context.folders.cache had the seed as its key; make all inputs part of the key, such as a hash of them",
            replace(conditions, is_reversed=False),
        ),
        (
            "process",
            "depend on hashes of texts, which differ in every process; use hashlib instead of `hash`, and sort sets "
            "before you iterate over them",
            replace(conditions, surroundings=replace(surroundings, hash_seed=surroundings.hash_seed + 1)),
        ),
        (
            "process",
            "depend on the time; take all randomness from context.seed",
            replace(conditions, surroundings=replace(surroundings, clock_shift=0.0)),
        ),
    )
    for cause, problem, other in changes:
        if where := _find_difference(found, _fit_elsewhere(case, fits, other).value.predictions):
            return {cause: f"{where} {problem}"}
    where = _find_difference(expected, found)
    return {"process": f"{where} differ in a new process; use no state of the process"}


def _list_fits(case: Case) -> dict[str, Fit]:
    """Return fits with the same seed and different inputs.

    Whatever a cache leaves out of its key, in reverse order another fit is the first one to fill it.
    """
    return {
        "without unlabeled inputs": Fit(None, case.train),
        "with unlabeled inputs": Fit(case.unlabeled, case.train),
        "with another train set": Fit(case.unlabeled, case.other_train),
        "without unlabeled inputs, with another train set": Fit(None, case.other_train),
        "with other inputs": Fit(case.other, case.other_train),
    }


def _fit_elsewhere(case: Case, fits: Mapping[str, Fit], conditions: Conditions) -> Answer:
    order = reversed(list(fits)) if conditions.is_reversed else iter(fits)
    with view_cache() as cache:
        folders = replace(case.folders, cache=cache)
        answer = call(
            conditions.surroundings,
            fit_all,
            replace(case, folders=folders),
            {name: fits[name] for name in order},
            conditions.has_other_labels,
        )
    if answer.error:
        raise ContractError(f"in another process, {answer.error}")
    return answer


def _find_difference(expected: Predictions, found: Predictions) -> str | None:
    """Describe the first difference; None if there is none."""
    for name, first in expected.items():
        second = found[name]
        if isinstance(first, str) or isinstance(second, str):
            if not (isinstance(first, str) and isinstance(second, str)):
                return f"predictions {name} (in one process: {first if isinstance(first, str) else second})"
        elif not are_equal(first, second):
            return f"predictions {name}"
    return None


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a series of fits gave."""

    predictions: Predictions
    growth: float
    """Bytes that every fit adds to the memory of the process; the first one, which imports libraries, is left out."""


def fit_all(case: Case, fits: Mapping[str, Fit], has_other_labels: bool) -> Fitted:
    """Do fits one after the other, and return their predictions; the new process calls this.

    Parameters
    ----------
    case
        Method and test inputs.
    fits
        Fits by name, in order.
    has_other_labels
        Whether the labels outside the train sets of the case are other ones.
    """
    if has_other_labels:
        remember(case.task.source, _change_labels(case.rows.dataset, case.rows.labeled))
    case = replace(case, test=_protect(case.test))
    predictions: dict[str, FloatArray | str] = {}
    memory = []
    for name, fit in fits.items():
        try:
            train = Labeled(_protect(fit.train.inputs), read_only(fit.train.labels))
            unlabeled = None if fit.unlabeled is None else _protect(fit.unlabeled)
            predictions[name] = case.predict(unlabeled, train=train)
        except Exception as error:
            predictions[name] = f"{type(error).__name__}: {error}"
        gc.collect()
        memory.append(used_memory())
    return Fitted(predictions, _growth(memory, [fit.unlabeled is None for fit in fits.values()]))


def _growth(memory: Sequence[int], is_base: Sequence[bool]) -> float:
    """Return the smallest growth by a fit of an arm, after the first fit of all; the larger one of the two arms."""
    growth = list(zip(np.diff(memory), is_base[1:], strict=True))
    return max(float(min(size for size, arm in growth if arm is wanted)) for wanted in (True, False))


def _protect(inputs: Inputs) -> Inputs:
    """Make inputs read-only again, which unpickled arrays are not."""
    return read_only(inputs) if isinstance(inputs, np.ndarray) else inputs


def _change_labels(dataset: Dataset, labeled: IntArray) -> Dataset:
    """Return a dataset in which all other rows have another label, or targets in reverse order.

    In language modeling, the text itself is to be predicted, so all other rows have the texts in reverse order.
    """
    if dataset.kind == "language_modeling":
        others = np.setdiff1d(np.arange(len(dataset.inputs)), labeled).tolist()
        texts = list(dataset.inputs)
        for row, other in zip(others, reversed(others), strict=True):
            texts[row] = dataset.inputs[other]
        return replace(dataset, inputs=texts, labels=())
    labels = np.array(dataset.labels)
    is_other = np.ones(len(labels), dtype=bool)
    is_other[labeled] = False
    others = labels[is_other]
    labels[is_other] = others[::-1] if dataset.kind == "regression" else (others + 1) % len(dataset.class_names)
    return replace(dataset, labels=labels)

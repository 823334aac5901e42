"""Contract checks of methods.

Most compare fits in this process that must agree. Others compare a new process, in which hashes of texts are different,
the cache has no files of earlier fits, the same fits run in reverse order, and `load_dataset(task.source)` gives other
labels for the rows outside the train sets. If predictions differ, a further process finds out whether labels matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from peekbench.data.loading import load_dataset, remember
from peekbench.data.preflight import find_mismatch
from peekbench.data.sampling import label_array
from peekbench.errors import ContractError, DataError
from peekbench.execution.determinism import ProcessState
from peekbench.execution.prediction_checks import read_only, score_texts, take
from peekbench.plugins import registry
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.names import split_name
from peekbench.plugins.protocols import Options
from peekbench.records.data import Dataset, FloatArray, Folders, Inputs, IntArray, Labeled, SourceRef
from peekbench.spec.components import MethodSpec, make_component
from peekbench_testing.case import Case, are_equal, in_arms, make_case, prepare
from peekbench_testing.fresh_process import call, view_cache
from peekbench_testing.runner import Checks, Memo

# BLAS uses other kernels for other batch sizes, which round differently. Adapting to a batch makes larger differences.
TOLERANCE = 1e-4
LARGE_BATCH = 500  # inputs, the largest usual test set
InputsT = TypeVar("InputsT")


@contextmanager
def method_to_check(use: str, options: Mapping[str, Any], source: Dataset | SourceRef | None) -> Iterator[Case]:
    """Prepare a method as a run does, for example download its model to the cache, and make a case of it."""
    spec = make_component(MethodSpec, use, options)
    folder, origin = Path.cwd(), None
    if isinstance(source, SourceRef):
        origin = source
        if spec.entry.task_kinds == {"language_modeling"}:
            origin = replace(source, kind="language_modeling")
        source = load_dataset(origin)
    if source is not None and (mismatch := find_mismatch(spec.entry, source, "the task")):
        raise DataError(f"{spec.use} {mismatch}; choose another task")
    prepare(spec, folder)
    with view_cache() as cache:
        case = make_case(spec.use, spec.entry, spec.options, folder, source, origin)
        yield replace(case, folders=Folders(spec=folder, cache=cache))


# Checks in one process


def check_fit(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a method fits and predicts."""
    case.observe(unlabeled)


@in_arms("extra", "base")
def check_same_seed(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the same seed gives the same predictions, to the last bit."""
    if not are_equal(case.observe(unlabeled), case.predict(unlabeled)):
        raise ContractError(
            "two fits with the same seed give different predictions; draw all random numbers from context.seed, and "
            "keep no state between fits"
        )


@in_arms("extra", "base")
def check_other_fit(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a fit changes neither an earlier predictor nor the next fit."""
    predictor = case.fit(unlabeled)
    case.fit(case.other, seed=2)
    if not are_equal(case.observe(unlabeled), case.apply(predictor, case.test)):
        raise ContractError("a predictor changes when the method is fitted again; give each fit its own model")
    del predictor  # it may keep a model that the next fit can use
    if not are_equal(case.observe(unlabeled), case.predict(unlabeled)):
        raise ContractError(
            "a fit gives other predictions after another fit; keep no state between fits, in the module or in a model"
        )


@in_arms("extra", "base", "test")
def check_batches(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the prediction for an input depends neither on the inputs predicted with it nor on earlier ones."""
    expected, half = case.observe(unlabeled), len(case.test) // 2
    large = np.fromiter(islice(cycle(case.unseen.tolist()), LARGE_BATCH), dtype=np.int64)  # the test inputs first
    predictor = case.fit(unlabeled)
    # The first one has an effect if a method postpones its fit.
    for start, batch in (
        (0, case.test[:half]),
        (half, case.test[half:]),
        (0, case.test[:1]),
        (1, case.test[1:2]),
        (0, take(case.dataset.inputs, large)),
    ):
        found = case.apply(predictor, batch)[: len(expected) - start]
        if not are_equal(expected[start : start + len(found)], found, TOLERANCE):
            raise ContractError(
                f"predictions depend on the inputs that are predicted together: those of {len(expected)} inputs differ "
                f"in a batch of {len(batch)}. Adapt to `unlabeled` in the fit, and predict each input independently, "
                "or measure what predicting them together adds with the arm alone"
            )


@in_arms("extra", "base")
def check_log_likelihoods(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the log-likelihood of a text does not depend on other texts."""
    predictor, half = case.fit(unlabeled), len(case.test) // 2
    if predictor.log_likelihoods is None:
        return
    together, *parts = (
        scored.values
        for batch in (case.test, case.test[:half], case.test[half:])
        if (scored := score_texts(predictor, batch, case.task))
    )
    if not are_equal(together, np.concatenate(parts), TOLERANCE):
        raise ContractError(
            "log-likelihoods depend on the texts that are scored together; adapt to `unlabeled` in the fit, and score "
            "each text independently"
        )


def check_unlabeled_options(case: Case) -> None:
    """Check that `unlabeled_options` have no effect without unlabeled inputs."""
    for name in sorted(case.entry.unlabeled_options):
        if name not in type(case.options).model_fields:
            raise ContractError(f"unlabeled_options names {name!r}, which is not an option; correct the name")
        varied = _vary(case.options, name)
        if varied is not None and not are_equal(case.observe(None), case.predict(None, options=varied)):
            raise ContractError(
                f"option {name!r} changes the base arm, but unlabeled_options names it; remove it there"
            )


def _vary(options: Options, name: str) -> Options | None:
    """Return the options with another value of a switch or a number, or None if no other valid value is found."""
    value = getattr(options, name)
    numbers = (value + 1, value * 2, value / 2, value - 1) if isinstance(value, int | float) else (1, 10, 100)
    for other in (*numbers, None):
        try:
            varied = type(options).model_validate({**options.model_dump(), name: other})
        except ValueError:
            continue
        if getattr(varied, name) != value:
            return varied
    return None


def check_shared_base(case: Case) -> None:
    """Check that methods of a plugin with the same base have the same predictions in the base arm."""
    plugin, own = split_name(case.use)
    base_options = _base_options(case.entry, case.options)
    for name, entry in registry.load(plugin).entries(MethodEntry).items():
        if name == own or (entry.base or name) != (case.entry.base or own) or case.task.kind not in entry.task_kinds:
            continue
        try:
            options = entry.options.model_validate(base_options)
        except ValueError:
            continue  # it has other options, so it shares no base
        if _base_options(entry, options) != base_options:
            continue
        if not are_equal(case.observe(None), replace(case, entry=entry).predict(None, options=options)):
            raise ContractError(f"{plugin}.{name} names the same base but has other predictions; give it another base")


def _base_options(entry: MethodEntry, options: Options) -> dict[str, Any]:
    """Return the options with an effect on the base arm."""
    return {name: value for name, value in options.model_dump().items() if name not in entry.unlabeled_options}


# Checks of two processes


class Fit(NamedTuple):
    """The data of a fit, for which two processes must give the same predictions."""

    unlabeled: Inputs | None
    train: Labeled


def check_process(case: Case) -> None:
    """Check that predictions do not depend on the process, on earlier fits, or on what they left in the cache."""
    if _may_know_labels(case) or _differs(case, change_labels=True):
        if not _differs(case, change_labels=False):
            return
        raise ContractError(
            "predictions differ in a new process, in which other fits come first; use hashlib instead of `hash`, sort "
            "sets before you iterate over them, do not use the process id or the time, and make all inputs part of the "
            "key of a cache, not only the seed"
        )


def check_labels(case: Case) -> None:
    """Check that predictions do not depend on labels of no train set, which only positive controls may know."""
    if _may_know_labels(case) or not _differs(case, change_labels=True) or _differs(case, change_labels=False):
        return
    raise ContractError(
        "predictions depend on labels outside the train set, which `load_dataset(task.source)` gives; use only the "
        "labels in `train`, or declare control='positive' if the method simulates contamination"
    )


def _may_know_labels(case: Case) -> bool:
    return case.entry.control == "positive"


def _differs(case: Case, *, change_labels: bool) -> bool:
    """Return whether a new process gives other predictions; once for all checks."""
    return case.memo.share(f"differs {change_labels}", partial(_compare, case, change_labels))


def _compare(case: Case, change_labels: bool) -> bool:
    fits = [
        Fit(None, case.train),
        Fit(case.unlabeled, case.train),
        Fit(case.unlabeled, case.other_train),
        Fit(None, case.other_train),
        Fit(case.other, case.other_train),
    ]  # whatever a cache leaves out of its key, in reverse order another fit is the first one to fill it
    state = ProcessState()  # a new process inherits some of it
    expected = case.memo.share("several", lambda: [case.predict(unlabeled, train=train) for unlabeled, train in fits])
    state.restore()
    with view_cache() as cache:
        fresh = replace(case, folders=replace(case.folders, cache=cache), memo=Memo())
        found = call(case.use, fit_all, fresh, fits[::-1], change_labels)[::-1]
    return not all(map(are_equal, expected, found))


def fit_all(case: Case, fits: Sequence[Fit], change_labels: bool) -> list[FloatArray]:
    """Do fits one after the other; the new process calls this.

    Arrays are made read-only again, which unpickled ones are not.
    """
    remember(case.task.source, _change_labels(case.dataset, case.labeled) if change_labels else case.dataset)
    case = replace(case, test=_protect(case.test))
    return [
        case.predict(_protect(unlabeled), train=Labeled(_protect(train.inputs), read_only(train.labels)))
        for unlabeled, train in fits
    ]


def _protect(inputs: InputsT) -> InputsT:
    return read_only(inputs) if isinstance(inputs, np.ndarray) else inputs


def _change_labels(dataset: Dataset, labeled: IntArray) -> Dataset:
    """Return a dataset in which all other rows have another label, or targets in reverse order.

    In language modeling, the text itself is to be predicted, so all other rows have the texts in reverse order.
    """
    others = np.setdiff1d(np.arange(len(dataset.inputs)), labeled)
    if dataset.kind == "language_modeling":
        texts = np.array(dataset.inputs, dtype=object)
        texts[others] = texts[others[::-1]]
        return replace(dataset, inputs=texts.tolist(), labels=())
    labels = label_array(dataset)
    if dataset.kind in ("regression", "generation"):
        labels[others] = labels[others[::-1]]
    else:
        num_values = 2 if dataset.kind == "multilabel" else len(dataset.class_names)
        labels[others] = (labels[others] + 1) % num_values
    return replace(dataset, labels=labels)


METHOD_CHECKS: Checks = {
    "fits and predicts without unlabeled inputs": in_arms("base")(check_fit),
    "fits and predicts with unlabeled inputs": in_arms("extra")(check_fit),
    "same seed, same predictions": check_same_seed,
    "fits are independent of each other": check_other_fit,
    "predictions are independent of other inputs": check_batches,
    "log-likelihoods are independent of other texts": check_log_likelihoods,
    "unlabeled_options have no effect on the base arm": check_unlabeled_options,
    "methods with the same base agree": check_shared_base,
    "predictions are independent of the process": check_process,
    "labels outside the train set are unused": check_labels,
}
"""Checks of methods by their names, in the order in which they are done. Each takes a `Case`.

Examples
--------
>>> next(iter(METHOD_CHECKS))
'fits and predicts without unlabeled inputs'
"""

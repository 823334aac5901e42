"""Contract checks of methods.

The checks of one process compare fits that must agree. Those of two processes share one new process, in which hashes of
texts, the process id and the hour are different, the cache has no files of earlier fits, the same fits run in reverse
order, and `load_dataset(task.source)` gives other labels for the rows outside the train sets. If predictions differ,
two further processes find the cause.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

import numpy as np

from peekbench.data.loading import load_dataset, remember
from peekbench.data.preflight import find_mismatch
from peekbench.data.sampling import label_array
from peekbench.errors import ContractError, DataError, SpecError
from peekbench.execution.prediction_checks import read_only, take
from peekbench.formatting import shorten
from peekbench.plugins import registry
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.names import split_name
from peekbench.plugins.protocols import Options
from peekbench.records.data import Dataset, FloatArray, Folders, Inputs, IntArray, Labeled, SourceRef
from peekbench.spec.components import MethodSpec, make_component
from peekbench_testing.case import (
    TIMEOUT,
    Case,
    are_equal,
    in_arms,
    in_both_arms,
    is_deterministic,
    make_case,
    observe,
    prepare,
    refit,
    score_batches,
)
from peekbench_testing.conditions import forbid_network, read_memory
from peekbench_testing.fresh_process import (
    MAX_OUTPUT,
    CallReport,
    call,
    check_light_import,
    view_cache,
)
from peekbench_testing.runner import GENERATORS, Checks, call_with_seed, preserved_state

# BLAS uses other kernels for other batch sizes, which round differently. Adapting to a batch makes larger differences.
TOLERANCE = 1e-4
LARGE_BATCH = 500  # inputs, the largest usual test set
NUM_SINGLE = 3  # inputs that are predicted one by one
MAX_KEPT = 32 * 2**20  # bytes; less may be noise of the allocator
NUM_GROWING = 3  # last fits, after those that load a model
INDEPENDENTLY = (
    "; adapt to `unlabeled` in the fit, and predict each input independently, or measure what predicting them together "
    "adds with the arm alone"
)
DEPENDS_ON_BATCH = (
    f"predictions depend on the inputs that are predicted together, so predict adapts to its batch{INDEPENDENTLY}"
)
InputsT = TypeVar("InputsT")


@contextmanager
def method_to_check(
    use: str, options: Mapping[str, Any], source: Dataset | SourceRef | None, timeout: float | None = None
) -> Iterator[Case]:
    """Prepare a method as a run does, for example download its model to the cache, and make a case of it."""
    spec = make_component(MethodSpec, use, options)
    folder = Path.cwd()
    dataset = source if isinstance(source, Dataset) else None
    if isinstance(source, SourceRef):
        if spec.entry.task_kinds == {"language_modeling"}:
            source = replace(source, kind="language_modeling")
        dataset = load_dataset(source)
    if dataset is not None and (mismatch := find_mismatch(spec.entry, dataset, "the task")):
        raise DataError(f"{spec.use} {mismatch}; choose another task")
    prepare(spec, folder)
    with view_cache() as cache:
        origin = source if isinstance(source, SourceRef) else None
        case = make_case(spec.use, spec.entry, spec.options, folder, dataset, origin)
        yield case.change(folders=Folders(spec=folder, cache=cache), timeout=timeout or TIMEOUT)


# Checks in one process


def check_fit(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a method fits and predicts."""
    observe(case, unlabeled)


@in_both_arms
def check_same_seed(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the same seed gives the same predictions, to the last bit."""
    if not is_deterministic(case, unlabeled):
        raise ContractError(
            "two fits with the same seed give different predictions; draw all random numbers from context.seed"
        )


@in_both_arms
def check_refit(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a fit does not depend on earlier fits."""
    refits = refit(case, unlabeled)
    if not are_equal(refits.second, refits.third.result()):
        raise ContractError(
            "a fit gives other predictions after another fit; keep no state between fits, in the module or in a model"
        )


@in_both_arms
def check_earlier_predictor(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a later fit does not change an earlier predictor."""
    refits = refit(case, unlabeled)
    if not are_equal(refits.second, refits.second_after_other.result()):
        raise ContractError("a predictor changes when the method is fitted again; give each fit its own model")


@in_both_arms
def check_batches(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the prediction for an input depends neither on the inputs predicted with it nor on its position.

    Each form of batches needs a fit of its own: if a method postpones its fit to the first `predict`, only the first
    batch has an effect.
    """
    expected, size = observe(case, unlabeled).predictions, len(case.test)
    large = np.fromiter(islice(cycle(case.unseen.tolist()), LARGE_BATCH), dtype=np.int64)  # the test inputs first
    for batches, problem in (
        ((case.test[: size // 2], case.test[size // 2 :]), DEPENDS_ON_BATCH),
        ([case.test[row : row + 1] for row in range(NUM_SINGLE)], DEPENDS_ON_BATCH),
        (
            (take(case.dataset.inputs, large),),
            f"predictions of {size} inputs are different in a batch of {LARGE_BATCH}, so predict adapts to large "
            f"batches{INDEPENDENTLY}",
        ),
    ):
        found = _predict_batches(case, unlabeled, batches)[:size]
        if are_equal(expected[: len(found)], found, TOLERANCE):
            continue
        if are_equal(expected, case.predict(unlabeled), TOLERANCE):  # otherwise, other checks report that fits differ
            raise ContractError(problem)


@in_arms("test")
def check_own_inputs(case: Case, unlabeled: Inputs | None) -> None:
    """Check that predictions do not depend on how many of the unlabeled inputs of the fit are in the batch."""
    rows = case.unseen[: 2 * len(case.test)]  # the test inputs first
    others = take(case.dataset.inputs, rows[len(case.test) :])
    mixed = _predict_batches(case, unlabeled, (take(case.dataset.inputs, rows),))
    expected = np.concatenate([observe(case, unlabeled).predictions, _predict_batches(case, unlabeled, (others,))])
    if not are_equal(expected, mixed, TOLERANCE) and is_deterministic(case, unlabeled):
        raise ContractError(
            "predictions depend on whether the inputs that are predicted together are those of the fit; predict "
            "each input independently"
        )


def check_all_batches(case: Case) -> None:
    """Check that the prediction for an input depends on no other input that is predicted."""
    check_batches(case)
    check_own_inputs(case)


def _predict_batches(case: Case, unlabeled: Inputs | None, batches: Sequence[Inputs]) -> FloatArray:
    predictor = case.fit(unlabeled)
    return np.concatenate([case.apply(predictor, batch) for batch in batches])


@in_both_arms
def check_empty_text(case: Case, unlabeled: Inputs | None) -> str | None:
    """Check that an empty text has a valid prediction, which neither depends on other texts nor changes theirs.

    A method may refuse an empty text with an error for users, which is a warning.
    """
    try:
        predicted = observe(case, unlabeled).empty.result()
    except ContractError as error:
        raise ContractError(f"for an empty text, {error}") from error
    except (DataError, SpecError) as error:
        return f"warning: it refuses an empty text: {error}"
    if predicted is None:
        return None
    alone, together = predicted
    if not are_equal(np.concatenate([alone, observe(case, unlabeled).predictions]), together, TOLERANCE):
        raise ContractError(f"with an empty text in the batch, {DEPENDS_ON_BATCH}")
    return None


@in_both_arms
def check_log_likelihoods(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the log-likelihood of a text does not depend on other texts, and that predictions stay the same."""
    seen = observe(case, unlabeled)
    if (scored := seen.texts.result()) is None:
        return
    together, predictions = scored
    if not are_equal(seen.predictions, predictions, TOLERANCE):
        raise ContractError(
            "predictions are different after `log_likelihoods` was called; restore the state that `predict` needs"
        )
    half = len(case.test) // 2
    halves = score_batches(case, case.fit(unlabeled), (case.test[:half], case.test[half:]))
    if halves is None or not are_equal(together, halves[0], TOLERANCE):
        raise ContractError(
            "log-likelihoods depend on the texts that are scored together; adapt to `unlabeled` in the fit, and score "
            "each text independently"
        )


@in_both_arms
def check_random_state(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a method neither uses nor changes the global random generators."""
    seeded = call_with_seed(partial(case.predict, unlabeled))
    if not are_equal(observe(case, unlabeled).predictions, seeded) and is_deterministic(case, unlabeled):
        raise ContractError(f"its predictions depend on the state of {GENERATORS}; use context.seed instead")


@in_both_arms
def check_inputs_untouched(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a method does not change its inputs and labels, even if they are writable."""
    writable = replace(
        case,
        train=Labeled(copy.deepcopy(case.train.inputs), case.train.labels.copy()),
        unlabeled=copy.deepcopy(case.unlabeled),
        test=copy.deepcopy(case.test),
    )
    writable.predict(None if unlabeled is None else writable.unlabeled)
    for before, after in (
        (case.train.inputs, writable.train.inputs),
        (case.train.labels, writable.train.labels),
        (case.unlabeled, writable.unlabeled),
        (case.test, writable.test),
    ):
        if not np.array_equal(np.array(before), np.array(after)):
            raise ContractError("it changes its inputs or labels; work on copies")


def check_unlabeled_options(case: Case) -> None:
    """Check that `unlabeled_options` have no effect without unlabeled inputs."""
    names = sorted(case.entry.unlabeled_options)
    unknown = [name for name in names if name not in type(case.options).model_fields]
    if unknown:
        raise ContractError(f"unlabeled_options names {unknown[0]!r}, which is not an option; correct the name")
    before = observe(case, None).predictions
    for name in names:
        varied = _vary(case.options, name)
        if varied is not None and not are_equal(before, case.predict(None, options=varied)):
            raise ContractError(
                f"option {name!r} changes the base arm, but unlabeled_options names it; remove it there"
            )


def _vary(options: Options, name: str) -> Options | None:
    """Return the options with another value of one option, or None if no other valid value is found."""
    value = getattr(options, name)
    numbers = (value + 1, value * 2, value / 2, value - 1) if isinstance(value, int | float) else (0, 1, 10, 100)
    for other in (*_choices(type(options).model_fields[name].annotation), *numbers, None):
        try:
            varied = type(options).model_validate({**options.model_dump(), name: other})
        except ValueError:
            continue
        if getattr(varied, name) != value:
            return varied
    return None


def _choices(annotation: Any) -> list[Any]:
    """Return the values that an annotation such as `Literal["a", "b"] | None` enumerates."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def check_shared_base(case: Case) -> None:
    """Check that methods of a plugin with the same base have the same predictions in the base arm."""
    plugin, own = split_name(case.use)
    before = observe(case, None).predictions
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
        if not are_equal(before, replace(case, entry=entry).predict(None, options=options)):
            raise ContractError(f"{plugin}.{name} names the same base but has other predictions; give it another base")


def _base_options(entry: MethodEntry, options: Options) -> dict[str, Any]:
    """Return the options with an effect on the base arm."""
    return {name: value for name, value in options.model_dump().items() if name not in entry.unlabeled_options}


# Checks of two processes


class Fit(NamedTuple):
    """A fit with seed 1, for which two processes must give the same predictions."""

    case: Case
    unlabeled: Inputs | None
    train: Labeled


@dataclass(frozen=True, slots=True)
class Fits:
    """What a new process did: fits, one after the other."""

    predictions: Mapping[str, FloatArray]
    """Predictions by fit."""
    hosts: tuple[str, ...]
    """Other machines to which connections were refused."""
    kept: int
    """Bytes of memory that each of the last fits left allocated at least."""


def check_cause(cause: str, case: Case) -> None:
    """Check that predictions do not depend on the process, on earlier fits (cache), or on labels of no train set.

    Positive controls may know the labels.
    """
    found, problem = _compare(case)[1]
    if found == cause:
        raise ContractError(problem)


def check_process_state(case: Case) -> str | None:
    """Check that a method leaves the state of its process unchanged, and no memory, thread, process or file behind.

    Output is a warning: it changes no result, but appears between the lines of a run's progress.
    """
    answer = _compare(case)[0]
    answer.require_clean()
    if answer.value.kept > MAX_KEPT:
        raise ContractError(
            f"it keeps about {answer.value.kept / 2**20:,.0f} MB of memory after each fit, which fills the memory of a "
            "worker; keep nothing in the module, and limit the size of caches"
        )
    if answer.output:
        line = shorten(answer.output.splitlines()[0], MAX_OUTPUT)
        return f"warning: it prints, for example {line!r}, into the progress of runs; remove this, or use `logging`"
    return None


def _compare(case: Case) -> tuple[CallReport, tuple[str, str]]:
    """Compare predictions of a new process; once for all checks. If they differ, tell the cause and the problem."""
    return case.memo.share("another process", partial(_find_problem, case))


def _find_problem(case: Case) -> tuple[CallReport, tuple[str, str]]:
    fits = {
        "without unlabeled inputs": Fit(case, None, case.train),
        "with unlabeled inputs": Fit(case, case.unlabeled, case.train),
        "with another train set": Fit(case, case.unlabeled, case.other_train),
        "without unlabeled inputs, with another train set": Fit(case, None, case.other_train),
        "with other inputs": Fit(case, case.other, case.other_train),
    }  # whatever a cache leaves out of its key, in reverse order another fit is the first one to fill it
    if case.variant is not None:
        for unlabeled in (None, case.variant.unlabeled):
            fits[case.variant.describe(unlabeled)] = Fit(case.variant, unlabeled, case.variant.train)
    with preserved_state():  # a new process inherits some of it
        expected = {name: _predict(fit) for name, fit in fits.items()}
    backwards = dict(reversed(fits.items()))
    change_labels = case.entry.control != "positive"
    answer = _fit_elsewhere(case, backwards, change_labels)
    if answer.value.hosts:
        return answer, (
            "process",
            f"it connects to {answer.value.hosts[0]}, so predictions depend on the network; download what it needs "
            "before the run, in the entry's `prefetch`, and read the files",
        )
    where = _find_difference(expected, answer)
    is_determined = all(is_deterministic(case, unlabeled) for unlabeled in (None, case.unlabeled))
    if not where or not is_determined:  # another check reports the latter
        return answer, ("", "")
    if not _find_difference(expected, _fit_elsewhere(case, backwards, False)):
        return answer, (
            "labels",
            f"{where} depend on labels outside the train set, which `load_dataset(task.source)` gives; use only the "
            "labels in `train`, or declare control='positive' if the method simulates contamination",
        )
    if not _find_difference(expected, _fit_elsewhere(case, fits, change_labels)):
        return answer, (
            "cache",
            f"{where} depend on earlier fits with the same seed and other inputs, as if a cache in memory or in "
            "context.folders.cache had the seed as its key; make all inputs part of the key, such as a hash of them",
        )
    return answer, (
        "process",
        f"{where} differ in a new process; use hashlib instead of `hash`, sort sets before you iterate over them, and "
        "do not use the process id, the time or addresses",
    )


def _predict(fit: Fit) -> FloatArray:
    if fit.train is fit.case.train:
        return observe(fit.case, fit.unlabeled).predictions
    return fit.case.predict(fit.unlabeled, train=fit.train)


def _fit_elsewhere(case: Case, fits: Mapping[str, Fit], change_labels: bool) -> CallReport:
    with view_cache() as cache:
        folders = replace(case.folders, cache=cache)
        fresh = {name: fit._replace(case=fit.case.change(folders=folders, variant=None)) for name, fit in fits.items()}
        return call(case.use, fit_all, fresh, change_labels)


def _find_difference(expected: Mapping[str, FloatArray], answer: CallReport) -> str:
    """Describe the first fit with other predictions; empty if there is none."""
    found = answer.value.predictions
    different = [name for name, predictions in expected.items() if not are_equal(predictions, found[name])]
    return f"predictions {different[0]}" if different else ""


def fit_all(fits: Mapping[str, Fit], change_labels: bool) -> Fits:
    """Do fits one after the other, without a network; the new process calls this.

    Arrays are made read-only again, which unpickled ones are not.
    """
    hosts = forbid_network()
    for case in {fit.case.name: fit.case for fit in fits.values()}.values():
        remember(case.task.source, _change_labels(case.dataset, case.labeled) if change_labels else case.dataset)
    predictions, memory = {}, []
    for number, (name, (case, unlabeled, train)) in enumerate(fits.items()):
        case = replace(case, test=_protect(case.test))
        train = Labeled(_protect(train.inputs), read_only(train.labels))
        predictions[name] = case.predict(_protect(unlabeled), train=train)
        if number >= len(fits) - 1 - NUM_GROWING:
            memory.append(read_memory())
    return Fits(predictions, tuple(hosts), int(np.diff(memory).min()))


def _protect(inputs: InputsT) -> InputsT:
    return read_only(inputs) if isinstance(inputs, np.ndarray) else inputs


def _change_labels(dataset: Dataset, labeled: IntArray) -> Dataset:
    """Return a dataset in which all other rows have another label, or targets in reverse order.

    In language modeling, the text itself is to be predicted, so all other rows have the texts in reverse order.
    """
    others = np.setdiff1d(np.arange(len(dataset.inputs)), labeled)
    if dataset.kind == "language_modeling":
        texts = list(dataset.inputs)
        for row, other in zip(others.tolist(), others[::-1].tolist(), strict=True):
            texts[row] = dataset.inputs[other]
        return replace(dataset, inputs=texts, labels=())
    labels = label_array(dataset)
    is_regression = dataset.kind in ("regression", "generation")
    num_values = 2 if dataset.kind == "multilabel" else len(dataset.class_names)
    labels[others] = labels[others][::-1] if is_regression else (labels[others] + 1) % num_values
    return replace(dataset, labels=labels)


METHOD_CHECKS: Checks = {
    "fits and predicts without unlabeled inputs": in_arms("base")(check_fit),
    "fits and predicts with unlabeled inputs": in_arms("extra")(check_fit),
    "same seed, same predictions": check_same_seed,
    "fits are independent of earlier fits": check_refit,
    "predictors are independent of later fits": check_earlier_predictor,
    "predictions are independent of other inputs": check_all_batches,
    "predictions of an empty text are valid": check_empty_text,
    "log-likelihoods are independent of other texts": check_log_likelihoods,
    "global random state is unused and unchanged": check_random_state,
    "inputs and labels are unchanged": check_inputs_untouched,
    "unlabeled_options have no effect on the base arm": check_unlabeled_options,
    "methods with the same base agree": check_shared_base,
    "predictions are independent of the process": partial(check_cause, "process"),
    "caches are independent of the seed": partial(check_cause, "cache"),
    "labels outside the train set are unused": partial(check_cause, "labels"),
    "the state of the process is unchanged": check_process_state,
    "importing the plugin is fast": check_light_import,
}
"""Checks of methods by their names, in the order in which they are done. Each takes a `Case`.

Examples
--------
>>> next(iter(METHOD_CHECKS))
'fits and predicts without unlabeled inputs'
"""

"""Runs work items: draws rows, fits and scores each arm, and checks that methods return what they must."""

from __future__ import annotations

import os
import random
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from os import getpid  # bound here, in case a method patches the module
from types import MappingProxyType
from typing import Any

import numpy as np

from peekbench.data.loading import fingerprint, load_dataset, make_task
from peekbench.data.sampling import Sampler, derive_seed
from peekbench.errors import ContractError, DataError
from peekbench.execution.arms import read_only, take, unlabeled_rows
from peekbench.execution.determinism import ProcessState, one_thread_pools
from peekbench.execution.scoring import check_predictions, compute_scores
from peekbench.formatting import shorten
from peekbench.plugins.protocols import THREADS_VARIABLE, Outcome
from peekbench.records.data import Dataset, FloatArray, Labeled, Task
from peekbench.records.trials import (
    MAX_ERROR,
    MAX_TRACEBACK,
    ArmResult,
    Context,
    Predictor,
    Subsample,
    Trial,
    TrialFailure,
    TrialResult,
    WorkItem,
)
from peekbench.spec.arms import Arm
from peekbench.spec.components import MethodSpec
from peekbench.spec.experiment import ExperimentSpec

NOT_CHECKED: Mapping[str, str] = MappingProxyType({})


def available_threads() -> int:
    """Return the number of CPU threads this fit may use: `$PEEKBENCH_THREADS`, or the number of cores."""
    return int(os.environ.get(THREADS_VARIABLE) or os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class LoadedTask:
    """A task with its data and a sampler."""

    task: Task
    dataset: Dataset
    sampler: Sampler


class Worker:
    """Runs work items of one spec. A worker is callable, and picklable at any time.

    Parameters
    ----------
    spec
        The spec.
    fingerprints
        Fingerprints of the tasks' data at the start of the run, by task.
    """

    def __init__(self, spec: ExperimentSpec, fingerprints: Mapping[str, str] = NOT_CHECKED) -> None:
        self._spec = spec
        self._fingerprints = dict(fingerprints)
        self._tasks: dict[str, LoadedTask] = {}
        self._fits: dict[tuple[str, str], Callable[..., Predictor]] = {}
        self._folders = spec.folders()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments only; another process loads the data itself."""
        return Worker, (self._spec, self._fingerprints)

    def __call__(self, item: WorkItem) -> list[Outcome]:
        """Run the trials of an item. If a method raises an exception, the outcome is a `TrialFailure`.

        The first trial's method fits the base arm, and the first successful trial includes it.

        Raises
        ------
        DataError
            If the task's data are unavailable, or have changed since the start of the run.
        """
        with one_thread_pools():
            return self._run_item(item)

    def _run_item(self, item: WorkItem) -> list[Outcome]:
        outcomes: list[Outcome] = []
        draw = item.trials[0].draw
        loaded = self._load(draw.task)
        subsample = loaded.sampler.draw(draw)
        test_labels = loaded.sampler.labels[subsample.test]
        seed = derive_seed(self._spec.seed, "fit", draw.task, draw.num_train, draw.num_test, draw.subsample)
        context = Context(seed, available_threads(), self._folders)
        base: ArmResult | None = None
        needs_base = not item.has_base
        process = getpid()
        for trial in item.trials:
            method = self._spec.method(trial.method)
            arms = []
            try:
                for arm in self._spec.arms:
                    if arm.kind != "base":
                        arms.append(self._run_arm(method, arm, context, loaded, subsample))
                    elif needs_base:
                        base = base or self._run_arm(method, arm, context, loaded, subsample)
                        arms.append(base)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # also SystemExit, and the panic of a Rust library
                outcomes.append(_make_failure(trial, error, f"in the trial of {trial}; `use: {method.use}`"))
            else:
                outcomes.append(TrialResult(trial, test_labels, subsample.test, tuple(arms)))
                needs_base = False
            finally:
                if getpid() != process:  # a copy of this process, which a method forked and did not end
                    os._exit(1)
        return outcomes

    def _load(self, name: str) -> LoadedTask:
        if name not in self._tasks:
            task_spec = self._spec.task(name)
            dataset = load_dataset(self._spec.source(task_spec))
            if self._fingerprints.get(name, "") not in ("", fingerprint(dataset)):
                raise DataError(
                    f"task {name}: its data have changed since the run started; restore them, or run the spec under "
                    "another name"
                )
            sampler = Sampler(dataset, self._spec.design_of(task_spec), self._spec.seed, name)
            self._tasks[name] = LoadedTask(make_task(self._spec, task_spec), dataset, sampler)
        return self._tasks[name]

    def _fit(self, method: MethodSpec, task: str) -> Callable[..., Predictor]:
        """Return the method with its options for a task."""
        key = (method.name, task)
        if key not in self._fits:
            self._fits[key] = partial(method.entry.method, options=self._spec.options(method, task))
        return self._fits[key]

    def _run_arm(
        self, method: MethodSpec, arm: Arm, context: Context, loaded: LoadedTask, subsample: Subsample
    ) -> ArmResult:
        task, inputs, labels = loaded.task, loaded.dataset.inputs, loaded.sampler.labels
        fit = self._fit(method, task.name)
        rows = unlabeled_rows(arm, subsample)
        unlabeled = None if rows is None else take(inputs, rows)
        train = Labeled(take(inputs, subsample.train), read_only(labels[subsample.train]))
        test_inputs = take(inputs, subsample.test)
        # A method that uses the global generators then gives the same results in any order of work.
        random.seed(context.seed)
        np.random.seed(context.seed)
        state = ProcessState()
        try:
            start = time.perf_counter()
            predictor = fit(unlabeled, train, task, context=context)
            end_of_fit = time.perf_counter()
            if not isinstance(predictor, Predictor):
                raise ContractError(
                    f"{method.use} returned a {type(predictor).__name__}; a method returns peekbench.Predictor(predict)"
                )
            predictions = predictor.predict(test_inputs)
            end = time.perf_counter()
        finally:
            state.restore()
        check_predictions(predictions, len(subsample.test), task)
        stored = _to_stored_type(predictions, task)
        if stored is not predictions:  # the conversion may have changed numbers
            check_predictions(stored, len(subsample.test), task)
        return ArmResult(
            arm.name,
            compute_scores(stored, labels[subsample.test], task),
            end_of_fit - start,
            end - end_of_fit,
            {_escape_surrogates(str(name)): float(value) for name, value in predictor.metrics.items()},
            stored,
        )


def _to_stored_type(predictions: FloatArray, task: Task) -> FloatArray:
    """Convert predictions to float32, or to float64 for regression, whose targets may have any size."""
    if task.kind == "regression":
        return np.asarray(predictions, dtype=np.float64)
    with np.errstate(over="ignore"):  # numbers too large for float32 become infinite, which the check refuses
        return np.asarray(predictions, dtype=np.float32)


def _make_failure(trial: Trial, error: BaseException, note: str) -> TrialFailure:
    name = type(error).__name__
    try:
        error.add_note(note)
        described = traceback.TracebackException.from_exception(error)  # its str works even if that of `error` raises
        message, text = f"{name}: {described}", "".join(described.format())
    except Exception:  # the exception's class breaks the traceback module
        message, text = name, f"{name}: this exception cannot be formatted\n{note}\n"
    return TrialFailure(
        trial, _escape_surrogates(shorten(message, MAX_ERROR)), _escape_surrogates(shorten(text, MAX_TRACEBACK))
    )


def _escape_surrogates(text: str) -> str:
    """Escape lone surrogates, which a message may quote from data and which cannot be written to a file."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")

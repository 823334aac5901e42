"""One work item to its outcomes: draws the rows, fits and scores each arm, and holds methods to their contract."""

from __future__ import annotations

import os
import random
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from peekbench.data.loading import fingerprint, load_dataset, make_task
from peekbench.data.sampling import Sampler, derive_seed
from peekbench.errors import ContractError, DataError
from peekbench.execution.arms import read_only, take, unlabeled_rows
from peekbench.execution.determinism import one_thread_pools
from peekbench.execution.scoring import check_predictions, compute_scores
from peekbench.plugins.protocols import THREADS_VARIABLE
from peekbench.records.data import Dataset, FloatArray, Labeled, Task
from peekbench.records.trials import (
    ArmResult,
    Context,
    Predictor,
    Subsample,
    Trial,
    TrialFailure,
    TrialResult,
    WorkItem,
)

if TYPE_CHECKING:
    from peekbench.plugins.protocols import Outcome
    from peekbench.spec.arms import Arm
    from peekbench.spec.components import MethodSpec
    from peekbench.spec.experiment import ExperimentSpec


NOT_CHECKED: Mapping[str, str] = MappingProxyType({})


def available_threads() -> int:
    """Threads that one fit may keep busy: what the executor grants by $PEEKBENCH_THREADS, else every core."""
    return int(os.environ.get(THREADS_VARIABLE) or os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class LoadedTask:
    """A task's data, ready to draw from."""

    task: Task
    dataset: Dataset
    sampler: Sampler


class Worker:
    """Does work items of one spec; callable, and picklable before and after its first item."""

    def __init__(self, spec: ExperimentSpec, fingerprints: Mapping[str, str] = NOT_CHECKED) -> None:
        """Work on a spec.

        Parameters
        ----------
        fingerprints
            Of the tasks' data, by name, as they were when the run began.
        """
        self._spec = spec
        self._fingerprints = dict(fingerprints)
        self._benches: dict[str, LoadedTask] = {}
        self._fits: dict[tuple[str, str], Callable[..., Predictor]] = {}
        self._folders = spec.folders()

    def __reduce__(self) -> tuple[Any, ...]:
        return Worker, (self._spec, self._fingerprints)

    def __call__(self, item: WorkItem) -> list[Outcome]:
        """Run an item's trials; what a method raises becomes a `TrialFailure`.

        The base arm is fitted with the first trial's method and comes with the first trial that succeeds.

        Raises
        ------
        DataError
            Where the task's data cannot be had, or are no longer what they were when the run began.
        """
        with one_thread_pools():
            return self._run_item(item)

    def _run_item(self, item: WorkItem) -> list[Outcome]:
        outcomes: list[Outcome] = []
        draw = item.trials[0].draw
        bench = self._bench(draw.task)
        subsample = bench.sampler.draw(draw)
        test_labels = bench.sampler.labels[subsample.test]
        seed = derive_seed(self._spec.seed, "fit", draw.task, draw.num_train, draw.num_test, draw.subsample)
        context = Context(seed, available_threads(), self._folders)
        base: ArmResult | None = None
        base_missing = not item.has_base
        for trial in item.trials:
            method = self._spec.method(trial.method)
            arms = []
            try:
                for arm in self._spec.arms:
                    if arm.kind != "base":
                        arms.append(self._run_arm(method, arm, context, bench, subsample))
                    elif base_missing:
                        base = base or self._run_arm(method, arm, context, bench, subsample)
                        arms.append(base)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # SystemExit too, and what a Rust library's panic becomes
                error.add_note(f"in the trial of {trial}; `use: {method.use}`")
                outcomes.append(_failure(trial, error))
            else:
                outcomes.append(TrialResult(trial, test_labels, tuple(arms)))
                base_missing = False
        return outcomes

    def _bench(self, name: str) -> LoadedTask:
        if name not in self._benches:
            task_spec = self._spec.task(name)
            dataset = load_dataset(self._spec.source(task_spec))
            if self._fingerprints.get(name, "") not in ("", fingerprint(dataset)):
                raise DataError(
                    f"task {name}: its data have changed since the run began; put them back, or run the spec again "
                    "under another name"
                )
            sampler = Sampler(dataset, self._spec.design_of(task_spec), self._spec.seed, name)
            self._benches[name] = LoadedTask(make_task(self._spec, task_spec), dataset, sampler)
        return self._benches[name]

    def _fit(self, method: MethodSpec, task: str) -> Callable[..., Predictor]:
        """The method with its options for that task."""
        key = (method.name, task)
        if key not in self._fits:
            self._fits[key] = partial(method.entry.method, options=self._spec.options(method, task))
        return self._fits[key]

    def _run_arm(
        self, method: MethodSpec, arm: Arm, context: Context, bench: LoadedTask, subsample: Subsample
    ) -> ArmResult:
        import numpy as np

        task = bench.task
        fit = self._fit(method, task.name)
        rows = unlabeled_rows(arm, subsample)
        unlabeled = None if rows is None else take(bench.dataset.inputs, rows)
        train = Labeled(take(bench.dataset.inputs, subsample.train), read_only(bench.sampler.labels[subsample.train]))
        test_inputs = take(bench.dataset.inputs, subsample.test)
        # A method that draws from the global generators still gives the same numbers in any order of work.
        random.seed(context.seed)
        np.random.seed(context.seed)
        started = time.perf_counter()
        predictor = fit(unlabeled, train, task, context=context)
        fitted = time.perf_counter()
        if not isinstance(predictor, Predictor):
            raise ContractError(
                f"{method.use} returned a {type(predictor).__name__}; a method returns peekbench.Predictor(predict)"
            )
        predictions = predictor.predict(test_inputs)
        predicted = time.perf_counter()
        check_predictions(predictions, len(subsample.test), task)
        kept = _kept(predictions, task)
        if kept is not predictions:  # but a copy with other numbers
            check_predictions(kept, len(subsample.test), task)
        return ArmResult(
            arm.name,
            compute_scores(kept, bench.sampler.labels[subsample.test], task),
            fitted - started,
            predicted - fitted,
            {str(name): float(value) for name, value in predictor.metrics.items()},
            kept,
        )


def _kept(predictions: FloatArray, task: Task) -> FloatArray:
    """What is stored and scored: float32, or float64 for regression, whose targets may be of any size."""
    import numpy as np

    if task.kind == "regression":
        return np.asarray(predictions, dtype=np.float64)
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is refused as such
        return np.asarray(predictions, dtype=np.float32)


def _failure(trial: Trial, error: BaseException) -> TrialFailure:
    described = traceback.TracebackException.from_exception(error)  # its str does not fail where the error's own does
    text = "".join(described.format())
    return TrialFailure(trial, _storable(f"{type(error).__name__}: {described}"), _storable(text))


def _storable(text: str) -> str:
    """The text with lone surrogates, which a message may quote from data, written out: no file takes them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")

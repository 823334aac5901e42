"""Runs work items: draws rows, fits and scores each arm, and checks that methods return what they must."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import or_
from typing import Any

import numpy as np

from peekbench.data.loading import load_dataset, make_task, remember
from peekbench.data.sampling import Sampler, seed_of_fit
from peekbench.errors import ContractError
from peekbench.execution.determinism import ONE_FIT, ProcessState, TorchWatch, one_thread_pools, seed_generators
from peekbench.execution.fit_plans import Part, rows_of
from peekbench.execution.fits import Fit, LoadedTask, Prediction, Repeater, RunFit, plan_repeats, run_arms
from peekbench.execution.hosts import check_code, host_name, load_expected, pack, prepare_host, unpack
from peekbench.execution.prediction_checks import (
    as_stored,
    check_independence,
    check_metrics,
    read_only,
    score_texts,
    take,
    take_rows,
)
from peekbench.formatting import shorten
from peekbench.plugins.boundary import NONE_IN_BASE, Foreign, describe_failure
from peekbench.plugins.names import find_reference, names_code, resolve, split_name
from peekbench.plugins.predictors import as_predictor
from peekbench.plugins.protocols import Options
from peekbench.plugins.work_protocols import GPU_FRACTION_VARIABLE, THREADS_VARIABLE, Outcome
from peekbench.records.data import Dataset, Folders, IntArray, Labeled
from peekbench.records.runs import Host, Resources
from peekbench.records.trials import (
    MAX_ERROR,
    MAX_TRACEBACK,
    ArmResult,
    Context,
    Predictor,
    Repeat,
    Subsample,
    Trial,
    TrialFailure,
    TrialResult,
    WorkItem,
)
from peekbench.spec.components import MethodSpec
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.differences import NOTHING_KNOWN, Identity

MAX_SHOWN = 200  # characters of a wrong value in messages


def gpu_fraction() -> float:
    """Return the share of a GPU's memory that this fit may use: `$PEEKBENCH_GPU_FRACTION`, or all."""
    return float(os.environ.get(GPU_FRACTION_VARIABLE) or 1.0)


def _unpickle(work: type[SpecWork], packed: bytes, data: Mapping[str, Dataset]) -> SpecWork:
    spec, expected = unpack(packed)
    for task, dataset in data.items():
        remember(spec.source(spec.task(task)), dataset)
    return work(spec, expected, data)


class SpecWork:
    """The work of a spec: a function of work items that can be pickled at any time; see `peekbench.plugins.Work`.

    Parameters
    ----------
    spec
        The spec.
    expected
        Identity of the main process, which this process must share.
    data
        Rows by task that a process that unpickles this work uses instead of loading them.
    """

    def __init__(
        self, spec: ExperimentSpec, expected: Identity = NOTHING_KNOWN, data: Mapping[str, Dataset] | None = None
    ) -> None:
        self._spec = spec
        self._expected = expected
        self._data = dict(data or {})
        self._tasks: dict[str, LoadedTask] = {}
        self._fits: dict[tuple[str, str], Callable[..., Predictor]] = {}
        self._checked: set[str] = set()  # plugins whose code is that of the main process
        self._independent: set[tuple[str, str, bool]] = set()  # method, task, and whether it saw unlabeled inputs
        self._has_batches = any(arm.kind == "batches" for arm in spec.arms)
        self._needs: dict[tuple[str, str], Resources] = {}
        self._folders = spec.folders()
        self._host = host_name()
        self._repeated = plan_repeats(spec)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments only; another process loads plugins itself, and data unless they were given."""
        return _unpickle, (type(self), pack(self._spec, self._expected), self._data)

    def with_data(self) -> SpecWork:
        """Return this work with the rows of its tasks, for machines that may be unable to load them."""
        data = {task.name: load_dataset(self._spec.source(task)) for task in self._spec.tasks}
        return type(self)(self._spec, self._expected, data)

    @property
    def timeout(self) -> float | None:
        """Seconds that a trial may take; None if there is no limit."""
        return self._spec.timeout

    def needs(self, item: WorkItem) -> Resources:
        """Return the resources that the trials of an item need while they run.

        Raises
        ------
        ContractError
            If `Preparation.resources` of a method returned anything else than `Resources`.
        """
        keys = [(trial.method, trial.draw.task) for trial in item.trials]
        for method, task in keys:
            if (method, task) not in self._needs:
                method_spec = self._spec.method(method)
                options = self._spec.options(method_spec, task)
                self._needs[method, task] = _find_needs(method_spec, options, self._folders)
        return reduce(or_, (self._needs[key] for key in keys))

    def prepare(self) -> Host:
        """Prepare this host, and check that it has the same code, versions, data and files as the main process.

        Returns
        -------
        Host
            What this host is.

        Raises
        ------
        PeekbenchError
            If it differs from the main process, or cannot be prepared.
        """
        return prepare_host(self._spec, self._expected)

    def __call__(self, item: WorkItem) -> Iterator[Outcome]:
        """Load the data and the methods of an item, and return an iterator that runs its trials.

        The first trial's method fits the base arm, and the first successful trial includes it. If a method raises an
        exception, the outcome is a `TrialFailure`.

        Yields
        ------
        Outcome
            The outcome of each trial, in the order of the item.

        Raises
        ------
        DataError
            If the task's data are unavailable, or have changed since the start of the run.
        HostError
            If the code of a method has changed since the start of the run.
        PluginError
            If a method cannot be imported.
        """
        loaded = self._load(item.trials[0].draw.task)
        for trial in item.trials:
            self._fit(self._spec.method(trial.method), trial.draw.task)
        return self._run_trials(item, loaded)

    def _run_trials(self, item: WorkItem, loaded: LoadedTask) -> Iterator[Outcome]:
        with one_thread_pools():
            yield from self._do_trials(item, loaded)

    def _do_trials(self, item: WorkItem, loaded: LoadedTask) -> Iterator[Outcome]:
        draw = item.trials[0].draw
        subsample = loaded.sampler.draw(draw)
        crossover = bool(self._spec.design.crossover)
        test_rows = subsample.test
        if crossover and not subsample.folds:
            test_rows = np.concatenate(subsample.sets)
        test_groups = None
        if loaded.dataset.groups:
            test_groups = loaded.sampler.groups[test_rows]
        seed = seed_of_fit(self._spec.seed, draw.task, draw.num_train, draw.num_test, draw.subsample)
        num_threads = int(os.environ.get(THREADS_VARIABLE) or os.cpu_count() or 1)
        context = Context(seed, num_threads, self._folders, gpu_fraction())
        bases: dict[str, ArmResult] = {}
        needs_base = not item.has_base
        for trial in item.trials:
            method = self._spec.method(trial.method)
            arms = [arm for arm in self._spec.arms if arm.kind != "base" or needs_base]
            results: dict[str, ArmResult] = {}
            outcome: Outcome
            try:
                run: RunFit = partial(self._run_one_fit, method, context, loaded, subsample)
                repeats: list[Repeat] = []
                if trial in self._repeated:
                    run = repeater = Repeater(run, self._spec, loaded, subsample)
                    repeats = repeater.repeats
                missing = [arm for arm in arms if arm.name not in bases]
                for result in run_arms(missing, subsample, run, loaded.score, crossover=crossover):
                    if result.arm == "base":
                        bases["base"] = result
                    else:
                        results[result.arm] = result
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # also SystemExit, and the panic of a Rust library
                note = f"in the trial of {trial}; `use: {method.use}`"
                outcome = _make_failure(trial, error, note, self._host)
            else:
                outcome = TrialResult(
                    trial,
                    loaded.sampler.labels[test_rows],
                    test_rows,
                    tuple((bases | results)[arm.name] for arm in arms),
                    self._host,
                    test_groups=test_groups,
                    repeats=tuple(repeats),
                )
                needs_base = False
            yield outcome

    def _load(self, name: str) -> LoadedTask:
        if name not in self._tasks:
            task_spec = self._spec.task(name)
            dataset = load_expected(self._spec, task_spec, self._expected)
            sampler = Sampler(dataset, self._spec.design_of(task_spec), self._spec.seed, name)
            self._tasks[name] = LoadedTask(make_task(self._spec, task_spec), dataset, sampler)
        return self._tasks[name]

    def _fit(self, method: MethodSpec, task: str) -> Callable[..., Predictor]:
        """Return the method with its options for a task. If it is a reference, import it."""
        key = (method.name, task)
        if key not in self._fits:
            function = method.entry.method
            if reference := find_reference(function):
                resolved = resolve(reference.target)
                if function is reference:
                    function = resolved
            if (plugin := split_name(method.use)[0]) not in self._checked:
                check_code(method, self._expected)
                self._checked.add(plugin)
            self._fits[key] = partial(function, options=self._spec.options(method, task))
        return self._fits[key]

    def _run_one_fit(self, *arguments: Any) -> Fit:
        with ONE_FIT:
            watch = TorchWatch()
            fit = self._run_fit(*arguments)
            if watch.was_used_unseeded():
                fit = self._run_fit(*arguments)
            return fit

    def _run_fit(
        self,
        method: MethodSpec,
        context: Context,
        loaded: LoadedTask,
        subsample: Subsample,
        unlabeled_rows: IntArray | None,
        parts: Sequence[Part],
    ) -> Fit:
        task, inputs, labels = loaded.task, loaded.dataset.inputs, loaded.sampler.labels
        fit, foreign = self._fit(method, task.name), Foreign(f"method {method.use}")
        unlabeled, num_unlabeled = None, 0
        if unlabeled_rows is not None:
            unlabeled, num_unlabeled = take_rows(loaded.dataset, unlabeled_rows), len(unlabeled_rows)
        train = Labeled(take(inputs, subsample.train), read_only(labels[subsample.train]))
        # A method that uses the global generators then gives the same results in any order of work.
        seed_generators(context.seed)
        state = ProcessState()
        predictions: dict[Part, Prediction] = {}
        try:
            start = time.perf_counter()
            positional, named = foreign.bind(fit, {"unlabeled": unlabeled, "train": train, "task": task})
            predictor = fit(*positional, **named, context=context)
            fit_seconds = time.perf_counter() - start
            if not isinstance(predictor, Predictor):
                raise ContractError(
                    f"{method.use} returned {type(predictor).__name__}; a method of a plugin returns "
                    "peekbench.Predictor(predict), a function in a file also a function from texts to predictions"
                )
            predictor = as_predictor(predictor, task, train.labels)
            for part in parts:
                test_inputs = take(inputs, rows_of(part, subsample.sets))
                start = time.perf_counter()
                returned = predictor.predict(test_inputs)
                texts = score_texts(predictor, test_inputs, task)
                seconds = time.perf_counter() - start
                predicted, answers = as_stored(returned, labels[rows_of(part, subsample.sets)], task)
                predictions[part] = Prediction(predicted, texts, seconds, answers)
            key = (method.name, task.name, unlabeled is None)
            # Plugins have `peekbench check`, and batches measure the dependence.
            if names_code(method.use) and key not in self._independent and not self._has_batches:
                part = max(parts, key=lambda part: part.stop - part.start)
                together, test_inputs = predictions[part], take(inputs, rows_of(part, subsample.sets))
                check_independence(predictor, test_inputs, together.answers or together.predicted, task)
                self._independent.add(key)
        except BaseException as error:
            error.add_note(f"in a fit with {num_unlabeled} unlabeled inputs")
            if unlabeled is None and "NoneType" in str(error):
                error.add_note(NONE_IN_BASE)
            raise
        finally:
            state.restore()
        return Fit(fit_seconds, check_metrics(predictor.metrics), predictions)


def _find_needs(method: MethodSpec, options: Options, folders: Folders) -> Resources:
    """Return the resources of a fit with these options, after checking the plugin's answer."""
    if method.entry.preparation.resources is None:
        return Resources()
    caller = Foreign(f"method {method.name}: `resources`", method.use, options)
    needs: Resources = caller.call(
        method.entry.preparation.resources, returns=Resources, options=options, folders=folders
    )
    return needs


def _make_failure(trial: Trial, error: BaseException, note: str, host: str) -> TrialFailure:
    message, text = describe_failure(error, note)
    return TrialFailure(
        trial, _escape_surrogates(shorten(message, MAX_ERROR)), _escape_surrogates(shorten(text, MAX_TRACEBACK)), host
    )


def _escape_surrogates(text: str) -> str:
    """Escape lone surrogates, which a message may quote from data and which cannot be written to a file."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")

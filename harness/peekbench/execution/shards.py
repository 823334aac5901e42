"""Runs one shard of a spec, a part of its work items, in a store of its own, and merges the stores of all shards."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from peekbench.data.loading import forget, with_sizes
from peekbench.data.preflight import describe_tasks
from peekbench.errors import SpecError, StoreError
from peekbench.execution.determinism import one_thread_pools, preserve_global_generators
from peekbench.execution.driver import Driver
from peekbench.execution.hosts import host_name
from peekbench.execution.observers import Observers
from peekbench.execution.planning import group_trials
from peekbench.execution.preparation import prefetch_methods
from peekbench.execution.provenance import describe_code_of, describe_session, identify
from peekbench.execution.resuming import StoredRun
from peekbench.execution.runner import RunSummary, store_descriptions, store_path
from peekbench.execution.work import SpecWork
from peekbench.formatting import pluralize
from peekbench.records.trials import Trial, WorkItem
from peekbench.spec.compatibility import Experiment, changed_experiment
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.differences import Identity, files_of, find_differences
from peekbench.store.files import Shard, find_shards
from peekbench.store.merging import MergeCounts, merge_shard, open_shard
from peekbench.store.reader import Store
from peekbench.store.writer import StoreWriter

MAX_LISTED = 20  # differences in a message


@dataclass(frozen=True, slots=True)
class MergeSummary:
    """Outcome of a merge."""

    store: Path
    shards: int
    """Stores of shards that were read."""
    empty: int
    """Stores of jobs that have just started, were killed at their start, or finished no trial with another spec."""
    counts: MergeCounts
    planned: int
    """Trials of the spec."""
    missing: Mapping[Shard, int] = field(default_factory=dict)
    """Trials of the spec that the store does not have, by shard."""
    failed: int = 0
    """Those of them that have failed."""
    changes: Sequence[str] = ()
    """Differences of code and versions that were allowed."""


def shard_items(spec: ExperimentSpec, count: int) -> Iterator[tuple[int, WorkItem]]:
    """Yield the work items of a spec in their order, each with the number of its shard.

    Of each `count` successive items, every shard has one. Which one varies, because the plan is periodic: with as many
    shards as methods, for example, each shard would have one method.

    Parameters
    ----------
    spec
        The spec.
    count
        Number of shards.
    """
    shift = 0
    for position, item in enumerate(group_trials(spec.trials(), spec.base_keys(), ())):
        if position % count == 0:
            shift = random.Random(position).randrange(count)  # noqa: S311 - not for cryptography
        yield (position + shift) % count + 1, item


def run_shard(
    spec: ExperimentSpec,
    shard: Shard,
    folder: Path,
    *,
    display: object = None,
    keep_going: bool = False,
    allow_changed_code: bool = False,
) -> RunSummary:
    """Run the trials of a shard that no store in a folder has yet, and save them in a new store.

    The new store has all base arms of its trials, so it can be read without the others.

    Parameters
    ----------
    spec
        The spec, without planned looks.
    shard
        The shard.
    folder
        Folder for the stores of all shards.
    display
        Shows the progress.
    keep_going
        Try all trials of a method, even if its first ten fail in the same way.
    allow_changed_code
        Go on although stores in the folder are of other code or versions.

    Returns
    -------
    RunSummary
        The new store, or the folder if nothing was missing, and the numbers of trials.

    Raises
    ------
    SpecError
        If the spec plans looks.
    DataError, PluginError
        As for `peekbench.run`.
    StoreError
        If the store cannot be written, or the folder has damaged stores, or those of another experiment, code or
        version.
    KeyboardInterrupt
        On Ctrl-C. Finished trials are in the store.
    """
    if spec.design.stop is not None:
        raise SpecError(
            "design.stop: a shard cannot take planned looks, which are about all trials; remove `stop` to compute all "
            f"{spec.design.largest} subsamples in shards, or run the spec on one machine or with the executor ray"
        )
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is not a folder; give a folder for the stores of all shards")
    observers = Observers(display)
    forget()
    spec = with_sizes(spec)
    tasks = describe_tasks(spec)
    here = replace(identify(spec, tasks, {}), place=f"this job on {host_name()}")
    comparison = JobComparison(spec, tasks)
    done = _read_shards(folder, shard, Experiment.of(spec, tasks), comparison)
    comparison.add(here)
    comparison.refuse_changes(is_allowed=allow_changed_code)
    trials = [
        trial for number, item in shard_items(spec, shard.count) if number == shard.number for trial in item.trials
    ]
    pending = [trial for trial in trials if trial not in done]
    num_done = len(trials) - len(pending)
    if not pending:
        return RunSummary(spec, folder, len(trials), num_done, 0, 0)
    facts = prefetch_methods(spec, observers.note)
    here = replace(here, files=files_of(facts))
    comparison.add(here)
    comparison.refuse_changes(is_allowed=allow_changed_code)
    session = {**describe_session(spec.folder), "code": here.code, "versions": here.versions, "methods": facts}
    with (
        StoreWriter.for_shard(folder, shard, spec, tasks, session, host_name()) as store,
        preserve_global_generators(),
        one_thread_pools(),
    ):
        observers.start(spec, store, len(trials), num_done)
        driver = Driver(spec, store, observers, keep_going=keep_going)
        driver.do(pending, SpecWork(spec, here))
    return RunSummary(spec, store.path, len(trials), num_done, driver.finished, driver.failed, stopped=driver.stopped)


def _read_shards(folder: Path, shard: Shard, experiment: Experiment, comparison: JobComparison) -> set[Trial]:
    """Compare the jobs of all stores in a folder, and return the finished trials of a shard and perhaps others.

    Stores of other shards of the same plan have no trial of this one, so only the description of their job is read.
    """
    done: set[Trial] = set()
    if not folder.exists():
        return done
    for path in find_shards(folder):
        with open_shard(path, is_whole=False) as store:
            if store is None or not comparison.add_shard(store):
                continue
            other = store.shard()
            is_same_plan = other.count == shard.count and _plan(store.experiment()) == _plan(experiment)
        if not is_same_plan or other.number == shard.number:
            with open_shard(path, is_whole=True) as store:
                if store is not None:
                    done |= store.done()
    return done


def _plan(experiment: Experiment) -> tuple[Any, ...]:
    """Return what determines the work items and their order."""
    return (*(experiment.spec[part] for part in ("tasks", "methods", "design", "arms")), experiment.base_keys)


def merge(
    spec: ExperimentSpec,
    folders: Sequence[Path],
    *,
    store: Path | None = None,
    allow_changed_code: bool = False,
) -> MergeSummary:
    """Put the trials of shards into the store of a spec, and compare those that it has already.

    Parameters
    ----------
    spec
        The spec, which must equal or extend that of the shards.
    folders
        Folders with stores of shards, or such stores.
    store
        The SQLite file of the run; `runs/<name>.sqlite` by default.
    allow_changed_code
        Merge shards of other code or versions.

    Returns
    -------
    MergeSummary
        The store, and which trials are missing.

    Raises
    ------
    StoreError
        If the store of a shard is damaged, of another experiment, or of other code, or if a trial differs from the
        stored one. Also if the store cannot be written. What was merged before remains stored.
    """
    forget()
    paths = list(dict.fromkeys(path.resolve() for folder in folders for path in find_shards(folder)))
    if not paths:
        raise StoreError(
            f"no shards in {', '.join(map(str, folders))}; give the folder of `peekbench worker SPEC --out FOLDER`"
        )
    spec = with_sizes(spec)
    tasks = describe_tasks(spec)
    path = store or store_path(spec)
    stored = StoredRun.read(path)
    spec = stored.keep_subsamples(spec, tasks)
    comparison = JobComparison(spec, tasks)
    comparison.add(Identity(describe_code_of(spec), place="this machine"))
    for session in stored.sessions_with_trials():
        identity = Identity.of_session(session, f"the store {path}")
        if "shard" not in session:  # the machine of a run may have other versions than the cluster
            identity = replace(identity, versions={})
        comparison.add(identity)
    num_shards: Counter[int] = Counter()
    comparable = []
    for shard_path in paths:
        with open_shard(shard_path, is_whole=False) as shard:
            if shard is not None and comparison.add_shard(shard):
                comparable.append(shard_path)
                num_shards[shard.shard().count] += 1
    comparison.refuse_changes(is_allowed=allow_changed_code)
    counts = MergeCounts()
    with StoreWriter.for_run(path, spec, tasks, verified=stored.verified) as opened:
        for number, shard_path in enumerate(comparable, start=1):
            try:
                with open_shard(shard_path, is_whole=True) as shard:
                    if shard is not None:
                        counts += merge_shard(opened, shard)
            except StoreError as error:
                before = f"{pluralize(number - 1, 'shard')} of {len(comparable)} before it remain merged"
                raise StoreError("\n  ".join([f"{error}\n{before}", *comparison.changes])) from error
        store_descriptions(spec, opened)
        planned, missing = _find_missing(spec, opened.done(), num_shards.most_common(1)[0][0] if num_shards else 1)
        failed = len(opened.failures())
    num_merged = num_shards.total()
    return MergeSummary(path, num_merged, len(paths) - num_merged, counts, planned, missing, failed, comparison.changes)


def _find_missing(spec: ExperimentSpec, done: set[Trial], num_shards: int) -> tuple[int, dict[Shard, int]]:
    """Return the number of planned trials, and how many of them are missing in each shard."""
    planned = 0
    missing: Counter[int] = Counter()
    for number, item in shard_items(spec, num_shards):
        planned += len(item.trials)
        missing[number] += sum(trial not in done for trial in item.trials)
    return planned, {Shard(number, num_shards): missing[number] for number in sorted(missing) if missing[number]}


class JobComparison:
    """Compares jobs with a spec, which may extend those of the jobs, and with each other.

    Parameters
    ----------
    spec
        The spec.
    tasks
        Facts about its data by task.
    """

    def __init__(self, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> None:
        self._spec = spec
        self._tasks = tasks
        self._jobs: list[tuple[Identity, Path | None]] = []
        self.changes: list[str] = []
        """Differences of code and versions, each once."""

    def add_shard(self, store: Store) -> bool:
        """Compare the job of a shard.

        Returns
        -------
        bool
            False if it was about another experiment, but finished no trial, so that nothing can be mixed.

        Raises
        ------
        StoreError
            If it was about another experiment, or used other model files.
        """
        if changed := changed_experiment(store.experiment(), self._spec, self._tasks):
            if not _has_finished_trials(store.path):
                return False
            raise StoreError(
                f"store {store.path} is of another experiment than the spec. Changed:\n  "
                + "\n  ".join(changed)
                + "\nRestore the spec of the jobs. To add tasks or methods, or to change the number of subsamples, "
                "merge these shards first, then change the spec and use another folder"
            )
        for session in store.sessions():
            self._jobs.append((Identity.of_session(session, store.path.name), store.path))
        return True

    def add(self, identity: Identity) -> None:
        """Compare the code, versions and model files of a job that is not in a store of a shard."""
        self._jobs.append((identity, None))

    def refuse_changes(self, *, is_allowed: bool) -> None:
        """Refuse differences between jobs, of which those that finished no trial do not count.

        Raises
        ------
        StoreError
            If a method has used other files. Also if code or versions differ, unless that is allowed.
        """
        if find_differences(identity for identity, _ in self._jobs):
            self._jobs = [(job, path) for job, path in self._jobs if path is None or _has_finished_trials(path)]
        found = find_differences(identity for identity, _ in self._jobs)
        lines = {part: list[str]() for part in ("code", "versions", "files")}
        for part, change, place, reference in found:
            lines[part].append(f"{change} (in {place}, compared with {reference})")
        if lines["files"]:
            raise StoreError(
                f"files of methods differ: {lines['files'][0]}; give all jobs the same files, for example with "
                "`peekbench validate --lock`, and remove the shards that were made with others"
            )
        self.changes = list(dict.fromkeys(lines["code"] + lines["versions"]))
        if self.changes and not is_allowed:
            raise StoreError(
                "\n  ".join(["jobs of this experiment differ:", *self.changes[:MAX_LISTED]])
                + "\nTheir numbers may not be those of one experiment. Install the same code and versions, or remove "
                "the stores of the wrong jobs and run their shards again, or use another folder or --store; "
                "--allow-changed-code goes on nevertheless"
            )


def _has_finished_trials(path: Path) -> bool:
    with open_shard(path, is_whole=True) as store:
        return store is not None and bool(store.finished_subsamples())

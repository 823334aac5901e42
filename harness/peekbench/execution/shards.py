"""Runs one shard of a spec: a part of its work items, whose outcomes go to a fragment instead of a store."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peekbench.data.loading import forget
from peekbench.data.preflight import describe_tasks
from peekbench.errors import SpecError, StoreError
from peekbench.execution.determinism import one_thread_pools, preserve_global_generators
from peekbench.execution.driver import Driver
from peekbench.execution.fragment_checks import JobComparison, describe_job
from peekbench.execution.hosts import expect, host_name
from peekbench.execution.planning import group_trials, make_trials
from peekbench.execution.preparation import prepare
from peekbench.execution.progress import NullProgress, Progress
from peekbench.execution.work import SpecWork
from peekbench.records.trials import Trial, WorkItem
from peekbench.spec.compatibility import Experiment
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.fragments import Fragment, FragmentWriter, Header, Shard, find_fragments

PLAN = ("tasks", "methods", "design", "arms")
"""Parts of a spec that determine the work items and their order."""


@dataclass(frozen=True, slots=True)
class ShardSummary:
    """Outcome of the work on a shard."""

    fragment: Path | None
    """The new fragment; None if nothing was missing."""
    planned: int
    """Trials of the shard."""
    resumed: int
    """Trials that fragments in the folder already had."""
    finished: int = 0
    """Trials finished now."""
    failed: int = 0
    """Trials that failed now. The next job of the shard tries them again."""
    stopped: Mapping[str, int] = field(default_factory=dict)
    """Number of trials that were not tried, by method, because the first ones of the method failed in the same way."""


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
    base_keys = {method.name: method.base_key() for method in spec.methods}
    shift = 0
    for position, item in enumerate(group_trials(make_trials(spec), base_keys, ())):
        if position % count == 0:
            shift = random.Random(position).randrange(count)  # noqa: S311 - not for cryptography
        yield (position + shift) % count + 1, item


def run_shard(
    spec: ExperimentSpec,
    shard: Shard,
    folder: Path,
    *,
    progress: Progress | None = None,
    keep_going: bool = False,
    allow_changed_code: bool = False,
) -> ShardSummary:
    """Run the trials of a shard that no fragment in a folder has yet.

    Parameters
    ----------
    spec
        The spec, without planned looks.
    shard
        The shard.
    folder
        Folder of the fragments of all shards.
    progress
        Receives the progress.
    keep_going
        Try all trials of a method, even if its first ten fail in the same way.
    allow_changed_code
        Add to fragments of other code or versions.

    Returns
    -------
    ShardSummary
        The new fragment and the numbers of trials.

    Raises
    ------
    SpecError
        If the spec plans looks.
    DataError, PluginError
        As for `peekbench.run`.
    StoreError
        If the fragment cannot be written, or the folder has damaged fragments, or those of another experiment, code or
        version.
    KeyboardInterrupt
        On Ctrl-C. Finished trials are in the fragment.
    """
    if spec.design.stop is not None:
        raise SpecError(
            "design.stop: a shard cannot take planned looks, which are about all trials; remove `stop` to compute all "
            f"{spec.design.largest} subsamples in shards, or run the spec on one machine or with the executor ray"
        )
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is not a folder; give a folder for the fragments of all shards")
    progress = progress or NullProgress()
    forget()
    tasks = describe_tasks(spec)
    experiment = Experiment.of(spec, tasks)
    session = describe_job(spec)
    comparison = JobComparison(spec, tasks)
    done = _read_fragments(folder, shard, experiment, comparison)
    if comparison.changes:
        problem = f"the fragments in {folder} differ from each other"
        remedy = "Remove the fragments of the wrong jobs and run their shards again"
    else:
        problem = f"this job differs from others whose fragments are in {folder}"
        remedy = "Install the same code and versions here"
    here = f"this job on {host_name()}"
    comparison.add_session(here, session)
    if comparison.changes and not allow_changed_code:
        raise StoreError(
            f"{problem}:\n  {comparison.describe_changes()}\n{remedy}; or give another folder; or go on with "
            "--allow-changed-code"
        )
    items = [item for number, item in shard_items(spec, shard.count) if number == shard.number]
    trials = [trial for item in items for trial in item.trials]
    pending = [trial for trial in trials if trial not in done]
    num_done = len(trials) - len(pending)
    progress.start(spec, pending, num_done)
    if not pending:
        return ShardSummary(None, len(trials), num_done)
    session["methods"] = facts = prepare(spec, progress)
    comparison.add_session(here, {"methods": facts})
    header = Header(shard, experiment, host_name(), session)
    with (
        FragmentWriter.create(folder, header) as writer,
        preserve_global_generators(),
        one_thread_pools(),
    ):
        driver = Driver(spec, writer, progress, keep_going=keep_going)
        driver.do(pending, SpecWork(spec, expect(spec, tasks, facts)))
    return ShardSummary(writer.path, len(trials), num_done, driver.finished, driver.failed, driver.stopped)


def _read_fragments(folder: Path, shard: Shard, experiment: Experiment, comparison: JobComparison) -> set[Trial]:
    """Compare the jobs of all fragments in a folder, and return the finished trials of a shard and perhaps others.

    Fragments of other shards of the same plan have no trial of this one, so only their headers are read.
    """
    done: set[Trial] = set()
    for fragment in map(Fragment, find_fragments(folder)) if folder.exists() else ():
        header = fragment.read_header()
        if header is None:
            continue
        comparison.add_fragment(fragment.path, header)
        is_same_plan = header.shard.count == shard.count and _plan(header.experiment) == _plan(experiment)
        if not is_same_plan or header.shard.number == shard.number:
            done.update(fragment.finished())
    return done


def _plan(experiment: Experiment) -> tuple[Any, ...]:
    return (*(experiment.spec[part] for part in PLAN), experiment.base_keys)

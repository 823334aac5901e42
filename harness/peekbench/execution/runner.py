"""Pending trials to the executor and their outcomes to the store; what is stored is never computed again."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from peekbench.data.loading import forget
from peekbench.data.preflight import describe_tasks
from peekbench.data.text_statistics import describe_texts, is_described
from peekbench.execution.determinism import one_thread_pools, own_generators
from peekbench.execution.planning import group, make_trials
from peekbench.execution.provenance import code_hashes, describe_session
from peekbench.execution.worker import Worker
from peekbench.records.trials import Trial, TrialFailure
from peekbench.store.writer import Store

if TYPE_CHECKING:
    from peekbench.plugins.protocols import Outcome
    from peekbench.spec.experiment import ExperimentSpec

RUNS = Path("runs")


class Progress(Protocol):
    """Is told how a run goes."""

    def start(self, spec: ExperimentSpec, planned: int, done: int) -> None: ...

    def prepare(self, method: str) -> None: ...

    def advance(self, outcome: Outcome) -> None: ...


class NullProgress:
    """Progress that nobody looks at."""

    def start(self, spec: ExperimentSpec, planned: int, done: int) -> None: ...

    def prepare(self, method: str) -> None: ...

    def advance(self, outcome: Outcome) -> None: ...


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run ended."""

    store: Path
    planned: int
    """Trials of the spec."""
    resumed: int
    """Trials that were in the store before."""
    finished: int
    """Trials done now."""
    failed: int
    """Trials that failed now; the store has their tracebacks, and another run tries them again."""
    changed_code: tuple[str, ...] = ()
    """Plugins of methods whose source files have changed since trials of the store were made."""


def store_path(spec: ExperimentSpec) -> Path:
    """Where a run of the spec is kept unless another place is named."""
    return RUNS / f"{spec.name}.sqlite"


def run(spec: ExperimentSpec, *, store: str | Path | None = None, progress: Progress | None = None) -> RunSummary:
    """Do what the spec asks for and the store does not have yet.

    Parameters
    ----------
    store
        The SQLite file; by default `runs/<name>.sqlite`.

    Raises
    ------
    DataError, PluginError, StoreError
        Before any work, where data or a model are missing, data too small, a method does not take a task, or the store
        is another experiment's; a StoreError also where it cannot be written later on.
    KeyboardInterrupt
        On Ctrl-C; what is done is stored.
    """
    progress = progress or NullProgress()
    forget()
    tasks = describe_tasks(spec)
    path = Path(store) if store is not None else store_path(spec)
    with Store.for_run(path, spec, tasks) as opened, own_generators(), one_thread_pools():
        trials = list(make_trials(spec))
        done = opened.done()
        code = code_hashes(method.use for method in spec.methods)
        changed = tuple(
            name for name, known in code.items() if any(known != made.get(name, known) for made in _codes(opened))
        )
        pending = [trial for trial in trials if trial not in done]
        progress.start(spec, len(trials), len(trials) - len(pending))
        finished = failed = 0
        if pending:
            opened.add_session({**describe_session(spec.folder), "code": code, "methods": _prepare(spec, progress)})
            _describe_texts(spec, opened)
            worker = Worker(spec, {name: task["fingerprint"] for name, task in tasks.items()})
            with closing(_outcomes(spec, pending, opened, worker)) as outcomes:
                for batch in outcomes:
                    opened.save(*batch)
                    for outcome in batch:
                        progress.advance(outcome)
                        failed += isinstance(outcome, TrialFailure)
                        finished += not isinstance(outcome, TrialFailure)
    return RunSummary(path, len(trials), len(trials) - len(pending), finished, failed, changed)


def _codes(store: Store) -> list[Mapping[str, str]]:
    """Hashes of plugins' source files, of each session that made trials."""
    sized = zip(store.sessions(), store.session_sizes(), strict=True)
    return [session.get("code", {}) for session, size in sized if size]


def _prepare(spec: ExperimentSpec, progress: Progress) -> dict[str, dict[str, Any]]:
    """Get what methods need, once and before any worker does; what there is to know of it, by method."""
    known = {}
    for method in spec.methods:
        if method.entry.prefetch is not None:
            progress.prepare(method.name)
            known[method.name] = dict(method.entry.prefetch(options=spec.options(method), folders=spec.folders()))
    return known


def _describe_texts(spec: ExperimentSpec, store: Store) -> None:
    """Say of each task's texts what its report is to show, unless that is known."""
    known = store.texts()
    for task in spec.tasks:
        if not is_described(spec, known.get(task.name)):
            store.save_texts(task.name, describe_texts(spec, task))


def _outcomes(
    spec: ExperimentSpec, pending: list[Trial], store: Store, worker: Worker
) -> Generator[Sequence[Outcome], None, None]:
    base_keys = {method.name: method.base_key() for method in spec.methods}
    items = group(pending, base_keys, store.bases())
    executor = spec.executor
    return executor.entry.execute(items, worker, options=executor.options)

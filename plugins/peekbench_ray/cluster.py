"""Places workers on the machines of a cluster, and passes batches to them and reports back.

Ray neither restarts an actor nor repeats a call: which items are sent again is decided by the dispatcher in the main
process, which counts the deaths at each trial. A death counts only if its machine lives.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from peekbench import PeekbenchError
from peekbench.formatting import shorten
from peekbench.records import Capacity, Host, Resources, WorkItem
from peekbench_ray.actor import CONTROL, Launch, Worker
from peekbench_ray.messages import (
    Batch,
    BatchReport,
    Demand,
    Settings,
    WorkerEnded,
    WorkerStarted,
)
from peekbench_ray.placement import Node, describe, fits, place, round_up, worker_environment
from peekbench_workers.crashes import Crash
from peekbench_workers.reports import Report, drop_trials
from peekbench_workers.supervisor import WorkerSettings

REFRESH_INTERVAL = 0.5  # seconds between looks at the machines of the cluster
NODE_DEATH_DELAY = 20.0  # seconds after the death of workers in which that of their machine is known: Ray needs 15
IDLE_TIMEOUT = 2.0  # seconds after which a worker without items gives way to workers that have some
STOP_TIMEOUT = 2.0  # seconds in which workers end the processes that methods have started
MAX_FAILED_STARTS = 3  # consecutive ones on a machine, after which the run ends
MAX_DETAIL = 400  # characters of an error of Ray that messages quote


@dataclass(slots=True)
class _Worker:
    """An actor, as this process sees it."""

    number: int
    actor: ActorHandle
    node: Node
    group: Resources
    has_answered: bool = False
    """Whether the actor lives."""
    is_started: bool = False
    """Whether it may get items."""
    items: Sequence[WorkItem] = ()
    """Items of its batch without outcomes."""
    idle_since: float = 0.0
    died_at: float | None = None
    """When it died, while it is unknown whether its machine lives."""
    death: str = ""


@dataclass(frozen=True, slots=True)
class _Answer:
    """Answer of an actor to a call, or its death."""

    worker: _Worker
    handler: Callable[[_Worker, Any], None]
    future: Future[Any]


class Cluster:
    """The machines and workers of a run.

    Parameters
    ----------
    settings
        How workers are started.
    events
        Messages of the main process, None at its end, and answers of actors.
    send
        Function that sends a message to the main process.
    path
        Folders in which Python finds modules, or None for those of each machine.
    environment
        Environment variables of the main process that Ray would set in another way.
    """

    def __init__(
        self,
        settings: Settings,
        events: SimpleQueue[Any],
        send: Callable[[object], None],
        path: Sequence[str] | None,
        environment: Mapping[str, str],
    ) -> None:
        self._settings = replace(settings, work=b"")
        self._work = ray.put(settings.work)  # once for all workers of a machine
        self._events = events
        self._send = send
        self._path = path
        self._environment = environment
        self._nodes: dict[str, Node] = {}
        self._workers: dict[int, _Worker] = {}
        self._num_created = 0
        self._demand: Mapping[Resources, int] = {}
        self._failed_starts: Counter[str] = Counter()
        self._unmet_since: dict[Resources, float] = {}
        self._capacity: Capacity | None = None
        self._actor_class: Any = ray.remote(max_restarts=0, max_task_retries=0, concurrency_groups={CONTROL: 1})(Worker)

    def run(self) -> None:
        """Handle events until the main process closes its connection.

        Raises
        ------
        PeekbenchError
            If a machine cannot do the work, or none has the resources.
        """
        next_refresh = 0.0
        while True:
            if (now := time.monotonic()) >= next_refresh:
                self._refresh(now)
                next_refresh = now + REFRESH_INTERVAL
            try:
                event = self._events.get(timeout=next_refresh - now if next_refresh > now else 0)
            except Empty:
                continue
            if event is None:
                return
            self._handle(event)

    def _handle(self, event: object) -> None:
        match event:
            case Batch(worker=number, items=items):
                if number not in self._workers:  # it has just ended
                    self._send(BatchReport(number, Report(rest=items)))
                    return
                worker = self._workers[number]
                worker.items = items
                self._call(worker, worker.actor.do, self._on_report, items)
            case Demand(num_items=num_items):
                self._demand = num_items
                self._start_workers()
            case _Answer():
                if event.worker.number in self._workers:
                    self._on_answer(event)

    def _call(self, worker: _Worker, method: Any, handler: Callable[[_Worker, Any], None], *arguments: object) -> None:
        """Call a method of an actor; its answer becomes an event."""
        future = method.remote(*arguments).future()
        future.add_done_callback(lambda done: self._events.put(_Answer(worker, handler, done)))

    def _on_answer(self, answer: _Answer) -> None:
        worker = answer.worker
        try:
            value = answer.future.result()
        except RayTaskError as error:  # an error of this plugin, or of an incompatible version of it
            raise PeekbenchError(f"{worker.node.name}: {_shorten(error)}") from error
        except RayError as error:
            if worker.died_at is None:
                worker.died_at, worker.death = time.monotonic(), _shorten(error)
                self._check_dead(worker.died_at)
        else:
            answer.handler(worker, value)

    def _on_start(self, worker: _Worker, value: None) -> None:
        """Prepare the machine of a worker that lives, or let it begin."""
        worker.has_answered = True
        if worker.node.is_prepared:
            self._begin(worker)
        else:
            self._call(worker, worker.actor.prepare, self._on_prepared)

    def _on_prepared(self, worker: _Worker, answer: Host | Exception) -> None:
        if isinstance(answer, PeekbenchError):
            raise answer
        if isinstance(answer, Exception):
            raise PeekbenchError(f"{worker.node.name} cannot be prepared: {answer}") from answer
        worker.node.is_prepared = True
        self._send(answer)
        self._begin(worker)
        self._start_workers()

    def _begin(self, worker: _Worker) -> None:
        self._failed_starts.pop(worker.node.identifier, None)
        worker.is_started = True
        worker.idle_since = time.monotonic()
        self._send(WorkerStarted(worker.number, worker.group))
        self._tell_capacity()

    def _on_report(self, worker: _Worker, report: Report) -> None:
        if report.is_end:
            worker.items = ()
            worker.idle_since = time.monotonic()
        else:
            worker.items = drop_trials(worker.items, report.outcomes)
            self._call(worker, worker.actor.do, self._on_report)
        self._send(BatchReport(worker.number, report))

    def _refresh(self, now: float) -> None:
        """Take notice of machines that join and leave, and of what has changed with time."""
        alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
        for identifier, facts in alive.items():
            if identifier not in self._nodes:
                self._nodes[identifier] = Node(identifier, _name(facts), _offer(facts["Resources"]))
        for identifier in self._nodes.keys() - alive.keys():
            for worker in [worker for worker in self._workers.values() if worker.node.identifier == identifier]:
                self._report_lost(worker)
            del self._nodes[identifier]
        self._check_dead(now)
        self._remove_idle(now)
        self._start_workers()
        self._check_unmet(now)

    def _check_dead(self, now: float) -> None:
        """Report workers that died, once it is known whether their machine lives."""
        for worker in [worker for worker in self._workers.values() if worker.died_at is not None]:
            assert worker.died_at is not None
            if worker.node.identifier not in {node["NodeID"] for node in ray.nodes() if node["Alive"]}:
                self._report_lost(worker)
            elif not worker.has_answered or now - worker.died_at >= NODE_DEATH_DELAY:
                if not worker.is_started:
                    self._count_failed_start(worker)
                self._report_death(worker)

    def _count_failed_start(self, worker: _Worker) -> None:
        node = worker.node
        self._failed_starts[node.identifier] += 1
        if self._failed_starts[node.identifier] >= MAX_FAILED_STARTS:
            raise PeekbenchError(f"{node.name}: workers cannot start on this machine: {worker.death}")

    def _report_lost(self, worker: _Worker) -> None:
        """Return the items of a worker whose machine was lost, which none of them has caused."""
        if worker.items:
            self._send(BatchReport(worker.number, Report(rest=worker.items)))
        self._remove(worker)

    def _report_death(self, worker: _Worker) -> None:
        """Return the items of a worker that died, one of which may be the cause."""
        if worker.items:
            crash = Crash(worker.death, tuple(worker.items), host=worker.node.name)
            self._send(BatchReport(worker.number, Report(crash=crash)))
        self._remove(worker)

    def _remove(self, worker: _Worker) -> None:
        del self._workers[worker.number]
        ray.kill(worker.actor)
        if worker.is_started:
            self._send(WorkerEnded(worker.number))
            self._tell_capacity()

    def _remove_idle(self, now: float) -> None:
        """Remove idle workers that are in the way of others."""
        waiting = [group for group, number in self._demand.items() if number]
        if waiting and not any(worker.group in waiting for worker in self._workers.values()):
            workers = [worker for worker in self._workers.values() if worker.is_started and not worker.items]
            idle = [worker for worker in workers if now - worker.idle_since >= IDLE_TIMEOUT]
            _stop(idle)
            for worker in idle:
                self._remove(worker)

    def _start_workers(self) -> None:
        """Start workers for the items that wait."""
        starting = Counter(worker.group for worker in self._workers.values() if not worker.is_started)
        demand = {group: number - starting[group] for group, number in self._demand.items()}
        used: dict[str, list[Resources]] = {}
        for worker in self._workers.values():
            used.setdefault(worker.node.identifier, []).append(round_up(worker.group))
        limit = self._settings.max_workers
        room = float("inf") if limit is None else limit - len(self._workers)
        for node, group in place(list(self._nodes.values()), used, demand, room):
            self._start_worker(node, group)

    def _start_worker(self, node: Node, group: Resources) -> None:
        needs = round_up(group)
        settings = self._settings
        worker_settings = WorkerSettings(
            b"",  # which the actor fetches
            threads=max(1, int(group.cpus)),
            time_limit=settings.time_limit,
            environment=worker_environment(node.name, group),
            host=node.name,
        )
        actor = self._actor_class.options(
            num_cpus=needs.cpus,
            num_gpus=needs.gpus,
            memory=needs.memory or None,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.identifier, soft=False),
        ).remote(Launch(worker_settings, self._environment, self._path), self._work)
        worker = _Worker(self._num_created, actor, node, group)
        self._num_created += 1
        self._workers[worker.number] = worker
        self._call(worker, actor.start, self._on_start)

    def _check_unmet(self, now: float) -> None:
        """End the run if it has waited too long for a machine with the resources that items need."""
        waiting = [group for group, number in self._demand.items() if number]
        unmet = [group for group in waiting if not any(self._offers(node, group) for node in self._nodes.values())]
        self._unmet_since = {group: self._unmet_since.get(group, now) for group in unmet}
        if any(worker.items for worker in self._workers.values()):
            return
        for group, since in self._unmet_since.items():
            if now - since >= self._settings.patience:
                offers = "; ".join(f"{node.name}: {describe(node.total)}" for node in self._nodes.values())
                raise PeekbenchError(
                    f"trials need {describe(group)}, and no machine of the cluster has that ({offers or 'none'}) after "
                    f"{self._settings.patience:g} s; add such a machine, or change the method's options"
                )

    @staticmethod
    def _offers(node: Node, group: Resources) -> bool:
        return fits(round_up(group), node.total)

    def _tell_capacity(self) -> None:
        started = [worker for worker in self._workers.values() if worker.is_started]
        capacity = Capacity(len({worker.node.identifier for worker in started}), len(started))
        if capacity != self._capacity:
            self._capacity = capacity
            self._send(capacity)

    def close(self) -> None:
        """End all workers and what they have started."""
        _stop(self._workers.values())
        for worker in self._workers.values():
            ray.kill(worker.actor)


def _stop(workers: Iterable[_Worker]) -> None:
    """End the worker processes of actors that live, and what methods have started, which `ray.kill` does not end."""
    stopped = [worker.actor.stop.remote() for worker in workers if worker.has_answered and worker.died_at is None]
    if stopped:
        ray.wait(stopped, num_returns=len(stopped), timeout=STOP_TIMEOUT)


def _name(facts: Mapping[str, Any]) -> str:
    """Return the name that the cluster gives a machine, or its host name with a part of its identifier."""
    if facts["NodeName"] != facts["NodeManagerAddress"]:
        return str(facts["NodeName"])
    return f"{facts['NodeManagerHostname']}-{facts['NodeID'][:6]}"


def _offer(resources: Mapping[str, float]) -> Resources:
    """Return the resources of a machine as Ray names them."""
    return Resources(resources.get("CPU", 0), int(resources.get("memory", 0)), resources.get("GPU", 0))


def _shorten(error: BaseException) -> str:
    """Return the cause in an error of Ray, without the description of the actor and general advice around it."""
    lines = str(error).strip().splitlines()
    if "creation task" in str(error):  # the traceback of an error follows
        return shorten(lines[-1].strip(), MAX_DETAIL)
    _, _, cause = " ".join(lines).rpartition("The actor is dead because ")
    return shorten(cause.partition(" Some common causes")[0], MAX_DETAIL)

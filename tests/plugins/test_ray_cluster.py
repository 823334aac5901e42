"""Tests of how the executor `ray` starts and ends workers, with scripted machines, actors and times."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from queue import Empty
from types import SimpleNamespace
from typing import Any

import pytest

from peekbench import PeekbenchError
from peekbench.records import Host, Resources
from peekbench_ray.messages import Demand, Settings

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (extra `ray`)")
END = 2000.0  # seconds of the simulated clock
CPU, GPU = Resources(), Resources(gpus=1)
Respond = Callable[["Actor", str], object]


@dataclass
class Actor:
    """An actor that answers as a test says: with a value, an exception, or None, which is never."""

    name: str
    respond: Respond
    clock: Events
    created_at: float
    log: list[str] = field(default_factory=list)
    killed_at: float | None = None

    def __getattr__(self, method: str) -> Any:
        return SimpleNamespace(remote=partial(self._call, method))

    def _call(self, method: str, *_: object) -> Any:
        self.log.append(method)
        future: Future[object] = Future()
        answer = self.respond(self, method)
        if isinstance(answer, Exception):
            future.set_exception(answer)
        elif answer is not None:
            future.set_result(answer)
        return SimpleNamespace(future=lambda: future)

    def kill(self) -> None:
        self.log.append("kill")
        self.killed_at = self.clock.now


class Events:
    """A queue in which messages arrive at given times of a clock, which jumps ahead while there are none."""

    def __init__(self, messages: Mapping[float, object]) -> None:
        self.now = 0.0
        self._later = dict(messages)
        self._queue: list[object] = []

    def put(self, event: object) -> None:
        self._queue.append(event)

    def get(self, timeout: float) -> object:
        for at in [at for at in self._later if at <= self.now]:
            self.put(self._later.pop(at))
        if self._queue:
            return self._queue.pop(0)
        self.now += timeout
        if self.now >= END:
            return None
        raise Empty


def answer_all(actor: Actor, method: str) -> object:
    return Host(actor.name) if method == "prepare" else True


def machine(digit: str, hostname: str, gpus: int = 0) -> dict[str, Any]:
    resources = {"CPU": 1.0, "GPU": gpus, "memory": 1e9}
    names = {"NodeName": "10.0.0.1", "NodeManagerAddress": "10.0.0.1", "NodeManagerHostname": hostname}
    return {"NodeID": digit * 56, "Alive": True, "Resources": resources, **names}


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Actor]]:
    """Return a function that runs a cluster and returns its actors."""
    monkeypatch.setattr(sys, "path", list(sys.path))  # to which Ray adds its own copies of libraries
    monkeypatch.setenv("RAY_CLIENT_MODE", "0")  # which Ray sets
    cluster = import_module("peekbench_ray.cluster")

    def simulate(
        nodes: Callable[[float], Sequence[Mapping[str, Any]]], messages: Mapping[float, object], respond: Respond
    ) -> list[Actor]:
        events, actors = Events(messages), list[Actor]()

        def create(launch: Any, work: bytes) -> Actor:
            actors.append(Actor(launch.settings.host, respond, events, events.now))
            return actors[-1]

        made = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=create))
        monkeypatch.setattr("ray.remote", lambda **_: lambda _: made)
        monkeypatch.setattr("ray.put", lambda work: work)
        monkeypatch.setattr("ray.nodes", lambda: nodes(events.now))
        monkeypatch.setattr("ray.kill", Actor.kill)
        monkeypatch.setattr("ray.wait", lambda calls, **_: (calls, []))
        monkeypatch.setattr(cluster, "time", SimpleNamespace(monotonic=lambda: events.now))
        settings = Settings(b"", None, "", None, None, patience=END)
        cluster.Cluster(settings, events, lambda message: None, None, {}).run()
        return actors

    return simulate


def test_a_machine_on_which_workers_die_before_they_get_items_ends_the_run(simulate: Any) -> None:
    """Ray's memory monitor may kill each actor while its machine is prepared."""
    from ray.exceptions import RayError  # the fixture undoes what the import changes

    tried: list[Actor] = []

    def respond(actor: Actor, method: str) -> object:
        tried.append(actor)
        return RayError("The actor is dead because its memory ran out.") if method == "prepare" else True

    with pytest.raises(PeekbenchError, match="small-111111: workers cannot start on this machine: its memory ran out"):
        simulate(lambda now: [machine("1", "small")], {0: Demand({CPU: 9})}, respond)
    assert [actor.log for actor in tried[::2]] == [["start", "prepare", "kill"]] * 2 + [["start", "prepare"]]


def test_an_idle_worker_that_gives_way_is_stopped_before_it_is_killed(simulate: Any) -> None:
    messages = {0: Demand({CPU: 1}), 1: Demand({}), 9: Demand({GPU: 1})}
    actors = simulate(lambda now: [machine("1", "one", gpus=1)], messages, answer_all)
    assert [actor.log for actor in actors] == [["start", "prepare", "stop", "kill"], ["start"]]

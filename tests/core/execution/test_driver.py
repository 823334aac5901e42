"""The driver: what it saves, and when."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import pytest

from peekbench.execution import driver as module
from peekbench.execution.driver import Driver
from peekbench.execution.planning import make_trials
from peekbench.execution.progress import NullProgress
from peekbench.execution.work import SpecWork
from peekbench.plugins.work_protocols import Event, Outcome
from peekbench.records.hosts import Host
from peekbench.records.trials import Draw
from peekbench.spec.experiment import ExperimentSpec


class RecordingSink:
    """A sink that keeps the sizes of what it is given."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def bases(self) -> set[tuple[Draw, str]]:
        """Return that no base arm is saved."""
        return set()

    def add_host(self, host: Host) -> None:
        """Expect no machine."""
        raise AssertionError(host)

    def save(self, *outcomes: Outcome) -> None:
        """Keep the number of outcomes."""
        self.sizes.append(len(outcomes))


def test_saved_outcomes_reach_the_disk_while_no_trial_ends(
    make_spec: Callable[..., ExperimentSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = make_spec(methods=["toy.constant"], design={"num_train": 12, "num_test": 30, "num_subsamples": 1})
    execute = module._execute

    def wait_between(*arguments: object) -> Generator[Sequence[Event], None, None]:
        for batch in execute(*arguments):  # type: ignore[arg-type]
            yield batch
            yield []

    monkeypatch.setattr(module, "_execute", wait_between)
    sink = RecordingSink()
    Driver(spec, sink, NullProgress(), keep_going=False).do(list(make_trials(spec)), SpecWork(spec))
    assert sum(sink.sizes) == 2
    assert 0 in sink.sizes

"""The driver: what it saves, and when."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import pytest
from stored_session import SESSION

from peekbench.data.preflight import describe_tasks
from peekbench.execution import driver as module
from peekbench.execution.driver import Driver
from peekbench.execution.observers import Observers
from peekbench.execution.work import SpecWork
from peekbench.plugins.work_protocols import Event, Outcome
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.writer import StoreWriter


def test_saved_outcomes_reach_the_disk_while_no_trial_ends(
    make_spec: Callable[..., ExperimentSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = make_spec(methods=["toy.constant"], design={"num_train": 12, "num_test": 30, "num_subsamples": 1})
    execute = module.execute

    def wait_between(*arguments: object) -> Generator[Sequence[Event], None, None]:
        for batch in execute(*arguments):  # type: ignore[arg-type]
            yield batch
            yield []

    monkeypatch.setattr(module, "execute", wait_between)
    sizes: list[int] = []
    with StoreWriter.for_run("small.sqlite", spec, describe_tasks(spec)) as store:
        store.add_session(SESSION, "here")
        save_trials = store.save

        def save(*outcomes: Outcome) -> None:
            sizes.append(len(outcomes))
            save_trials(*outcomes)

        monkeypatch.setattr(store, "save", save)
        Driver(spec, store, Observers(), keep_going=False).do(list(spec.trials()), SpecWork(spec))
    assert sum(sizes) == 2
    assert 0 in sizes

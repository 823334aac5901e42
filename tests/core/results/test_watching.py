"""Watching a run: counts, pace, and estimates that are valid at every look, without disturbing the run."""

from __future__ import annotations

import hashlib
import io
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import run_command
from rich.console import Console

from peekbench import load_spec
from peekbench.cli import watch
from peekbench.data.preflight import describe_tasks
from peekbench.execution.runner import run
from peekbench.records.runs import Looks
from peekbench.results.analyze import Seen, run_analysis
from peekbench.results.missing_trials import drop_incomplete
from peekbench.results.planned_looks import MIN_SUBSAMPLES, estimate, read_state
from peekbench.results.read import load_results
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.reader import Store
from peekbench.store.writer import StoreWriter

STORE = Path("runs/small.sqlite")


@pytest.fixture
def larger(make_raw: Callable[..., Any]) -> ExperimentSpec:
    """The spec of a run of which half is stored."""
    for number in (6, 12):
        design = {"num_train": 12, "num_test": 30, "num_subsamples": number}
        Path("small.yaml").write_text(yaml.safe_dump(make_raw(design=design)))
        if number == 6:
            run(load_spec("small.yaml"))
    return load_spec("small.yaml")


@contextmanager
def going_on(spec: ExperimentSpec) -> Iterator[Store]:
    """Hold the store open for writing, as a run does."""
    with StoreWriter.for_run(STORE, spec, describe_tasks(spec)) as store:
        yield store


def contents() -> tuple[str, int]:
    with Store.open(STORE) as store:
        return hashlib.sha256(STORE.read_bytes()).hexdigest(), len(store.looks())


def test_a_run_is_read_without_disturbing_it(larger: ExperimentSpec) -> None:
    with going_on(larger):
        before = contents()
        state, estimates = read_state(STORE), estimate(STORE)
        assert contents() == before, "nothing is recorded"
    assert (state.planned, state.done, state.failed, state.is_running) == (48, 24, 0, True)
    assert state.done_now == 24
    assert state.trials_per_hour is not None and state.seconds_left is not None
    assert state.seconds_left == pytest.approx(state.seconds, rel=0.5), "half of the trials are left"
    assert not read_state(STORE).is_running
    assert (estimates.subsamples, estimates.maximum) == (6, 12)
    assert estimates.analysis is not None
    summary = larger.analyses[0]
    for method, is_equal in (("confidence_sequence", True), ("", False)):
        looks = Looks(True, "confidence_sequence", (0.5,), 12) if method else Looks(True)
        expected = run_analysis(summary, drop_incomplete(load_results(STORE)), (), Seen(looks))
        assert (estimates.analysis.verdicts == expected.verdicts) == is_equal
        for valid, fixed in zip(estimates.analysis.verdicts, expected.verdicts, strict=True):
            assert (valid.estimate.mean, repr(valid.estimate.low) == repr(fixed.estimate.low)) == (
                fixed.estimate.mean,
                is_equal or repr(valid.estimate.low) == repr(valid.estimate.high),
            )


def test_estimates_are_from_subsamples_that_no_task_or_method_lacks(
    larger: ExperimentSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = Store.done
    monkeypatch.setattr(Store, "done", lambda store: {trial for trial in done(store) if trial.draw.subsample != 5})
    assert estimate(STORE).subsamples == MIN_SUBSAMPLES == 5
    monkeypatch.setattr(Store, "done", lambda store: {trial for trial in done(store) if trial.draw.subsample != 4})
    early = estimate(STORE)
    assert (early.subsamples, early.analysis) == (4, None)


def test_failures_are_shown_and_one_view_is_printed_without_a_terminal(make_raw: Callable[..., Any]) -> None:
    raw = make_raw(methods=["toy.vote", "toy.faulty"])
    Path("small.yaml").write_text(yaml.safe_dump(raw))
    run(load_spec("small.yaml"))
    shown = run_command("watch", "small", "--once")
    assert shown.returncode == 0, shown.stderr
    text = " ".join(shown.stdout.split())
    for part in ("small not running", "6 of 12 trials, 6 failed", "First failure: task a, method toy.faulty", "50%"):
        assert part in text
    assert "No estimates yet: they take 5 subsamples" in text
    assert run_command("watch", "gone", "--once").returncode == 2


def test_the_view_refreshes_and_ends_with_the_run(larger: ExperimentSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(watch, "make_console", lambda: console)
    has_waited = threading.Event()
    monkeypatch.setattr(watch._View, "wait", lambda *_: has_waited.set())

    def end_run() -> None:
        with going_on(larger):
            is_open.set()
            has_waited.wait(60)

    is_open = threading.Event()
    runner = threading.Thread(target=end_run)
    runner.start()
    is_open.wait(60)
    watch.watch("small")
    runner.join()
    assert isinstance(console.file, io.StringIO)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())
    assert "running for" in shown
    assert "not running" in shown
    assert "24 of 48 trials" in shown
    assert "From the first 6 of 12 subsamples" in shown

"""Observers of a run: what they are told, and that they can neither fail nor hold up the run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import run_command
from limits import TIMEOUT

from peekbench import Analysis, load_results
from peekbench.execution import observers as module
from peekbench.execution.observers import Observers
from peekbench.execution.runner import RunSummary, run
from peekbench.records.runs import TrialFinished
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.reader import Store

MakeSpec = Callable[..., ExperimentSpec]
STORE = Path("small.sqlite")
DESIGN = {"num_train": 12, "num_test": 30, "num_subsamples": 1}  # four trials


class Interrupting:
    """Interrupts a run at its third trial."""

    num_trials = 0

    def trial_finished(self, event: TrialFinished) -> None:
        """Count a trial."""
        self.num_trials += 1
        if self.num_trials == 3:
            raise KeyboardInterrupt


def observe(spec: ExperimentSpec, display: object = None) -> tuple[RunSummary, list[str]]:
    """Run a spec, and return the summary and the warnings."""
    warnings: list[str] = []
    with Observers(display, spec.observers, warnings.append) as observers:
        summary = run(spec, store=STORE, observers=observers)
        observers.analysis_finished(Analysis("summary"))
        observers.report_written(Path("reports/small"))
    return summary, warnings


def test_observers_are_told_of_a_run_that_is_interrupted_and_resumed(make_spec: MakeSpec) -> None:
    methods = ["toy.vote", {"use": "toy.faulty", "options": {"marker": "failed"}}]
    with pytest.raises(KeyboardInterrupt):
        observe(make_spec(methods=methods, design=DESIGN, observers=["toy.diary"]), Interrupting())
    with Store.open(STORE) as store:
        identifier, num_stored = store.store_id(), len(store.done())
    lines = Path("diary").read_text().splitlines()
    assert lines[0] == f"run_started {identifier} 4 0"
    assert [line.split()[:2] for line in lines[1:3]] == [["trial_finished", "1"], ["trial_finished", "2"]]
    assert lines[-1] == "run_finished interrupted 2 1 None"
    assert any("RuntimeError: this method is broken" in line for line in lines)
    assert any(line.endswith("base extra test ") for line in lines)

    Path("reports/small").mkdir(parents=True)
    later = {"use": "toy.diary", "options": {"path": "later"}}
    summary, warnings = observe(make_spec(methods=methods, design=DESIGN, observers=["toy.diary", later]))
    assert not warnings
    assert Path("diary").read_text().splitlines()[len(lines) :] == Path("later").read_text().splitlines()
    assert Path("later").read_text().splitlines() == [
        f"run_started {identifier} 4 {num_stored}",
        *(f"trial_finished {number} base extra test " for number in range(num_stored + 1, 5)),
        "analysis_finished summary",
        f"run_finished finished {summary.finished} 0 small",
    ]


def test_observers_that_fail_warn_once_and_change_nothing(make_spec: MakeSpec) -> None:
    run(make_spec(design=DESIGN), store="without.sqlite")
    errors = ["start", "run_started", "trial_finished", "analysis_finished", "run_finished"]
    observers = [{"use": "toy.diary", "options": {"error": error, "path": error}} for error in errors]
    summary, warnings = observe(make_spec(design=DESIGN, observers=observers))
    assert (summary.finished, summary.failed) == (4, 0)
    columns = ["task", "method", "subsample", "arm", "score"]
    assert load_results(STORE)[columns].equals(load_results("without.sqlite")[columns])
    expected = ["SystemExit: no diary"]
    expected += [f"toy.diary failed at {event}: RuntimeError: no ink (" for event in errors[1:]]
    assert len(warnings) == len(expected)
    assert all(sum(words in warning for warning in warnings) == 1 for words in expected)
    assert len(Path("analysis_finished").read_text().splitlines()) == 5


def test_slow_observers_do_not_hold_up_the_run(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "END_SECONDS", 0.2)
    slow = {"use": "toy.diary", "options": {"seconds": TIMEOUT}}
    started = time.monotonic()
    _, warnings = observe(make_spec(design=DESIGN, observers=[slow]))
    assert time.monotonic() - started < TIMEOUT, "each event takes as long"
    (warning,) = warnings
    words = r"still busy 0.2 s after the end of the run, with \d events waiting"
    assert re.search(f"observer toy.diary failed at run_started: .*{words}", warning)


def test_the_report_of_a_command_reaches_observers(make_raw: Callable[..., dict[str, Any]]) -> None:
    observers = ["toy.diary", {"use": "toy.diary", "options": {"error": "run_finished", "path": "failed"}}]
    raw = make_raw(design=DESIGN, observers=observers, analyses=["toy.count"], report={"formats": ["json"]})
    Path("small.yaml").write_text(yaml.safe_dump(raw))
    done = run_command("run", "small.yaml")
    assert done.returncode == 0
    assert done.stderr.count("no ink") == 1
    lines = Path("diary").read_text().splitlines()
    assert lines[5].startswith("analysis_finished count")
    assert lines[-1] == "run_finished finished 4 0 small"
    assert run_command("report", "small").returncode == 0
    assert Path("diary").read_text().splitlines() == lines, "reports call no observer"

"""Progress of a run on a terminal and in logs."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from peekbench.progress import LineProgress, LiveProgress, make_display
from peekbench.records.runs import ArmScores, RunStarted, TrialFinished
from peekbench.records.trials import Draw, Trial


def started(planned: int, stored: int = 0) -> RunStarted:
    spec = {"methods": [{"name": "x"}, {"name": "y"}], "arms": ["base", "extra", "test"]}
    return RunStarted("0f3a", "small", spec, Path("small.sqlite"), planned, stored)


def result(method: str = "x", **scores: float) -> TrialFinished:
    arms = {arm: ArmScores({"score": score}, {}, 0.2, 0.0) for arm, score in scores.items()}
    return TrialFinished(Trial(Draw("a", 5, 5, 0), method), 1, 2, arms)


def failure() -> TrialFinished:
    return TrialFinished(Trial(Draw("a[b]", 5, 5, 0), "x"), 1, 2, {}, "ValueError: [red]no[/]")


def test_remaining_time_follows_from_the_pace() -> None:
    lines: list[str] = []
    with LineProgress(lines.append, seconds=1000) as display:
        display.run_started(started(20))
        tally = display.tally
        assert tally is not None
        assert tally.pace() == "estimating the time left"
        for _ in range(11):
            display.trial_finished(result(test=0.5))
        tally.started -= 20.0
        assert tally.pace() == "0.5 trials/s, about 18 s left"
        display.stop("x", 9)
    assert lines[-1] == "x: its first trials all failed; its 9 other trials are not tried"
    assert tally.planned == tally.handled
    assert tally.pace() == "0.5 trials/s"


def test_log_lines() -> None:
    lines: list[str] = []
    with LineProgress(lines.append, seconds=0) as display:
        display.run_started(started(12, stored=10))
        display.note("preparing x")
        display.trial_finished(result(base=0.5))
        display.trial_finished(failure())
    assert lines[:2] == ["small: 12 trials, 10 already done", "preparing x"]
    assert lines[2] == "11 of 12 trials, estimating the time left"
    assert (
        lines[3] == "first failure: task a[b], method x, num_train 5, num_test 5, subsample 0: ValueError: [red]no[/]"
    )
    assert lines[4] == "12 of 12 trials, 1 failed"


def test_log_says_that_a_run_without_finished_trials_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    with LineProgress(lines.append) as display:
        display.run_started(started(12))
        display.wait()
        assert len(lines) == 1
        monkeypatch.setattr("peekbench.progress.SECONDS_UNTIL_HEARTBEAT", 0.0)
        display.wait()
    assert lines[1] == "0 of 12 trials; no trial has finished for 0 s, still running"


def test_terminal_shows_a_live_bar() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    display = make_display(console)
    assert isinstance(display, LiveProgress)
    with display:
        display.run_started(started(12, stored=3))
        display.trial_finished(result(base=0.5, extra=0.625, test=0.75))
        display.trial_finished(failure())
    assert isinstance(console.file, io.StringIO)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())
    assert "5/12" in shown
    assert "1 failed" in shown
    assert "[red]no[/]" in shown  # markup in a message is text
    assert isinstance(make_display(Console(file=io.StringIO())), LineProgress)
    assert isinstance(make_display(console, is_live=False), LineProgress)  # leaves the terminal to a debugger

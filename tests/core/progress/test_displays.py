"""Progress of a run on a terminal and in logs."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from peekbench.formatting import duration
from peekbench.progress.displays import LineProgress, LiveProgress, make_progress
from peekbench.progress.tally import Tally
from peekbench.records.trials import ArmResult, Draw, Trial, TrialFailure, TrialResult

NOTHING = np.zeros((0, 0), dtype=np.float32)


def result(method: str, *, seconds: float = 0.2, num_test: int = 5, **scores: float) -> TrialResult:
    arms = tuple(ArmResult(arm, {"score": score}, seconds, 0.0, {}, NOTHING) for arm, score in scores.items())
    nothing = np.zeros(0, dtype=np.int64)
    return TrialResult(Trial(Draw("a", 5, num_test, 0), method), nothing, nothing, arms)


def trials(number: int, method: str = "toy.vote", num_test: int = 5) -> list[Trial]:
    return [Trial(Draw("a", 5, num_test, subsample), method) for subsample in range(number)]


def failure() -> TrialFailure:
    return TrialFailure(Trial(Draw("a[b]", 5, 5, 0), "toy.vote"), "ValueError: [red]no[/]", "Traceback")


def test_tally_counts_and_averages() -> None:
    tally = Tally(("x", "y"), ("base", "extra", "test"), trials(3, "x") + trials(3, "y"), done_before=4)
    tally.add(result("x", base=0.5, extra=0.6, test=0.8))
    tally.add(result("x", base=0.7, extra=0.6, test=0.9))
    tally.add(failure())
    assert (tally.done, tally.failed, tally.handled) == (2, 1, 7)
    assert tally.mean_scores() == [["x", "0.600", "0.600", "0.850"], ["y", "-", "-", "-"]]
    tally.add(result("y", extra=0.6, test=0.8))
    assert tally.mean_scores()[1] == ["y", "shared", "0.600", "0.800"]


def test_remaining_time_follows_from_the_pace() -> None:
    tally = Tally(("toy.vote",), ("test",), trials(20), done_before=0)
    assert tally.pace() == "estimating the time left"
    for _ in range(11):
        tally.add(result("toy.vote", test=0.5))
    tally.started -= 20.0
    assert tally.pace() == "0.5 trials/s, about 18 s left"
    tally.stop(9)
    assert tally.planned == tally.handled
    assert tally.pace() == "0.5 trials/s"


def test_log_lines(make_spec: Callable[..., Any]) -> None:
    lines: list[str] = []
    with LineProgress(lines.append, seconds=0) as progress:
        progress.start(make_spec(), trials(2), 10)
        progress.prepare("toy.vote")
        progress.advance(result("toy.vote", base=0.5))
        progress.advance(failure())
    assert lines[:2] == ["small: 12 trials, 10 already done", "preparing toy.vote"]
    assert lines[2] == "11 of 12 trials, estimating the time left"
    assert lines[3] == (
        "first failure: task a[b], method toy.vote, num_train 5, num_test 5, subsample 0: ValueError: [red]no[/]"
    )
    assert lines[4] == "12 of 12 trials, 1 failed"


def test_log_lines_appear_at_intervals_and_at_the_end(make_spec: Callable[..., Any]) -> None:
    lines: list[str] = []
    with LineProgress(lines.append, seconds=1000) as progress:
        progress.start(make_spec(), trials(50), 0)
        for _ in range(50):
            progress.advance(result("toy.vote", base=0.5))
    assert len(lines) == 2
    assert lines[1].startswith("50 of 50")


def test_log_says_that_a_run_without_finished_trials_continues(
    make_spec: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    with LineProgress(lines.append) as progress:
        progress.start(make_spec(), trials(12), 0)
        progress.wait()
        assert len(lines) == 1
        monkeypatch.setattr("peekbench.progress.displays.SECONDS_UNTIL_HEARTBEAT", 0.0)
        progress.wait()
    assert lines[1] == "0 of 12 trials; no trial has finished for 0 s, still running"


def test_terminal_shows_a_live_table(make_spec: Callable[..., Any]) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    progress = make_progress(console)
    assert isinstance(progress, LiveProgress)
    with progress:
        progress.start(make_spec(), trials(9), 3)
        progress.advance(result("toy.vote", base=0.5, extra=0.625, test=0.75))
        progress.advance(failure())
    assert isinstance(console.file, io.StringIO)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())
    assert "5/12" in shown
    assert "0.625" in shown
    assert "1 failed" in shown
    assert "[red]no[/]" in shown  # markup in a message is text
    assert isinstance(make_progress(Console(file=io.StringIO())), LineProgress)
    assert isinstance(make_progress(console, is_live=False), LineProgress)  # leaves the terminal to a debugger


@pytest.mark.parametrize(("seconds", "words"), [(3.6, "4 s"), (125, "2 min 05 s"), (11400, "3 h 10 min")])
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words

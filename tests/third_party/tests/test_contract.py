"""Contract checks of peekbench as tests of this plugin."""

from __future__ import annotations

from collections.abc import Callable

from peekbench.testing import parametrize_with_checks


@parametrize_with_checks("centroid.tfidf", {"max_words": 2})
def test_method(check: Callable[[], None]) -> None:
    check()


@parametrize_with_checks("tickets", {"num_rows": 30})
def test_data_source(check: Callable[[], None]) -> None:
    check()


@parametrize_with_checks("win_rate", {"level": 0.9})
def test_analysis(check: Callable[[], None]) -> None:
    check()


@parametrize_with_checks("lengths")
def test_audit(check: Callable[[], None]) -> None:
    check()


@parametrize_with_checks("backwards")
def test_executor(check: Callable[[], None]) -> None:
    check()


@parametrize_with_checks("logbook")
def test_observer(check: Callable[[], None]) -> None:
    check()

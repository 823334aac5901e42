"""Contract checks of data sources and analyses, and checks of any entry by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest
from faulty_entries import ANALYSES, SOURCES

from peekbench import AnalyzerEntry, DataSourceEntry, Folders, Options, PeekbenchError
from peekbench_testing import CheckOutcome
from peekbench_testing.contracts import ContractTests, find_kinds
from peekbench_testing.pure_entries import ANALYSIS_CHECKS, SOURCE_CHECKS, make_analysis_call, make_source_call
from peekbench_testing.runner import CheckRun


def failed(checks: Mapping[str, Callable[[Any], str | None]], subject: Any) -> dict[str, str]:
    """Do the checks, and return the messages of those that failed by name."""
    return {outcome.name: outcome.message for outcome in CheckRun(checks, subject, 1) if is_failure(outcome)}


def is_failure(outcome: CheckOutcome) -> bool:
    return outcome.was_run and not outcome.passed


def assert_found(messages: dict[str, str], expected: dict[str, str]) -> None:
    """Check the ends of the names of failed checks, and words of their messages."""
    assert len(messages) == len(expected), messages
    for (name, message), (end, words) in zip(messages.items(), expected.items(), strict=True):
        assert name.endswith(end)
        assert words in message


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SOURCES))
def test_each_error_of_a_source_is_found(name: str, tmp_path: Path) -> None:
    load, entry_fields, expected = SOURCES[name]
    entry = DataSourceEntry(name="tried", load=load, summary="", **entry_fields)
    source = make_source_call("tried", entry, Options(), Folders(tmp_path, tmp_path))
    assert_found(failed(SOURCE_CHECKS, source), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ANALYSES))
def test_each_error_of_an_analysis_is_found(name: str) -> None:
    analyze, entry_fields, expected = ANALYSES[name]
    entry = AnalyzerEntry(name="tried", analyze=analyze, summary="", **entry_fields)
    assert_found(failed(ANALYSIS_CHECKS, make_analysis_call("tried", entry, Options())), expected)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        ("toy.voet", "no entry 'toy.voet'; did you mean toy.vote?"),
        ("figures", "of the kind renderer, which has no contract checks"),
    ],
)
def test_entries_that_cannot_be_checked(use: str, words: str) -> None:
    with pytest.raises(PeekbenchError) as raised:
        find_kinds(use)
    assert words in str(raised.value)


@pytest.mark.slow
class TestNull(ContractTests):
    use = "controls.null"


def test_checks_are_methods_of_tests() -> None:
    assert {name for name in vars(TestNull) if name.startswith("test_")} > {
        "test_same_seed_same_predictions", "test_methods_with_the_same_base_agree"
    }  # fmt: skip

    class Speech(ContractTests):
        use = "toy.speech"

    tests: Any = Speech()
    Speech.setup_class()
    with pytest.raises(PeekbenchError, match="it returned a str"):
        tests.test_returns_an_analysis_and_leaves_the_results_unchanged()
    with pytest.raises(SkipTest, match="another check failed: returns an analysis"):
        tests.test_same_analysis_in_every_process()
    Speech.teardown_class()

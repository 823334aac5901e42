"""Contract checks of data sources and analyses, and checks of any entry by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pandas as pd
import pytest
from faulty_entries import ANALYSES, SOURCES

from peekbench import AnalyzerEntry, DataSourceEntry, Folders, Options, PeekbenchError
from peekbench_testing import CheckOutcome, sample_results
from peekbench_testing.contracts import CONTRACTS, ContractTests, find_kinds
from peekbench_testing.pure_entries import (
    ANALYSIS_CHECKS,
    SOURCE_CHECKS,
    make_analysis_call,
    make_source_call,
)
from peekbench_testing.runner import CheckRun

IMPORT = "importing the plugin is fast"
PROCESS, STATE = "in every process", "the state of the process is unchanged"


def failed(
    checks: Mapping[str, Callable[[Any], str | None]], subject: Any, expected: Mapping[str, str]
) -> dict[str, str]:
    """Do the checks, and return the messages of those that failed by name.

    Checks that start a process are left out if they should pass, except for correct entries.
    """
    outside = {IMPORT}.union(*({name for name in checks if name.endswith(end)} for end in (PROCESS, STATE)))
    if not expected or {PROCESS, STATE} & expected.keys():
        outside = {IMPORT}
    chosen = {name: check for name, check in checks.items() if name not in outside}
    return {outcome.name: outcome.message for outcome in CheckRun(chosen, subject, 1) if is_failure(outcome)}


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
    assert_found(failed(SOURCE_CHECKS, source, expected), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ANALYSES))
def test_each_error_of_an_analysis_is_found(name: str) -> None:
    analyze, entry_fields, expected = ANALYSES[name]
    entry = AnalyzerEntry(name="tried", analyze=analyze, summary="", **entry_fields)
    assert_found(failed(ANALYSIS_CHECKS, make_analysis_call("tried", entry, Options()), expected), expected)


def test_sample_results_are_a_results_table() -> None:
    results = sample_results(4, num_tasks=2)
    assert isinstance(results, pd.DataFrame)
    assert results.groupby(["task", "method", "subsample"])["arm"].nunique().eq(3).all()
    assert sample_results(4, num_tasks=2).equals(results)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        ("toy.voet", "no entry 'toy.voet'; did you mean toy.vote?"),
        ("toy.all", "group of data sources; check its members one by one: toy.words"),
        ("figures", "of the kind renderer, which has no contract checks"),
        ("tyo.vote", "did you mean toy.vote?"),
    ],
)
def test_entries_that_cannot_be_checked(use: str, words: str) -> None:
    with pytest.raises(PeekbenchError) as raised:
        find_kinds(use)
    assert words in str(raised.value)


def test_entries_are_found_by_their_kind() -> None:
    kinds = {"toy.vote": "method", "toy.words": "data source", "toy.count": "analysis"}
    assert {use: find_kinds(use) for use in kinds} == {use: [kind] for use, kind in kinds.items()}
    assert find_kinds("local") == ["executor"]
    assert {*CONTRACTS} == {*kinds.values(), "executor", "observer", "report format"}


@pytest.mark.slow
class TestNull(ContractTests):
    use = "controls.null"


def test_checks_are_methods_of_tests() -> None:
    assert {name for name in vars(TestNull) if name.startswith("test_")} > {
        "test_same_seed_same_predictions", "test_importing_the_plugin_is_fast"
    }  # fmt: skip

    class Speech(ContractTests):
        use = "toy.speech"

    tests: Any = Speech()
    Speech.setup_class()
    with pytest.raises(PeekbenchError, match="it returned a str"):
        tests.test_returns_an_analysis_and_leaves_the_results_unchanged()
    with pytest.raises(SkipTest, match="another check failed: returns an analysis"):
        tests.test_same_analysis_at_every_call()
    Speech.teardown_class()

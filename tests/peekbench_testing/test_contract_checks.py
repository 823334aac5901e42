"""Contract checks of methods: each passes correct methods and finds the error that it is made for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import faulty_methods as faulty
import numpy as np
import pytest
from faulty_methods import Knob, valid_method
from process_checks import IN_NEW_PROCESS

from peekbench import Dataset, MethodEntry, PeekbenchError, Predictor
from peekbench.cache import atomic_write
from peekbench.plugins import registry
from peekbench.plugins.validation import Plugin
from peekbench_testing import METHOD_CHECKS, check_entry, make_case, sample_numbers, sample_texts
from peekbench_testing.fresh_process import view_cache
from peekbench_testing.runner import CheckRun

BASE, EXTRA, SEED = list(METHOD_CHECKS)[:3]
REFIT, BATCH = "fits are independent of each other", "predictions are independent of other inputs"
TEXTS = "log-likelihoods are independent of other texts"
OPTIONS, SHARED = "unlabeled_options have no effect on the base arm", "methods with the same base agree"
PROCESS, LABELS = IN_NEW_PROCESS


def make(method: Callable[..., Predictor], **entry: Any) -> MethodEntry:
    return MethodEntry(name="tried", options=Knob, method=method, summary="a method to check", **entry)


def failed(entry: MethodEntry, folder: Path, *names: str) -> dict[str, str]:
    """Do checks, by default those in this process, and return the messages of those that failed by name."""
    names = names or tuple(name for name in METHOD_CHECKS if name not in IN_NEW_PROCESS)
    case = make_case("toy.vote", entry, Knob(), folder)
    outcomes = CheckRun({name: METHOD_CHECKS[name] for name in names}, case, 3)
    return {outcome.name: outcome.message for outcome in outcomes if outcome.was_run and not outcome.passed}


def test_correct_method_passes(tmp_path: Path) -> None:
    entry = make(valid_method, unlabeled_options=frozenset({"knob"}))
    assert failed(entry, tmp_path, *METHOD_CHECKS) == {}
    assert failed(make(faulty.scores_texts), tmp_path) == {}


@pytest.mark.parametrize(
    ("method", "checks", "words"),
    [
        (faulty.needs_unlabeled, {BASE, SEED}, "no unlabeled inputs"),
        (faulty.returns_nan, {BASE, EXTRA, SEED}, "NaN"),
        (faulty.fails_for_long_texts, {BASE, EXTRA, SEED}, "NaN"),
        (faulty.unseeded, {SEED}, "draw all random numbers from context.seed"),
        (faulty.starts_where_it_left_off, {SEED}, "keep no state between fits"),
        (faulty.keeps_the_first_texts, {REFIT}, "keep no state between fits"),
        (faulty.shares_a_model, {REFIT}, "give each fit its own model"),
        (faulty.adapts_to_the_batch, {BATCH}, "in a batch of 30"),
        (faulty.postpones_its_fit, {BATCH}, "in a batch of 30"),
        (faulty.recognizes_its_batch, {BATCH}, "in a batch of 500"),
        (faulty.recognizes_a_text, {BATCH}, "in a batch of 500"),
        (faulty.scores_texts_together, {TEXTS}, "score each text independently"),
    ],
)
def test_each_error_fails_its_checks_and_no_others(method: Any, checks: set[str], words: str, tmp_path: Path) -> None:
    faulty.MEMORY.clear()
    messages = failed(make(method), tmp_path)
    assert set(messages) == checks
    assert words in next(iter(messages.values()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "check", "words"),
    [
        (faulty.hashes_words, PROCESS, "instead of `hash`"),
        (faulty.caches_train_on_disk, PROCESS, "not only the seed"),
        (faulty.looks_up_labels, LABELS, "labels outside the train set"),
    ],
)
def test_each_error_that_another_process_reveals(method: Any, check: str, words: str, tmp_path: Path) -> None:
    messages = failed(make(method), tmp_path, *IN_NEW_PROCESS)
    assert list(messages) == [check]
    assert words in messages[check]


@pytest.mark.slow
def test_positive_controls_may_know_labels(tmp_path: Path) -> None:
    assert failed(make(faulty.looks_up_labels, control="positive"), tmp_path, *IN_NEW_PROCESS) == {}


def test_fits_see_the_cache_and_do_not_change_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEEKBENCH_CACHE", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "weights").write_text("prefetched")
    with view_cache() as view:
        assert (view / "models" / "weights").read_text() == "prefetched"
        (view / "models" / "of a fit").touch()
        with atomic_write(view / "models" / "weights") as temporary:
            temporary.write_text("replaced")
    assert not view.exists()
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["models", "weights"]
    assert (tmp_path / "models" / "weights").read_text() == "prefetched"


@pytest.mark.parametrize("arm", ["without", "with"])
def test_error_in_one_arm_names_the_arm(arm: str, tmp_path: Path) -> None:
    def method(unlabeled: Any, *arguments: Any, **keywords: Any) -> Predictor:
        is_wrong = (unlabeled is None) == (arm == "without")
        return (faulty.unseeded if is_wrong else valid_method)(unlabeled, *arguments, **keywords)

    assert failed(make(method), tmp_path, SEED)[SEED].startswith(f"{arm} unlabeled inputs: ")


def test_wrong_unlabeled_options_are_found(tmp_path: Path) -> None:
    wrong = make(faulty.knob_always, unlabeled_options=frozenset({"knob"}))
    assert "option 'knob' changes the base arm" in failed(wrong, tmp_path, OPTIONS)[OPTIONS]
    unknown = make(valid_method, unlabeled_options=frozenset({"nkob"}))
    assert "'nkob', which is not an option" in failed(unknown, tmp_path, OPTIONS)[OPTIONS]


class Knobs(Knob):
    second: int = 1


@pytest.mark.parametrize(
    ("base", "other", "is_wrong"),
    [
        ("common", make(faulty.knob_always, base="common"), True),
        ("", make(faulty.knob_always, base="tried"), True),  # it names the method itself
        ("mine", make(faulty.knob_always, base="common"), False),
        ("common", replace(make(faulty.knob_always, base="common"), options=Knobs), False),
    ],
)
def test_wrongly_declared_base_is_found(
    base: str, other: MethodEntry, is_wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = make(valid_method, base=base)
    plugin = Plugin("pair", "pair", {"method": {"tried": method, "other": replace(other, name="other")}})
    monkeypatch.setattr(registry, "load", lambda name: plugin)
    case = make_case("pair.tried", method, Knob(knob=3.0), tmp_path)
    outcome = next(iter(CheckRun({SHARED: METHOD_CHECKS[SHARED]}, case)))
    assert ("pair.other names the same base" in outcome.message) is is_wrong


@pytest.mark.slow
def test_regression_methods_are_checked_on_numbers() -> None:
    small = sample_numbers(150, seed=3)
    large = replace(small, labels=np.asarray(small.labels) * 1e12)  # rounding errors exceed small numbers
    for dataset in (None, large):
        assert all(outcome.passed for outcome in check_entry("toy.mean", data=dataset))


def test_data_are_drawn_as_in_a_run(tmp_path: Path) -> None:
    """Train has each class equally often, and the sets are disjoint."""
    labels = [0 if row < 20 else 1 + row % 2 for row in range(240)]
    dataset = Dataset([f"row {row}" for row in range(240)], labels, ("rare", "one", "two"))
    case = make_case("toy.vote", make(valid_method), Knob(), tmp_path, dataset)
    assert np.bincount(case.train.labels.astype(int)).tolist() == [10, 10, 10]
    parts = [*case.train.inputs, *case.unlabeled, *case.test]
    assert len(parts) == len(set(parts)) == 30 + 60 + 60
    assert set(case.other) != set(case.unlabeled)


def test_unsuitable_data_names_and_options_are_errors() -> None:
    for use, options, data, words in (
        ("toy.vote", {}, sample_texts(100), "100 rows, 48 of them .* at least 108"),
        ("toy.voet", {}, None, "no entry 'toy.voet'"),
        ("toy.vote", {"bold": 1}, None, r"options\.bold: no such option; did you mean boldness"),
        ("toy.words", {}, sample_texts(), "kind data source, which is not checked on a task"),
    ):
        with pytest.raises(PeekbenchError, match=words):
            check_entry(use, options, data=data)

"""Contract checks of methods: each passes correct methods and finds the error that it is made for."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import faulty_methods as faulty
import numpy as np
import pytest
from faulty_methods import Knob, valid_method
from process_checks import IN_NEW_PROCESS
from pydantic import Field

from peekbench import Dataset, Inputs, MethodEntry, Options, PeekbenchError, Predictor
from peekbench.cache import atomic_write
from peekbench.errors import ContractError, DataError
from peekbench.plugins import registry
from peekbench.plugins.validation import Plugin
from peekbench_testing import METHOD_CHECKS, check_entry, check_module_light, make_case, sample_numbers, sample_texts
from peekbench_testing.fresh_process import describe_changes, take_state, view_cache
from peekbench_testing.runner import CheckRun

BASE, EXTRA = "fits and predicts without unlabeled inputs", "fits and predicts with unlabeled inputs"
SEED, REFIT = "same seed, same predictions", "fits are independent of earlier fits"
EARLIER = "predictors are independent of later fits"
BATCH, TEXTS = "predictions are independent of other inputs", "log-likelihoods are independent of other texts"
GLOBAL, UNTOUCHED = "global random state is unused and unchanged", "inputs and labels are unchanged"
OPTIONS, SHARED = "unlabeled_options have no effect on the base arm", "methods with the same base agree"
EMPTY = "predictions of an empty text are valid"
PROCESS, CACHE, LABELS, STATE, IMPORT = IN_NEW_PROCESS
HERE = (BASE, EXTRA, SEED, REFIT, EARLIER, BATCH, EMPTY, TEXTS, GLOBAL, UNTOUCHED, OPTIONS, SHARED)
ELSEWHERE = IN_NEW_PROCESS[:-1]


def make(method: Callable[..., Predictor], **entry: Any) -> MethodEntry:
    return MethodEntry(name="tried", options=Knob, method=method, summary="a method to check", **entry)


def failed(entry: MethodEntry, folder: Path, names: Sequence[str] = HERE) -> dict[str, str]:
    """Do some checks, and return the messages of those that failed by name."""
    case = make_case("toy.vote", entry, Knob(), folder)
    outcomes = CheckRun({name: METHOD_CHECKS[name] for name in names}, case)
    return {outcome.name: outcome.message for outcome in outcomes if not outcome.passed}


@pytest.mark.slow
def test_correct_method_passes(tmp_path: Path) -> None:
    assert tuple(METHOD_CHECKS) == (*HERE, *IN_NEW_PROCESS)
    assert failed(make(valid_method, unlabeled_options=frozenset({"knob"})), tmp_path, (*HERE, *ELSEWHERE)) == {}
    assert failed(make(faulty.scores_texts), tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "checks", "words"),
    [
        (faulty.needs_unlabeled, set(HERE) - {EXTRA}, "no unlabeled inputs"),
        (faulty.returns_nan, set(HERE), "NaN"),
        (faulty.sums_almost_to_one, set(HERE), "sum"),
        (faulty.unseeded, {SEED, REFIT}, "draw all random numbers from context.seed"),
        (faulty.starts_where_it_left_off, {SEED, REFIT}, "with the same seed"),
        (faulty.shares_a_model, {EARLIER}, "give each fit its own model"),
        (faulty.adapts_to_the_batch, {BATCH, EMPTY}, "adapts to its batch"),
        (faulty.postpones_its_fit, {BATCH}, "adapts to its batch"),
        (faulty.looks_at_the_neighbor, {BATCH}, "adapts to its batch"),
        (faulty.adapts_to_large_batches, {BATCH}, "in a batch of 500"),
        (faulty.divides_by_the_number_of_words, {EMPTY}, "for an empty text"),
        (faulty.scores_texts_together, {TEXTS}, "score each text independently"),
        (faulty.predicts_differently_after_scoring, {TEXTS}, "restore the state"),
        (faulty.uses_global_random, {GLOBAL}, "depend on the state of a global generator"),
        (faulty.seeds_global_numpy, {GLOBAL}, "changes the state of numpy.random"),
        (faulty.sorts_its_inputs, {UNTOUCHED}, "work on copies"),
        (faulty.adapts_to_long_texts, {BATCH, EMPTY}, "texts of up to 2,014 characters"),
        (faulty.fails_for_long_texts, set(HERE) - {OPTIONS, SHARED}, "texts of up to 2,014 characters"),
        (faulty.is_unseeded_with_many_texts, {SEED, REFIT}, "132 train rows"),
        (faulty.adapts_with_two_classes, {BATCH, EMPTY}, "2 classes"),
        (faulty.recognizes_its_batch, {BATCH}, "whether the inputs that are predicted together are those of the fit"),
        (faulty.recognizes_a_text, {BATCH}, "in a batch of 500"),
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
        (faulty.caches_train_on_disk, CACHE, "had the seed as its key"),
        (faulty.looks_up_labels, LABELS, "labels outside the train set"),
        (faulty.changes_state, STATE, "numpy.printoptions(precision) (was 8, is 2)"),
        (faulty.leaves_a_thread, STATE, "7 times thread 'prefetcher'"),
        (faulty.leaves_a_process, STATE, "7 times process "),
        (faulty.leaves_files, STATE, "file00.txt, file01.txt, file02.txt and 17 more"),
        (faulty.unseeded, "", ""),
        (faulty.reads_the_hour, PROCESS, "the time"),
        (faulty.reads_the_local_hour, PROCESS, "the time"),
        (faulty.tries_the_network, PROCESS, "connects to 192.0.2.1"),
        (faulty.keeps_memory, STATE, "keeps about 40 MB"),
    ],
)
def test_each_error_that_another_process_reveals(method: Any, check: str, words: str, tmp_path: Path) -> None:
    messages = failed(make(method), tmp_path, ELSEWHERE)
    for child in faulty.CHILDREN:
        child.kill()
        child.wait()
    faulty.CHILDREN.clear()
    assert list(messages) == ([check] if check else [])
    assert words in messages.get(check, "")


def refuses_empty_texts(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    predictor = valid_method(unlabeled, train, task, options=options, context=context)

    def predict(texts: Inputs) -> Any:
        if "" in texts:
            raise DataError("a text is empty; remove it")
        return predictor.predict(texts)

    return Predictor(predict)


@pytest.mark.slow
def test_output_is_a_warning(tmp_path: Path) -> None:
    """Warnings and messages of `logging` are no output."""
    case = make_case("toy.vote", make(faulty.prints), Knob(), tmp_path)
    with pytest.warns(UserWarning, match="no output"):
        warning = METHOD_CHECKS[STATE](case)
    assert warning is not None
    assert "it prints, for example 'fitting ...'" in warning


def test_a_method_that_hangs_is_stopped(tmp_path: Path) -> None:
    """The message names an option that gives more time, and no other check waits."""
    case = make_case("toy.vote", make(faulty.hangs_for_one_text), Knob(), tmp_path).change(timeout=3)
    faulty.HANGS_FOR[:] = [case.test[7]]
    outcomes = list(CheckRun(METHOD_CHECKS, case, 2))
    faulty.HANGS_FOR.clear()
    for words in ("a prediction of 60 inputs takes more than 3 s", "--timeout"):
        assert words in outcomes[0].message
    assert not any(outcome.was_run for outcome in outcomes[1:])


@pytest.mark.slow
def test_positive_controls_may_know_labels(tmp_path: Path) -> None:
    assert failed(make(faulty.looks_up_labels, control="positive"), tmp_path, [LABELS, PROCESS]) == {}


def test_refusal_of_an_empty_text_is_a_warning(tmp_path: Path) -> None:
    warning = METHOD_CHECKS[EMPTY](make_case("toy.vote", make(refuses_empty_texts), Knob(), tmp_path))
    assert warning is not None
    assert "with unlabeled inputs: warning: it refuses an empty text: a text is empty" in warning


@pytest.mark.slow
def test_changes_of_the_state_are_named_and_undone(tmp_path: Path) -> None:
    before = take_state()
    message = failed(make(faulty.changes_state), tmp_path, [STATE])[STATE]
    for name in (
        "the working folder", "warnings.filters", "numpy.errstate(over)", "os.environ['TOKENIZERS_PARALLELISM']",
        "the root logger",
    ):  # fmt: skip
        assert name in message
    left = " ".join(describe_changes(before, take_state()))
    faulty.restore_state()
    assert "folder" not in left
    assert "numpy" not in left
    assert "TOKENIZERS" not in left


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


@pytest.mark.parametrize(("wrong", "check"), [(faulty.unseeded, SEED), (faulty.adapts_to_the_batch, BATCH)])
def test_error_in_one_arm_names_the_arm(wrong: Any, check: str, tmp_path: Path) -> None:
    for arm in ("without", "with"):

        def method(unlabeled: Any, *arguments: Any, arm: str = arm, **keywords: Any) -> Predictor:
            is_wrong = (unlabeled is None) == (arm == "without")
            return (wrong if is_wrong else valid_method)(unlabeled, *arguments, **keywords)

        assert f"{arm} unlabeled inputs: " in failed(make(method), tmp_path, [check])[check]


def test_checks_restore_the_global_generators(tmp_path: Path) -> None:
    expected = random.Random(5).random(), np.random.RandomState(5).random()
    random.seed(5)
    np.random.seed(5)
    assert failed(make(faulty.seeds_global_numpy), tmp_path, [BASE, GLOBAL]).keys() == {GLOBAL}
    assert (random.random(), np.random.random()) == expected


def test_the_generator_of_torch_is_checked(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    def draws(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
        torch.rand(1)
        return valid_method(unlabeled, train, task, options=options, context=context)

    before = torch.get_rng_state().tolist()
    assert failed(make(valid_method), tmp_path, [GLOBAL]) == {}
    assert "changes the state of torch; use" in failed(make(draws), tmp_path, [GLOBAL])[GLOBAL]
    assert torch.get_rng_state().tolist() == before


class Settings(Options):
    flavor: Literal["plain", "salted"] = "plain"
    limit: int | None = Field(default=None, ge=5)
    twice: bool = True
    knob: float = 1.0


@pytest.mark.parametrize("name", ["flavor", "limit", "twice", "knob"])
def test_wrong_unlabeled_options_of_each_type_are_found(name: str, tmp_path: Path) -> None:
    def depends(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
        knob = Knob(knob=1 if getattr(options, name) == getattr(Settings(), name) else 2)
        return faulty.knob_always(unlabeled, train, task, options=knob, context=context)

    entry = replace(make(depends, unlabeled_options=frozenset({name})), options=Settings)
    with pytest.raises(ContractError, match=f"option '{name}' changes the base arm"):
        METHOD_CHECKS[OPTIONS](make_case("toy.vote", entry, Settings(), tmp_path))
    unknown = make(valid_method, unlabeled_options=frozenset({"nkob"}))
    assert "'nkob', which is not an option" in failed(unknown, tmp_path, [OPTIONS])[OPTIONS]


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
def test_checks_that_could_only_repeat_a_failure_are_not_run() -> None:
    outcomes = {outcome.name: outcome for outcome in check_entry("toy.faulty", {"error": "raise"})}
    assert len(outcomes) == len(METHOD_CHECKS)
    assert outcomes[BASE].message.startswith("it raised RuntimeError: this method is broken (")
    assert "peekbench_toy.py, line " in outcomes[BASE].message
    assert [name for name, outcome in outcomes.items() if outcome.was_run] == [BASE, EXTRA]
    assert not any(outcome.passed for outcome in outcomes.values())
    assert BASE in outcomes[SEED].message


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
    many = Dataset(dataset.inputs, [row % 40 for row in range(240)], tuple(f"class {label}" for label in range(40)))
    case = make_case("toy.vote", make(valid_method), Knob(), tmp_path, many)
    assert np.bincount(case.train.labels.astype(int)).tolist() == [2] * 40


def test_unsuitable_data_names_and_options_are_errors() -> None:
    nothing = Dataset([f"row {row}" for row in range(240)], [0, 1] * 120, ("one", "two", "none"))
    for use, options, data, words in (
        ("toy.vote", {}, sample_texts(100), "100 rows, 48 of them .* at least 108"),
        ("toy.vote", {}, nothing, "train sets need a row of each class, but none has 'none'"),
        ("toy.voet", {}, None, "no entry 'toy.voet'"),
        ("toy.vote", {"bold": 1}, None, r"options\.bold: no such option; did you mean boldness"),
        ("toy.words", {}, sample_texts(), "kind data source, which is not checked on a task"),
    ):
        with pytest.raises(PeekbenchError, match=words):
            check_entry(use, options, data=data)


@pytest.mark.slow
def test_heavy_imports_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "heavy_plugin.py").write_text("import pandas\n")
    (modules / "broken_plugin.py").write_text("import no_such_module\n")
    Path("json.py").write_text("raise RuntimeError('this file of the working folder must not be imported')")
    monkeypatch.syspath_prepend(modules)
    check_module_light("json")
    plugin = Plugin("heavy", "heavy_plugin:plugin", {})  # an entry point may name an object
    monkeypatch.setattr(registry, "load", lambda name: plugin)
    with pytest.raises(ContractError, match="importing heavy_plugin imports pandas"):
        METHOD_CHECKS[IMPORT](make_case("heavy.tried", make(valid_method), Knob(), tmp_path))
    with pytest.raises(ContractError, match="cannot be imported on its own: .*no_such_module"):
        check_module_light("broken_plugin")

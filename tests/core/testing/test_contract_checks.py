"""Contract checks: each passes correct methods and finds the error that it is made for."""

from __future__ import annotations

import ast
import logging
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from faulty_methods import (
    MEMORY,
    Knob,
    adapts_to_a_large_unlabeled_set,
    adapts_to_large_batches,
    adapts_to_the_batch,
    adapts_with_two_classes,
    caches_by_seed,
    caches_train_on_disk,
    centroids,
    changes_state,
    changes_state_once,
    connects,
    divides_by_the_number_of_words,
    features,
    global_numpy_if_large,
    hashes_words,
    keeps_memory,
    knob_always,
    leaves_a_process,
    leaves_a_thread,
    leaves_files,
    looks_at_the_neighbor,
    looks_up_labels,
    needs_unlabeled,
    postpones_its_fit,
    predicts_differently_after_scoring,
    returns_a_text_metric,
    returns_an_array_metric,
    returns_an_infinite_metric,
    returns_nan,
    returns_scores,
    returns_too_few_columns,
    scores_texts,
    scores_texts_together,
    seeds_global_numpy,
    shares_a_model,
    softmax,
    sorts_its_inputs,
    starts_where_it_left_off,
    sums_almost_to_one,
    unseeded,
    unseeded_if_large,
    uses_global_numpy,
    uses_global_random,
    uses_the_hour,
    uses_the_process_id,
    valid_method,
)
from pydantic import Field

from peekbench import (
    Dataset,
    Inputs,
    MethodEntry,
    Options,
    PeekbenchError,
    Predictor,
)
from peekbench.cache import atomic_write
from peekbench.errors import ContractError, DataError, SpecError
from peekbench.plugins import registry
from peekbench.plugins.validation import Plugin
from peekbench.testing import (
    METHOD_CHECKS,
    check_method,
    check_module_light,
    make_case,
    sample_numbers,
    sample_texts,
)
from peekbench.testing.cache_view import view_cache
from peekbench.testing.outcomes import run_checks
from peekbench.testing.process_state import find_changes, take_state


def make(method: Callable[..., Predictor], **entry: Any) -> MethodEntry:
    return MethodEntry(name="tried", options=Knob, method=method, summary="a method to check", **entry)


BASE, EXTRA = "fits and predicts without unlabeled inputs", "fits and predicts with unlabeled inputs"
SEED, REFIT = "same seed, same predictions", "fits are independent of earlier fits"
EARLIER, METRICS = "predictors are independent of later fits", "metrics are finite numbers"
BATCH, LARGE = "predictions are independent of other inputs", "predictions are independent of large batches"
ORDER, TEXTS = "predictions are independent of the order", "log-likelihoods are independent of other texts"
GLOBAL, UNTOUCHED = "global random state is unused and unchanged", "inputs and labels are unchanged"
OPTIONS, SHARED = "unlabeled_options have no effect on the base arm", "methods with the same base agree"
PROCESS, CACHE = "predictions are independent of the process", "caches are independent of the seed"
LABELS, STATE = "labels outside the train set are unused", "the state of the process is unchanged"
LARGER, EMPTY = "predictions of a larger task are independent", "predictions of an empty text are valid"
MEMORY_KEPT, NETWORK = "fits release their memory", "fits need no network"
IMPORT = "importing the plugin is fast"
ELSEWHERE = (PROCESS, CACHE, LABELS, STATE, MEMORY_KEPT, NETWORK)  # they start processes
HERE = tuple(name for name in METHOD_CHECKS if name not in (*ELSEWHERE, IMPORT))


def failed(entry: MethodEntry, folder: Path, names: Sequence[str] = HERE) -> dict[str, str]:
    """Do some checks, and return the messages of those that failed by name."""
    case = make_case("toy.vote", entry, Knob(), folder)
    outcomes = run_checks({name: METHOD_CHECKS[name] for name in names}, case)
    return {outcome.name: outcome.message for outcome in outcomes if not outcome.passed}


def test_every_check_is_tested() -> None:
    assert set(METHOD_CHECKS) == {*HERE, *ELSEWHERE, IMPORT}
    assert set(HERE) == {
        BASE, EXTRA, METRICS, SEED, REFIT, EARLIER, BATCH, LARGE, ORDER, LARGER, EMPTY, TEXTS, GLOBAL, UNTOUCHED,
        OPTIONS, SHARED,
    }  # fmt: skip


def test_correct_method_passes(tmp_path: Path) -> None:
    assert failed(make(valid_method, unlabeled_options=frozenset({"knob"})), tmp_path, (*HERE, *ELSEWHERE)) == {}


@pytest.mark.parametrize(
    ("method", "checks"),
    [
        (needs_unlabeled, set(HERE) - {EXTRA}),
        (unseeded, {SEED, REFIT, LARGER}),
        (starts_where_it_left_off, {SEED, REFIT, LARGER}),
        (shares_a_model, {EARLIER}),
        (adapts_to_the_batch, {BATCH, LARGE, LARGER, EMPTY}),
        (postpones_its_fit, {BATCH, LARGE, LARGER}),
        (adapts_to_a_large_unlabeled_set, {LARGER}),
        (adapts_with_two_classes, {LARGER}),
        (unseeded_if_large, {LARGER}),
        (global_numpy_if_large, {LARGER}),
        (divides_by_the_number_of_words, {EMPTY}),
        (sums_almost_to_one, set(HERE)),
        (adapts_to_large_batches, {LARGE}),
        (looks_at_the_neighbor, {BATCH, ORDER, LARGER}),
        (scores_texts, set()),
        (scores_texts_together, {TEXTS}),
        (predicts_differently_after_scoring, {TEXTS}),
        (uses_global_numpy, {SEED, REFIT, LARGER, GLOBAL}),
        (uses_global_random, {LARGER, GLOBAL}),
        (seeds_global_numpy, {LARGER, GLOBAL}),
        (sorts_its_inputs, {UNTOUCHED}),
        (returns_nan, set(HERE)),
        (returns_too_few_columns, set(HERE)),
        (returns_scores, set(HERE)),
        (returns_an_array_metric, {METRICS}),
        (returns_a_text_metric, {METRICS}),
        (returns_an_infinite_metric, {METRICS}),
    ],
)
def test_each_error_fails_its_checks_and_no_others(method: Any, checks: set[str], tmp_path: Path) -> None:
    MEMORY.clear()
    assert set(failed(make(method), tmp_path)) == checks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "check", "words"),
    [
        (hashes_words, PROCESS, "depend on hashes of texts"),
        (uses_the_process_id, PROCESS, "differ in every process"),
        (uses_the_hour, PROCESS, "depend on the time"),
        (caches_by_seed, CACHE, "had the seed as its key"),
        (caches_train_on_disk, CACHE, "had the seed as its key"),
        (looks_up_labels, LABELS, "labels outside the train set"),
        (changes_state, STATE, "numpy.printoptions(precision) (was 8, is 2)"),
        (changes_state_once, STATE, "socket.getdefaulttimeout() (was None, is 10.0)"),
        (leaves_a_thread, STATE, "5 times thread 'prefetcher'"),
        (leaves_a_process, STATE, "5 times process "),
        (leaves_files, STATE, "file00.txt, file01.txt, file02.txt and 17 more"),
        (keeps_memory, MEMORY_KEPT, "about 100 MB per fit"),
        (connects, "", ""),
        (sorts_its_inputs, "", ""),
        (unseeded, "", ""),
    ],
)
def test_each_error_that_another_process_reveals(method: Any, check: str, words: str, tmp_path: Path) -> None:
    """The other errors fail other checks, and no one of these."""
    messages = failed(make(method), tmp_path, ELSEWHERE)
    assert list(messages) == ([check] if check else [])
    assert words in messages.get(check, "")


@pytest.mark.slow
def test_connections_to_other_machines_are_a_warning(tmp_path: Path) -> None:
    warning = METHOD_CHECKS[NETWORK](make_case("toy.vote", make(connects), Knob(), tmp_path))
    assert warning is not None
    assert "connects to peekbench.invalid;" in warning


def test_a_refusal_of_an_empty_text_is_a_warning(tmp_path: Path) -> None:
    def refuses(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
        predictor = valid_method(unlabeled, train, task, options=options, context=context)

        def predict(texts: Inputs) -> Any:
            if "" in texts:
                raise DataError("a text is empty; remove it")
            return predictor.predict(texts)

        return Predictor(predict)

    warning = METHOD_CHECKS[EMPTY](make_case("toy.vote", make(refuses), Knob(), tmp_path))
    assert warning == "with unlabeled inputs: warning: it refuses an empty text: a text is empty; remove it"


def test_methods_that_refuse_the_larger_task_are_not_checked_on_it(tmp_path: Path) -> None:
    """The options of a method may name the classes of another task."""

    def has_three_classes(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
        if task.num_classes != 3:
            raise SpecError("options.words: no word for the class third")
        return valid_method(unlabeled, train, task, options=options, context=context)

    warning = METHOD_CHECKS[LARGER](make_case("toy.vote", make(has_three_classes), Knob(), tmp_path))
    assert warning is not None
    assert "refuses a synthetic task with 2 classes, 96 train and 128 unlabeled inputs: options.words" in warning


def test_all_changes_of_the_state_are_named_and_undone(tmp_path: Path) -> None:
    before = take_state()
    message = failed(make(changes_state), tmp_path, [STATE])[STATE]
    for name in (
        "the working folder", "warnings.filters", "numpy.errstate(over)", "os.environ['TOKENIZERS_PARALLELISM']",
        "signal handler SIGUSR1", "sys.getrecursionlimit()", "the decimal context", "the root logger",
    ):  # fmt: skip
        assert name in message
    assert set(find_changes(before, take_state())) <= {"sys.getrecursionlimit()", "the root logger or logging.disable"}
    sys.setrecursionlimit(1000)
    logging.getLogger().setLevel(logging.WARNING)


def test_fits_see_the_cache_and_do_not_change_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEEKBENCH_CACHE", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "weights").write_text("prefetched")
    with view_cache() as view:
        assert (view / "models" / "weights").read_text() == "prefetched"
        (view / "models" / "of a fit").touch()
        (view / "of a fit").touch()
        with atomic_write(view / "models" / "weights") as temporary:
            temporary.write_text("replaced")
    assert not view.exists()
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["models", "weights"]
    assert (tmp_path / "models" / "weights").read_text() == "prefetched"


def test_positive_controls_may_know_labels(tmp_path: Path) -> None:
    assert failed(make(looks_up_labels, control="positive"), tmp_path, [LABELS, PROCESS]) == {}


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        (unseeded, SEED),
        (unseeded, REFIT),
        (adapts_to_the_batch, BATCH),
        (looks_at_the_neighbor, ORDER),
        (uses_global_numpy, GLOBAL),
        (sorts_its_inputs, UNTOUCHED),
        (returns_an_array_metric, METRICS),
    ],
)
def test_error_in_one_arm_names_the_arm(wrong: Any, check: str, tmp_path: Path) -> None:
    def in_base(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
        return (wrong if unlabeled is None else valid_method)(unlabeled, train, task, options=options, context=context)

    def in_extra(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
        return (valid_method if unlabeled is None else wrong)(unlabeled, train, task, options=options, context=context)

    for method, arm in ((in_base, "without"), (in_extra, "with")):
        assert failed(make(method), tmp_path, [check])[check].startswith(f"{arm} unlabeled inputs: ")


def test_checks_restore_the_global_generators(tmp_path: Path) -> None:
    random.seed(5)
    np.random.seed(5)
    expected = random.random(), np.random.random()
    random.seed(5)
    np.random.seed(5)
    assert failed(make(valid_method), tmp_path) == {}
    assert (random.random(), np.random.random()) == expected


class Torch:
    """The functions of torch's global generator that the check uses, on a NumPy generator."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(0)

    def manual_seed(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def get_rng_state(self) -> Any:
        return np.frombuffer(repr(self.generator.bit_generator.state).encode(), dtype=np.uint8)

    def set_rng_state(self, state: Any) -> None:
        self.generator.bit_generator.state = ast.literal_eval(state.tobytes().decode())


def test_torch_generator_is_checked_if_torch_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Torch()
    monkeypatch.setitem(sys.modules, "torch", torch)

    def draws(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
        torch.generator.random()
        return valid_method(unlabeled, train, task, options=options, context=context)

    before = torch.get_rng_state().tobytes()
    assert failed(make(valid_method), tmp_path) == {}
    assert "changes the state of torch; use" in failed(make(draws), tmp_path, [GLOBAL])[GLOBAL]
    torch.manual_seed(0)
    assert torch.get_rng_state().tobytes() == before


def test_wrong_unlabeled_options_are_found(tmp_path: Path) -> None:
    wrong = make(knob_always, unlabeled_options=frozenset({"knob"}))
    assert "option 'knob' changes the base arm" in failed(wrong, tmp_path, [OPTIONS])[OPTIONS]
    unknown = make(valid_method, unlabeled_options=frozenset({"nkob"}))
    assert "'nkob', which is not an option" in failed(unknown, tmp_path, [OPTIONS])[OPTIONS]


class Settings(Options):
    flavor: Literal["plain", "salted"] = "plain"
    limit: int | None = Field(default=None, ge=5)
    twice: bool = True
    label: str = "x"


@pytest.mark.parametrize("name", ["flavor", "limit", "twice"])
def test_options_of_each_type_are_varied(name: str, tmp_path: Path) -> None:
    def depends(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
        scale = 1 if getattr(options, name) == getattr(Settings(), name) else 2
        means = centroids(train, task) * scale
        return Predictor(lambda texts: softmax(features(texts) @ means.T))

    entry = MethodEntry(
        name="tried", options=Settings, method=depends, summary="", unlabeled_options=frozenset({name, "label"})
    )
    with pytest.raises(ContractError, match=f"option '{name}' changes the base arm"):
        METHOD_CHECKS[OPTIONS](make_case("toy.vote", entry, Settings(), tmp_path))


def check_pair(method: MethodEntry, other: MethodEntry, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that two methods of one plugin agree on their base; the first has its knob at 3."""
    plugin = Plugin("pair", "pair", {"method": {method.name: method, other.name: other}})
    monkeypatch.setattr(registry, "load", lambda name: plugin)
    case = make_case(f"pair.{method.name}", method, method.options.model_validate({"knob": 3.0}), folder)
    METHOD_CHECKS[SHARED](case)


@pytest.mark.parametrize("base", ["common", ""])
def test_wrongly_declared_base_is_found(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method may also name another method, whose base is its own name."""
    other = MethodEntry(name="other", options=Knob, method=knob_always, summary="", base=base or "tried")
    with pytest.raises(ContractError, match="pair.other names the same base"):
        check_pair(make(valid_method, base=base), other, tmp_path, monkeypatch)


def test_methods_with_different_options_share_no_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Knobs(Knob):
        second: int = 1

    other = MethodEntry(name="other", options=Knobs, method=knob_always, summary="", base="common")
    check_pair(make(valid_method, base="common"), other, tmp_path, monkeypatch)
    check_pair(make(valid_method, base="mine"), replace(other, options=Knob), tmp_path, monkeypatch)


def test_checks_that_could_only_repeat_a_failure_are_not_run() -> None:
    outcomes = {outcome.name: outcome for outcome in check_method("toy.faulty", {"error": "raise"})}
    assert len(outcomes) == len(METHOD_CHECKS)
    assert outcomes[BASE].message.startswith("it raised RuntimeError: this method is broken (")
    assert "peekbench_toy.py, line " in outcomes[BASE].message
    assert [name for name, outcome in outcomes.items() if outcome.was_run] == [BASE, EXTRA]
    assert not any(outcome.passed for outcome in outcomes.values())
    assert BASE in outcomes[SEED].message


def test_regression_methods_are_checked_on_numbers() -> None:
    assert all(outcome.passed for outcome in check_method("toy.mean"))
    assert all(outcome.passed for outcome in check_method("toy.mean", dataset=sample_numbers(150, seed=3)))
    small = sample_numbers()
    large = replace(small, labels=np.asarray(small.labels) * 1e12)  # rounding errors exceed small numbers
    assert all(outcome.passed for outcome in check_method("toy.mean", dataset=large))


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


def test_too_few_rows_are_an_error() -> None:
    with pytest.raises(PeekbenchError, match="100 rows, 48 of them .* at least 108"):
        check_method("toy.vote", dataset=sample_texts(100))
    nothing = Dataset([f"row {row}" for row in range(240)], [0, 1] * 120, ("one", "two", "none"))
    with pytest.raises(PeekbenchError, match="no row has the class 'none'"):
        check_method("toy.vote", dataset=nothing)


def test_unknown_methods_and_options_are_errors() -> None:
    with pytest.raises(PeekbenchError, match="no method 'toy.voet'"):
        check_method("toy.voet")
    with pytest.raises(PeekbenchError, match=r"options\.bold: no such option; did you mean boldness"):
        check_method("toy.vote", {"bold": 1})


@pytest.mark.slow
def test_heavy_imports_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "heavy_plugin.py").write_text("import pandas\n")
    (tmp_path / "light_plugin.py").write_text("import json\n")
    (tmp_path / "broken_plugin.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    check_module_light("light_plugin")
    plugin = Plugin("heavy", "heavy_plugin:plugin", {})  # an entry point may name an object
    monkeypatch.setattr(registry, "load", lambda name: plugin)
    with pytest.raises(ContractError, match="importing heavy_plugin imports pandas"):
        METHOD_CHECKS[IMPORT](make_case("heavy.tried", make(valid_method), Knob(), tmp_path))
    with pytest.raises(ContractError, match="importing heavy_plugin imports pandas"):
        check_module_light("heavy_plugin")
    with pytest.raises(ContractError, match="cannot be imported on its own: .*no_such_module"):
        check_module_light("broken_plugin")


def test_the_check_of_an_import_runs_no_module_of_the_working_folder() -> None:
    Path("json.py").write_text("raise RuntimeError('this file must not be imported')")
    check_module_light("json")

"""Every check passes good methods and catches the very fault that it is for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from peekbench import (
    Analysis,
    AnalyzerEntry,
    Column,
    Context,
    Dataset,
    DataSourceEntry,
    Folders,
    Inputs,
    Labeled,
    MethodEntry,
    Options,
    PeekbenchError,
    Predictor,
    Table,
    Task,
)
from peekbench.errors import ContractError
from peekbench.testing import (
    METHOD_CHECKS,
    check_analyzer,
    check_data_source,
    check_method,
    check_module_light,
    make_case,
    sample_numbers,
)


class Knob(Options):
    knob: float = 1.0


def features(texts: Inputs) -> Any:
    """(n, 16): how often each of 16 buckets of words occurs."""
    table = np.zeros((len(texts), 16))
    for row, text in enumerate(texts):
        for word in text.split():
            table[row, sum(map(ord, word)) % 16] += 1
    return table


def softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def centroids(train: Labeled, task: Task) -> Any:
    table = features(train.inputs)
    return np.stack([table[train.labels == label].mean(axis=0) for label in range(task.num_classes)])


def honest(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Knob, context: Context) -> Predictor:
    means = centroids(train, task)
    scale = 1.0 if unlabeled is None else options.knob / features(unlabeled).std()
    return Predictor(lambda texts: softmax(scale * features(texts) @ means.T))


def make(fault: Callable[..., Predictor], **entry: Any) -> MethodEntry:
    return MethodEntry(name="tried", options=Knob, method=fault, summary="a method to try", **entry)


def failed(entry: MethodEntry, folder: Path) -> dict[str, str]:
    """Names of the checks that fail, and why; the plugin's import is checked elsewhere."""
    case = make_case("toy.vote", entry, Knob(), folder)
    messages = {}
    for name, check in METHOD_CHECKS.items():
        try:
            check(case)
        except ContractError as error:
            messages[name] = str(error)
    return messages


def test_an_honest_method_passes(tmp_path: Path) -> None:
    assert failed(make(honest, unlabeled_options=frozenset({"knob"})), tmp_path) == {}


def needs_unlabeled(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    if unlabeled is None:
        raise ContractError("no unlabeled inputs")
    return honest(unlabeled, train, task, options=options, context=context)


def unseeded(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    means = centroids(train, task) + np.random.default_rng().normal(0, 0.1, (task.num_classes, 16))
    return Predictor(lambda texts: softmax(features(texts) @ means.T))


MEMORY: dict[str, Any] = {}


def starts_where_it_left_off(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    means = centroids(train, task) * (1 if unlabeled is None else features(unlabeled).std())
    MEMORY["means"] = means = 0.5 * means + 0.5 * MEMORY.get("means", means)
    return Predictor(lambda texts: softmax(features(texts) @ means.T))


SHARED: dict[str, Any] = {}


def shares_a_model(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    SHARED["means"] = centroids(train, task) * (1 if unlabeled is None else features(unlabeled).std())
    return Predictor(lambda texts: softmax(features(texts) @ SHARED["means"].T))


def adapts_to_the_batch(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    means = centroids(train, task)

    def predict(texts: Inputs) -> Any:
        table = features(texts)
        return softmax((table - table.mean(axis=0)) @ means.T)

    return Predictor(predict)


def looks_at_the_neighbour(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    means = centroids(train, task)

    def predict(texts: Inputs) -> Any:
        table = features(texts)
        table[1:] += 0.5 * table[:-1]
        return softmax(table @ means.T)

    return Predictor(predict)


def uses_global_numpy(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    means = centroids(train, task) + np.random.normal(0, 0.1, (task.num_classes, 16))
    return Predictor(lambda texts: softmax(features(texts) @ means.T))


def seeds_global_numpy(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    np.random.seed(context.seed)
    return honest(unlabeled, train, task, options=options, context=context)


def sorts_its_inputs(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    if train.labels.flags.writeable:
        train.labels.sort()
    return honest(unlabeled, train, task, options=options, context=context)


def returns_nan(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    return Predictor(lambda texts: np.full((len(texts), task.num_classes), np.nan))


def knob_always(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    means = centroids(train, task) * options.knob
    return Predictor(lambda texts: softmax(features(texts) @ means.T))


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (needs_unlabeled, "fits and predicts without unlabeled inputs"),
        (unseeded, "same seed, same numbers"),
        (starts_where_it_left_off, "a fit leaves nothing for the next one"),
        (shares_a_model, "a later fit leaves earlier predictors alone"),
        (adapts_to_the_batch, "predictions do not depend on what else is predicted"),
        (looks_at_the_neighbour, "predictions do not depend on the order"),
        (uses_global_numpy, "global random state neither used nor changed"),
        (seeds_global_numpy, "global random state neither used nor changed"),
        (sorts_its_inputs, "inputs and labels left as they were"),
        (returns_nan, "fits and predicts with unlabeled inputs"),
    ],
)
def test_each_fault_is_caught_by_its_check(fault: Any, check: str, tmp_path: Path) -> None:
    MEMORY.clear()
    assert check in failed(make(fault), tmp_path)


def test_checks_do_not_cry_wolf(tmp_path: Path) -> None:
    """A fault fails the check that it is for and, where it is as plain as this, no other."""
    assert list(failed(make(seeds_global_numpy), tmp_path)) == ["global random state neither used nor changed"]
    assert list(failed(make(shares_a_model), tmp_path)) == ["a later fit leaves earlier predictors alone"]


def test_wrong_declarations_of_options_are_caught(tmp_path: Path) -> None:
    wrong = make(knob_always, unlabeled_options=frozenset({"knob"}))
    assert (
        "option 'knob' changes the base arm"
        in failed(wrong, tmp_path)["unlabeled_options have no effect on the base arm"]
    )
    unknown = make(honest, unlabeled_options=frozenset({"nkob"}))
    assert "'nkob', which is no option" in failed(unknown, tmp_path)["unlabeled_options have no effect on the base arm"]


def test_a_base_that_is_not_shared_in_fact_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from peekbench import plugins

    one, other = make(honest, base="common"), MethodEntry(
        name="other", options=Knob, method=knob_always, summary="", base="common"
    )  # fmt: skip
    plugin = plugins.Plugin("pair", "pair", {"method": {"tried": one, "other": other}})
    monkeypatch.setattr(plugins, "load", lambda name: plugin)
    case = make_case("pair.tried", one, Knob(knob=3.0), tmp_path)
    with pytest.raises(ContractError, match="pair.other names the same base but predicts otherwise"):
        METHOD_CHECKS["methods that share a base agree on it"](case)


def test_check_method_reports_what_fails_and_goes_on() -> None:
    outcomes = {outcome.name: outcome for outcome in check_method("toy.faulty", {"fault": "raise"})}
    assert len(outcomes) == len(METHOD_CHECKS)
    assert "RuntimeError: this method is broken" in outcomes["same seed, same numbers"].message
    assert outcomes["importing the plugin is light"].passed


def test_regression_methods_get_numbers() -> None:
    assert all(outcome.passed for outcome in check_method("toy.mean"))
    assert all(outcome.passed for outcome in check_method("toy.mean", dataset=sample_numbers(150, seed=3)))


def test_unknown_methods_and_options_are_clear_errors() -> None:
    with pytest.raises(PeekbenchError, match="no method 'toy.voet'"):
        check_method("toy.voet")
    with pytest.raises(PeekbenchError, match=r"options\.bold: no such setting"):
        check_method("toy.vote", {"bold": 1})


def test_heavy_imports_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "heavy_plugin.py").write_text("import pandas\n")
    (tmp_path / "light_plugin.py").write_text("import json\n")
    (tmp_path / "broken_plugin.py").write_text("import no_such_module\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    check_module_light("light_plugin")
    with pytest.raises(ContractError, match="importing heavy_plugin imports pandas"):
        check_module_light("heavy_plugin")
    with pytest.raises(ContractError, match="cannot be imported by itself: .*no_such_module"):
        check_module_light("broken_plugin")


def test_data_sources_must_give_the_same_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def restless(*, options: Any, folders: Any) -> Dataset:
        return Dataset([f"text {rng.integers(1000)}" for _ in range(10)], [0, 1] * 5, ("a", "b"))

    def no_class(*, options: Any, folders: Any) -> Dataset:
        return Dataset(["x", "y"], [0, 2], ("a", "b"))

    folders = Folders(tmp_path, tmp_path)
    for load, message in ((restless, "other rows"), (no_class, "label 2 is outside")):
        entry = DataSourceEntry(name="tried", options=Options, load=load, summary="")
        with pytest.raises(PeekbenchError, match=message):
            check_data_source(entry, Options(), folders)


def test_analyzers_must_be_pure(simulate: Callable[..., pd.DataFrame]) -> None:
    rng = np.random.default_rng(0)

    def restless(results: Any, *, options: Any) -> Analysis:
        return Analysis("restless", (Table("t", (Column("x"),), ((float(rng.normal()),),)),))

    def meddling(results: Any, *, options: Any) -> Analysis:
        results["score"] = 0.0
        return Analysis("meddling")

    def odd(results: Any, *, options: Any) -> Any:
        return None

    for analyze, message in ((restless, "something else"), (meddling, "changes the results"), (odd, "NoneType")):
        entry = AnalyzerEntry(name="tried", options=Options, analyze=analyze, summary="")
        with pytest.raises(ContractError, match=message):
            check_analyzer(entry, Options(), simulate(0.0, tasks=2, subsamples=3))

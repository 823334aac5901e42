"""Tests of the controls: no bias for `null`, and the planted bias for `leak`."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from peekbench.execution.work import SpecWork
from peekbench.records.data import Dataset, Labeled
from peekbench.records.trials import Draw, Trial, TrialResult, WorkItem
from peekbench.spec.components import MethodSpec, make_component
from peekbench.spec.experiment import make_spec
from peekbench_testing import METHOD_CHECKS, check_entry, make_case, sample_texts

TEXTS = Dataset(sample_texts().inputs, kind="language_modeling")


@pytest.mark.slow
def test_leak_passes_the_contract_checks() -> None:
    """An example in the docstring of `check_entry` checks `controls.null`."""
    assert [outcome for outcome in check_entry("controls.leak") if not outcome.passed] == []


def test_null_fulfills_the_contract_in_language_modeling(tmp_path: Path) -> None:
    """`controls.leak`, which has the same base arm, does not support language modeling and is not compared."""
    spec = make_component(MethodSpec, "controls.null")
    case = make_case(spec.use, spec.entry, spec.options, tmp_path, TEXTS)
    for name in takewhile(lambda name: "process" not in name, METHOD_CHECKS):  # without those that start processes
        METHOD_CHECKS[name](case)
    np.testing.assert_array_equal(case.predict(case.unlabeled), case.predict(None))


def test_null_is_a_code_of_the_bytes_of_train(tmp_path: Path) -> None:
    spec = make_component(MethodSpec, "controls.null")
    case = make_case(spec.use, spec.entry, spec.options, tmp_path, TEXTS)
    short = replace(case, train=Labeled(("aab", "c"), np.array([3, 1])), test=("", "a", "ad", "ü"))
    for unlabeled in (None, case.unlabeled):
        likelihoods = np.exp(short.predict(unlabeled))
        end = 3 / 263  # of 257 symbols and 6 counts: a 2, b 1, c 1, end 2
        assert likelihoods == pytest.approx([end, 3 / 263 * end, 3 / 263**2 * end, end / 263**2])


def run(
    methods: list[Any], tmp_path: Path, *, num_subsamples: int, use: str = "toy.words", **options: Any
) -> dict[str, Any]:
    """Return scores (num_subsamples, 3 arms) and planted gains of the arm test, by method."""
    options = options or {"noise": 0.7}
    spec = make_spec(
        {
            "name": "controls",
            "tasks": [{"use": use, "name": "words", "options": {"num_rows": 600, **options}}],
            "methods": methods,
            "design": {"num_train": 30, "num_test": 200, "num_subsamples": num_subsamples},
            "analyses": ["toy.count"],
        },
        folder=tmp_path,
    )
    worker = SpecWork(spec)
    scores: dict[str, list[list[float]]] = {method.name: [] for method in spec.methods}
    metrics: dict[str, list[float]] = {method.name: [] for method in spec.methods}
    for subsample in range(num_subsamples):
        for method in spec.methods:
            (outcome,) = worker(WorkItem((Trial(Draw("words", 30, 200, subsample), method.name),), has_base=False))
            assert isinstance(outcome, TrialResult), outcome
            scores[method.name].append([arm.score for arm in outcome.arms])
            metrics[method.name].append(outcome.arms[-1].metrics.get("planted_gain", 0.0))
    return {name: (np.array(scores[name]), np.array(metrics[name])) for name in scores}


@pytest.mark.parametrize(
    ("use", "options"),
    [("toy.words", {}), ("tabular.classification", {"noise": 100}), ("tabular.regression", {"noise": 200})],
)
def test_null_has_exactly_no_boost_and_no_bias(use: str, options: dict[str, float], tmp_path: Path) -> None:
    scores, _ = run(["controls.null"], tmp_path, num_subsamples=5, use=use, **options)["controls.null"]
    assert (scores == scores[:, :1]).all()
    assert np.ptp(scores) > 0  # not at a limit, so that a bias would be visible


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "use", "noise"),
    [(0.1, "toy.words", 0.7), (0.5, "toy.words", 0.7), (1.0, "toy.words", 0.7), (0.5, "tabular.classification", 100)],
)
def test_leak_has_the_planted_bias(share: float, use: str, noise: float, tmp_path: Path) -> None:
    method = {"use": "controls.leak", "options": {"share": share}}
    scores, planted = run([method], tmp_path, num_subsamples=20, use=use, noise=noise)["controls.leak"]
    base, extra, test = scores.T
    assert (base == extra).all()  # extra texts are not test texts, so knowing their labels has no effect
    assert test - extra == pytest.approx(planted)  # the metric is the planted bias of each trial
    expected = share * (1 - extra)
    error = (test - extra - expected).std(ddof=1) / np.sqrt(len(test))
    assert (test - extra).mean() == pytest.approx(expected.mean(), abs=3 * error + 1e-9)
    assert (test - extra).mean() > 0.01


def test_leak_and_null_share_their_base_arm(tmp_path: Path) -> None:
    null, leak = (make_component(MethodSpec, use) for use in ("controls.null", "controls.leak"))
    assert null.base_key() == leak.base_key()
    both = run(["controls.null", "controls.leak"], tmp_path, num_subsamples=3)
    assert (both["controls.null"][0][:, 0] == both["controls.leak"][0][:, 0]).all()


def test_leak_knows_the_requested_share_of_labels(tmp_path: Path) -> None:
    for share, num_known in ((0.0, 0), (0.25, 15), (1.0, 60)):
        spec = make_component(MethodSpec, "controls.leak", {"share": share})
        case = make_case("controls.leak", spec.entry, spec.options, tmp_path)
        certain = np.asarray(case.fit(case.unlabeled).predict(case.unlabeled)).max(axis=1) == 1
        assert certain.sum() == num_known
        assert len(case.unlabeled) == 60


def test_leak_knows_no_label_of_texts_with_several_labels(tmp_path: Path) -> None:
    """The metric is still the planted bias, because such a text does not determine the right answer."""
    texts = [f"word{row % 40} other{row % 6}" for row in range(240)]  # texts repeat every 120 rows
    labels = np.random.default_rng(0).integers(0, 2, 240).tolist()
    texts[:60], labels[:60] = [f"single{row} word{row}" for row in range(60)], [row % 2 for row in range(60)]
    spec = make_component(MethodSpec, "controls.leak", {"share": 1.0})
    dataset = Dataset(texts, labels, ("zero", "one"))
    case = make_case("controls.leak", spec.entry, spec.options, tmp_path, dataset)
    labels_by_text: dict[str, set[int]] = {}
    for text, label in zip(texts, labels, strict=True):
        labels_by_text.setdefault(text, set()).add(label)
    single = np.array([len(labels_by_text[text]) == 1 for text in case.unlabeled])
    leaking, plain = case.fit(case.unlabeled), case.fit(None)
    certain = np.asarray(leaking.predict(case.unlabeled)).max(axis=1) == 1
    assert 0 < single.sum() < len(single)
    assert (certain == single).all()
    known = [text for text, is_single in zip(case.unlabeled, single, strict=True) if is_single]
    answers = [np.asarray(predictor.predict(known)).argmax(axis=1) for predictor in (leaking, plain)]
    truth = np.array([min(labels_by_text[text]) for text in known])
    gain = ((answers[0] == truth).sum() - (answers[1] == truth).sum()) / len(case.unlabeled)
    assert leaking.metrics["planted_gain"] == pytest.approx(gain)
    assert (answers[0] == truth).all()

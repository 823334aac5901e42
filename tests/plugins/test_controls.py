from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from peekbench.errors import DataError
from peekbench.execution.worker import Worker
from peekbench.records.data import Dataset, Labeled
from peekbench.records.trials import Draw, Trial, TrialResult, WorkItem
from peekbench.spec.components import MethodSpec, make_component
from peekbench.spec.experiment import make_spec
from peekbench.testing import check_method, make_case


@pytest.mark.parametrize("use", ["controls.null", "controls.leak"])
def test_controls_keep_their_contract(use: str) -> None:
    assert [outcome for outcome in check_method(use) if not outcome.passed] == []


@pytest.mark.parametrize("use", ["controls.null", "controls.leak"])
def test_texts_without_words_are_said_to_be_so(use: str, tmp_path: Path) -> None:
    spec = make_component(MethodSpec, use)
    case = make_case(use, spec.entry, spec.options, tmp_path)
    wordless = replace(case, train=Labeled(tuple("a ! 好,坏" for _ in case.train.inputs), case.train.labels))
    for unlabeled in (None, case.unlabeled):
        with pytest.raises(DataError, match=r"the 60 train texts hold no word .*; draw more train texts, or leave"):
            wordless.predict(unlabeled)


def run(methods: list[Any], tmp_path: Path, *, num_subsamples: int, noise: float = 0.7) -> dict[str, Any]:
    """Scores by method: (num_subsamples, 3 arms), and the metrics of arm test."""
    spec = make_spec(
        {
            "name": "controls",
            "tasks": [{"use": "toy.words", "name": "words", "options": {"num_rows": 600, "noise": noise}}],
            "methods": methods,
            "design": {"num_train": 30, "num_test": 200, "num_subsamples": num_subsamples},
            "analyses": ["toy.count"],
        },
        folder=tmp_path,
    )
    worker = Worker(spec)
    scores: dict[str, list[list[float]]] = {method.name: [] for method in spec.methods}
    metrics: dict[str, list[float]] = {method.name: [] for method in spec.methods}
    for subsample in range(num_subsamples):
        for method in spec.methods:
            (outcome,) = worker(WorkItem((Trial(Draw("words", 30, 200, subsample), method.name),), has_base=False))
            assert isinstance(outcome, TrialResult), outcome
            scores[method.name].append([arm.score for arm in outcome.arms])
            metrics[method.name].append(outcome.arms[-1].metrics.get("planted_gain", 0.0))
    return {name: (np.array(scores[name]), np.array(metrics[name])) for name in scores}


def test_null_has_no_boost_and_no_bias_at_all(tmp_path: Path) -> None:
    scores, _ = run(["controls.null"], tmp_path, num_subsamples=5)["controls.null"]
    assert (scores == scores[:, :1]).all()
    assert 0.4 < scores.mean() < 0.95  # neither hopeless nor perfect, so that a bias could show


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_leak_has_the_bias_that_is_planted(share: float, tmp_path: Path) -> None:
    method = {"use": "controls.leak", "options": {"share": share}}
    scores, planted = run([method], tmp_path, num_subsamples=20)["controls.leak"]
    base, extra, test = scores.T
    assert (base == extra).all()  # extra texts are not the test's: knowing their labels is worth nothing
    assert test - extra == pytest.approx(planted)  # the metric says in each trial what was planted
    expected = share * (1 - extra)
    error = (test - extra - expected).std(ddof=1) / np.sqrt(len(test))
    assert (test - extra).mean() == pytest.approx(expected.mean(), abs=3 * error + 1e-9)
    assert (test - extra).mean() > 0.01


def test_leak_and_null_share_their_base_arm(tmp_path: Path) -> None:
    null, leak = (make_component(MethodSpec, use) for use in ("controls.null", "controls.leak"))
    assert null.base_key() == leak.base_key()
    both = run(["controls.null", "controls.leak"], tmp_path, num_subsamples=3)
    assert (both["controls.null"][0][:, 0] == both["controls.leak"][0][:, 0]).all()


def test_leak_knows_the_share_it_is_told(tmp_path: Path) -> None:
    for share, most in ((0.0, 0), (0.25, 15), (1.0, 60)):
        spec = make_component(MethodSpec, "controls.leak", {"share": share})
        case = make_case("controls.leak", spec.entry, spec.options, tmp_path)
        certain = case.fit(case.unlabeled).predict(case.unlabeled).max(axis=1) == 1
        assert certain.sum() == most
        assert len(case.unlabeled) == 60


def test_leak_knows_nothing_of_texts_that_stand_under_two_labels(tmp_path: Path) -> None:
    """What it plants is then still what it says: such a text alone does not tell which answer is right."""
    texts = [f"word{row % 40} other{row % 6}" for row in range(240)]  # every 120th is the same
    labels = np.random.default_rng(0).integers(0, 2, 240).tolist()
    texts[:60], labels[:60] = [f"single{row} word{row}" for row in range(60)], [row % 2 for row in range(60)]
    spec = make_component(MethodSpec, "controls.leak", {"share": 1.0})
    dataset = Dataset(texts, labels, ("zero", "one"))
    case = make_case("controls.leak", spec.entry, spec.options, tmp_path, dataset)
    of_text: dict[str, set[int]] = {}
    for text, label in zip(texts, labels, strict=True):
        of_text.setdefault(text, set()).add(label)
    single = np.array([len(of_text[text]) == 1 for text in case.unlabeled])
    leaking, plain = case.fit(case.unlabeled), case.fit(None)
    certain = leaking.predict(case.unlabeled).max(axis=1) == 1
    assert 0 < single.sum() < len(single)
    assert (certain == single).all()
    known = [text for text, alone in zip(case.unlabeled, single, strict=True) if alone]
    answers = [predictor.predict(known).argmax(axis=1) for predictor in (leaking, plain)]
    truth = np.array([min(of_text[text]) for text in known])
    gain = ((answers[0] == truth).sum() - (answers[1] == truth).sum()) / len(case.unlabeled)
    assert leaking.metrics["planted_gain"] == pytest.approx(gain)
    assert (answers[0] == truth).all()

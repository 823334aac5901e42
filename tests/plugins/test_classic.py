"""Tests of the methods of `classic`: contract, texts without words, and unlabeled texts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from peekbench.errors import DataError
from peekbench.execution.work import SpecWork
from peekbench.records.data import Folders, Labeled
from peekbench.records.trials import Draw, Trial, TrialResult, WorkItem
from peekbench.spec.components import MethodSpec, make_component
from peekbench.spec.experiment import make_spec
from peekbench.testing import check_entry, make_case

METHODS = ["classic.lsa", "classic.self_training", "classic.word2vec"]


@pytest.mark.slow
@pytest.mark.parametrize("use", METHODS)
def test_methods_pass_the_contract_checks(use: str) -> None:
    assert [outcome for outcome in check_entry(use) if not outcome.passed] == []


@pytest.mark.parametrize("use", METHODS)
def test_methods_learn_from_labels_and_use_unlabeled_texts(use: str, tmp_path: Path) -> None:
    spec = make_component(MethodSpec, use)
    case = make_case(use, spec.entry, spec.options, tmp_path)
    base, extra = case.predict(None), case.predict(case.unlabeled)
    labels = _labels_of(case.test)
    assert (base.argmax(axis=1) == labels).mean() > 0.5  # guessing gives 1/3
    assert (extra.argmax(axis=1) == labels).mean() > 0.5
    assert not np.allclose(base, extra)


@pytest.mark.parametrize("use", METHODS)
def test_texts_without_words_are_an_error(use: str, tmp_path: Path) -> None:
    spec = make_component(MethodSpec, use)
    case = make_case(use, spec.entry, spec.options, tmp_path)
    for text in ("a ! 1", "好,坏", ""):
        wordless = replace(case, train=Labeled(tuple(text for _ in case.train.inputs), case.train.labels))
        for unlabeled, number in ((None, 60), (("? b", "c 2"), 62)):
            with pytest.raises(DataError, match=f"the {number} texts .* no word of two .*; draw more train texts"):
                wordless.predict(unlabeled)


@pytest.mark.parametrize(
    ("use", "text", "message"),
    [
        ("classic.lsa", "一二三四五六七八九十一二三四五六七", "only one word of two or more letters or digits"),
        ("classic.lsa", "word", "only one word of two or more letters or digits"),
        ("classic.word2vec", "一二三四五六七八九十一二三四五六七", "no word of two to fifteen letters"),
        ("classic.word2vec", "12 345", "no word of two to fifteen letters"),
    ],
)
def test_error_describes_the_words_of_each_method(use: str, text: str, message: str, tmp_path: Path) -> None:
    spec = make_component(MethodSpec, use)
    case = make_case(use, spec.entry, spec.options, tmp_path)
    wordless = replace(case, train=Labeled(tuple(text for _ in case.train.inputs), case.train.labels))
    with pytest.raises(DataError, match=message):
        wordless.predict(None)


@pytest.mark.parametrize("use", METHODS)
def test_train_texts_without_words_get_the_shares_of_their_classes(use: str, tmp_path: Path) -> None:
    """Where the unlabeled texts have words, there is nothing to learn, but something to answer."""
    spec = make_component(MethodSpec, use)
    case = make_case(use, spec.entry, spec.options, tmp_path)
    wordless = replace(case, train=Labeled(tuple("a !" for _ in case.train.inputs), case.train.labels))
    assert wordless.predict(case.unlabeled) == pytest.approx(1 / 3, abs=1e-6)


@pytest.mark.parametrize(("use", "expected"), [(METHODS[0], [4, 0]), (METHODS[1], [4, 0]), (METHODS[2], [3, 0])])
def test_tokens_are_counted_with_the_methods_tokenizer(use: str, expected: list[int], tmp_path: Path) -> None:
    spec = make_component(MethodSpec, use)
    assert spec.entry.preparation.count_tokens is not None
    counted = spec.entry.preparation.count_tokens(
        ["It has 12 words.", "a b"], options=spec.options, folders=Folders(tmp_path, tmp_path)
    )
    assert (list(counted.counts), counted.limit) == (expected, None)


def _labels_of(texts: Any) -> Any:
    """Return the labels of texts from `peekbench.testing.sample_texts`, whose classes alternate."""
    return np.array([int(text.rpartition("number")[2]) % 3 for text in texts])


def test_lsa_limits_components_to_the_rank_of_the_texts(tmp_path: Path) -> None:
    spec = make_component(MethodSpec, "classic.lsa", {"num_components": 10_000})
    case = make_case("classic.lsa", spec.entry, spec.options, tmp_path)
    assert case.fit(None).metrics["explained_variance"] == pytest.approx(1)


def test_low_temperature_sharpens_soft_labels(tmp_path: Path) -> None:
    entropies = []
    for temperature in (0.25, 1.0):
        spec = make_component(MethodSpec, "classic.self_training", {"temperature": temperature})
        case = make_case("classic.self_training", spec.entry, spec.options, tmp_path)
        entropies.append(case.fit(case.unlabeled).metrics["soft_label_entropy"])
    assert entropies[0] < entropies[1]


def test_very_low_temperature_gives_hard_labels(tmp_path: Path) -> None:
    """Probabilities to the power of 100,000 underflow; their ratios do not."""
    spec = make_component(MethodSpec, "classic.self_training", {"temperature": 1e-5})
    case = make_case("classic.self_training", spec.entry, spec.options, tmp_path)
    assert case.fit(case.unlabeled).metrics["soft_label_entropy"] == pytest.approx(0, abs=1e-3)
    case.predict(case.unlabeled)


def test_word2vec_gives_texts_without_known_words_the_same_probabilities(tmp_path: Path) -> None:
    spec = make_component(MethodSpec, "classic.word2vec")
    case = make_case("classic.word2vec", spec.entry, spec.options, tmp_path)
    probabilities = case.fit(case.unlabeled).predict(("zzz qqq", "", "unheard"))
    assert np.allclose(probabilities, probabilities[0])
    assert probabilities.sum(axis=1) == pytest.approx(1)


@pytest.mark.slow
def test_probabilities_do_not_depend_on_the_hash_seed() -> None:
    code = f"""
import json, tempfile, pathlib
from peekbench.spec.components import MethodSpec, make_component
from peekbench.testing import make_case
probabilities = {{}}
with tempfile.TemporaryDirectory() as folder:
    for use in {METHODS!r}:
        spec = make_component(MethodSpec, use)
        case = make_case(use, spec.entry, spec.options, pathlib.Path(folder))
        probabilities[use] = case.predict(case.unlabeled).tolist()
print(json.dumps(probabilities))
"""
    results = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert json.loads(results[0]) == json.loads(results[1])


@pytest.mark.slow
def test_lsa_with_few_components_is_biased_on_real_text(tmp_path: Path) -> None:
    """An SVD fitted on the test texts has a bias well above its standard error."""
    spec = make_spec(
        {
            "name": "lsa",
            "seed": 2024,
            "tasks": ["docstrings.stdlib"],
            "methods": ["classic.lsa"],
            "design": {"num_train": 50, "num_test": 200, "num_subsamples": 50},
            "arms": ["extra", "test"],
        },
        folder=tmp_path,
    )
    worker = SpecWork(spec)
    biases = []
    for subsample in range(50):
        item = WorkItem((Trial(Draw("docstrings.stdlib", 50, 200, subsample), "classic.lsa"),), has_base=False)
        (outcome,) = worker(item)
        assert isinstance(outcome, TrialResult)
        extra, test = outcome.arms
        biases.append(test.score - extra.score)
    assert np.mean(biases) > 2.5 * np.std(biases, ddof=1) / np.sqrt(len(biases))

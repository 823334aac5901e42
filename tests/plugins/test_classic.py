"""Tests of the methods of `classic`: contract, texts without words, and unlabeled texts."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier

from peekbench import load_dataset
from peekbench.errors import DataError
from peekbench.records.data import Labeled
from peekbench.spec.components import MethodSpec, make_component
from peekbench_classic import tfidf
from peekbench_testing import Case, check_entry, make_case

HAS_GENSIM = importlib.util.find_spec("gensim") is not None
needs_gensim = pytest.mark.skipif(not HAS_GENSIM, reason="the extra 'word2vec' is not installed")
WORD2VEC = pytest.param("classic.word2vec", marks=needs_gensim)
METHODS = ["classic.lsa", "classic.self_training", WORD2VEC]


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


def _labels_of(texts: Any) -> Any:
    """Return the labels of texts from `peekbench_testing.sample_texts`, whose classes alternate."""
    return np.array([int(text.rpartition("number")[2]) % 3 for text in texts])


def test_lsa_with_the_words_of_train_ignores_all_others(tmp_path: Path) -> None:
    for vocabulary, is_ignored in [("train", True), ("all", False)]:
        spec = make_component(MethodSpec, "classic.lsa", {"vocabulary": vocabulary})
        case = make_case("classic.lsa", spec.entry, spec.options, tmp_path)
        unknown = [f"{text} unknown{row % 3}word" for row, text in enumerate(case.unlabeled)]
        assert np.allclose(case.predict(unknown), case.predict(case.unlabeled)) == is_ignored


@pytest.fixture
def real_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """Return a case of `classic.lsa` with real texts, and solve its problems exactly, to compare formulas alone."""
    monkeypatch.setattr(tfidf, "LogisticRegression", partial(LogisticRegression, tol=1e-8))
    monkeypatch.setattr(tfidf, "TruncatedSVD", partial(TruncatedSVD, algorithm="arpack"))
    data = load_dataset("docstrings.sklearn")
    rows = np.random.default_rng(0).permutation(len(data.inputs))[:350]
    texts, labels = [data.inputs[row] for row in rows], np.asarray(data.labels)[rows]
    spec = make_component(MethodSpec, "classic.lsa")
    case = make_case("classic.lsa", spec.entry, spec.options, tmp_path)
    return replace(
        case,
        task=replace(case.task, class_names=data.class_names),
        train=Labeled(tuple(texts[:50]), labels[:50]),
        unlabeled=tuple(texts[50:250]),
        test=tuple(texts[250:]),
    )


@pytest.mark.slow
def test_lsa_equals_an_exact_decomposition(real_case: Case) -> None:
    """Deerwester et al. (1990): texts are projected on the right singular vectors of the matrix of texts and words."""
    texts = [*real_case.train.inputs, *real_case.unlabeled]
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(texts)
    words = np.linalg.svd(vectorizer.transform(texts).toarray(), full_matrices=False)[2][:10].T

    def embed(texts: Any) -> Any:
        rows = vectorizer.transform(texts) @ words
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    head = LogisticRegression(tol=1e-8, max_iter=1000).fit(embed(real_case.train.inputs), real_case.train.labels)
    assert real_case.predict(real_case.unlabeled) == pytest.approx(head.predict_proba(embed(real_case.test)), abs=1e-4)


def test_self_training_with_hard_labels_equals_scikit_learn(real_case: Case) -> None:
    """With certain labels and equal weights, one round is that of scikit-learn's SelfTrainingClassifier."""
    spec = make_component(MethodSpec, "classic.self_training", {"temperature": 1e-6, "unlabeled_weight": 1.0})
    case = replace(real_case, entry=spec.entry, options=spec.options)
    texts = [*case.train.inputs, *case.unlabeled]
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(texts)
    model = SelfTrainingClassifier(LogisticRegression(C=10, tol=1e-8, max_iter=1000), threshold=0.0, max_iter=1)
    model.fit(vectorizer.transform(texts), [*case.train.labels, *[-1] * len(case.unlabeled)])
    expected = model.predict_proba(vectorizer.transform(case.test))
    assert case.predict(case.unlabeled) == pytest.approx(expected, abs=1e-4)

"""Tests of the transductive methods: contract, agreement with references, and gains where their assumptions hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from process_checks import IN_NEW_PROCESS, check_in_this_process
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit
from sklearn.semi_supervised import LabelSpreading

from peekbench import Dataset
from peekbench.errors import DataError
from peekbench.records.data import Labeled
from peekbench.spec.components import MethodSpec, make_component
from peekbench_testing import METHOD_CHECKS, Case, make_case

ARRAY_METHODS = ("batch_statistics", "centroids", "class_priors", "entropy_minimization", "label_spreading")
VARIANTS: tuple[tuple[str, dict[str, Any], str], ...] = (
    *((method, {}, "texts") for method in (*ARRAY_METHODS, "bm25")),
    ("batch_statistics", {}, "arrays"),
    ("label_spreading", {}, "arrays"),
)
TEXTS = (
    "big red apple pie", "red apple juice", "apple tree and apple pie", "fresh green apple",
    "fast blue car", "blue car engine engine", "car road trip", "old car and old road",
)  # fmt: skip
LABELS = np.array([0, 0, 0, 0, 1, 1, 1, 1])
UNLABELED = ("red pie pie", "engine road noise", "green tree juice", "blue trip", "nothing known here", "apple car")


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Case]:
    """Return a function that makes a case of a method, by default on the texts of the contract checks."""

    def make(method: str, options: dict[str, Any] | None = None, dataset: Dataset | None = None) -> Case:
        spec = make_component(MethodSpec, f"transductive.{method}", options)
        return make_case(spec.use, spec.entry, spec.options, tmp_path, dataset)

    return make


@pytest.fixture
def make_small(make: Callable[..., Case]) -> Callable[..., Case]:
    """Return a function that makes a case of a method on two classes of four train texts."""

    def make_small(method: str, options: dict[str, Any] | None = None) -> Case:
        case = make(method, options)
        task = replace(case.task, class_names=("food", "traffic"))
        return replace(case, task=task, train=Labeled(TEXTS, LABELS), unlabeled=UNLABELED)

    return make_small


def rows_of(means: Any, labels: Any, rng: np.random.Generator) -> Any:
    return np.asarray(means)[labels] + rng.normal(size=(len(labels), np.shape(means)[1]))


def on_arrays(case: Case, train: tuple[Any, Any], unlabeled: Any) -> Case:
    task = replace(case.task, class_names=tuple(f"class {label}" for label in range(int(train[1].max()) + 1)))
    return replace(case, task=task, train=Labeled(*train), unlabeled=unlabeled)


def linear_model() -> tuple[Any, Any, Any]:
    """Return features of `UNLABELED`, and the weights and intercepts of a classifier fitted on `TEXTS`."""
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(TEXTS)
    model = LogisticRegression(C=10.0, max_iter=1000, tol=1e-10).fit(vectorizer.transform(TEXTS), LABELS)
    weights = np.stack([np.zeros(model.coef_.shape[1]), model.coef_[0]], axis=1)
    return vectorizer.transform(UNLABELED).toarray(), weights, np.array([0.0, model.intercept_[0]])


@pytest.mark.slow
@pytest.mark.parametrize(("method", "options", "kind"), VARIANTS)
def test_methods_fulfill_the_contract(
    method: str, options: dict[str, Any], kind: str, make: Callable[..., Case]
) -> None:
    dataset = None
    if kind == "arrays":
        labels = np.arange(180) % 3
        dataset = Dataset(rows_of(2 * np.eye(3, 8), labels, np.random.default_rng(0)), labels, ("a", "b", "c"))
    case = make(method, options, dataset)
    check_in_this_process(case)
    if kind == "texts":
        for name in IN_NEW_PROCESS:
            METHOD_CHECKS[name](case)
    assert not np.allclose(case.predict(None), case.predict(case.unlabeled), atol=1e-5)
    metrics = case.fit(case.unlabeled).metrics
    assert set(metrics) == set(case.entry.metrics)
    assert np.isfinite(list(metrics.values())).all()


def test_texts_without_words_and_arrays_for_bm25_are_errors(make: Callable[..., Case]) -> None:
    for method in (*ARRAY_METHODS, "bm25"):
        case = make(method)
        wordless = replace(case, train=Labeled(("a ! 1",) * 60, case.train.labels))
        with pytest.raises(DataError, match="the 60 train texts have no word of two .*; draw more train texts"):
            wordless.predict(case.unlabeled)
    with pytest.raises(DataError, match=r"transductive.bm25 takes texts"):
        on_arrays(case, (np.eye(4), np.array([0, 1, 0, 1])), np.eye(4)).predict(None)


@pytest.mark.parametrize("method", [*ARRAY_METHODS, "bm25"])
def test_equal_train_texts_give_the_shares_of_their_classes(method: str, make_small: Callable[..., Case]) -> None:
    case = replace(make_small(method), train=Labeled(("red apple",) * 8, LABELS))
    assert case.predict(UNLABELED) == pytest.approx(0.5, abs=1e-6)


def test_label_spreading_equals_scikit_learn(make_small: Callable[..., Case]) -> None:
    """Also a text that is not in the graph has its label in scikit-learn's graph with this text."""
    case = make_small("label_spreading", {"alpha": 0.8, "gamma": 3.0})
    known = [text for text in UNLABELED if text != "nothing known here"]  # scikit-learn has other distances for it
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(TEXTS)
    gamma = 3.0 / pdist(vectorizer.transform(TEXTS).toarray(), "sqeuclidean").mean()

    def reference(texts: list[str]) -> Any:
        model = LabelSpreading(kernel="rbf", gamma=gamma, alpha=0.8, tol=1e-13, max_iter=10_000)
        model.fit(vectorizer.transform([*TEXTS, *texts]).toarray(), [*LABELS, *[-1] * len(texts)])
        return model.label_distributions_[len(TEXTS) :]

    predictor, base = case.fit(tuple(known)), case.fit(None)
    assert predictor.predict(known) == pytest.approx(reference(known), abs=1e-8)
    for text in ("apple road", "old red car"):
        both = predictor.predict([known[2], text])
        assert both == pytest.approx(reference([*known, text])[[2, -1]], abs=0.02)  # the new text changes the known one
        assert both[1] == pytest.approx(reference([*known, text])[-1], abs=1e-8)
        assert base.predict([text]) == pytest.approx(reference([text]), abs=1e-8)


def test_entropy_minimization_equals_torch(make_small: Callable[..., Case]) -> None:
    torch = pytest.importorskip("torch", reason="the extra 'lm' is not installed")
    case = make_small("entropy_minimization", {"steps": 4, "learning_rate": 0.05})
    rows, *parameters = map(torch.tensor, linear_model())
    optimizer = torch.optim.Adam([parameter.requires_grad_() for parameter in parameters], lr=0.05)

    def entropy() -> Any:
        return torch.distributions.Categorical(logits=rows @ parameters[0] + parameters[1]).entropy().mean()

    before = entropy().item()
    for _ in range(4):
        optimizer.zero_grad()
        entropy().backward()
        optimizer.step()
    predictor = case.fit(UNLABELED)
    expected = torch.softmax(rows @ parameters[0] + parameters[1], dim=1).detach().numpy()
    assert predictor.predict(UNLABELED) == pytest.approx(expected, abs=1e-6)
    assert predictor.metrics["entropy_before"] == pytest.approx(before, abs=1e-6)
    assert predictor.metrics["entropy_after"] == pytest.approx(entropy().item(), abs=1e-6)
    assert entropy().item() < before - 0.01


def test_class_priors_maximize_the_likelihood_of_calibrated_probabilities(make: Callable[..., Case]) -> None:
    """Scikit-learn calibrates in the same folds; scipy maximizes the likelihood and the Dirichlet prior."""
    rng, means = np.random.default_rng(8), [[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    labels, shifted = np.repeat([0, 1, 2], [24, 15, 9]), np.repeat([0, 1, 2], [6, 9, 25])
    rows, unlabeled = rows_of(means, labels, rng), rows_of(means, shifted, rng)
    case = on_arrays(make("class_priors", {"prior_strength": 20.0}), (rows, labels), unlabeled)

    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0) / np.sqrt(2)
    ranks = np.concatenate([np.arange(24), np.arange(15), np.arange(9)]) % 5
    model = CalibratedClassifierCV(
        LogisticRegression(C=10.0, max_iter=1000, tol=1e-10),
        method="temperature",
        cv=PredefinedSplit(ranks),
        ensemble=False,
    ).fit(scaled, labels)
    posteriors = model.predict_proba((unlabeled - rows.mean(axis=0)) / rows.std(axis=0) / np.sqrt(2))
    assert case.fit(None).predict(unlabeled) == pytest.approx(posteriors, abs=1e-4)

    shares = np.bincount(labels) / len(labels)

    def loss(logits: Any) -> float:
        priors = softmax(logits)
        return -float(np.log(posteriors @ (priors / shares)).sum() + 20 * shares @ np.log(priors))

    weighted = posteriors * softmax(minimize(loss, np.zeros(3), tol=1e-10).x) / shares
    predicted = case.fit(unlabeled).predict(unlabeled)
    assert predicted == pytest.approx(weighted / weighted.sum(axis=1, keepdims=True), abs=1e-4)


def test_soft_k_means_equals_its_formulas(make: Callable[..., Case]) -> None:
    rng = np.random.default_rng(5)
    rows, unlabeled, labels = rng.normal(size=(6, 2)), rng.normal(size=(4, 2)), np.array([0, 0, 1, 1, 1, 0])
    predicted = on_arrays(make("centroids", {"gamma": 2.0, "unlabeled_weight": 0.4}), (rows, labels), unlabeled).fit(
        unlabeled
    )
    means, deviations = rows.mean(axis=0), rows.std(axis=0) * np.sqrt(2)
    known, new = (rows - means) / deviations, (unlabeled - means) / deviations
    scale = np.mean([((a - b) ** 2).sum() for i, a in enumerate(known) for j, b in enumerate(known) if i != j])
    centers = [known[labels == label].mean(axis=0) for label in (0, 1)]

    def assign(row: Any) -> Any:
        weights = np.array([np.exp(-2.0 * ((row - center) ** 2).sum() / scale) for center in centers])
        return weights / weights.sum()

    shares = [0.4 * assign(row) for row in new]
    centers = [
        (known[labels == label].sum(axis=0) + sum(s[label] * row for s, row in zip(shares, new, strict=True)))
        / ((labels == label).sum() + sum(s[label] for s in shares))
        for label in (0, 1)
    ]
    assert predicted.predict(unlabeled) == pytest.approx(np.array([assign(row) for row in new]), abs=1e-10)


def test_batch_statistics_equal_scaling(make: Callable[..., Case]) -> None:
    rng = np.random.default_rng(6)
    rows, unlabeled, labels = rng.normal(size=(40, 3)), rng.normal(2, 3, size=(24, 3)), np.arange(40) % 2
    case = on_arrays(make("batch_statistics", {"prior_strength": 8}), (rows, labels), unlabeled)
    model = LogisticRegression(C=10.0, max_iter=1000, tol=1e-10)
    model.fit((rows - rows.mean(axis=0)) / rows.std(axis=0) / np.sqrt(3), labels)
    variances = rows.var(axis=0) * 8 / 32 + unlabeled.var(axis=0) * 24 / 32
    expected = model.predict_proba((unlabeled - rows.mean(axis=0)) / np.sqrt(variances) / np.sqrt(3))
    assert case.fit(unlabeled).predict(unlabeled) == pytest.approx(expected, abs=1e-5)


def test_bm25_equals_its_formula(make_small: Callable[..., Case]) -> None:
    case = make_small("bm25", {"num_neighbors": 5, "k1": 1.5, "b": 0.6})
    corpus = [text.split() for text in (*TEXTS, *UNLABELED)]
    mean_length = sum(map(len, corpus)) / len(corpus)

    def score(query: list[str], text: list[str]) -> float:
        total = 0.0
        for word in query:
            n = sum(word in other for other in corpus)
            idf = np.log(1 + (len(corpus) - n + 0.5) / (n + 0.5))
            tf = text.count(word)
            total += idf * tf * 2.5 / (tf + 1.5 * (1 - 0.6 + 0.6 * len(text) / mean_length))
        return total

    predicted = case.fit(UNLABELED).predict(UNLABELED)
    for row, query in zip(predicted, UNLABELED, strict=True):
        scores = [score(query.split(), text) for text in corpus[:8]]
        nearest = sorted(range(8), key=lambda index: -scores[index])[:5]
        total = sum(scores[index] for index in nearest)
        voted = sum(scores[index] for index in nearest if index < 4) / total if total else 0.5
        assert row[0] == pytest.approx((5 * voted + 0.5) / 6, abs=1e-10)

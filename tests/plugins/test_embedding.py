"""Tests of the methods on fixed sentence embeddings: contract, and agreement with plain formulas."""

from __future__ import annotations

import needs_torch  # noqa: F401
import pytest

pytest.importorskip("sentence_transformers", reason="the extra 'embeddings' is not installed")

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from process_checks import IN_NEW_PROCESS, check_in_this_process
from scipy.spatial.distance import cdist, pdist
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelPropagation

from peekbench.errors import DataError
from peekbench.spec.components import MethodSpec, make_component
from peekbench_embedding.fixed_encoder import estimate_moments
from peekbench_embedding.label_propagation import make_graph
from peekbench_encoders.embeddings import Embedder
from peekbench_testing import METHOD_CHECKS, Case, make_case

VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("linear", {}),
    ("whitening", {}),
    ("context", {}),
    ("all_but_the_top", {"num_components": 2}),
    ("label_propagation", {}),
)


@pytest.fixture
def make(tmp_path: Path, encoder: Path) -> Callable[..., Case]:
    """Return a function that makes a case of a method with the small encoder."""

    def make(method: str, options: dict[str, Any] | None = None) -> Case:
        spec = make_component(MethodSpec, f"embedding.{method}", {"model": str(encoder), **(options or {})})
        return make_case(spec.use, spec.entry, spec.options, tmp_path)

    return make


@pytest.mark.parametrize(("method", "options"), VARIANTS)
def test_methods_fulfill_the_contract(method: str, options: dict[str, Any], make: Callable[..., Case]) -> None:
    case = make(method, options)
    check_in_this_process(case)
    metrics = case.fit(case.unlabeled).metrics
    assert set(metrics) == set(case.entry.metrics)


@pytest.mark.slow
def test_a_method_fulfills_the_contract_in_a_new_process(make: Callable[..., Case]) -> None:
    """The encoder and the cache are those of all methods."""
    case = make("whitening")
    for name in IN_NEW_PROCESS:
        METHOD_CHECKS[name](case)


def reference_predictions(train: Any, labels: Any, texts: Any) -> Any:
    """Return the probabilities of a logistic regression with C = 1 on rows that are scaled to length 1."""
    train, texts = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (train, texts))
    return LogisticRegression(C=1.0, max_iter=1000, tol=1e-9).fit(train, labels).predict_proba(texts)


def embed_case(case: Case, make_embedder: Callable[..., Embedder]) -> tuple[Any, Any, Any]:
    """Return the embeddings of the train, the unlabeled and the test texts of a case."""
    assert case.unlabeled is not None
    train, unlabeled, test = map(make_embedder(), (case.train.inputs, case.unlabeled, case.test))
    return train, unlabeled, test


@pytest.mark.parametrize("shrinkage", ["ledoit_wolf", 0.2])
@pytest.mark.parametrize("num_components", [None, 5])
def test_whitening_equals_the_formulas_of_the_paper(
    shrinkage: Any, num_components: int | None, make: Callable[..., Case], make_embedder: Callable[..., Embedder]
) -> None:
    """Su et al., algorithm 1: W = U diag(1 / sqrt(variances)), with the eigenvectors U of the covariance.

    With 20 unlabeled texts, the 32 dimensions are more than the covariance has without shrinkage.
    """
    case = make("whitening", {"shrinkage": shrinkage, "num_components": num_components})
    assert case.unlabeled is not None
    case = replace(case, unlabeled=tuple(case.unlabeled[:20]))
    train, unlabeled, test = embed_case(case, make_embedder)
    weight = ledoit_wolf(unlabeled)[1] if shrinkage == "ledoit_wolf" else shrinkage
    covariance = np.cov(unlabeled.T, bias=True)
    covariance = (1 - weight) * covariance + weight * np.trace(covariance) / 32 * np.eye(32)
    vectors, variances, _ = np.linalg.svd(covariance)
    matrix = (vectors / np.sqrt(variances))[:, :num_components]
    expected = reference_predictions(
        (train - unlabeled.mean(axis=0)) @ matrix, case.train.labels, (test - unlabeled.mean(axis=0)) @ matrix
    )
    predictor = case.fit(case.unlabeled)
    assert predictor.predict(case.test) == pytest.approx(expected, abs=1e-5)
    assert predictor.metrics == pytest.approx({"shrinkage": weight, "components": num_components or 32})


def test_context_subtracts_the_mean(make: Callable[..., Case], make_embedder: Callable[..., Embedder]) -> None:
    case = make("context")
    train, unlabeled, test = embed_case(case, make_embedder)
    mean = unlabeled.mean(axis=0)
    expected = reference_predictions(train - mean, case.train.labels, test - mean)
    predictor = case.fit(case.unlabeled)
    assert predictor.predict(case.test) == pytest.approx(expected, abs=1e-5)
    assert predictor.metrics == pytest.approx({"mean_length": np.linalg.norm(mean)})


def test_all_but_the_top_removes_components(make: Callable[..., Case], make_embedder: Callable[..., Embedder]) -> None:
    case = make("all_but_the_top", {"num_components": 3})
    train, unlabeled, test = embed_case(case, make_embedder)
    pca = PCA(3, svd_solver="full").fit(unlabeled)
    left = [rows - pca.mean_ - pca.transform(rows) @ pca.components_ for rows in (train, test)]
    predictor = case.fit(case.unlabeled)
    expected = reference_predictions(left[0], case.train.labels, left[1])
    assert predictor.predict(case.test) == pytest.approx(expected, abs=1e-5)
    assert predictor.metrics == pytest.approx({"removed_variance": pca.explained_variance_ratio_.sum()})


@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
def test_moments_are_those_of_the_covariance(shape: tuple[int, int]) -> None:
    rows = np.random.default_rng(0).normal(size=shape)
    rows[:, 0] = 0  # a direction without variance
    moments = estimate_moments(rows)
    assert (moments.components * moments.variances) @ moments.components.T == pytest.approx(np.cov(rows.T, bias=True))
    assert moments.components.T @ moments.components == pytest.approx(np.eye(5))
    with pytest.raises(DataError, match="the 3 unlabeled texts have equal embeddings"):
        estimate_moments(rows[:1].repeat(3, axis=0))


def test_label_propagation_equals_scikit_learn(
    make: Callable[..., Case], make_embedder: Callable[..., Embedder]
) -> None:
    """Unlabeled texts get their labels in the graph; by the rule `insert`, others get those in a graph with them.

    The rule `nearest` uses the labels of the graph without the text.
    """
    case = make("label_propagation", {"gamma": 3.0})
    assert case.unlabeled is not None
    train, unlabeled, test = embed_case(case, make_embedder)
    gamma = 3.0 / pdist(train, "sqeuclidean").mean()

    def propagate(rows: Any) -> Any:
        model = LabelPropagation(kernel="rbf", gamma=gamma, tol=1e-12, max_iter=100_000)
        return model.fit(np.vstack([train, rows]), [*case.train.labels, *[-1] * len(rows)]).label_distributions_

    known = propagate(unlabeled)
    predictor = case.fit(case.unlabeled)
    mixed = [case.test[0], *case.unlabeled[:5], case.test[1]]
    expected = np.vstack(
        [
            propagate(np.vstack([unlabeled, test[:1]]))[-1],
            known[len(train) : len(train) + 5],
            propagate(np.vstack([unlabeled, test[1:2]]))[-1],
        ]
    )
    assert predictor.predict(mixed) == pytest.approx(expected, abs=1e-5)
    alone = np.vstack([propagate(row[None])[-1] for row in test[:2]])
    assert case.fit(None).predict(case.test[:2]) == pytest.approx(alone, abs=1e-5)

    predictor = make("label_propagation", {"gamma": 3.0, "rule": "nearest"}).fit(case.unlabeled)
    nearest = cdist(test[:2], unlabeled).argmin(axis=1)
    assert predictor.predict(case.test[:2]) == pytest.approx(known[len(train) + nearest], abs=1e-5)
    assert predictor.predict(mixed)[1:6] == pytest.approx(expected[1:6], abs=1e-5)


def test_the_rule_of_the_documentation_is_that_of_label_propagation(
    make: Callable[..., Case], make_embedder: Callable[..., Embedder]
) -> None:
    """`docs/plugins/reference.md` has a rule for methods that label texts together; `insert` does the same faster."""
    page = (Path(__file__).parents[2] / "docs" / "plugins" / "reference.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(page[page.index("```python\nimport numpy") :].split("```")[1].removeprefix("python"), names)
    case = make("label_propagation", {"gamma": 3.0})
    assert case.unlabeled is not None
    unlabeled = tuple(case.unlabeled[:10])
    embed = make_embedder()
    train, num_classes = embed(case.train.inputs), case.task.num_classes

    def label(texts: tuple[str, ...]) -> Any:
        return make_graph(train, case.train.labels, embed(texts), num_classes, 3.0).labels

    texts = [*case.test[:4], unlabeled[3]]
    for arm in (unlabeled, None):
        documented = names["one_at_a_time"](label, arm or ()).predict(texts)
        assert case.fit(arm).predict(texts) == pytest.approx(documented, abs=1e-9)

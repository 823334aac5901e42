"""Transductive methods on sentence embeddings: contract, agreement with references, and what an encoder needs."""

from __future__ import annotations

import needs_torch  # noqa: F401
import pytest

pytest.importorskip("sentence_transformers", reason="the extra 'embeddings' is not installed")

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from process_checks import check_in_this_process
from scipy.spatial.distance import cdist, pdist
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from peekbench import Folders
from peekbench.records import Resources
from peekbench.spec.components import MethodSpec, make_component, merge
from peekbench_encoders.embeddings import Embedder
from peekbench_lm import model_files
from peekbench_testing import Case, make_case

METHODS = ("batch_statistics", "centroids", "class_priors", "entropy_minimization", "label_spreading")


@pytest.fixture
def make(tmp_path: Path, encoder: Path) -> Callable[..., Case]:
    """Return a function that makes a case of a method on embeddings of the small encoder."""

    def make(method: str, options: dict[str, Any] | None = None) -> Case:
        options = {"encoder": {"model": str(encoder), "device": "cpu"}, **(options or {})}
        spec = make_component(MethodSpec, f"transductive.{method}", options)
        return make_case(spec.use, spec.entry, spec.options, tmp_path)

    return make


@pytest.fixture
def embed(make_embedder: Callable[..., Embedder]) -> Callable[[Any], Any]:
    """Return a function that embeds texts with the small encoder; it scales embeddings to length 1 itself."""
    return make_embedder(device="cpu")


@pytest.mark.parametrize("method", METHODS)
def test_methods_fulfill_the_contract(method: str, make: Callable[..., Case]) -> None:
    case = make(method)
    check_in_this_process(case)
    assert not np.allclose(case.predict(None), case.predict(case.unlabeled), atol=1e-5)
    assert set(case.fit(case.unlabeled).metrics) == set(case.entry.metrics)


def test_the_base_arm_is_a_logistic_regression_on_embeddings(
    make: Callable[..., Case], embed: Callable[[Any], Any]
) -> None:
    case = make("entropy_minimization")
    model = LogisticRegression(C=10.0, max_iter=1000, tol=1e-10).fit(embed(case.train.inputs), case.train.labels)
    assert case.predict(None) == pytest.approx(model.predict_proba(embed(case.test)), abs=1e-5)
    words = make("entropy_minimization", {"encoder": None})
    assert not np.allclose(case.predict(None), words.predict(None), atol=0.01)


def test_centroids_have_unit_length(make: Callable[..., Case], embed: Callable[[Any], Any]) -> None:
    case = make("centroids", {"gamma": 2.0})
    train = embed(case.train.inputs)
    means = np.stack([train[case.train.labels == label].mean(axis=0) for label in range(case.task.num_classes)])
    centers = means / np.linalg.norm(means, axis=1, keepdims=True)
    distances = cdist(embed(case.test), centers, "sqeuclidean") / pdist(train, "sqeuclidean").mean()
    assert case.predict(None) == pytest.approx(softmax(-2.0 * distances, axis=1), abs=1e-6)


def test_an_encoder_is_prefetched(make: Callable[..., Case], tmp_path: Path, encoder: Path) -> None:
    folders = Folders(spec=tmp_path, cache=tmp_path)
    case = make("centroids", {"encoder": {"model": str(encoder), "device": "cuda", "threads": 2}})
    entry, options = case.entry.preparation, case.options
    assert entry.prefetch and entry.resources and entry.pin
    assert "model.safetensors" in entry.prefetch(options=options, folders=folders)["sha256"]
    needs = entry.resources(options=options, folders=folders)
    assert (needs.cpus, needs.gpus, needs.is_gpu_optional) == (2, 1, False)
    assert entry.pin(options=options, folders=folders) == {}

    options = make("centroids", {"encoder": None}).options
    assert entry.prefetch(options=options, folders=folders) == entry.pin(options=options, folders=folders) == {}
    assert entry.resources(options=options, folders=folders) == Resources()


def test_the_commit_of_an_encoder_is_pinned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The pinned option replaces all of `encoder`, so it has what the user wrote there, too."""
    monkeypatch.setattr(model_files, "_find_commit", lambda *arguments: "a" * 40)
    encoder = {"model": "some/encoder", "prompt": "query: "}
    method = make_component(MethodSpec, "transductive.centroids", {"encoder": encoder, "gamma": 2.0})
    assert method.model == "some/encoder"
    folders = Folders(spec=tmp_path, cache=tmp_path)
    pin = method.entry.preparation.pin
    assert pin is not None
    pinned = merge(method.options, pin(options=method.options, folders=folders))
    expected = method.options.model_dump()
    expected["encoder"]["revision"] = "a" * 40
    assert pinned.model_dump() == expected

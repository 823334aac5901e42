"""Transductive methods on sentence embeddings: contract, agreement with references, and what an encoder needs."""

from __future__ import annotations

import needs_torch  # noqa: F401
import pytest

pytest.importorskip("sentence_transformers", reason="the extra 'embeddings' is not installed")

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from process_checks import check_in_this_process
from scipy.spatial.distance import cdist, pdist
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading
from small_models import SENTENCES

from peekbench import Folders
from peekbench.errors import DataError
from peekbench.records import Resources
from peekbench.records.data import Labeled
from peekbench.spec.components import MethodSpec, make_component, merge
from peekbench_encoders.embeddings import Embedder
from peekbench_encoders.options import Encoder
from peekbench_lm import model_files
from peekbench_testing import Case, make_case
from peekbench_transductive.features import fit_features

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
    assert not np.allclose(case.predict(None), case.predict(case.unlabeled), atol=1e-4)
    assert set(case.fit(case.unlabeled).metrics) == set(case.entry.metrics)


def test_the_base_arm_is_a_logistic_regression_on_embeddings(
    make: Callable[..., Case], embed: Callable[[Any], Any]
) -> None:
    case = make("entropy_minimization")
    model = LogisticRegression(C=10.0, max_iter=1000, tol=1e-10).fit(embed(case.train.inputs), case.train.labels)
    assert case.predict(None) == pytest.approx(model.predict_proba(embed(case.test)), abs=1e-5)
    words = make("entropy_minimization", {"encoder": None})
    assert not np.allclose(case.predict(None), words.predict(None), atol=0.01)


def test_label_spreading_equals_scikit_learn(make: Callable[..., Case], embed: Callable[[Any], Any]) -> None:
    case = make("label_spreading", {"alpha": 0.8, "gamma": 3.0})
    train, unlabeled = embed(case.train.inputs), embed(case.unlabeled)
    model = LabelSpreading(
        kernel="rbf", gamma=3.0 / pdist(train, "sqeuclidean").mean(), alpha=0.8, tol=1e-13, max_iter=10_000
    )
    model.fit(np.vstack([train, unlabeled]), [*case.train.labels, *[-1] * len(unlabeled)])
    predicted = case.fit(case.unlabeled).predict(case.unlabeled or ())
    assert predicted == pytest.approx(model.label_distributions_[len(train) :], abs=1e-6)


def test_centroids_have_unit_length(make: Callable[..., Case], embed: Callable[[Any], Any]) -> None:
    case = make("centroids", {"gamma": 2.0})
    train = embed(case.train.inputs)
    means = np.stack([train[case.train.labels == label].mean(axis=0) for label in range(case.task.num_classes)])
    centers = means / np.linalg.norm(means, axis=1, keepdims=True)
    distances = cdist(embed(case.test), centers, "sqeuclidean") / pdist(train, "sqeuclidean").mean()
    assert case.predict(None) == pytest.approx(softmax(-2.0 * distances, axis=1), abs=1e-6)


def test_batch_statistics_are_those_of_embeddings(make: Callable[..., Case], embed: Callable[[Any], Any]) -> None:
    case = make("batch_statistics", {"prior_strength": 20})
    train, unlabeled = embed(case.train.inputs), embed(case.unlabeled)
    scale = np.sqrt(train.shape[1])
    model = LogisticRegression(C=10.0, solver="newton-cg", max_iter=1000, tol=1e-8).fit(
        train / train.std(axis=0) / scale, case.train.labels
    )
    variances = (20 * train.var(axis=0) + len(unlabeled) * unlabeled.var(axis=0)) / (20 + len(unlabeled))
    expected = model.predict_proba(embed(case.test) / np.sqrt(variances) / scale)
    assert case.predict(case.unlabeled) == pytest.approx(expected, abs=1e-4)


def test_embeddings_of_any_length_are_scaled(encoder: Path, tmp_path: Path) -> None:
    other = shutil.copytree(encoder, tmp_path / "other")
    modules = json.loads((other / "modules.json").read_text(encoding="utf-8"))
    (other / "modules.json").write_text(json.dumps(modules[:2]), encoding="utf-8")  # without normalization
    options, folders = Encoder(model=str(other), device="cpu"), Folders(spec=tmp_path, cache=tmp_path / "cache")
    features, rows = fit_features(SENTENCES[:6], options, folders)
    raw = Embedder(options, folders)(SENTENCES[:6])
    assert np.abs(np.linalg.norm(raw, axis=1) - 1).min() > 0.1
    assert rows == pytest.approx(raw / np.linalg.norm(raw, axis=1, keepdims=True))
    assert features.transform(SENTENCES[2:4]) == pytest.approx(rows[2:4])


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


def test_an_encoder_of_arrays_is_an_error(make: Callable[..., Case]) -> None:
    case = make("centroids")
    with pytest.raises(DataError, match=r"encoder takes texts.*transductive without the option encoder"):
        replace(case, train=Labeled(np.eye(60), case.train.labels)).predict(None)

"""Training of sentence encoders: losses of sentence-transformers, contract, and what is trained on."""

from __future__ import annotations

import needs_torch  # noqa: F401
import pytest

pytest.importorskip("sentence_transformers", reason="the extra 'embeddings' is not installed")

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    CosineSimilarityLoss,
    DenoisingAutoEncoderLoss,
    MultipleNegativesRankingLoss,
)
from small_models import SENTENCES, max_difference, save_encoder, weights

from peekbench.spec.components import MethodSpec, make_component
from peekbench_embedding import training_methods, tsdae
from peekbench_embedding.options import SimcseTraining, TsdaeTraining
from peekbench_embedding.trained_encoder import SentenceEncoder
from peekbench_embedding.training_methods import choose_pseudo_labels, make_pair_batch, sample_pairs
from peekbench_embedding.tsdae import Decoder
from peekbench_encoders.encoder import read_encoder
from peekbench_lm.forward_context import forward_context
from peekbench_lm.training_loop import Batch
from peekbench_testing import METHOD_CHECKS, Case, make_case

TEXTS = [*SENTENCES[3:60:9], " ".join(SENTENCES[5:8])]
TRAINING = {
    "simcse": {"epochs": 1, "learning_rate": 1e-2, "batch_size": 8, "precision": "fp32"},
    "tsdae": {"epochs": 1, "learning_rate": 1e-2, "precision": "fp32"},
    "setfit": {"learning_rate": 1e-2, "pairs_per_text": 2, "precision": "fp32"},
}
torch.set_num_threads(1)  # more threads slow down models of this size


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an encoder without dropout."""
    return save_encoder(tmp_path_factory.mktemp("exact"), dropout=0.0)


@pytest.fixture
def make(tmp_path: Path, folder: Path) -> Callable[..., Case]:
    """Return a function that makes a case of a method with the small encoder."""

    def make(method: str, **options: Any) -> Case:
        options = {"model": str(folder), "device": "cpu", "training": TRAINING.get(method, {}), **options}
        if method == "linear":
            del options["training"]
        spec = make_component(MethodSpec, f"embedding.{method}", options)
        return make_case(spec.use, spec.entry, spec.options, tmp_path)

    return make


def load(folder: Path) -> SentenceEncoder:
    return SentenceEncoder(read_encoder(folder, "cpu"), folder)


def network_of(model: SentenceTransformer) -> torch.nn.Module:
    network = model.transformers_model
    assert network is not None
    return network


def library(folder: Path) -> SentenceTransformer:
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


def token_ids(encoder: SentenceEncoder, texts: Sequence[str] = TEXTS) -> list[list[int]]:
    ids: list[list[int]] = encoder.tokenize(texts, None, 32)["input_ids"]
    return ids


def features(texts: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
    """Return padded texts as the losses of sentence-transformers take them."""
    width = max(map(len, texts))
    ids = torch.zeros(len(texts), width, dtype=torch.long)  # 0 is the padding token
    mask = torch.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = torch.tensor(text), 1
    return {"input_ids": ids, "attention_mask": mask}


def mean_loss(encoder: SentenceEncoder, batch: Batch) -> float:
    """Return the mean loss of a batch, and add its gradient to the weights."""
    (part,) = batch.step.parts(len(batch.step.texts), encoder.device)
    with forward_context(part, 0, "fp32"):
        loss = batch.loss(part) / batch.num_targets
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.item()


def check_gradients(encoder: torch.nn.Module, reference: torch.nn.Module) -> None:
    """Check that all weights that the reference trains have the same gradient."""
    expected = {name: weight.grad for name, weight in reference.named_parameters() if weight.grad is not None}
    actual = {name: weight.grad for name, weight in encoder.named_parameters() if weight.grad is not None}
    assert expected
    for name, gradient in expected.items():
        if gradient.abs().max() > 1e-9:  # that of keys of attention is zero except for rounding
            torch.testing.assert_close(actual[name], gradient, rtol=1e-5, atol=1e-5, msg=name)


# Agreement with sentence-transformers


def test_simcse_has_the_loss_and_gradient_of_sentence_transformers(exact: Path) -> None:
    encoder, model = load(exact), library(exact)
    texts = token_ids(encoder)
    expected = MultipleNegativesRankingLoss(model, scale=20)([features(texts), features(texts)], None)
    expected.backward()
    loss = mean_loss(encoder, training_methods.make_simcse_batch(encoder, texts, temperature=0.05))
    assert loss == pytest.approx(expected.item(), abs=1e-5)
    check_gradients(encoder.network, network_of(model))


def test_tsdae_has_the_loss_and_gradient_of_sentence_transformers(exact: Path) -> None:
    encoder, model = load(exact), library(exact)
    words = tsdae.split_words(encoder, TEXTS, None, 32)
    noisy = [text.delete(0.6, np.random.default_rng(row)) for row, text in enumerate(words)]
    reference = DenoisingAutoEncoderLoss(model, tie_encoder_decoder=True)
    decoder = Decoder(encoder, seed=1)
    decoder.network.load_state_dict(reference.decoder.state_dict())  # new weights; the others are equal already
    assert max_difference(weights(encoder), dict(network_of(model).named_parameters())) == 0
    expected = reference([features(noisy), features([text.ids for text in words])], None)
    expected.backward()
    loss = mean_loss(encoder, tsdae.make_batch(encoder, decoder, words, noisy, seed=1))
    assert loss == pytest.approx(expected.item(), abs=1e-5)
    check_gradients(decoder.network, reference.decoder)
    check_gradients(encoder.network, network_of(model))


def test_setfit_has_the_loss_and_gradient_of_sentence_transformers(exact: Path) -> None:
    encoder, model = load(exact), library(exact)
    texts, labels = token_ids(encoder), np.arange(len(TEXTS)) % 2
    pairs = sample_pairs(labels, 4, np.random.default_rng(0))
    is_same = torch.tensor(labels[pairs[:, 0]] == labels[pairs[:, 1]]).float()
    sides = [features([texts[row] for row in side]) for side in pairs.T]
    expected = CosineSimilarityLoss(model)(sides, is_same)
    expected.backward()
    assert mean_loss(encoder, make_pair_batch(encoder, texts, labels, pairs)) == pytest.approx(
        expected.item(), abs=1e-5
    )
    check_gradients(encoder.network, network_of(model))


def test_embeddings_are_those_of_sentence_transformers(folder: Path) -> None:
    encoder = load(folder)
    expected = library(folder).encode(TEXTS, show_progress_bar=False)
    assert np.allclose(encoder.embed_texts(TEXTS, None, 512), expected, atol=1e-6)
    assert not np.allclose(encoder.embed_texts(TEXTS, "query: ", 512), expected, atol=1e-3)


# Training


@pytest.mark.slow
def test_training_learns_and_restore_undoes_it(folder: Path) -> None:
    encoder = load(folder)
    before = weights(encoder)
    texts = token_ids(encoder, SENTENCES[::4])
    options = SimcseTraining(epochs=5, batch_size=16, learning_rate=1e-3, precision="fp32")
    losses = training_methods.train_simcse(encoder, texts, options, seed=0).losses
    assert losses[-1] < losses[0]
    first = weights(encoder)
    encoder.restore()
    assert max_difference(weights(encoder), before) == 0
    assert training_methods.train_simcse(encoder, texts, options, seed=0).losses == losses
    assert max_difference(weights(encoder), first) == 0
    encoder.restore()
    words = tsdae.split_words(encoder, SENTENCES[::4], None, 32)
    losses = tsdae.train_tsdae(encoder, words, TsdaeTraining(epochs=4, learning_rate=3e-3), seed=0).losses
    assert losses[-1] < losses[0] - 0.5
    assert max_difference(weights(encoder), before) > 0


# Words, pairs and pseudo-labels


def test_deletion_keeps_special_tokens_whole_words_and_at_least_one(folder: Path) -> None:
    words = tsdae.split_words(load(folder), [" ".join(SENTENCES[:3])], None, 32)[0]
    generator = np.random.default_rng(0)
    shares = []
    for _ in range(400):
        ids = words.delete(0.6, generator)
        assert [ids[0], ids[-1]] == [words.ids[0], words.ids[-1]]
        shares.append(len(ids) / len(words.ids))
    num_words = len(set(words.words)) - 1
    assert np.mean(shares) == pytest.approx(0.4 + 0.6 * 2 / len(words.ids), abs=0.03), num_words
    tokens = {word: [t for t, w in zip(words.ids, words.words, strict=True) if w == word] for word in words.words}
    kept = words.delete(0.999, generator)[1:-1]
    assert kept in [tokens[word] for word in tokens if word is not None]
    assert words.delete(0.0, generator) == list(words.ids)


def test_pairs_are_half_of_the_same_class() -> None:
    labels = np.array([0, 0, 0, 1, 1, 2])
    pairs = sample_pairs(labels, 6, np.random.default_rng(0))
    assert np.bincount(pairs[:, 0]).tolist() == [6] * 6
    is_same = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    assert is_same.mean() == 0.5
    assert (pairs[is_same & (labels[pairs[:, 0]] < 2)].T[0] != pairs[is_same & (labels[pairs[:, 0]] < 2)].T[1]).all()


def test_pseudo_labels_are_the_most_confident_of_each_class() -> None:
    probabilities = np.array([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.05, 0.95], [0.85, 0.15]])
    assert choose_pseudo_labels(probabilities, 1.0).tolist() == [0, 1, 2, 3, 4]
    assert choose_pseudo_labels(probabilities, 0.5).tolist() == [0, 3, 4]
    assert choose_pseudo_labels(probabilities, 0.1).tolist() == [0, 3]
    assert choose_pseudo_labels(probabilities, 0.0).tolist() == []


# Methods


@pytest.mark.slow
@pytest.mark.parametrize("method", list(TRAINING))
def test_methods_fulfill_the_contract(method: str, make: Callable[..., Case]) -> None:
    case = make(method)
    for check in METHOD_CHECKS.values():
        check(case)


def test_base_arms_are_those_of_linear_except_that_of_setfit(make: Callable[..., Case]) -> None:
    linear = make("linear").predict(None)
    for method in ("simcse", "tsdae"):
        case = make(method)
        assert (case.predict(None) == linear).all()
        assert case.entry.base == "linear"
        assert not np.allclose(case.predict(case.unlabeled), linear, atol=1e-3)
    assert not np.allclose(make("setfit").predict(None), linear, atol=1e-3)


@pytest.mark.slow
def test_setfit_trains_on_the_texts_that_it_labels(make: Callable[..., Case], monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[int] = []
    original = training_methods.train_setfit

    def train_setfit(encoder: Any, texts: Any, *arguments: Any) -> Any:
        trained.append(len(texts))
        return original(encoder, texts, *arguments)

    monkeypatch.setattr(training_methods, "train_setfit", train_setfit)
    none, some = make("setfit", pseudo_label_share=0.0), make("setfit")
    assert none.fit(none.unlabeled).metrics["pseudo_labels"] == 0
    assert (none.predict(none.unlabeled) == none.predict(None)).all()
    trained.clear()
    metrics = some.fit(some.unlabeled).metrics
    assert trained == [len(some.train.inputs), len(some.train.inputs) + metrics["pseudo_labels"]]
    assert some.unlabeled is not None
    assert len(some.unlabeled) / 2 <= metrics["pseudo_labels"] <= len(some.unlabeled) / 2 + some.task.num_classes

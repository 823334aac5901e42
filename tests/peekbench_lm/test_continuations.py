"""Log-probabilities of continuations: trees, shared tokens, and models that support neither."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from small_models import save_model
from transformers import AutoConfig, AutoModelForCausalLM

from peekbench_lm.continuations import (
    ContinuationTree,
    check_tree_support,
    score_continuations,
    score_separately,
    supports_trees,
)
from peekbench_lm.language_model import LanguageModel

CPU = torch.device("cpu")
torch.set_num_threads(1)  # more threads slow down models of this size
BRANCHES = [[5, 6, 7], [5, 6], [5], [8, 9], [5, 6, 7, 8], [8, 9], [5, 7, 7]]


@pytest.fixture(scope="module", params=["gpt2", "llama", "mistral", "gpt_neox"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return LanguageModel(save_model(request.param, tmp_path_factory.mktemp(request.param)), CPU)


def some_texts(num_shared: int, num_texts: int = 9) -> list[list[int]]:
    rng = np.random.default_rng(num_shared)
    return [[*range(1, num_shared + 1), *rng.integers(0, 300, 1 + row * 3).tolist()] for row in range(num_texts)]


def test_a_tree_holds_each_shared_token_once() -> None:
    tree = ContinuationTree(BRANCHES)
    assert tree.tokens == [5, 6, 8, 7, 7], "last tokens need no node"
    assert tree.parents == [-1, 0, -1, 1, 0]
    assert tree.depths == [1, 2, 1, 3, 2]
    assert tree.steps[4] == [(0, 5), (1, 6), (2, 7), (4, 8)]
    assert tree.steps[3] == tree.steps[5] == [(0, 8), (3, 9)]
    assert tree.visible_nodes()[3].tolist() == [True, True, False, True, False]
    assert tree.visible_nodes()[4].tolist() == [True, False, False, False, True]


@pytest.mark.parametrize("num_shared", [0, 1, 20])
@pytest.mark.parametrize("batch_size", [1, 4, 32])
def test_trees_give_the_scores_of_separate_sequences(num_shared: int, batch_size: int, model: LanguageModel) -> None:
    texts = some_texts(num_shared)
    assert check_tree_support(model)
    scores = score_continuations(model, texts, BRANCHES, batch_size, "fp32")
    model.network.eval()
    for row, text in enumerate(texts):
        for column, branch in enumerate(BRANCHES):
            with torch.no_grad(), model.default_attention():
                log_probabilities = model.network(torch.tensor([[*text, *branch]])).logits[0].double().log_softmax(-1)
            expected = sum(log_probabilities[len(text) - 1 + step, token].item() for step, token in enumerate(branch))
            assert scores[row, column] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_both_default_attentions_take_the_mask(attention: str, tmp_path: Path) -> None:
    model = LanguageModel(save_model("llama", tmp_path), CPU)
    model._default_attention = attention
    assert check_tree_support(model)


def test_models_without_tree_support_score_separate_sequences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LanguageModel(save_model("gpt2", tmp_path), CPU)
    texts = some_texts(5)
    expected = score_continuations(model, texts, BRANCHES, 8, "fp32")
    model.supports_trees = None
    monkeypatch.setattr(LanguageModel, "as_mask", lambda self, visible: torch.ones_like(visible))  # ignore the mask
    scores = score_continuations(model, texts, BRANCHES, 8, "fp32")
    assert model.supports_trees is False
    assert np.allclose(scores, expected, atol=1e-4)


def save_windowed(name: str, window: int, folder: Path) -> LanguageModel:
    """Save a model with an attention window in all layers, or for Gemma in one of two."""
    save_model("mistral", folder)
    config = json.loads((folder / "config.json").read_text()) | {"max_position_embeddings": 512}
    config["sliding_window"] = window
    if name == "gemma3_text":
        torch.manual_seed(0)
        sizes = {key: config[key] for key in config if key.startswith(("num_", "max_", "vocab", "hidden_s", "sliding"))}
        layers = {"head_dim": 8, "layer_types": ["sliding_attention", "full_attention"], "intermediate_size": 64}
        loader: Any = AutoModelForCausalLM
        network = loader.from_config(AutoConfig.for_model(name, **sizes, **layers))
        for weight in network.parameters():
            torch.nn.init.normal_(weight, std=0.3)
        network.save_pretrained(folder)
    else:
        (folder / "config.json").write_text(json.dumps(config))
    return LanguageModel(folder, CPU)


@pytest.mark.parametrize("name", ["mistral", "gemma3_text"])
@pytest.mark.parametrize("window", [12, 200])
def test_trees_respect_attention_windows_shorter_than_a_text(name: str, window: int, tmp_path: Path) -> None:
    """Compare texts that are longer than the probes of the layout with transformers."""
    model = save_windowed(name, window, tmp_path)
    assert model.is_packed
    shared = [token % 300 for token in range(9, 9 + 280)]
    texts = [[*shared, *ending] for ending in ([4], [7, 2, 9, 30], list(range(60, 80)))]
    assert supports_trees(model, texts, BRANCHES)
    scores = score_continuations(model, texts, BRANCHES, 8, "fp32")
    assert np.allclose(scores, score_separately(model, texts, BRANCHES, 8, "fp32"), atol=1e-4)
    for row, text in enumerate(texts):
        with torch.no_grad(), model.default_attention():
            logits = model.network(torch.tensor([[*text, *BRANCHES[0]]])).logits[0].double().log_softmax(-1)
        expected = sum(logits[len(text) - 1 + step, token].item() for step, token in enumerate(BRANCHES[0]))
        assert scores[row, 0] == pytest.approx(expected, abs=1e-4)
    short = score_continuations(model, [texts[0], [5, 6]], BRANCHES, 8, "fp32")
    assert np.allclose(short[0], scores[0], atol=1e-4), "padding does not count"

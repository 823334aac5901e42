"""Log-probabilities of continuations: trees, what is shared, models that take none of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from small_models import save_model

from peekbench_lm.continuations import Tree, score_continuations, score_one_by_one, try_trees
from peekbench_lm.model import LanguageModel

CPU = torch.device("cpu")
torch.set_num_threads(1)  # models this small are slower with more
BRANCHES = [[5, 6, 7], [5, 6], [5], [8, 9], [5, 6, 7, 8], [8, 9], [5, 7, 7]]


@pytest.fixture(scope="module", params=["gpt2", "llama", "mistral", "gpt_neox"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return LanguageModel(save_model(request.param, tmp_path_factory.mktemp(request.param)), CPU)


def some_texts(shared: int, number: int = 9) -> list[list[int]]:
    rng = np.random.default_rng(shared)
    return [[*range(1, shared + 1), *rng.integers(0, 300, 1 + row * 3).tolist()] for row in range(number)]


def test_a_tree_has_every_shared_token_once() -> None:
    tree = Tree(BRANCHES)
    assert tree.tokens == [5, 6, 8, 7, 7], "last tokens are not fed"
    assert tree.parents == [-1, 0, -1, 1, 0]
    assert tree.depths == [1, 2, 1, 3, 2]
    assert tree.steps[4] == [(0, 5), (1, 6), (2, 7), (4, 8)]
    assert tree.steps[3] == tree.steps[5] == [(0, 8), (3, 9)]
    assert tree.sees()[3].tolist() == [True, True, False, True, False]
    assert tree.sees()[4].tolist() == [True, False, False, False, True]


@pytest.mark.parametrize("shared", [0, 1, 20])
@pytest.mark.parametrize("batch_size", [1, 4, 32])
def test_trees_come_to_what_sequences_do(shared: int, batch_size: int, model: LanguageModel) -> None:
    texts = some_texts(shared)
    assert try_trees(model)
    found = score_continuations(model, texts, BRANCHES, batch_size, "fp32")
    model.network.eval()
    for row, text in enumerate(texts):
        for column, branch in enumerate(BRANCHES):
            with torch.no_grad(), model.usual_attention():
                said = model.network(torch.tensor([[*text, *branch]])).logits[0].double().log_softmax(-1)
            wanted = sum(said[len(text) - 1 + step, token].item() for step, token in enumerate(branch))
            assert found[row, column] == pytest.approx(wanted, abs=1e-4)


def test_one_text_alone_and_continuations_of_one_token(model: LanguageModel) -> None:
    text = some_texts(3, 1)
    for branches in ([[4], [5]], [[4]]):
        found = score_continuations(model, text, branches, 8, "fp32")
        assert np.allclose(found, score_one_by_one(model, text, branches, 8, "fp32"), atol=1e-4)
    assert np.allclose(
        score_continuations(model, [[7]], BRANCHES, 8, "fp32")[0, 2], found_first(model, 7, 5), atol=1e-4
    )


def found_first(model: LanguageModel, before: int, token: int) -> float:
    with torch.no_grad(), model.usual_attention():
        return float(model.network(torch.tensor([[before]])).logits[0, -1].log_softmax(-1)[token])


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_both_attentions_take_the_mask(attention: str, tmp_path: Path) -> None:
    model = LanguageModel(save_model("llama", tmp_path), CPU)
    model._usual_attention = attention
    assert try_trees(model)


def test_models_that_do_not_see_trees_are_computed_sequence_by_sequence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LanguageModel(save_model("gpt2", tmp_path), CPU)
    texts = some_texts(5)
    wanted = score_continuations(model, texts, BRANCHES, 8, "fp32")
    model.takes_trees = None
    monkeypatch.setattr(LanguageModel, "as_mask", lambda self, sees: torch.ones_like(sees))  # what a deaf model does
    found = score_continuations(model, texts, BRANCHES, 8, "fp32")
    assert model.takes_trees is False
    assert np.allclose(found, wanted, atol=1e-4)


def test_memory_that_runs_out_while_trees_are_tried_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LanguageModel(save_model("gpt2", tmp_path), CPU)

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as patch:
        patch.setattr("peekbench_lm.continuations._score_trees", full)
        with pytest.raises(torch.OutOfMemoryError):
            try_trees(model)
    assert model.takes_trees is None
    assert try_trees(model), "once there is room"


@pytest.mark.parametrize("window", [12, 200])
def test_windows_that_a_text_does_not_fit_into_are_kept(window: int, tmp_path: Path) -> None:
    """Texts of 300 tokens, whatever the model saw when its layout was tried, computed as transformers does."""
    folder = save_model("mistral", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps({**config, "sliding_window": window, "max_position_embeddings": 512})
    )
    model = LanguageModel(folder, CPU)
    assert model.is_packed
    text = [token % 300 for token in range(9, 9 + 280)]
    found = score_continuations(model, [text, text[:5]], [[5, 6], [7, 8, 9]], 8, "fp32")
    with torch.no_grad(), model.usual_attention():
        logits = model.network(torch.tensor([[*text, 7, 8]])).logits[0].log_softmax(-1)
    wanted = sum(float(logits[len(text) - 1 + place, token]) for place, token in enumerate((7, 8, 9)))
    assert found[0, 1] == pytest.approx(wanted, abs=1e-4)


def test_what_is_shared_is_computed_once(model: LanguageModel) -> None:
    texts = some_texts(20)
    try_trees(model)
    fed: list[int] = []
    hook = model.body.register_forward_pre_hook(
        lambda module, arguments, named: fed.append((*arguments, named.get("input_ids"))[0].numel()), with_kwargs=True
    )
    score_continuations(model, texts, BRANCHES, 100, "fp32")
    hook.remove()
    longest = max(map(len, texts)) - 20
    assert fed == [20, len(texts) * (longest + 5)]

"""Training of language models: objectives, the loss of the head, and steps that do not fit into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from small_models import SENTENCES, max_difference, save_model, some_texts, weights
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModelForCausalLM

from peekbench_lm import head as head_module
from peekbench_lm.forward_context import forward_context
from peekbench_lm.head import summed_loss
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import Step
from peekbench_lm.nano import train_tokenizer
from peekbench_lm.options import Recipe
from peekbench_lm.pretraining import NO_TARGET, mask_tokens, mean_loss, pretrain
from peekbench_lm.seeds import seed_for
from peekbench_lm.training_loop import clip_gradients, make_optimizer

CPU = torch.device("cpu")
torch.set_num_threads(1)  # more threads slow down models of this size
RECIPE = Recipe(2, 8, 1e-3, "linear", 0.01, 1.0)


# Objectives


def test_a_step_equals_that_of_transformers(folder: Path) -> None:
    """Compare the step with that of a padded batch with labels, without dropout."""
    model = LanguageModel(
        save_model("bert" if "bert" in folder.name else "gpt2", folder.parent / "still", dropout=0), CPU
    )
    texts = some_texts(model, 8)
    recipe = Recipe(1, 8, 1e-2, "constant", 0.0, 0.0)
    result = pretrain(model, texts, recipe, 0.5, seed=5)
    actual = weights(model)
    plain = type(model.network).from_pretrained(model.folder)
    generator = np.random.default_rng(seed_for(5, "epoch", 0))
    order = generator.permutation(len(texts))
    width = max(map(len, texts))
    ids, targets = np.zeros((8, width), dtype=np.int64), np.full((8, width), NO_TARGET)
    is_real = np.zeros((8, width), dtype=np.int64)
    for row, position in enumerate(order):
        text = np.array(texts[position])
        inputs, labels = (
            mask_tokens(text, model.tokenizer, 0.5, generator) if model.kind == "masked" else (text, text)
        )  # transformers shifts causal labels itself
        ids[row, : len(text)], targets[row, : len(text)], is_real[row, : len(text)] = inputs, labels, 1
    output = plain(torch.tensor(ids), attention_mask=torch.tensor(is_real), labels=torch.tensor(targets))
    assert result.losses == [pytest.approx(output.loss.item(), rel=1e-5)]
    output.loss.backward()
    torch.optim.AdamW(plain.parameters(), lr=1e-2, weight_decay=0.0).step()
    expected = {name: weight.detach() for name, weight in plain.named_parameters()}
    gradients = {name: weight.grad for name, weight in plain.named_parameters()}
    for name, weight in expected.items():
        is_clear = gradients[name].abs() > 1e-5  # Adam's first step is the sign of the gradient
        torch.testing.assert_close(actual[name][is_clear], weight[is_clear], atol=1e-4, rtol=0)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_loss_of_the_head_has_the_gradient_of_cross_entropy(precision: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(head_module.BLOCK_CELLS, "cpu", 150 * 64)  # five blocks of words
    torch.manual_seed(3)
    head, hidden, targets = nn.Linear(16, 300), torch.randn(150, 16, requires_grad=True), torch.randint(300, (150,))
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        plain = cross_entropy(head(hidden).float(), targets, reduction="sum")
        actual = summed_loss(head, hidden, targets)
    tolerance = {"fp32": 1e-5, "bf16": 2e-2}[precision]
    assert actual.item() == pytest.approx(plain.item(), rel=tolerance)
    found = []
    for loss in (actual, plain):
        hidden.grad = head.weight.grad = head.bias.grad = None
        torch.autograd.backward(loss / 7)
        found.append([tensor.grad.clone() for tensor in (hidden, head.weight, head.bias) if tensor.grad is not None])
    for gradient, expected in zip(*found, strict=True):
        assert (gradient - expected).norm() < tolerance * expected.norm()


def test_tokens_that_are_certain_have_no_gradient_in_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(head_module.BLOCK_CELLS, "cpu", 12 * 5)
    head, targets = nn.Linear(12, 12, bias=False), torch.arange(12)
    with torch.no_grad():
        head.weight.copy_(torch.eye(12) * 10 + 0.1)
    hidden = torch.eye(12, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        torch.autograd.backward(summed_loss(head, hidden, targets))
    assert hidden.grad is not None
    assert 0 < hidden.grad.norm() < 0.1, "0.01 for each token, which rounding of its probability would exceed"


def test_loss_uses_the_scaled_scores_of_a_model_that_scales_them(tmp_path: Path, any_model: LanguageModel) -> None:
    assert any_model._has_linear_head
    train_tokenizer("causal", SENTENCES, 400).save_pretrained(tmp_path)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
    config = AutoConfig.for_model("granite", vocab_size=400, logits_scaling=8.0, **sizes)
    loader: Any = AutoModelForCausalLM
    loader.from_config(config).save_pretrained(tmp_path)
    model = LanguageModel(tmp_path, CPU)
    assert not model._has_linear_head
    (part,) = Step(some_texts(model, 3)).parts(3, CPU)
    indices = torch.arange(1, 9)
    with torch.no_grad(), forward_context(part, 0, "fp32"):
        loss, scores = model.loss(part, indices, part.ids[indices]), model.logits(part, indices)
    assert loss.item() == pytest.approx(cross_entropy(scores, part.ids[indices], reduction="sum").item())


def test_masking_selects_the_requested_fraction_and_no_special_token(tmp_path: Path) -> None:
    model = LanguageModel(save_model("bert", tmp_path), CPU)
    ids = np.array([model.tokenizer.cls_token_id, *[50] * 40_000, model.tokenizer.sep_token_id])
    inputs, targets = mask_tokens(ids, model.tokenizer, 0.15, np.random.default_rng(0))
    is_selected = targets != NO_TARGET
    assert is_selected.mean() == pytest.approx(0.15, abs=0.01)
    assert not is_selected[[0, -1]].any()
    assert (inputs[is_selected] == model.tokenizer.mask_token_id).mean() == pytest.approx(0.8, abs=0.02)
    assert (inputs[is_selected] == 50).mean() == pytest.approx(0.1, abs=0.02)
    assert (inputs[~is_selected] == ids[~is_selected]).all()
    assert (targets[is_selected] == 50).all()


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_pretraining_reduces_the_loss(model: LanguageModel, precision: Any) -> None:
    """In bf16, weights that are rounded only once would never change."""
    texts = some_texts(model, 200)
    model.precision = precision
    before = mean_loss(model, texts, 0.15, seed=0)
    result = pretrain(model, texts, Recipe(6, 16, 5e-3, "linear", 0.0, 1.0, warmup=0.1), 0.15, seed=0)
    assert result.num_steps == 6 * 13
    assert result.num_tokens == 6 * sum(map(len, texts))
    assert result.losses[-1] < 0.7 * result.losses[0]
    assert mean_loss(model, texts, 0.15, seed=0) < 0.6 * before


@pytest.mark.parametrize("max_norm", [1e-7, 1.0, 100.0])
def test_gradients_that_a_step_clips_give_the_weights_of_gradients_clipped_before(max_norm: float) -> None:
    gradient = torch.linspace(-3, 5, 12).view(3, 4)
    clipped, expected = (nn.Parameter(torch.ones(3, 4)) for _ in range(2))
    clipped.grad, expected.grad = gradient.clone(), gradient.clone()
    optimizer = make_optimizer([clipped], RECIPE)
    clip_gradients(optimizer, [clipped], max_norm)
    optimizer.step()
    nn.utils.clip_grad_norm_([expected], max_norm)
    make_optimizer([expected], RECIPE).step()
    torch.testing.assert_close(clipped, expected, rtol=1e-6, atol=0)
    assert (max_norm < 1e-6) == bool((clipped - 1).abs().max() < 0.9 * RECIPE.learning_rate)


def test_learning_rate_warms_up_and_decays() -> None:
    recipe = Recipe(1, 1, 2.0, "linear", 0.0, 0.0, warmup=0.25)
    assert [recipe.rate(progress) for progress in (0, 0.125, 0.25, 0.5, 1)] == [0, 1.0, 1.5, 1.0, 0]
    assert Recipe(1, 1, 2.0, "constant", 0.0, 0.0).rate(0.9) == 2.0


# Memory


def test_steps_that_do_not_fit_into_memory_are_split(model: LanguageModel) -> None:
    texts = some_texts(model, 16)
    pretrain(model, texts, RECIPE, 0.15, seed=1)
    expected = weights(model)
    model.restore()

    def refuse(module: Any, arguments: Any, inputs: Any) -> None:
        if inputs["position_ids"].numel() > 60:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    with model.body.register_forward_pre_hook(refuse, with_kwargs=True):
        pretrain(model, texts, RECIPE, 0.15, seed=1)
    assert model.micro_batch.limit in (1, 2, 4)
    assert max_difference(weights(model), expected) < 2e-5


def test_a_single_text_that_does_not_fit_into_memory_is_an_error(model: LanguageModel) -> None:
    def refuse(*_: Any) -> None:
        raise torch.OutOfMemoryError("no memory")

    with model.body.register_forward_pre_hook(refuse), pytest.raises(torch.OutOfMemoryError):
        pretrain(model, some_texts(model, 4), RECIPE, 0.15, seed=1)

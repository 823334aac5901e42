"""Training of language models: objectives, the loss at the head, and steps that do not fit into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_models import SENTENCES, farthest, save_model, some_texts, weights
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModelForCausalLM

from peekbench import PeekbenchError
from peekbench_lm import builtin
from peekbench_lm.devices import is_out_of_memory
from peekbench_lm.forward_context import computing
from peekbench_lm.head import summed_loss
from peekbench_lm.layout import Step
from peekbench_lm.model import LanguageModel
from peekbench_lm.pretraining import NO_TARGET, mask, mean_loss, pretrain
from peekbench_lm.training import Batch, Recipe, train

CPU = torch.device("cpu")
torch.set_num_threads(1)  # models this small are slower with more
RECIPE = Recipe(2, 8, 1e-3, "linear", 0.01, 1.0)


# Objectives


def test_a_step_is_what_transformers_would_make_of_it(folder: Path) -> None:
    """Same gradient as a padded batch with labels has; the model is saved without dropout here."""
    model = LanguageModel(
        save_model("bert" if "bert" in folder.name else "gpt2", folder.parent / "still", dropout=0), CPU
    )
    texts = some_texts(model, 8)
    recipe = Recipe(1, 8, 1e-2, "constant", 0.0, 0.0)
    trained = pretrain(model, texts, recipe, 0.5, seed=5)
    ours = weights(model)
    plain = type(model.network).from_pretrained(model.folder)
    generator = np.random.default_rng(derive_epoch_seed(5))
    order = generator.permutation(len(texts))
    width = max(map(len, texts))
    ids, targets = np.zeros((8, width), dtype=np.int64), np.full((8, width), NO_TARGET)
    real = np.zeros((8, width), dtype=np.int64)
    for row, position in enumerate(order):
        text = np.array(texts[position])
        inputs, wanted = (
            mask(text, model.tokenizer, 0.5, generator) if model.kind == "masked" else (text, text)
        )  # transformers shifts causal labels itself
        ids[row, : len(text)], targets[row, : len(text)], real[row, : len(text)] = inputs, wanted, 1
    output = plain(torch.tensor(ids), attention_mask=torch.tensor(real), labels=torch.tensor(targets))
    assert trained.losses == [pytest.approx(output.loss.item(), rel=1e-5)]
    output.loss.backward()
    torch.optim.AdamW(plain.parameters(), lr=1e-2, weight_decay=0.0).step()
    moved = {name: weight.detach() for name, weight in plain.named_parameters()}
    gradients = {name: weight.grad for name, weight in plain.named_parameters()}
    for name, weight in moved.items():
        clear = gradients[name].abs() > 1e-5  # Adam's first step is the gradient's sign
        torch.testing.assert_close(ours[name][clear], weight[clear], atol=1e-4, rtol=0)


def derive_epoch_seed(seed: int) -> int:
    from peekbench_lm.training import derive

    return derive(seed, "epoch", 0)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_loss_at_the_head_has_the_gradient_of_cross_entropy(precision: Any) -> None:
    torch.manual_seed(3)
    head, hidden, targets = nn.Linear(16, 300), torch.randn(150, 16, requires_grad=True), torch.randint(300, (150,))
    wanted = [hidden, head.weight, head.bias]
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        plain = cross_entropy(head(hidden).float(), targets, reduction="sum")
        ours = summed_loss(head, hidden, targets)
    close = {"fp32": 1e-5, "bf16": 2e-2}[precision]
    assert ours.item() == pytest.approx(plain.item(), rel=close)
    for one, other in zip(*(torch.autograd.grad(loss / 7, wanted) for loss in (ours, plain)), strict=True):
        assert (one - other).norm() < close * other.norm()


def test_a_model_that_scales_its_scores_is_trained_on_the_scaled_ones(tmp_path: Path, any_model: LanguageModel) -> None:
    assert any_model._has_linear_head
    builtin.train_tokenizer("causal", SENTENCES, 400).save_pretrained(tmp_path)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
    config = AutoConfig.for_model("granite", vocab_size=400, logits_scaling=8.0, **sizes)
    loader: Any = AutoModelForCausalLM
    loader.from_config(config).save_pretrained(tmp_path)
    model = LanguageModel(tmp_path, CPU)
    assert not model._has_linear_head
    (part,) = Step(some_texts(model, 3)).parts(3, CPU)
    places = torch.arange(1, 9)
    with torch.no_grad(), computing(part, 0, "fp32"):
        loss, scores = model.loss(part, places, part.ids[places]), model.logits(part, places)
    assert loss.item() == pytest.approx(cross_entropy(scores, part.ids[places], reduction="sum").item())


def test_masks_hit_their_share_and_no_special_token(tmp_path: Path) -> None:
    model = LanguageModel(save_model("bert", tmp_path), CPU)
    ids = np.array([model.tokenizer.cls_token_id, *[50] * 40_000, model.tokenizer.sep_token_id])
    inputs, targets = mask(ids, model.tokenizer, 0.15, np.random.default_rng(0))
    chosen = targets != NO_TARGET
    assert chosen.mean() == pytest.approx(0.15, abs=0.01)
    assert not chosen[[0, -1]].any()
    assert (inputs[chosen] == model.tokenizer.mask_token_id).mean() == pytest.approx(0.8, abs=0.02)
    assert (inputs[chosen] == 50).mean() == pytest.approx(0.1, abs=0.02)
    assert (inputs[~chosen] == ids[~chosen]).all()
    assert (targets[chosen] == 50).all()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_pretraining_learns(model: LanguageModel, precision: Any) -> None:
    """bf16 included: weights that are rounded once, and never again, would not learn."""
    texts = some_texts(model, 200)
    model.precision = precision
    before = mean_loss(model, texts, 0.15, seed=0)
    trained = pretrain(model, texts, Recipe(6, 16, 5e-3, "linear", 0.0, 1.0, warmup=0.1), 0.15, seed=0)
    assert trained.num_steps == 6 * 13
    assert trained.num_tokens == 6 * sum(map(len, texts))
    assert trained.losses[-1] < 0.7 * trained.losses[0]
    assert mean_loss(model, texts, 0.15, seed=0) < 0.6 * before


def test_texts_without_anything_to_guess_do_no_harm(model: LanguageModel) -> None:
    trained = pretrain(model, [[7]] * 3, Recipe(1, 2, 1e-3, "linear", 0.0, 1.0), 1e-9, seed=0)
    assert trained.losses == [0.0]
    assert all(torch.isfinite(weight).all() for weight in weights(model).values())


def test_the_learning_rate_warms_up_and_falls() -> None:
    recipe = Recipe(1, 1, 2.0, "linear", 0.0, 0.0, warmup=0.25)
    assert [recipe.rate(progress) for progress in (0, 0.125, 0.25, 0.5, 1)] == [0, 1.0, 1.5, 1.0, 0]
    assert Recipe(1, 1, 2.0, "constant", 0.0, 0.0).rate(0.9) == 2.0


# Memory


def test_a_step_that_does_not_fit_is_done_in_smaller_parts(model: LanguageModel) -> None:
    texts = some_texts(model, 16)
    pretrain(model, texts, RECIPE, 0.15, seed=1)
    roomy = weights(model)
    model.restore()

    def refuse(module: Any, arguments: Any, inputs: Any) -> None:
        if inputs["position_ids"].numel() > 60:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    with model.body.register_forward_pre_hook(refuse, with_kwargs=True):
        pretrain(model, texts, RECIPE, 0.15, seed=1)
    assert model.micro_batch.limit in (1, 2, 4)
    assert farthest(roomy, weights(model)) < 2e-5


def test_a_text_that_never_fits_is_an_error_with_a_remedy(model: LanguageModel) -> None:
    def refuse(*_: Any) -> None:
        raise torch.OutOfMemoryError("no memory")

    with (
        model.body.register_forward_pre_hook(refuse),
        pytest.raises(PeekbenchError, match="a single text does not fit into memory; choose a smaller model"),
    ):
        pretrain(model, some_texts(model, 4), RECIPE, 0.15, seed=1)


def test_what_torch_says_where_memory_runs_out_is_known() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)
    with pytest.raises(RuntimeError) as caught:
        torch.ones(2) @ torch.ones(3)
    assert not is_out_of_memory(caught.value)


def test_other_faults_in_a_step_are_not_taken_for_a_lack_of_memory(model: LanguageModel) -> None:
    def fail(part: Any) -> torch.Tensor:
        raise RuntimeError("a fault")

    batch = Batch(Step([[1, 2], [3]]), 2, fail)
    with pytest.raises(RuntimeError, match="a fault"):
        train(model, [model.network], [[batch]], 1, RECIPE, seed=0)
    assert model.micro_batch.limit is None

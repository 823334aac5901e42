"""Adaptation of models: shared first tokens, adapters, quantized weights, gradient checkpointing and optimizers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import pytest
import torch
from small_models import SENTENCES, load_without_quantization, save_model
from torch import nn

from peekbench import PeekbenchError
from peekbench_lm import attention, completions, extras, language_model
from peekbench_lm.completions import Completion, make_batch, train_completions
from peekbench_lm.forward_context import forward_context, set_checkpointing
from peekbench_lm.head import summed_loss
from peekbench_lm.language_model import ADAPTER_MARK, LanguageModel, add_adapters
from peekbench_lm.layout import Step, count_shared
from peekbench_lm.options import Recipe, WeightMode
from peekbench_lm.tokenizer import encode
from peekbench_lm.training_loop import backward

CPU = torch.device("cpu")
torch.set_num_threads(1)  # more threads slow down models of this size
QUICK = Recipe(2, 4, 1e-2, "linear", 0.0, 1.0)
needs_bitsandbytes = pytest.mark.skipif(
    importlib.util.find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed"
)


@pytest.fixture(params=["gpt2", "mistral"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return save_model(request.param, tmp_path / request.param, dropout=0.2, width=64)


def load(folder: Path, weight_mode: WeightMode) -> LanguageModel:
    return LanguageModel(folder, CPU, weight_mode)


def texts_with_shared_start(model: LanguageModel) -> list[list[int]]:
    return encode(model.tokenizer, [f"The pump plays a melody: {text}" for text in SENTENCES[:40:6]], 60)


def train(model: LanguageModel, recipe: Recipe = QUICK, **adapters: Any) -> list[float]:
    model.add_adapters(**{"rank": 4, "alpha": 8, "dropout": 0.2, "seed": 1, **adapters})
    return train_completions(
        model, [Completion(text) for text in texts_with_shared_start(model)], recipe, seed=1
    ).losses


def outputs(model: LanguageModel) -> torch.Tensor:
    (part,) = Step(texts_with_shared_start(model)).parts(99, CPU)
    model.network.eval()
    with torch.no_grad(), forward_context(part, 0, "fp32"):
        return model.hidden(part).clone()


def gradients(model: LanguageModel, rows: list[Completion], limit: int | None = None) -> list[torch.Tensor]:
    """Return the loss, followed by the gradients of all trainable weights."""
    model.micro_batch.limit = limit
    model.network.train()
    weights = [weight for weight in model.network.parameters() if weight.requires_grad]
    loss = backward(model, make_batch(model, rows), 7, model.network.zero_grad)
    return [loss, *(weight.grad.clone() for weight in weights if weight.grad is not None)]


def max_relative_difference(actual: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    pairs = zip(actual, expected, strict=True)
    return max(((a - b).abs().max() / b.abs().max().clamp(min=1e-3)).item() for a, b in pairs)


# Shared first tokens


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "llama", "mistral"])
def test_shared_tokens_are_computed_once_and_counted_for_each_text(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LanguageModel(save_model(name, tmp_path, dropout=0), CPU)
    texts = texts_with_shared_start(model)
    rows = [Completion(text, 1 if row % 2 else 9) for row, text in enumerate(texts)]
    batch = make_batch(model, rows)
    assert batch.step.num_shared > 5
    assert batch.step.num_packed == batch.step.num_tokens - (len(texts) - 1) * batch.step.num_shared
    assert batch.num_targets == sum(len(row.ids) - row.start for row in rows)
    shared = gradients(model, rows)
    monkeypatch.setattr(completions, "count_shared", lambda texts: 0)
    assert max_relative_difference(shared, gradients(model, rows)) < 1e-4


def test_hidden_states_after_shared_tokens_equal_those_of_each_text_alone(folder: Path) -> None:
    model = load(folder, "trained")
    texts = texts_with_shared_start(model)
    step = Step(texts, count_shared(texts))
    (part,) = step.parts(99, CPU)
    model.network.eval()
    with torch.no_grad():
        with forward_context(part, 0, "fp32"):
            hidden = model.hidden(part)
        for (start, end), ids in zip(part.spans, step.texts, strict=True):
            (alone,) = Step([ids]).parts(1, CPU)
            with forward_context(alone, 0, "fp32"):
                expected = model.hidden(alone)
            torch.testing.assert_close(hidden[start:end], expected[step.num_shared :], atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(hidden[: step.num_shared], expected[: step.num_shared], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("num_shared", [True, False])
def test_attention_without_matrices_gives_the_same_gradients_for_wide_texts(
    num_shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LanguageModel(save_model("mistral", tmp_path, dropout=0), CPU)
    if not num_shared:
        monkeypatch.setattr(completions, "count_shared", lambda texts: 0)
    rows = [Completion(text) for text in texts_with_shared_start(model)]
    plain = gradients(model, rows)
    monkeypatch.setattr(attention, "MAX_MATRIX_WIDTH", 4)
    monkeypatch.setattr(attention, "_Attend", None)
    assert max_relative_difference(gradients(model, rows), plain) < 1e-4


def test_weighted_loss_equals_the_loss_of_repeated_tokens() -> None:
    torch.manual_seed(3)
    head, hidden, targets = nn.Linear(16, 30), torch.randn(100, 16, requires_grad=True), torch.randint(30, (100,))
    counts = torch.arange(100) % 3
    repeated = summed_loss(head, hidden.repeat_interleave(counts, 0), targets.repeat_interleave(counts))
    counted = summed_loss(head, hidden, targets, counts.float())
    assert counted.item() == pytest.approx(repeated.item(), rel=1e-5)
    found = []
    for loss in (counted, repeated):
        hidden.grad = head.weight.grad = None
        torch.autograd.backward(loss)
        found.append([weight.grad.clone() for weight in (hidden, head.weight) if weight.grad is not None])
    for actual, expected in zip(*found, strict=True):
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-4)


# Adapters


def test_adapters_of_mistral_have_as_many_weights_as_in_the_paper() -> None:
    """Check rank 16 on every linear layer of Mistral-7B-v0.3 (arXiv 2410.00179, section 9) on the meta device."""
    from transformers import MistralConfig, MistralForCausalLM

    with torch.device("meta"):
        network = MistralForCausalLM(
            MistralConfig(
                vocab_size=32768, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
                num_attention_heads=32, num_key_value_heads=8, sliding_window=None,
            )
        )  # fmt: skip
        add_adapters(network.base_model, 16, 32, 0.05)
    adapters = {name: weight.numel() for name, weight in network.named_parameters() if ADAPTER_MARK in name}
    assert sum(adapters.values()) == 41_943_040
    assert not any("lm_head" in name for name in adapters)


@pytest.mark.parametrize("weight_mode", ["trained", "frozen", pytest.param("nf4", marks=needs_bitsandbytes)])
def test_restore_removes_adapters_and_restores_weights(weight_mode: WeightMode, folder: Path) -> None:
    """Predict first, because predictions may change the memory layout of quantized weights."""
    model = load(folder, weight_mode)
    names = [name for name, _ in model.network.named_modules()]
    before = outputs(model)
    losses = []
    for precision, checkpointed in (("bf16", False), ("fp32", True), ("bf16", False)):
        model.precision = "bf16" if precision == "bf16" else "fp32"
        set_checkpointing(model.network, checkpointed)
        losses.append(train(model))
        assert not torch.allclose(outputs(model), before, atol=0.01)
        model.restore()
        assert torch.equal(outputs(model), before)
    assert losses[0] == losses[2]
    assert losses[0][-1] < losses[0][0] - 0.05
    assert [name for name, _ in model.network.named_modules()] == names
    assert all(weight.requires_grad == (weight_mode == "trained") for weight in model.network.parameters())


# Quantized weights


@needs_bitsandbytes
def test_quantized_layers_take_four_bits_and_compute_in_the_requested_precision(folder: Path) -> None:
    whole, quantized = load(folder, "frozen"), load(folder, "nf4")
    packed = [weight for weight in quantized.network.parameters() if weight.dtype == torch.uint8]
    linear = [weight for name, weight in whole.network.named_parameters() if weight.ndim == 2 and ".layers." in name]
    linear += [weight for name, weight in whole.network.named_parameters() if weight.ndim == 2 and ".h." in name]
    assert sum(weight.numel() for weight in packed) == sum(weight.numel() for weight in linear) / 2
    actual, exact = outputs(quantized), outputs(whole)
    assert 0.01 < ((actual - exact).norm() / exact.norm()).item() < 0.3, "close, but rounded to four bits"
    (part,) = Step(texts_with_shared_start(quantized)).parts(99, CPU)
    with torch.no_grad(), forward_context(part, 0, "bf16"):
        rounded = quantized.hidden(part)
    assert 1e-4 < (rounded - actual).abs().max().item() < 0.2


@pytest.mark.parametrize(
    ("name", "is_quantized"),
    [
        ("mistral", False),
        ("gpt_neox", False),
        pytest.param("mistral", True, marks=needs_bitsandbytes),
        pytest.param("gpt2", True, marks=needs_bitsandbytes),
    ],
)
def test_all_but_normalization_and_adapters_has_bf16(
    name: str, is_quantized: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without bitsandbytes, linear layers with bf16 weights replace those with four-bit weights."""
    if not is_quantized:
        monkeypatch.setattr(language_model, "load_network", load_without_quantization)
    model = load(save_model(name, tmp_path, dropout=0.2, width=64), "nf4")
    if not is_quantized:
        exact = load(tmp_path, "frozen")
        for module in exact.network.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                for weight in module.parameters(recurse=False):
                    weight.data = weight.data.bfloat16().float()
        assert torch.equal(outputs(model), outputs(exact)), "in fp32, only weights are rounded"
    model.precision = "bf16"
    model.add_adapters(4, 8, 0.2, seed=1)
    in_fp32 = {name for name, weight in model.network.named_parameters() if weight.dtype == torch.float32}
    assert in_fp32 == {
        name
        for name, _ in model.network.named_parameters()
        if any(text in name for text in ("norm", "ln_", ADAPTER_MARK))
    }
    _, *computed = gradients(model, [Completion(text) for text in texts_with_shared_start(model)])
    assert {gradient.dtype for gradient in computed} == {torch.float32}
    assert any(gradient.abs().max() > 0 for gradient in computed)


@pytest.mark.parametrize(("weight_mode", "optimizer"), [("nf4", "adamw"), ("frozen", "adamw_8bit")])
def test_missing_bitsandbytes_is_an_error_that_names_the_extra(
    weight_mode: WeightMode, optimizer: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "bitsandbytes" else name)
    with pytest.raises(PeekbenchError, match=r"need bitsandbytes: `pip install 'peekbench\[qlora\]'`"):
        train(load(folder, weight_mode), Recipe(1, 4, 1e-2, "linear", 0.0, 1.0, optimizer=optimizer))


@needs_bitsandbytes
def test_eight_bit_adamw_learns_almost_like_adamw(folder: Path) -> None:
    model = load(folder, "frozen")
    losses = []
    for optimizer in ("adamw", "adamw_8bit"):
        name: Any = optimizer
        losses.append(train(model, Recipe(6, 4, 1e-2, "linear", 0.0, 1.0, optimizer=name), rank=64, dropout=0.0))
        model.restore()
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
    assert losses[1] != losses[0]
    assert losses[1][-1] < 0.9 * losses[1][0]


# Gradient checkpointing


def test_recomputed_layers_draw_the_same_dropout_masks(folder: Path) -> None:
    model = load(folder, "frozen")
    model.add_adapters(4, 8, 0.3, seed=1)
    rows = [Completion(text) for text in texts_with_shared_start(model)]
    layer = next(module for module in model.network.modules() if hasattr(module, "lora_A"))
    calls: list[int] = []
    layer.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        for name, weight in model.network.named_parameters():
            if "lora_B" in name:
                weight.normal_()
    plain = gradients(model, rows)
    set_checkpointing(model.network, True)
    recomputed = gradients(model, rows)
    assert len(calls) == 3, "one call without checkpointing, and two with it"
    assert all(torch.equal(actual, expected) for actual, expected in zip(recomputed, plain, strict=True))
    assert max_relative_difference(gradients(model, rows, 2), plain) < 1e-4
    model.restore()
    assert not any(getattr(module, "gradient_checkpointing", False) for module in model.network.modules())

"""How a base is held and adapted: shared first tokens, adapters, four bits, gradient checkpointing, optimizers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_models import SENTENCES, save_model
from torch import nn

from peekbench import DataError, Folders, PeekbenchError
from peekbench_lm import attention, completions, installed
from peekbench_lm.adapters import MARK, put_adapters
from peekbench_lm.checkpointing import set_checkpointing
from peekbench_lm.completions import Completion, complete, make_batch
from peekbench_lm.folder import find_model
from peekbench_lm.forward_context import computing
from peekbench_lm.head import summed_loss
from peekbench_lm.layout import Step, count_shared
from peekbench_lm.model import LanguageModel, borrow
from peekbench_lm.names import Held
from peekbench_lm.quantized import compute_by_precision
from peekbench_lm.tokens import encode
from peekbench_lm.training import Recipe, _backward

CPU = torch.device("cpu")
torch.set_num_threads(1)  # models this small are slower with more
QUICK = Recipe(2, 4, 1e-2, "linear", 0.0, 1.0)
needs_bitsandbytes = pytest.mark.skipif(
    importlib.util.find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed"
)


@pytest.fixture(params=["gpt2", "mistral"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return save_model(request.param, tmp_path / request.param, dropout=0.2, width=64)


def load(folder: Path, held: Held) -> LanguageModel:
    return LanguageModel(folder, CPU, held)


def begin_alike(model: LanguageModel) -> list[list[int]]:
    return encode(model.tokenizer, [f"The pump plays a melody: {text}" for text in SENTENCES[:40:6]], 60)


def train(model: LanguageModel, recipe: Recipe = QUICK, **adapters: Any) -> list[float]:
    model.add_adapters(**{"rank": 4, "alpha": 8, "dropout": 0.2, "seed": 1, **adapters})
    return complete(model, [[Completion(text)] for text in begin_alike(model)], recipe, seed=1).losses


def outputs(model: LanguageModel) -> torch.Tensor:
    (part,) = Step(begin_alike(model)).parts(99, CPU)
    model.network.eval()
    with torch.no_grad(), computing(part, 0, "fp32"):
        return model.hidden(part).clone()


def gradients(model: LanguageModel, rows: list[Completion], limit: int | None = None) -> list[torch.Tensor]:
    """Of all that is trained; the first is the loss."""
    model.micro_batch.limit = limit
    model.network.train()
    weights = [weight for weight in model.network.parameters() if weight.requires_grad]
    loss = _backward(model, make_batch(model, rows), 7, weights)
    return [loss, *(weight.grad.clone() for weight in weights if weight.grad is not None)]


def farthest(one: list[torch.Tensor], other: list[torch.Tensor]) -> float:
    return max(((a - b).abs().max() / b.abs().max().clamp(min=1e-3)).item() for a, b in zip(one, other, strict=True))


# First tokens that texts share


def test_shared_tokens_are_those_that_all_texts_begin_with() -> None:
    assert count_shared([[1, 2, 3, 4], [1, 2, 4], [1, 2, 3, 5]]) == 2
    assert count_shared([[1, 2], [1, 2, 3]]) == 1, "each keeps one of its own"
    assert count_shared([[1, 2, 3]]) == count_shared([[1], [2]]) == 0


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "llama", "mistral"])
def test_what_texts_share_is_computed_once_and_counts_for_each(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LanguageModel(save_model(name, tmp_path, dropout=0), CPU)
    texts = begin_alike(model)
    rows = [Completion(text, 1 if place % 2 else 9) for place, text in enumerate(texts)]
    batch = make_batch(model, rows)
    assert batch.step.num_shared > 5
    assert batch.step.num_placed == batch.step.num_tokens - (len(texts) - 1) * batch.step.num_shared
    assert batch.num_targets == sum(len(row.ids) - row.start for row in rows)
    shared = gradients(model, rows)
    monkeypatch.setattr(completions, "count_shared", lambda texts: 0)
    assert farthest(shared, gradients(model, rows)) < 1e-4


def test_shared_tokens_have_the_same_masks_however_many_texts_fit_into_memory(folder: Path) -> None:
    model = load(folder, "trained")
    rows = [Completion(text) for text in begin_alike(model)]
    assert farthest(gradients(model, rows, 2), gradients(model, rows)) < 1e-4


def test_hidden_states_behind_shared_tokens_are_those_of_each_text_alone(folder: Path) -> None:
    model = load(folder, "trained")
    texts = begin_alike(model)
    step = Step(texts, count_shared(texts))
    (part,) = step.parts(99, CPU)
    model.network.eval()
    with torch.no_grad():
        with computing(part, 0, "fp32"):
            hidden = model.hidden(part)
        for (start, end), ids in zip(part.spans, step.texts, strict=True):
            (alone,) = Step([ids]).parts(1, CPU)
            with computing(alone, 0, "fp32"):
                wanted = model.hidden(alone)
            torch.testing.assert_close(hidden[start:end], wanted[step.num_shared :], atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(hidden[: step.num_shared], wanted[: step.num_shared], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("num_shared", [True, False])
def test_wide_texts_are_computed_without_a_matrix_of_attention_and_come_to_the_same(
    num_shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LanguageModel(save_model("mistral", tmp_path, dropout=0), CPU)
    if not num_shared:
        monkeypatch.setattr(completions, "count_shared", lambda texts: 0)
    rows = [Completion(text) for text in begin_alike(model)]
    plain = gradients(model, rows)
    monkeypatch.setattr(attention, "PLAIN_WIDTH", 4)
    monkeypatch.setattr(attention, "_attend_plainly", None)
    assert farthest(gradients(model, rows), plain) < 1e-4


def test_a_loss_that_counts_twice_is_that_of_two() -> None:
    torch.manual_seed(3)
    head, hidden, targets = nn.Linear(16, 30), torch.randn(100, 16, requires_grad=True), torch.randint(30, (100,))
    counts = torch.arange(100) % 3
    repeated = summed_loss(head, hidden.repeat_interleave(counts, 0), targets.repeat_interleave(counts))
    counted = summed_loss(head, hidden, targets, counts.float())
    assert counted.item() == pytest.approx(repeated.item(), rel=1e-5)
    wanted = [torch.autograd.grad(loss, [hidden, head.weight]) for loss in (counted, repeated)]
    for one, other in zip(*wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


# Adapters


def test_adapters_of_mistrals_shape_have_as_many_weights_as_in_the_study() -> None:
    """arXiv 2410.00179, section 9: rank 16 on every linear layer of Mistral-7B-v0.3; no weights are made for this."""
    from transformers import MistralConfig, MistralForCausalLM

    with torch.device("meta"):
        network = MistralForCausalLM(
            MistralConfig(
                vocab_size=32768, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
                num_attention_heads=32, num_key_value_heads=8, sliding_window=None,
            )
        )  # fmt: skip
        put_adapters(network.base_model, 16, 32, 0.05)
    adapters = {name: weight.numel() for name, weight in network.named_parameters() if MARK in name}
    assert sum(adapters.values()) == 41_943_040
    assert not any("lm_head" in name for name in adapters)


@pytest.mark.parametrize("held", ["trained", "frozen", pytest.param("nf4", marks=needs_bitsandbytes)])
def test_a_base_is_as_before_once_adapters_are_taken_out(held: Held, folder: Path) -> None:
    """Predictions come first: what they might change in how weights are held must not harm training."""
    model = load(folder, held)
    names = [name for name, _ in model.network.named_modules()]
    before = outputs(model)
    losses = []
    for precision, checkpointed in (("bf16", False), ("fp32", True), ("bf16", False)):
        model.precision = "bf16" if precision == "bf16" else "fp32"
        model.checkpoint_gradients(checkpointed)
        losses.append(train(model))
        assert not torch.allclose(outputs(model), before, atol=0.01)
        model.restore()
        assert torch.equal(outputs(model), before)
    assert losses[0] == losses[2]
    assert losses[0][-1] < losses[0][0] - 0.05
    assert [name for name, _ in model.network.named_modules()] == names
    assert all(weight.requires_grad == (held == "trained") for weight in model.network.parameters())


@pytest.mark.parametrize("held", ["frozen", pytest.param("nf4", marks=needs_bitsandbytes)])
def test_a_base_that_stays_is_in_memory_once(held: Held, folder: Path) -> None:
    found = find_model(str(folder), "", Folders(folder, folder))
    first = borrow(found, CPU, held)
    second = borrow(found, CPU, held)
    assert first.model is not second.model
    assert not first.model._weights
    places = [{weight.data_ptr() for weight in loan.model.network.parameters()} for loan in (first, second)]
    assert places[0] == places[1]
    before = outputs(second.model)
    train(first.model)
    assert torch.equal(outputs(second.model), before)
    assert not torch.equal(outputs(first.model), before)


# Four bits


@needs_bitsandbytes
def test_linear_layers_are_held_in_four_bits_and_compute_as_precisely_as_asked(folder: Path) -> None:
    whole, small = load(folder, "frozen"), load(folder, "nf4")
    packed = [weight for weight in small.network.parameters() if weight.dtype == torch.uint8]
    linear = [weight for name, weight in whole.network.named_parameters() if weight.ndim == 2 and ".layers." in name]
    linear += [weight for name, weight in whole.network.named_parameters() if weight.ndim == 2 and ".h." in name]
    assert sum(weight.numel() for weight in packed) == sum(weight.numel() for weight in linear) / 2
    assert small.network.get_output_embeddings().weight.dtype == torch.float32
    one, other = outputs(small), outputs(whole)
    assert 0.01 < ((one - other).norm() / other.norm()).item() < 0.3, "close, but four bits are four bits"
    (part,) = Step(begin_alike(small)).parts(99, CPU)
    with torch.no_grad(), computing(part, 0, "bf16"):
        rounded = small.hidden(part)
    assert 1e-4 < (rounded - one).abs().max().item() < 0.2


def test_a_network_without_linear_layers_is_refused() -> None:
    pytest.importorskip("bitsandbytes")
    with pytest.raises(DataError, match="none of its layers can be held in four bits"):
        compute_by_precision(nn.Embedding(3, 3), Path("here"))


@pytest.mark.parametrize(("held", "optimizer"), [("nf4", "adamw"), ("frozen", "adamw_8bit")])
def test_without_bitsandbytes_the_error_says_what_to_install(
    held: Held, optimizer: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    with pytest.raises(PeekbenchError, match=r"need bitsandbytes: `pip install 'peekbench\[qlora\]'`"):
        train(load(folder, held), Recipe(1, 4, 1e-2, "linear", 0.0, 1.0, optimizer=optimizer))


@needs_bitsandbytes
def test_eight_bit_adamw_learns_almost_as_the_other_does(folder: Path) -> None:
    model = load(folder, "frozen")
    losses = []
    for optimizer in ("adamw", "adamw_8bit"):
        eight: Any = optimizer
        losses.append(train(model, Recipe(6, 4, 1e-2, "linear", 0.0, 1.0, optimizer=eight), rank=64, dropout=0.0))
        model.restore()
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
    assert losses[1] != losses[0]
    assert losses[1][-1] < 0.9 * losses[1][0]


# Gradient checkpointing


def test_layers_computed_again_draw_the_same_masks(folder: Path) -> None:
    model = load(folder, "frozen")
    model.add_adapters(4, 8, 0.3, seed=1)
    rows = [Completion(text) for text in begin_alike(model)]
    layer = next(module for module in model.network.modules() if hasattr(module, "lora_A"))
    calls: list[int] = []
    layer.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        for name, weight in model.network.named_parameters():
            if "lora_B" in name:
                weight.normal_()
    plain = gradients(model, rows)
    model.checkpoint_gradients(True)
    again = gradients(model, rows)
    assert len(calls) == 3, "once, and then twice"
    assert all(torch.equal(one, other) for one, other in zip(plain, again, strict=True))
    assert farthest(gradients(model, rows, 2), plain) < 1e-4
    model.restore()
    assert not any(getattr(module, "gradient_checkpointing", False) for module in model.network.modules())


def test_checkpointing_that_a_model_does_not_know_is_an_error_where_it_is_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not set_checkpointing(nn.Linear(2, 2), True)
    model = load(folder, "frozen")
    monkeypatch.setattr(model, "network", nn.Linear(2, 2))
    model.checkpoint_gradients(None)
    with pytest.raises(DataError, match="write gradient_checkpointing: false"):
        model.checkpoint_gradients(True)


def test_a_step_that_does_not_fit_is_done_in_parts_with_checkpointing_too(folder: Path) -> None:
    model = load(folder, "frozen")
    model.checkpoint_gradients(True)
    roomy = train(model)
    model.restore()
    model.checkpoint_gradients(True)

    def refuse(module: Any, arguments: Any, inputs: Any) -> None:
        if inputs["position_ids"].numel() > 40:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    with model.body.register_forward_pre_hook(refuse, with_kwargs=True):
        assert train(model) == pytest.approx(roomy, rel=1e-4)
    assert model.micro_batch.limit in (1, 2)
    assert np.isfinite(outputs(model).numpy()).all()

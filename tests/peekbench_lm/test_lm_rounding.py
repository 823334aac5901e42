"""Weights that a training step rounds together."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from simulated_cuda import CUDA, simulated_cuda
from small_models import max_difference, save_model, some_texts, weights
from torch import Tensor

from peekbench_lm import training_loop
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.options import Recipe
from peekbench_lm.pretraining import pretrain

torch.set_num_threads(1)


def train(model: LanguageModel, *, is_recomputed: bool = False) -> tuple[list[float], dict[str, Tensor], int]:
    """Train in bf16; return the losses, the weights and the number of conversions."""
    with simulated_cuda() as device:
        model.restore()
        model.precision = "bf16"
        model.checkpoint_gradients(is_recomputed)
        device.operations.clear()
        result = pretrain(model, some_texts(model, 8), Recipe(1, 4, 1e-2, "constant", 0.0, 1.0), 0.5, seed=3)
    return result.losses, weights(model), device.operations[torch.ops.aten._to_copy.default]


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_steps_equal_those_of_autocast_with_fewer_conversions(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with simulated_cuda():
        model = LanguageModel(save_model(name, tmp_path / name), CUDA)
    parameters = dict(model.network.named_parameters())
    losses, trained, conversions = train(model)
    assert all(weight is parameters[key] for key, weight in model.network.named_parameters())
    recomputed_losses, recomputed, _ = train(model, is_recomputed=True)
    monkeypatch.setattr(training_loop, "rounded_weights", lambda *_: nullcontext())
    expected_losses, expected, expected_conversions = train(model)
    assert recomputed_losses == expected_losses
    assert max_difference(recomputed, expected) == 0
    # Sums of the gradients of query, key and value are rounded once instead of twice.
    assert losses == pytest.approx(expected_losses, rel=1e-4)
    changes = [(trained[key] - weight).abs().mean().item() for key, weight in expected.items()]
    assert np.median(changes) < 5e-4, "a wrong gradient changes weights by about the learning rate, 1e-2"
    assert conversions < 0.8 * expected_conversions

"""Fits on a CUDA device: on a real card, results repeat and agree with those of the CPU.

Without a card, the device is simulated: no operation mixes devices.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from simulated_cuda import simulated_cuda
from small_fits import TEST, fit
from small_models import load_without_quantization, save_encoder, save_model

from peekbench import Predictor
from peekbench.records import FloatArray
from peekbench_embedding import training_methods
from peekbench_finetune import classification
from peekbench_lm import fit as fit_of_models
from peekbench_lm import language_model
from peekbench_prompting import fit as prompting_fit

HAS_CARD = torch.cuda.is_available()
needs_card = pytest.mark.skipif(not HAS_CARD, reason="this machine has no GPU that torch can use")
simulates = pytest.mark.skipif(HAS_CARD, reason="a device is simulated only without a real card")
torch.set_num_threads(1)  # more threads slow down models of this size
ADAPTERS: dict[str, Any] = {"weights": "fp32", "lora": {"rank": 4}}
ADAMW = {"optimizer": "adamw"}
QUANTIZED: dict[str, Any] = {**ADAPTERS, "weights": "nf4", "pretraining": ADAMW, "finetuning": ADAMW}
"""Four-bit weights, for which bf16 weights are the replacement here."""


@cache
def save(name: str, temporary: Path) -> Path:
    if name == "encoder":
        return save_encoder(temporary / name)
    return save_model(name, temporary / name, positions=64 if name == "bert" else 256)


@pytest.fixture(autouse=True)
def bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train in bf16 on both devices, whichever is faster here."""
    for module in (fit_of_models, prompting_fit, training_methods):
        monkeypatch.setattr(module, "choose_precision", lambda option, device: "bf16")


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def predict(predictor: Predictor) -> list[FloatArray]:
    scored = [] if predictor.log_likelihoods is None else [predictor.log_likelihoods(TEST)]
    return [np.asarray(predictor.predict(TEST)), *scored]


FITS = pytest.mark.parametrize(
    ("use", "name", "options"),
    [
        # Some batches have no token to predict.
        ("finetune.tapt", "bert", {"pretraining": {"batch_size": 4, "mask_probability": 0.02}}),
        ("finetune.tapt", "deberta-v2", {"classification": {"pooling": "mean"}}),
        ("finetune.overtrain", "gpt2", {"lora": {"rank": 4}, "score_texts": True}),
        ("prompting.supervised", "llama", QUANTIZED),
        ("prompting.packed", "gpt2", {"weights": "fp32", "lora": None}),
        ("prompting.few_shot", "gpt2", {"num_examples": 1, "scoring": {"precision": "bf16"}}),
        ("lm.dynamic_evaluation", "gpt2", {}),
        ("embedding.simcse", "encoder", {}),
        ("embedding.tsdae", "encoder", {}),
        ("embedding.setfit", "encoder", {"training": {"pairs_per_text": 2}}),
    ],
)  # fmt: skip


@needs_card
@FITS
def test_fits_on_a_card_repeat_and_agree_with_the_cpu(
    use: str, name: str, options: dict[str, Any], temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two fits on the card are equal, bit by bit. A fit on the CPU rounds differently, in bf16 by about 1%."""
    if name == "encoder":
        pytest.importorskip("sentence_transformers", reason="the extra 'embeddings' is not installed")
    monkeypatch.setattr(language_model, "load_network", load_without_quantization)
    folder = save(name, temporary)
    expected, first, second = (predict(fit(use, folder, device, **options)) for device in ("cpu", "cuda", "cuda"))
    for result, repeated, reference in zip(first, second, expected, strict=True):
        np.testing.assert_array_equal(result, repeated)
        np.testing.assert_allclose(result, reference, rtol=0.1, atol=0.1)


@simulates
@FITS
def test_fits_use_one_device(
    use: str, name: str, options: dict[str, Any], temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulated device computes as the CPU does, so its predictions are those of a fit on the CPU.

    Only sums are added in another order: fits on a CPU fill sequences up and update weights in chunks.
    """
    if name == "encoder":
        pytest.importorskip("sentence_transformers", reason="the extra 'embeddings' is not installed")
    monkeypatch.setattr(language_model, "load_network", load_without_quantization)
    folder = save(name, temporary)
    expected = predict(fit(use, folder, "cpu", **options))
    with simulated_cuda() as device:
        actual = predict(fit(use, folder, "cuda", **options))
    assert not device.errors
    assert device.num_operations > 100
    for result, reference in zip(actual, expected, strict=True):
        np.testing.assert_allclose(result, reference, rtol=1e-4, atol=1e-5)


@simulates
def test_a_tensor_on_the_wrong_device_is_found(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, pool = save("bert", temporary), classification.pool

    def pool_on_cpu(*arguments: Any) -> torch.Tensor:
        pooled = pool(*arguments)
        return pooled + torch.zeros(len(pooled), 1)

    monkeypatch.setattr(classification, "pool", pool_on_cpu)
    with simulated_cuda() as device, pytest.raises(RuntimeError, match="same device"):
        fit("finetune.tapt", folder, "cuda")
    assert device.errors

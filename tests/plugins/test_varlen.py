"""Flash attention to texts of different lengths: its arguments, its gradients, and the fits that use it.

No CPU has the kernel. On the simulated device, functions that compute the attention of each text by its definition
replace it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from simulated_cuda import CUDA, SimulatedCuda, simulated_cuda
from small_fits import TEST, fit
from small_models import save_model
from torch import Tensor, nn

from peekbench.errors import SpecError
from peekbench_lm.attention import attend_to_texts, packed_attention
from peekbench_lm.forward_context import forward_context
from peekbench_lm.layout import Step

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU, and none is simulated")
KERNEL = torch.ops.torch_attn._varlen_attn.default
LENGTHS = (9, 4, 6)


def weigh(
    query: Tensor, key: Tensor, bounds: tuple[Tensor, Tensor], scale: float | None, window: list[int]
) -> Iterator[tuple[slice, slice, Tensor, float]]:
    """Yield the queries, the keys, the attention weights and the factor of the scores of each text."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
    own, whole = (cumulated.tolist() for cumulated in bounds)
    for text in range(len(own) - 1):
        rows, columns = slice(own[text], own[text + 1]), slice(whole[text], whole[text + 1])
        num_before = columns.stop - columns.start - (rows.stop - rows.start)
        distance = torch.arange(columns.stop - columns.start) - torch.arange(rows.stop - rows.start)[:, None]
        distance -= num_before  # of a key from the query; negative for keys before it
        is_hidden = (distance < -window[0] if window[0] >= 0 else False) | (
            distance > window[1] if window[1] >= 0 else torch.zeros_like(distance, dtype=torch.bool)
        )
        scores = torch.einsum("qhd,khd->hqk", query[rows].float(), key[columns].float()) * factor
        yield rows, columns, scores.masked_fill(is_hidden, float("-inf")).softmax(-1), factor


def attend(
    query: Tensor, key: Tensor, value: Tensor, own: Tensor, whole: Tensor, max_own: int, max_whole: int,
    is_causal: bool, scale: float | None, window: list[int], enable_gqa: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    assert own.dtype == whole.dtype == torch.int32
    assert [max_own, max_whole] == [int(bounds.diff().max()) for bounds in (own, whole)]
    assert [len(query), len(key)] == [int(bounds[-1]) for bounds in (own, whole)]
    assert enable_gqa == (query.shape[1] != key.shape[1])
    output = torch.empty_like(query)
    values = value.repeat_interleave(query.shape[1] // key.shape[1], 1).float()
    for rows, columns, weights, _ in weigh(query, key, (own, whole), scale, window):
        output[rows] = torch.einsum("hqk,khd->qhd", weights, values[columns]).to(query.dtype)
    return output, query.new_zeros(query.shape[1], len(query)), query.new_zeros(2)


def differentiate(
    gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, output: Tensor, sums: Tensor, own: Tensor,
    whole: Tensor, max_own: int, max_whole: int, is_causal: bool, state: Tensor, scale: float | None, window: list[int],
) -> tuple[Tensor, ...]:  # fmt: skip
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.is_deterministic_algorithms_warn_only_enabled()
    num_repeats, (num_keys, num_heads, size) = query.shape[1] // key.shape[1], key.shape
    keys, values = (heads.repeat_interleave(num_repeats, 1).float() for heads in (key, value))
    gradients = torch.zeros_like(query.float()), torch.zeros_like(keys), torch.zeros_like(values)
    for rows, columns, weights, factor in weigh(query, key, (own, whole), scale, window):
        by_weight = torch.einsum("qhd,khd->hqk", gradient[rows].float(), values[columns])
        by_score = weights * (by_weight - (by_weight * weights).sum(-1, keepdim=True)) * factor
        gradients[0][rows] = torch.einsum("hqk,khd->qhd", by_score, keys[columns])
        gradients[1][columns] = torch.einsum("hqk,qhd->khd", by_score, query[rows].float())
        gradients[2][columns] = torch.einsum("hqk,qhd->khd", weights, gradient[rows].float())
    by_head = (total.view(num_keys, num_heads, num_repeats, size).sum(2) for total in gradients[1:])
    return tuple(total.to(query.dtype) for total in (gradients[0], *by_head))


@pytest.fixture
def device() -> Iterator[SimulatedCuda]:
    with simulated_cuda() as device:
        device.kernels = {KERNEL: attend, torch.ops.torch_attn._varlen_attn_backward.default: differentiate}
        yield device


@pytest.mark.parametrize(
    ("is_causal", "window", "num_shared", "num_keys"),
    [(False, None, 0, 4), (True, None, 0, 2), (True, 3, 0, 4), (True, None, 3, 2), (True, 4, 3, 4)],
)
def test_attention_and_gradients_are_those_of_groups(
    is_causal: bool, window: int | None, num_shared: int, num_keys: int, device: SimulatedCuda
) -> None:
    """Sequences with a window, shared tokens, or fewer heads of keys and values."""
    step = Step([list(range(length)) for length in LENGTHS], num_shared)
    (part,) = step.parts(len(LENGTHS), CUDA)
    sizes = (4, num_keys, num_keys)
    torch.manual_seed(0)
    projections = [torch.randn(1, heads, step.num_packed, 8, device=CUDA, requires_grad=True) for heads in sizes]
    query, key, value = projections
    gradient = torch.randn(1, step.num_packed, 4, 8, device=CUDA)
    with forward_context(part, 0, "fp32"):
        options: dict[str, Any] = {"scaling": 0.5, "is_causal": is_causal, "sliding_window": window}
        expected, _ = packed_attention(nn.Identity(), query, key, value, None, **options)
    packed = (heads[0] for heads in projections)
    limits = (-1 if window is None else window - 1, 0 if is_causal else -1)
    actual = attend_to_texts(part, *packed, window_size=limits, scale=0.5)[None]
    torch.testing.assert_close(actual.cpu(), expected.cpu())
    for ours, reference in zip(
        torch.autograd.grad(actual, projections, gradient),
        torch.autograd.grad(expected, projections, gradient),
        strict=True,
    ):
        torch.testing.assert_close(ours.cpu(), reference.cpu())
    assert not device.errors


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model("llama", tmp_path_factory.mktemp("llama"), dropout=0.0, positions=256)


def test_fits_in_bf16_use_the_kernel(llama: Path, device: SimulatedCuda) -> None:
    options: dict[str, Any] = {"weights": "fp32", "lora": {"rank": 4, "dropout": 0.0}, "attention": "text"}
    probabilities, counts = [], []
    for kernel in ("grouped", "auto"):
        predictor = fit("prompting.packed", llama, "cuda", **options, attention_kernel=kernel)
        probabilities.append(np.asarray(predictor.predict(TEST)))
        counts.append(device.operations[KERNEL])
        losses = predictor.metrics["pretraining_loss_1"]
    assert counts[0] == 0 < counts[1]
    assert losses > 0
    np.testing.assert_allclose(probabilities[1], probabilities[0], atol=2e-3)
    assert not device.errors


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"precision": "fp32"}, "precision"), ({"device": "cpu"}, "cpu"), ({"dropout": 0.1}, "have dropout")],
)
def test_a_kernel_that_does_not_apply_is_refused(
    options: dict[str, Any], problem: str, llama: Path, tmp_path: Path, device: SimulatedCuda
) -> None:
    folder = save_model("llama", tmp_path, positions=256) if options.pop("dropout", 0) else llama
    arguments = {"device": "cuda", "weights": "fp32", "attention_kernel": "varlen", **options}
    with pytest.raises(SpecError, match=problem):
        fit("prompting.pretrain", folder, **arguments)

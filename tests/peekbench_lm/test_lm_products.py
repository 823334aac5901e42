"""Products in fp32 by oneDNN: values, gradients, and where they are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import pytest
import torch
from small_models import max_difference, some_texts, weights
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.pytorch_utils import Conv1D

from peekbench_lm import products
from peekbench_lm.models.language_model import LanguageModel
from peekbench_lm.products import HAS_ONEDNN, fast_products, multiply
from peekbench_lm.recipe import Recipe
from peekbench_lm.training.pretraining import pretrain

CPU = torch.device("cpu")
pytestmark = pytest.mark.skipif(not HAS_ONEDNN, reason="this build of torch does not include oneDNN")
ONEDNN: Any = torch.ops.mkldnn._linear_pointwise.default if HAS_ONEDNN else None


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: Counter[Any] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.operations[func] += 1
        return func(*args, **(kwargs or {}))


def gradients(layer: nn.Module, hidden: Tensor) -> list[Tensor]:
    """Return the result of a layer, and the gradients of its weights and its input for a loss of random weights."""
    layer.zero_grad()
    hidden = hidden.detach().requires_grad_()
    result = layer(hidden)
    torch.manual_seed(2)
    (result * torch.randn(result.shape)).sum().backward()
    found = [tensor.grad for tensor in (*layer.parameters(), hidden)]
    return [result.detach(), *(gradient.clone() for gradient in found if gradient is not None)]


@pytest.mark.parametrize(
    "make",
    [partial(nn.Linear, 300, 200), partial(nn.Linear, 300, 200, bias=False), partial(Conv1D, 200, 300)],
    ids=["linear", "no-bias", "conv"],
)
def test_results_and_gradients_equal_exact_ones(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(1)
    layer = make()
    hidden = torch.randn(2, 50, 300)
    with Recorder() as recorder, fast_products(CPU):
        actual = gradients(layer, hidden)
    assert recorder.operations[ONEDNN] == 3
    expected = gradients(layer.double(), hidden.double())
    layer.float()
    assert len(actual) == len(expected) == 2 + len(list(layer.parameters()))
    for tensor, exact in zip(actual, expected, strict=True):
        assert (tensor - exact).norm() < 1e-6 * exact.norm()
    with torch.inference_mode(), Recorder() as recorder, fast_products(CPU):
        torch.testing.assert_close(layer(hidden), actual[0], rtol=0, atol=0)
    assert recorder.operations[ONEDNN] == 1


def test_frozen_weights_and_inputs_get_no_gradient() -> None:
    layer = nn.Linear(300, 200).requires_grad_(False)
    kept: list[tuple[int, ...]] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor.shape)
        return tensor

    saved = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with fast_products(CPU), Recorder() as recorder, saved:
        layer(torch.ones(100, 300, requires_grad=True)).sum().backward()
        assert recorder.operations[ONEDNN] == 2
        layer.requires_grad_(True)(torch.ones(100, 300)).sum().backward()
    assert recorder.operations[ONEDNN] == 4
    assert layer.weight.grad is not None
    assert kept == [(200, 300), (100, 300)]


@pytest.mark.parametrize(
    ("num_rows", "dtype"), [(10, torch.float32), (100, torch.float64), (100, torch.bfloat16)], ids=str
)
def test_small_products_and_other_data_types_are_left_to_torch(num_rows: int, dtype: torch.dtype) -> None:
    layer, hidden = nn.Linear(300, 200, dtype=dtype), torch.ones(num_rows, 300, dtype=dtype)
    with Recorder() as recorder, fast_products(CPU):
        layer(hidden).sum().backward()
        multiply(hidden, layer.weight.detach().T)
    assert not recorder.operations[ONEDNN]
    assert recorder.operations[torch.ops.aten.addmm.default] == 1


def test_other_devices_are_left_to_torch() -> None:
    layer = nn.Linear(300, 200, device="meta")
    with Recorder() as recorder, fast_products(CPU):
        layer(torch.ones(100, 300, device="meta")).sum().backward()
    assert not recorder.operations[ONEDNN]
    assert isinstance(fast_products(torch.device("cuda")), nullcontext)


def test_mixed_precision_is_left_to_torch() -> None:
    layer = nn.Linear(300, 200)
    with Recorder() as recorder, fast_products(CPU), torch.autocast("cpu", torch.bfloat16):
        assert layer(torch.ones(100, 300)).dtype == torch.bfloat16
    assert not recorder.operations[ONEDNN]


@pytest.mark.parametrize("bias", [torch.ones(()), torch.ones(1), torch.ones(100, 200)], ids=["0d", "1", "2d"])
def test_other_shapes_of_biases_are_left_to_torch(bias: Tensor) -> None:
    hidden, weight = torch.ones(100, 300), torch.ones(300, 200)
    with fast_products(CPU):
        assert torch.addmm(bias, hidden, weight).eq(301).all()


def test_sparse_matrices_are_left_to_torch() -> None:
    hidden, weight = torch.eye(300).to_sparse(), torch.ones(300, 200)
    with fast_products(CPU):
        assert torch.addmm(torch.ones(200), hidden, weight).eq(2).all()


def test_second_derivatives_are_refused() -> None:
    """Instead of being zero."""
    hidden = torch.ones(100, 300, requires_grad=True)
    with fast_products(CPU):
        result = nn.Linear(300, 200)(hidden).pow(2).sum()
    (gradient,) = torch.autograd.grad(result, hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.backward(gradient.sum())


def test_wrong_shapes_raise_the_error_of_torch() -> None:
    with fast_products(CPU), pytest.raises(RuntimeError, match="cannot be multiplied"):
        nn.Linear(300, 200)(torch.ones(100, 301))


def test_products_of_matrices_equal_exact_ones() -> None:
    torch.manual_seed(1)
    left, right = torch.randn(100, 300), torch.randn(300, 200)
    with Recorder() as recorder:
        actual = multiply(left, right)
    assert recorder.operations[ONEDNN] == 1
    expected = left.double() @ right.double()
    assert (actual - expected).norm() < 1e-6 * expected.norm()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("limit", [None, 3])
def test_training_in_fp32_uses_onednn(
    precision: Any, limit: int | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without the recomputation of layers."""
    monkeypatch.setattr(products, "MIN_SIZE", 0)
    model = LanguageModel(folder, CPU)
    model.precision = precision
    texts = some_texts(model, 8)
    trained = []
    for recomputes in (False, True):
        model.restore()
        model.micro_batch.limit = limit
        model.checkpoint_gradients(recomputes)
        with Recorder() as recorder:
            pretrain(model, texts, Recipe(2, 8, 1e-3, "linear", 0.01, 1.0), 0.5, seed=5)
        assert (recorder.operations[ONEDNN] > 0) == (precision == "fp32")
        assert (recorder.operations[torch.ops.aten.addmm.default] > 0) == (precision == "bf16")
        trained.append(weights(model))
    assert max_difference(*trained) == 0

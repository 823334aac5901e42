"""Counts the operations of matrix products in torch, for forecasts for GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from peekbench_lm.products import HAS_ONEDNN

aten = torch.ops.aten
COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


def _linear_operations(hidden: Tensor, weight: Tensor, *_: Any, **__: Any) -> int:
    return 2 * hidden.numel() * len(weight)


FORMULAS = {
    **flop_registry,
    # The same arguments as those of a GPU, but torch has no formulas for a CPU.
    aten._scaled_dot_product_flash_attention_for_cpu: flop_registry[aten._scaled_dot_product_flash_attention],
    aten._scaled_dot_product_flash_attention_for_cpu_backward: flop_registry[
        aten._scaled_dot_product_flash_attention_backward
    ],
}
if HAS_ONEDNN:  # other builds of torch do not define the operation
    FORMULAS[torch.ops.mkldnn._linear_pointwise] = _linear_operations


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up torch's formulas. `FlopCounterMode`, which also attributes them to modules, takes twice as long."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0.0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        formula = FORMULAS.get(func._overloadpacket)
        # In inference mode, composite operations such as `linear` arrive whole.
        if formula is None and func.has_kernel_for_dispatch_key(COMPOSITE):
            with self:
                return func.decompose(*args, **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        if formula is not None:
            self.total += formula(*args, **(kwargs or {}), out_val=result)
        return result


@contextmanager
def count() -> Iterator[Callable[[], float]]:
    """Count the floating point operations of matrix products and of attention in the block, on any device.

    Yields
    ------
    callable
        Returns the number of operations so far, two for each multiplication with addition.

    Examples
    --------
    >>> import torch
    >>> with count() as operations:
    ...     product = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> operations()
    48.0
    """
    with _Counter() as counter:
        yield lambda: counter.total

"""Dropout for packed models."""

from __future__ import annotations

from torch import Tensor, nn

from peekbench_lm.forward_context import current


class Dropout(nn.Module):
    """Takes the place of `torch.nn.Dropout` in a packed model."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, hidden: Tensor) -> Tensor:
        """Drop some of (1, num_tokens, size)."""
        if not self.training or not self.p:
            return hidden
        now = current()
        keep = now.keep(self.p, now.part.step.num_placed * hidden.shape[-1])
        assert keep is not None
        mine = now.part.take(keep.view(-1, hidden.shape[-1]))
        return hidden * mine.to(hidden.dtype).mul_(1 / (1 - self.p))


def replace_dropout(module: nn.Module) -> None:
    """Put this dropout in the place of torch's, everywhere in a module."""
    for name, child in module.named_children():
        if isinstance(child, nn.Dropout):
            setattr(module, name, Dropout(child.p))
        else:
            replace_dropout(child)

"""Dropout for packed models."""

from __future__ import annotations

from torch import Tensor, nn

from peekbench_lm.packing.forward_context import current_context


class Dropout(nn.Module):
    """Dropout that draws one mask for all texts of a step. It replaces `torch.nn.Dropout` in packed models.

    Parameters
    ----------
    p
        Dropout probability.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, hidden: Tensor) -> Tensor:
        """Apply dropout to hidden states of shape (1, num_filled, size)."""
        if not self.training or not self.p:
            return hidden
        context = current_context()
        keep = context.keep(self.p, context.part.step.num_packed * hidden.shape[-1])
        assert keep is not None
        part_keep = context.part.fill(context.part.take(keep.view(-1, hidden.shape[-1])))  # (num_filled, size)
        return hidden * part_keep.to(hidden.dtype).mul_(1 / (1 - self.p))


def replace_dropout(module: nn.Module) -> None:
    """Replace each `torch.nn.Dropout` in a module by `Dropout`."""
    for name, child in module.named_children():
        if isinstance(child, nn.Dropout):
            setattr(module, name, Dropout(child.p))
        else:
            replace_dropout(child)

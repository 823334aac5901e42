"""Lays the texts of an optimizer step end to end, without padding.

The texts of a step stand in the order of their lengths, whatever order they were drawn in: a step's gradient is a sum
over them. Neighbours of similar length form groups, and only attention, which must keep texts apart, ever sees them
padded, each group to its own longest text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

GROUP_COST = 128 * 128
"""What handling one more group costs, in cells of an attention matrix."""


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring texts whose attention is computed together."""

    first: int
    """Position of its first text in the step."""
    end: int
    """Position after its last text."""
    width: int
    """Tokens of its longest text."""

    @property
    def num_cells(self) -> int:
        """Of its attention matrices, for one head."""
        return (self.end - self.first) * self.width**2


def group_lengths(lengths: Sequence[int]) -> tuple[Group, ...]:
    """Cut ascending lengths into groups so that cells and handling together cost least."""
    best: list[tuple[int, int]] = [(0, 0)]  # of the first k texts: the cost, and where the last group begins
    for end, width in enumerate(lengths, start=1):
        best.append(min((best[start][0] + (end - start) * width**2 + GROUP_COST, start) for start in range(end)))
    groups: list[Group] = []
    end = len(lengths)
    while end:
        start = best[end][1]
        groups.append(Group(start, end, lengths[end - 1]))
        end = start
    return tuple(reversed(groups))


class Step:
    """The texts that share an optimizer step, sorted by length."""

    def __init__(self, texts: Sequence[Sequence[int]]) -> None:
        """Sort texts.

        Parameters
        ----------
        texts
            Token ids of each, at least one.
        """
        self.order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        """Positions in `texts`, in the order of the step."""
        self.texts = [texts[position] for position in self.order]
        self.lengths = [len(text) for text in self.texts]
        self.groups = group_lengths(self.lengths)
        self.starts = [0]
        """Of each text among the step's tokens; the last one is the number of tokens."""
        for length in self.lengths:
            self.starts.append(self.starts[-1] + length)

    @property
    def num_tokens(self) -> int:
        return self.starts[-1]

    def parts(self, size: int, device: torch.device) -> list[Part]:
        """Cut into micro-batches of at most `size` texts."""
        ends = [*range(size, len(self.texts), size), len(self.texts)]
        return [Part(self, first, end, device) for first, end in zip([0, *ends], ends, strict=False)]


class Part:
    """A micro-batch: some neighbouring texts of a step, on a device."""

    def __init__(self, step: Step, first: int, end: int, device: torch.device) -> None:
        self.step = step
        self.texts = slice(first, end)
        self.tokens = slice(step.starts[first], step.starts[end])
        """Among those of the step."""
        self.lengths = step.lengths[first:end]
        self.device = device

    @cached_property
    def ids(self) -> Tensor:
        """Token ids, text after text; (num_tokens,)."""
        flat = [token for text in self.step.texts[self.texts] for token in text]
        return torch.tensor(flat, dtype=torch.long).to(self.device)

    @cached_property
    def positions(self) -> Tensor:
        """Of each token in its text; (num_tokens,)."""
        return torch.cat([torch.arange(length) for length in self.lengths]).to(self.device)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Of each text among the part's tokens."""
        bounds = [start - self.tokens.start for start in self.step.starts[self.texts.start : self.texts.stop + 1]]
        return list(pairwise(bounds))

    @cached_property
    def padded_places(self) -> Tensor:
        """Of the tokens, were each text padded to the part's longest; (num_tokens,)."""
        width = max(self.lengths)
        return torch.cat([torch.arange(length) + row * width for row, length in enumerate(self.lengths)]).to(
            self.device
        )

    @cached_property
    def blocks(self) -> list[Block]:
        """The groups, or what falls into this part of them."""
        blocks = []
        offset = 0
        for group in self.step.groups:
            first, end = max(group.first, self.texts.start), min(group.end, self.texts.stop)
            if first < end:
                blocks.append(Block(self, group, first, end, offset))
            offset += group.num_cells
        return blocks


class Block:
    """The texts of one group that are in a part, padded to the group's width for attention."""

    def __init__(self, part: Part, group: Group, first: int, end: int, offset: int) -> None:
        lengths = torch.tensor(part.step.lengths[first:end])
        self.num_tokens = part.step.starts[end] - part.step.starts[first]
        self.num_texts, self.width = end - first, group.width
        self.group, self.rows = group, slice(first - group.first, end - group.first)
        """The texts' places in the group."""
        self.offset = offset
        """Cells of the step's attention matrices, for one head, before this group's."""
        real = torch.arange(group.width)[None, :] < lengths[:, None]  # (num_texts, width)
        self.is_ragged = bool((lengths < group.width).any())
        self.places = real.flatten().nonzero()[:, 0].to(part.device)
        """Of the tokens in the padded block; (num_tokens,)."""
        offsets = torch.cumsum(lengths, 0) - lengths
        within = torch.arange(group.width)[None, :].minimum(lengths[:, None] - 1)
        self.sources = (offsets[:, None] + within).flatten().to(part.device)
        """The token, among those of the block, at each place; padding repeats a text's last one."""
        self.padding = (~real)[:, None, :].to(part.device)
        """(num_texts, 1, width)."""
        self.later = torch.ones(group.width, group.width, dtype=torch.bool).triu(1).to(part.device)
        """(width, width): keys that stand behind the query."""

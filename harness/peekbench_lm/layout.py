"""Lays the texts of an optimizer step end to end, without padding.

The texts of a step stand in the order of their lengths, whatever order they were drawn in: a step's gradient is a sum
over them. Neighbors of similar length form groups, and only attention, which must keep texts apart, ever sees them
padded, each group to its own longest text.

Texts of a causal model that begin alike, as prompts do, may share these tokens: they stand once, before all texts, and
every text attends to them as if they were its own. What is computed is the same, because tokens see none behind them.
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
    """Neighboring texts whose attention is computed together."""

    first: int
    """Position of its first text in the step; -1 for the shared tokens, which are a group by themselves."""
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


def count_shared(texts: Sequence[Sequence[int]]) -> int:
    """Tokens that all texts begin with; at least the last one of each is left, and 0 where there is but one text."""
    if len(texts) < 2:
        return 0
    first, last = min(map(tuple, texts)), max(map(tuple, texts))  # all others are between these two
    shortest = min(map(len, texts)) - 1
    differs = (place for place in range(shortest) if first[place] != last[place])
    return next(differs, shortest)


class Step:
    """The texts that share an optimizer step, sorted by length."""

    def __init__(self, texts: Sequence[Sequence[int]], num_shared: int = 0) -> None:
        """Sort texts.

        Parameters
        ----------
        texts
            Token ids of each, at least one.
        num_shared
            So many first tokens are the same in all texts, and stand once; fewer than the shortest text has.
        """
        self.num_shared = num_shared
        self.order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        """Positions in `texts`, in the order of the step."""
        self.texts = [texts[position] for position in self.order]
        self.lengths = [len(text) for text in self.texts]
        self.groups = group_lengths(self.lengths)
        if num_shared:
            self.groups = (Group(-1, 0, num_shared), *self.groups)
        self.starts = [num_shared]
        """Where the tokens of each text that are not shared stand; the last one is the number of all that stand."""
        for length in self.lengths:
            self.starts.append(self.starts[-1] + length - num_shared)

    @property
    def num_placed(self) -> int:
        """Tokens that stand in the step, the shared ones once."""
        return self.starts[-1]

    @property
    def num_tokens(self) -> int:
        """Tokens of the texts."""
        return sum(self.lengths)

    def parts(self, size: int, device: torch.device) -> list[Part]:
        """Cut into micro-batches of at most `size` texts."""
        ends = [*range(size, len(self.texts), size), len(self.texts)]
        return [Part(self, first, end, device) for first, end in zip([0, *ends], ends, strict=False)]


class Part:
    """A micro-batch: some neighboring texts of a step, behind the shared tokens, on a device."""

    def __init__(self, step: Step, first: int, end: int, device: torch.device) -> None:
        self.step = step
        self.texts = slice(first, end)
        self._own = slice(step.starts[first], step.starts[end])
        self.lengths = step.lengths[first:end]
        self.device = device

    def take(self, rows: Tensor) -> Tensor:
        """Of something that each token of the step has, what this part's have."""
        own = rows[self._own]
        return torch.cat([rows[: self.step.num_shared], own]) if self.step.num_shared else own

    @cached_property
    def ids(self) -> Tensor:
        """Token ids, the shared ones first, then text after text; (num_placed,)."""
        shared = self.step.num_shared
        flat = list(self.step.texts[0][:shared])
        flat.extend(token for text in self.step.texts[self.texts] for token in text[shared:])
        return torch.tensor(flat, dtype=torch.long).to(self.device)

    @cached_property
    def positions(self) -> Tensor:
        """Of each token in its text; (num_placed,)."""
        shared = self.step.num_shared
        own = [torch.arange(shared, length) for length in self.lengths]
        return torch.cat([torch.arange(shared), *own]).to(self.device)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Of each text's own tokens among the part's."""
        bounds = self.step.starts[self.texts.start : self.texts.stop + 1]
        return list(pairwise(bound - self._own.start + self.step.num_shared for bound in bounds))

    @cached_property
    def padded_places(self) -> Tensor:
        """Of the tokens, were each text padded to the part's longest, and nothing shared; (num_tokens,)."""
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
            if group.first < 0:
                blocks.append(Block(self, group, -1, 0, offset))
            elif first < end:
                blocks.append(Block(self, group, first, end, offset))
            offset += group.num_cells
        return blocks

    @cached_property
    def sources(self) -> Tensor:
        """The token at each place of all padded blocks, where some are shared."""
        starts = torch.tensor([start for start, _ in self.spans])
        chosen = [torch.arange(self.step.num_shared)]
        for block in self.blocks[1:]:
            rows = slice(block.first - self.texts.start, block.end - self.texts.start)
            columns = torch.arange(block.width)[None, :].minimum(torch.tensor(self.lengths[rows])[:, None] - 1)
            own = starts[rows, None] + columns - self.step.num_shared
            chosen.append(torch.where(columns < self.step.num_shared, columns, own).flatten())
        return torch.cat(chosen).to(self.device)


class Block:
    """The texts of one group that are in a part, padded to the group's width for attention."""

    def __init__(self, part: Part, group: Group, first: int, end: int, offset: int) -> None:
        step = part.step
        shared = step.num_shared if first >= 0 else 0
        lengths = torch.tensor(step.lengths[first:end] if first >= 0 else [group.width])
        self.first, self.end = first, end
        self.num_tokens = int((lengths - shared).sum())
        """Of the part's, without shared ones but where the block is theirs."""
        self.num_texts, self.width = end - first, group.width
        self.group, self.rows = group, slice(first - group.first, end - group.first)
        """The texts' places in the group."""
        self.offset = offset
        """Cells of the step's attention matrices, for one head, before this group's."""
        real = torch.arange(group.width)[None, :] < lengths[:, None]  # (num_texts, width)
        self.is_ragged = bool((lengths < group.width).any())
        own = real & (torch.arange(group.width) >= shared)
        self.places = own.flatten().nonzero()[:, 0].to(part.device)
        """Of the tokens in the padded block; (num_tokens,)."""
        offsets = torch.cumsum(lengths, 0) - lengths
        within = torch.arange(group.width)[None, :].minimum(lengths[:, None] - 1)
        self.sources = (offsets[:, None] + within).flatten().to(part.device)
        """The token, among those of the block, at each place; padding repeats a text's last one."""
        self.padding = (~real)[:, None, :].to(part.device)
        """(num_texts, 1, width)."""
        self._device = part.device

    @cached_property
    def later(self) -> Tensor:
        """(width, width): keys that stand behind the query."""
        return torch.ones(self.width, self.width, dtype=torch.bool).triu(1).to(self._device)

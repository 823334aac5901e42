"""Layout of the texts of an optimizer step in one sequence, without padding.

A step sorts its texts by length, because its gradient is a sum over texts and does not depend on their order. Texts of
similar length form groups. Only attention, which must keep texts apart, pads them: each group to its longest text.

Texts of a causal model may share their first tokens, as prompts do. The shared tokens occur once, before all texts, and
every text attends to them as if they were its own. Results are the same because no token attends to a later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from peekbench_lm.devices import to_device

GROUP_COSTS = {"cpu": 128 * 128, "cuda": 1024 * 1024, "mps": 1024 * 1024}
"""Cost of one more group, in cells of an attention matrix, for each type of device.

A group adds some 30 operations to each layer. To launch them takes a GPU longer than to compute many padded cells.
"""


@dataclass(frozen=True, slots=True)
class Group:
    """Consecutive texts of a step whose attention is computed together."""

    first: int
    """Position of the first text in the step; -1 for the shared tokens, which form their own group."""
    end: int
    """Position after the last text."""
    width: int
    """Number of tokens of the longest text."""

    @property
    def num_cells(self) -> int:
        """Number of cells of the attention matrices of one head."""
        return (self.end - self.first) * self.width**2


def group_lengths(lengths: Sequence[int], group_cost: int) -> tuple[Group, ...]:
    """Return the groups of minimal total cost.

    Parameters
    ----------
    lengths
        Numbers of tokens of the texts, in ascending order.
    group_cost
        Cost of one more group, in cells of an attention matrix.
    """
    best: list[tuple[int, int]] = [(0, 0)]  # for the first k texts: minimal cost and start of the last group
    for end, width in enumerate(lengths, start=1):
        best.append(min((best[start][0] + (end - start) * width**2 + group_cost, start) for start in range(end)))
    groups: list[Group] = []
    end = len(lengths)
    while end:
        start = best[end][1]
        groups.append(Group(start, end, lengths[end - 1]))
        end = start
    return tuple(reversed(groups))


def count_shared(texts: Sequence[Sequence[int]]) -> int:
    """Return the number of first tokens that all texts share.

    The last token of each text never counts as shared. The number is 0 for a single text.

    Parameters
    ----------
    texts
        Token ids of each text.
    """
    if len(texts) < 2:
        return 0
    first, last = min(map(tuple, texts)), max(map(tuple, texts))  # all other texts are between these two
    shortest = min(map(len, texts)) - 1
    differences = (index for index in range(shortest) if first[index] != last[index])
    return next(differences, shortest)


class Step:
    """Texts of an optimizer step, sorted by length.

    Parameters
    ----------
    texts
        Token ids of each text, at least one per text.
    num_shared
        Number of first tokens that all texts share and that the step holds once; less than the length of every text.
    """

    def __init__(self, texts: Sequence[Sequence[int]], num_shared: int = 0) -> None:
        self.num_shared = num_shared
        """Number of first tokens that all texts share."""
        self.order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        """Positions of the sorted texts in the argument `texts`."""
        self.texts = [texts[position] for position in self.order]
        """Token ids of the sorted texts."""
        self.lengths = [len(text) for text in self.texts]
        """Numbers of tokens of the sorted texts."""
        self.starts = [num_shared]
        """Index of the first token of each text that is not shared, followed by the number of packed tokens."""
        for length in self.lengths:
            self.starts.append(self.starts[-1] + length - num_shared)

    @property
    def num_packed(self) -> int:
        """Number of tokens in the packed sequence, where shared tokens count once."""
        return self.starts[-1]

    @property
    def num_tokens(self) -> int:
        """Number of tokens of the texts, where shared tokens count for each text."""
        return sum(self.lengths)

    def groups(self, device: torch.device) -> tuple[Group, ...]:
        """Return the groups of texts for attention, the shared tokens first.

        Parameters
        ----------
        device
            Device of the computation.
        """
        groups = group_lengths(self.lengths, GROUP_COSTS[device.type])
        if self.num_shared:
            groups = (Group(-1, 0, self.num_shared), *groups)
        return groups

    def parts(self, size: int, device: torch.device) -> list[Part]:
        """Split the step into micro-batches.

        Parameters
        ----------
        size
            Maximum number of texts in a micro-batch.
        device
            Device of the computation.
        """
        ends = [*range(size, len(self.texts), size), len(self.texts)]
        return [Part(self, first, end, device) for first, end in zip([0, *ends], ends, strict=False)]


class Part:
    """A micro-batch: consecutive texts of a step after the shared tokens, on a device.

    Parameters
    ----------
    step
        Step that contains the texts.
    first, end
        Position of the first text, and position after the last text.
    device
        Device of the computation.
    """

    def __init__(self, step: Step, first: int, end: int, device: torch.device) -> None:
        self.step = step
        self.texts = slice(first, end)
        """Positions of the texts in the step."""
        self._own = slice(step.starts[first], step.starts[end])
        self.lengths = step.lengths[first:end]
        """Numbers of tokens of the texts."""
        self.device = device

    def take(self, rows: Tensor) -> Tensor:
        """Select the rows of this part's tokens.

        Parameters
        ----------
        rows
            One row for each packed token of the step.
        """
        own = rows[self._own]
        return torch.cat([rows[: self.step.num_shared], own]) if self.step.num_shared else own

    @cached_property
    def ids(self) -> Tensor:
        """Token ids, the shared tokens first, then text after text; shape (num_packed,)."""
        shared = self.step.num_shared
        flat = list(self.step.texts[0][:shared])
        flat.extend(token for text in self.step.texts[self.texts] for token in text[shared:])
        return to_device(torch.tensor(flat, dtype=torch.long), self.device)

    @cached_property
    def positions(self) -> Tensor:
        """Position of each token in its text; shape (num_packed,)."""
        shared = self.step.num_shared
        own = [torch.arange(shared, length) for length in self.lengths]
        return to_device(torch.cat([torch.arange(shared), *own]), self.device)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """First index and end of each text's own tokens in the packed sequence of this part."""
        bounds = self.step.starts[self.texts.start : self.texts.stop + 1]
        return list(pairwise(bound - self._own.start + self.step.num_shared for bound in bounds))

    @cached_property
    def padded_indices(self) -> Tensor:
        """Index of each token in a flat batch padded to the longest text of this part; shape (num_tokens,)."""
        width = max(self.lengths)
        rows = [torch.arange(length) + row * width for row, length in enumerate(self.lengths)]
        return to_device(torch.cat(rows), self.device)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Groups of the step."""
        return self.step.groups(self.device)

    @cached_property
    def blocks(self) -> list[Block]:
        """Groups of the step, restricted to the texts of this part."""
        blocks = []
        offset = 0
        for group in self.groups:
            first, end = max(group.first, self.texts.start), min(group.end, self.texts.stop)
            if group.first < 0:
                blocks.append(Block(self, group, -1, 0, offset))
            elif first < end:
                blocks.append(Block(self, group, first, end, offset))
            offset += group.num_cells
        return blocks

    @cached_property
    def sources(self) -> Tensor:
        """Index of the token at each cell of all padded blocks, for texts that share tokens."""
        starts = torch.tensor([start for start, _ in self.spans])
        chosen = [torch.arange(self.step.num_shared)]
        for block in self.blocks[1:]:
            rows = slice(block.first - self.texts.start, block.end - self.texts.start)
            columns = torch.arange(block.width)[None, :].minimum(torch.tensor(self.lengths[rows])[:, None] - 1)
            own = starts[rows, None] + columns - self.step.num_shared
            chosen.append(torch.where(columns < self.step.num_shared, columns, own).flatten())
        return to_device(torch.cat(chosen), self.device)


class Block:
    """Texts of one group in a part, padded to the width of the group for attention.

    Parameters
    ----------
    part
        Part that contains the texts.
    group
        Group that contains the texts.
    first, end
        Position of the first text in the step, and position after the last text; -1 and 0 for the shared tokens.
    offset
        Number of cells of the attention matrices of one head in earlier groups of the step.
    """

    def __init__(self, part: Part, group: Group, first: int, end: int, offset: int) -> None:
        step = part.step
        shared = step.num_shared if first >= 0 else 0
        lengths = torch.tensor(step.lengths[first:end] if first >= 0 else [group.width])
        self.first, self.end = first, end
        self.num_tokens = int((lengths - shared).sum())
        """Number of tokens, without shared tokens unless this is their block."""
        self.num_texts, self.width = end - first, group.width
        self.group, self.rows = group, slice(first - group.first, end - group.first)
        """Group of the texts, and their positions in it."""
        self.offset = offset
        """Number of cells of the attention matrices of one head in earlier groups of the step."""
        is_real = torch.arange(group.width)[None, :] < lengths[:, None]  # (num_texts, width)
        self.is_ragged = bool((lengths < group.width).any())
        """Whether some text is shorter than the block."""
        is_own = is_real & (torch.arange(group.width) >= shared)
        self.indices = to_device(is_own.flatten().nonzero()[:, 0], part.device)
        """Index of each token in the flat padded block; shape (num_tokens,)."""
        self.places = to_device((is_own.flatten().cumsum(0) - 1).clamp_(min=0), part.device)
        """Position in `indices` of each cell of the padded block; shape (num_texts * width,)."""
        self.is_foreign = to_device(~is_own.flatten()[:, None], part.device)
        """True for cells whose `places` mean nothing: padding and shared tokens; shape (num_texts * width, 1)."""
        offsets = torch.cumsum(lengths, 0) - lengths
        columns = torch.arange(group.width)[None, :].minimum(lengths[:, None] - 1)
        self.sources = to_device((offsets[:, None] + columns).flatten(), part.device)
        """Index of the token at each cell of the padded block; padding repeats the last token of a text."""
        self._padding = to_device((~is_real)[:, None, :], part.device)  # (num_texts, 1, width)
        self._device = part.device
        self._hidden_cells: dict[tuple[bool, float], Tensor | None] = {}

    def hidden_cells(self, is_causal: bool, window: float) -> Tensor | None:
        """Return the cells of attention matrices that must not be attended to; None if there are none.

        Padding of causal texts is not hidden: it follows their tokens, which do not attend to it, and must attend to
        itself. A row of which all cells are hidden would have the weights NaN, and NaN times the gradient zero would be
        the gradient of all values.

        Parameters
        ----------
        is_causal
            Whether tokens attend only to themselves and earlier tokens.
        window
            Number of tokens that a token attends to, itself included; infinite for no limit.

        Returns
        -------
        Tensor or None
            True for hidden cells; shape (num_texts, 1, width) or (width, width).
        """
        key = (is_causal, window)
        if key not in self._hidden_cells:
            self._hidden_cells[key] = self._hide_cells(is_causal, window)
        return self._hidden_cells[key]

    def _hide_cells(self, is_causal: bool, window: float) -> Tensor | None:
        if not is_causal:
            return self._padding if self.is_ragged else None
        later = torch.ones(self.width, self.width, dtype=torch.bool, device=self._device).triu(1)
        if self.width > window:
            later |= torch.ones_like(later).tril(-int(window))
        return later

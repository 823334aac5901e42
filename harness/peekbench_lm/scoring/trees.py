"""Trees of continuations that share their first tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class ContinuationTree:
    """Tree of continuations that holds each shared token once.

    Parameters
    ----------
    continuations
        Token ids of each continuation, at least one per continuation.
    """

    def __init__(self, continuations: Sequence[Sequence[int]]) -> None:
        self.tokens: list[int] = []
        """Token id of each node. Parents precede their children. The last token of a continuation needs no node."""
        self.parents: list[int] = []
        """Parent of each node; -1 for the last token of the text."""
        self.depths: list[int] = []
        """Distance of each node from the last token of the text."""
        self.steps: list[list[tuple[int, int]]] = []
        """For each continuation, pairs of a position and the token id that follows it. Position 0 is the last token of
        the text, and position k + 1 is node k."""
        nodes: dict[tuple[int, ...], int] = {(): -1}
        for continuation in continuations:
            steps = []
            for length, token in enumerate(continuation):
                path = tuple(continuation[:length])
                if path not in nodes:
                    self.parents.append(nodes[path[:-1]])
                    self.tokens.append(path[-1])
                    self.depths.append(length)
                    nodes[path] = len(self.tokens) - 1
                steps.append((nodes[path] + 1, token))
            self.steps.append(steps)

    def visible_nodes(self) -> Tensor:
        """Return True if a node (row) attends to a node (column): itself or an ancestor; (num_nodes, num_nodes)."""
        visible = torch.eye(len(self.tokens), dtype=torch.bool)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                visible[node] |= visible[parent]
        return visible

"""Decides on which machines of the cluster workers are started."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from peekbench.plugins import GPU_FRACTION_VARIABLE, NODE_VARIABLE
from peekbench.records import Resources

TOLERANCE = 1e-6  # of sums of fractions


@dataclass(slots=True)
class Node:
    """A machine of the cluster."""

    identifier: str
    """Identifier that Ray has given it."""
    name: str
    """Readable name, which no other machine of the run has."""
    total: Resources
    """What it offers, including what is in use."""
    is_prepared: bool = False
    """Whether workers on it may get items."""


def worker_environment(node: str, needs: Resources) -> dict[str, str]:
    """Return environment variables of a worker: its machine, its share of a GPU, and no GPU if its trials need none.

    Ray shows all GPUs of a machine to workers that asked for none. `device: auto` would then mean another device on
    machines with a GPU, and give other numbers there.
    """
    if not needs.gpus:
        return {NODE_VARIABLE: node, "CUDA_VISIBLE_DEVICES": ""}
    return {NODE_VARIABLE: node, **({GPU_FRACTION_VARIABLE: f"{needs.gpus:.6f}"} if needs.gpus < 1 else {})}


def round_up(needs: Resources) -> Resources:
    """Round numbers of cores and GPUs above 1 up to whole ones, because Ray has fractions only below 1."""
    cpus, gpus = (number if number <= 1 else math.ceil(number) for number in (needs.cpus, needs.gpus))
    return Resources(cpus, needs.memory, gpus)


def add(first: Resources, second: Resources) -> Resources:
    """Return the sum of each resource."""
    return Resources(first.cpus + second.cpus, first.memory + second.memory, first.gpus + second.gpus)


def fits(needs: Resources, total: Resources) -> bool:
    """Return whether a machine offers what is needed."""
    return (
        needs.cpus <= total.cpus + TOLERANCE and needs.gpus <= total.gpus + TOLERANCE and needs.memory <= total.memory
    )


def place(
    nodes: Sequence[Node], used: Mapping[str, Sequence[Resources]], demand: Mapping[Resources, int], room: float
) -> list[tuple[Node, Resources]]:
    """Choose machines for new workers.

    Workers of the groups in demand take turns, each on the machine with the fewest workers that has room for it. A
    machine that is not prepared gets a single worker, which prepares it.

    Parameters
    ----------
    nodes
        Machines that can be used.
    used
        What the present workers of each machine need, by its identifier.
    demand
        Number of workers that would have something to do, by what they need.
    room
        Largest number of new workers.

    Returns
    -------
    list of tuple
        Machine and needs of each new worker.
    """
    taken = {node.identifier: list(used.get(node.identifier, ())) for node in nodes}
    left = Counter({group: number for group, number in demand.items() if number > 0})
    chosen: list[tuple[Node, Resources]] = []
    while left:
        for group in list(left):
            candidates = [node for node in nodes if _has_room(node, taken[node.identifier], group)]
            if not candidates or len(chosen) >= room:
                del left[group]
                continue
            node = min(candidates, key=lambda node: len(taken[node.identifier]))
            taken[node.identifier].append(group)
            chosen.append((node, group))
            left[group] -= 1
            if not left[group]:
                del left[group]
    return chosen


def _has_room(node: Node, taken: Sequence[Resources], group: Resources) -> bool:
    if taken and not node.is_prepared:
        return False
    return fits(reduce(add, taken, group), node.total)


def describe(resources: Resources) -> str:
    """Return resources in words, such as '2 CPU, 0.5 GPU'."""
    parts = [f"{resources.cpus:g} CPU"]
    if resources.gpus:
        parts.append(f"{resources.gpus:g} GPU")
    if resources.memory:
        parts.append(f"{resources.memory / 1e9:.1f} GB of memory")
    return ", ".join(parts)

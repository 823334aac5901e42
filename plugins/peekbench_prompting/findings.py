"""What the comparison of orders says, in tables and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from peekbench import Analysis, Column, Table
from peekbench.records import Cell

if TYPE_CHECKING:
    from peekbench_prompting.exchangeability import Exchangeability, Found

PREFERS, SUSPECT, NONE = "prefers the published order", "inconclusive: so would others", "no preference found"


def report(found: Mapping[str, Found], options: Exchangeability, limit: int) -> Analysis:
    """One analysis of all tasks.

    Parameters
    ----------
    limit
        Tokens that the model reads at once.
    """
    from scipy.stats import false_discovery_control

    alpha = 1 - options.level
    adjusted = false_discovery_control([one.model.p_exact for one in found.values()])
    suspects = [name for name, one in found.items() if order_stands_out(one, alpha)]
    rows, orders = [], []
    for (name, one), p in zip(found.items(), map(float, adjusted), strict=True):
        finding = NONE if p > alpha else SUSPECT if name in suspects else PREFERS
        num_rows = len(one.rows.texts)
        gain = one.model.difference * len(one.rows.shards) / num_rows
        rows.append((name, num_rows, len(one.rows.shards), gain, one.model.p_t, one.model.p_exact, p, finding))
        orders.append(_order_cells(name, one))
    warnings = _warnings(found, suspects, alpha, limit)
    return Analysis(
        "exchangeability", (_preference_table(rows, options), _order_table(orders, options)), warnings=warnings
    )


def order_stands_out(one: Found, alpha: float) -> bool:
    """Whether the published order is one that a model may prefer that has never seen it.

    The two looks at neighbors count as one (Bonferroni).
    """
    neighbors = 2 * min(one.words.p_exact, one.labels.p_exact) <= alpha
    return neighbors or (one.reference is not None and one.reference.p_exact <= alpha)


def _order_cells(name: str, one: Found) -> tuple[Cell, ...]:
    repeated = 1 - len(set(one.rows.joined)) / len(one.rows.joined)
    reference = None if one.reference is None else one.reference.p_exact
    return (name, one.tokens, repeated, one.words.p_exact, one.labels.p_exact, reference)


def _preference_table(rows: Sequence[tuple[Cell, ...]], options: Exchangeability) -> Table:
    columns = (
        Column("task"),
        Column("texts", "count"),
        Column("shards", "count"),
        Column("gain, nats a text", "number"),
        Column("p, t test", "p_value"),
        Column("p, exact", "p_value"),
        Column("p, adjusted", "p_value"),
        Column("finding"),
    )
    note = (
        f"Gain: log likelihood of a shard's texts in the published order, minus the mean over {options.permutations} "
        "random orders of the same texts, for each text. A model that was trained on the published file may prefer its "
        "order; one that was not cannot, if any order of the texts could as well have been published. p, t test: over "
        "shards, one-sided, as in Oren et al. 2023. p, exact: from the same numbers, without assumptions on their "
        "distribution. Adjusted: the exact p, over these tasks (Benjamini and Hochberg). A small p speaks of the "
        "published order alone: not of how often it was seen, of labels, or of a score that it raised. A large p does "
        "not say that the texts are unseen: they may have been seen in another order, each by itself, or too rarely. "
        "The arms base, extra and test cannot show what a model saw in its original pretraining."
    )
    return Table(f"Does {options.model} prefer the order in which texts were published?", columns, tuple(rows), note)


def _order_table(rows: Sequence[tuple[Cell, ...]], options: Exchangeability) -> Table:
    columns = (
        Column("task"),
        Column("tokens a text", "number"),
        Column("repeated", "fraction"),
        Column("p, words of neighbors", "p_value"),
        Column("p, labels of neighbors", "p_value"),
        Column(f"p, {options.reference or 'reference'}", "p_value"),
    )
    note = (
        "Small p: the published order is no random one. Neighbors share more words or labels than in random orders of "
        "the same shards, or the reference model prefers it too. A model may then prefer it without having seen it: "
        "its preference is inconclusive. Large p are no proof that the order is random. Tokens: the median. Repeated: "
        "texts that stand there a second time; to exchange equal texts changes nothing."
    )
    return Table("Could any order as well have been published?", columns, tuple(rows), note)


def _warnings(found: Mapping[str, Found], suspects: list[str], alpha: float, limit: int) -> tuple[str, ...]:
    warnings = []
    if suspects:
        warnings.append(
            f"The order of {', '.join(suspects)} is not random (p at most {alpha:.2g}): what a model prefers there "
            "says nothing of what it has seen."
        )
    if long := [name for name, one in found.items() if 2 * one.tokens > limit]:
        warnings.append(
            f"The model reads {limit} tokens at once, less than two typical texts of {', '.join(long)}: little of a "
            "text is read together with the one before, and a preference is easily missed."
        )
    return tuple(warnings)

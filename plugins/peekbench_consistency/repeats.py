"""Rows that stand in the table twice, copied or shifted, and rows of one number that are not of one draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peekbench.formatting import pluralize
from peekbench_consistency.findings import BLOCK, Finding, Rows, cells_of, joined, listed, shown_p

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 5  # different rows, or rows that coincide, below which nothing is concluded
COMMON = 60  # rows of one size in which the same scores stand, from which these tell nothing
DIGITS = 9


def copied_blocks(rows: Rows) -> list[Finding]:
    """Blocks with the very same rows in any order, such as one task's in another's place."""
    found: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for key, block in rows.wide.groupby(list(BLOCK), sort=False):
        scores = [tuple(row) for row in block[list(rows.arms)].round(DIGITS).itertuples(index=False)]
        if len(set(scores)) >= FEWEST and any(len(set(row)) > 1 for row in scores):
            found.setdefault(tuple(sorted(scores)), []).append(key)
    findings = []
    twins: dict[str, list[str]] = {}  # methods with the same results, to tasks
    for same, keys in found.items():
        if len({key[2:] for key in keys}) == 1 < len(keys):
            methods = " = ".join(rows.place(method=key[0], model=key[1]) for key in keys)
            size = rows.place(num_train=keys[0][2], num_test=keys[0][3])
            twins.setdefault(joined(methods, size), []).append(keys[0][4])
        elif len(keys) > 1:
            findings.append(
                Finding(
                    "fault",
                    "rows of one stand in another's place",
                    " = ".join(rows.place(**cells_of(key)) for key in keys),
                    f"all {len(same)} rows are the same",
                    "read or run the copy again; it has no scores of its own",
                )
            )
    for where, tasks in twins.items():
        findings.append(
            Finding(
                "doubt",
                "two names, the same results",
                where,
                f"all rows are the same in {len(tasks)} of {pluralize(rows.wide['task'].nunique(), 'task')}: "
                f"{listed(tasks)}",
                "if these methods do the same there, all is well; else one was run or read in the other's place",
            )
        )
    return findings


def shifted_rows(rows: Rows, level: float) -> list[Finding]:
    """Rows that recur at a fixed distance, in the same block or in another of the same size.

    If two blocks have M pairs of equal rows by chance, these lie at any cyclic distance alike, so that their number at
    one of K distances is near Poisson with mean M / K, given M. Bonferroni over distances and pairs of blocks. Methods
    on one task share their test texts, so at distance 0 they may coincide.
    """
    import numpy as np
    from scipy.stats import poisson

    wide = rows.wide
    coded = wide[list(BLOCK)].assign(
        block=wide.groupby(list(BLOCK), sort=False).ngroup(),
        position=wide.groupby(list(BLOCK), sort=False).cumcount(),
        scores=wide[list(rows.arms)].round(DIGITS).groupby(list(rows.arms), dropna=False).ngroup(),
    )
    coded["size"] = coded.groupby("block")["block"].transform("size")
    blocks = coded.drop_duplicates("block").set_index("block")
    comparable = blocks.groupby(["num_test", "size"]).size()
    pairs = float((comparable * (comparable + 1) / 2).sum())
    rare = coded[coded.groupby(["num_test", "scores"])["block"].transform("size") <= COMMON]
    short = rare[["num_test", "size", "scores", "block", "position", "task"]]
    met = short.merge(short, on=["num_test", "size", "scores"], suffixes=("", "_other"))
    same = met["block"] == met["block_other"]
    met = met[(met["block"] < met["block_other"]) | (same & (met["position"] < met["position_other"]))].copy()
    same = met["block"] == met["block_other"]
    around = (met["position_other"] - met["position"]) % met["size"]
    met["shift"] = around.where(~same, np.minimum(around, met["size"] - around))
    met = met[(met["shift"] > 0) | (met["task"] != met["task_other"])]
    counts = met.groupby(["block", "block_other", "size", "shift"]).size().rename("met").reset_index()
    counts["all"] = counts.groupby(["block", "block_other"])["met"].transform("sum")
    distances = counts["size"].where(counts["block"] != counts["block_other"], (counts["size"] - 1) / 2)
    counts["p"] = np.minimum(1, poisson.sf(counts["met"] - 1, counts["all"] / distances) * distances * pairs)
    found = counts[(counts["p"] <= level) & (counts["met"] >= FEWEST)]
    return [_shift_finding(rows, blocks, row) for row in found.itertuples() if not _is_copy(row)]


def _is_copy(row: Any) -> bool:
    """Whether `copied_blocks` has it already."""
    return bool(row.block != row.block_other and row.met == row.size)


def _shift_finding(rows: Rows, blocks: pd.DataFrame, row: Any) -> Finding:
    one, other = (
        rows.place(**{name: blocks.at[block, name] for name in BLOCK}) for block in (row.block, row.block_other)
    )
    inside = row.block == row.block_other
    return Finding(
        "fault",
        "rows repeat within a task" if inside else "rows of one stand in another's place",
        one if inside else f"{one} = {other}",
        f"{row.met} of {pluralize(row.size, 'row')} are the same {row.shift} further on, {shown_p(row.p)}",
        "each subsample should be a draw of its own: find the rows written twice, and remove or run them again",
    )


def other_draws(rows: Rows) -> list[Finding]:
    """Methods whose rows of one draw differ in the share of the commonest class: their test texts are not the same."""
    found: dict[tuple[str, str], list[str]] = {}
    for (num_train, num_test, task), group in rows.wide.groupby(["num_train", "num_test", "task"], sort=False):
        by_method = [
            (key, part.set_index("subsample")["majority"])
            for key, part in group.groupby(["method", "model"], sort=False)
            if part["majority"].notna().all()
        ]
        for key, majority in by_method[1:]:
            first_key, first = by_method[0]
            shared = first.index.intersection(majority.index)
            if _close(first.loc[shared], majority.loc[shared]):
                continue
            shift = _shift(first.to_numpy(), majority.to_numpy())
            how = (
                f"rows are in the other's order, {shift} further on"
                if shift
                else "rows are in another order, or of other draws"
            )
            one, other = (rows.place(method=method, model=model) for method, model in (first_key, key))
            size = rows.place(num_train=num_train, num_test=num_test)
            where = joined(f"{other} against {one}", size)
            found.setdefault((where, how), []).append(str(task))
    return [
        Finding(
            "fault",
            "rows with one number are not of one draw",
            where,
            f"the commonest class's share among the test texts differs, {how}: {', '.join(tasks)}",
            "number the subsamples as they were drawn; until then, do not pair these",
        )
        for (where, how), tasks in found.items()
    ]


def _close(one: Any, other: Any) -> bool:
    import numpy as np

    return bool(np.allclose(one, other))


def _shift(first: Any, second: Any) -> int:
    """The one cyclic shift that makes them equal; 0 where there is none."""
    import numpy as np

    if len(first) != len(second):
        return 0
    fitting = [shift for shift in range(1, len(first)) if np.allclose(np.roll(first, shift), second)]
    return fitting[0] if len(fitting) == 1 else 0

"""Checks of rows: duplicated, copied or shifted rows, and rows of one subsample number that are different draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import poisson

from peekbench.formatting import pluralize
from peekbench_consistency.findings import (
    BLOCK,
    Finding,
    WideTable,
    as_mapping,
    format_p,
    join_locations,
    join_names,
)

MIN_ROWS = 5  # distinct rows, or coinciding rows, required for a conclusion
MAX_COMMON = 60  # scores that occur in more rows of one size coincide by chance
TOLERANCE = 1e-8  # of shares of the majority class
DIGITS = 9  # to which scores are compared
MISPLACED = "rows of one block appear in another"


def find_copied_blocks(table: WideTable) -> list[Finding]:
    """Find blocks with exactly the same rows in any order, such as one task's rows under another task.

    Parameters
    ----------
    table
        The results.

    Returns
    -------
    list of Finding
        Errors for copies, and warnings for methods with identical results.
    """
    blocks: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for key, block in _select_similar_blocks(table).groupby(list(BLOCK), sort=False):
        scores = [tuple(row) for row in block[list(table.arms)].round(DIGITS).itertuples(index=False)]
        if len(set(scores)) >= MIN_ROWS and any(len(set(row)) > 1 for row in scores):
            blocks.setdefault(tuple(sorted(scores)), []).append(key)
    findings = []
    identical_methods: dict[str, list[str]] = {}  # location of the methods to tasks
    for block_scores, keys in blocks.items():
        if len({key[2:] for key in keys}) == 1 < len(keys):
            methods = " = ".join(table.locate(method=key[0], model=key[1]) for key in keys)
            size = table.locate(num_train=keys[0][2], num_test=keys[0][3])
            identical_methods.setdefault(join_locations(methods, size), []).append(keys[0][4])
        elif len(keys) > 1:
            findings.append(
                Finding(
                    "error",
                    MISPLACED,
                    " = ".join(table.locate(**as_mapping(key)) for key in keys),
                    f"all {len(block_scores)} rows are identical",
                    "read or run the copy again; it has no scores of its own",
                )
            )
    for location, tasks in identical_methods.items():
        findings.append(
            Finding(
                "warning",
                "two methods have identical results",
                location,
                f"all rows are identical in {len(tasks)} of {pluralize(table.rows['task'].nunique(), 'task')}: "
                f"{join_names(tasks)}",
                "correct if these methods do the same there; otherwise one was run or read in place of the other",
            )
        )
    return findings


def _select_similar_blocks(table: WideTable) -> pd.DataFrame:
    """Return the rows of blocks whose number of rows and sum of the rows' hashes equal those of another block."""
    hashes = pd.util.hash_pandas_object(table.rows[list(table.arms)].round(DIGITS), index=False)
    number = table.rows.groupby(list(BLOCK), sort=False).ngroup()
    totals = hashes.groupby(number.to_numpy()).agg(["size", "sum"])
    return table.rows[totals.duplicated(keep=False).reindex(number).to_numpy()]


def find_shifted_rows(table: WideTable, level: float) -> list[Finding]:
    """Find rows that recur at a fixed distance, in the same block or in another one of the same size.

    If two blocks have M pairs of equal rows by chance, all K cyclic distances are equally likely, so the number of
    pairs at one distance is approximately Poisson with mean M / K, given M. Bonferroni adjustment over distances and
    pairs of blocks. Methods on one task share their test texts, so their rows may coincide at distance 0.

    Parameters
    ----------
    table
        The results.
    level
        Level of the adjusted tests.

    Returns
    -------
    list of Finding
        One error per pair of blocks and distance.
    """
    wide = table.rows
    coded = wide[list(BLOCK)].assign(
        block=wide.groupby(list(BLOCK), sort=False).ngroup(),
        position=wide.groupby(list(BLOCK), sort=False).cumcount(),
        scores=wide[list(table.arms)].round(DIGITS).groupby(list(table.arms), dropna=False).ngroup(),
    )
    coded["size"] = coded.groupby("block")["block"].transform("size")
    blocks = coded.drop_duplicates("block").set_index("block")
    comparable = blocks.groupby(["num_test", "size"]).size()
    num_pairs = float((comparable * (comparable + 1) / 2).sum())
    rare = coded[coded.groupby(["num_test", "scores"])["block"].transform("size") <= MAX_COMMON]
    compared = rare[["num_test", "size", "scores", "block", "position", "task"]]
    matches = compared.merge(compared, on=["num_test", "size", "scores"], suffixes=("", "_other"))
    is_same_block = matches["block"] == matches["block_other"]
    is_later = matches["position"] < matches["position_other"]
    matches = matches[(matches["block"] < matches["block_other"]) | (is_same_block & is_later)].copy()
    is_same_block = matches["block"] == matches["block_other"]
    forward = (matches["position_other"] - matches["position"]) % matches["size"]
    matches["shift"] = forward.where(~is_same_block, np.minimum(forward, matches["size"] - forward))
    matches = matches[(matches["shift"] > 0) | (matches["task"] != matches["task_other"])]
    counts = matches.groupby(["block", "block_other", "size", "shift"]).size().rename("matches").reset_index()
    counts["all"] = counts.groupby(["block", "block_other"])["matches"].transform("sum")
    distances = counts["size"].where(counts["block"] != counts["block_other"], (counts["size"] - 1) / 2)
    chance = poisson.sf(counts["matches"] - 1, counts["all"] / distances)
    counts["p"] = np.minimum(1, chance * distances * num_pairs)
    shifted = counts[(counts["p"] <= level) & (counts["matches"] >= MIN_ROWS)]
    return [_shift_finding(table, blocks, row) for row in shifted.itertuples() if not _is_copy(row)]


def _is_copy(row: Any) -> bool:
    """Return whether `find_copied_blocks` reports these blocks."""
    return bool(row.block != row.block_other and row.matches == row.size)


def _shift_finding(table: WideTable, blocks: pd.DataFrame, row: Any) -> Finding:
    first, second = (
        table.locate(**{name: blocks.at[block, name] for name in BLOCK}) for block in (row.block, row.block_other)
    )
    is_same_block = row.block == row.block_other
    return Finding(
        "error",
        "rows repeat within a task" if is_same_block else MISPLACED,
        first if is_same_block else f"{first} = {second}",
        f"{row.matches} of {pluralize(row.size, 'row')} are identical, shifted by {row.shift}, {format_p(row.p)}",
        "each subsample should be a separate draw: locate the rows that were written twice, and remove them or run "
        "them again",
    )


def find_mismatched_draws(table: WideTable) -> list[Finding]:
    """Find methods whose rows of one subsample number differ in the share of the majority class.

    The test texts of these rows are not the same.

    Parameters
    ----------
    table
        The results.

    Returns
    -------
    list of Finding
        One error per pair of methods and kind of mismatch.
    """
    tasks: dict[tuple[str, str], list[str]] = {}
    draws = ["num_train", "num_test", "task"]
    by_draw = table.rows.groupby([*draws, "subsample"])["majority"]
    is_different = (by_draw.transform("max") - by_draw.transform("min")) > TOLERANCE
    affected = is_different.groupby([table.rows[name] for name in draws]).transform("any")
    for (num_train, num_test, task), group in table.rows[affected].groupby(draws, sort=False):
        by_method = [
            (key, rows.set_index("subsample")["majority"])
            for key, rows in group.groupby(["method", "model"], sort=False)
            if rows["majority"].notna().all()
        ]
        for key, majority in by_method[1:]:
            first_key, first_majority = by_method[0]
            shared = first_majority.index.intersection(majority.index)
            if np.allclose(first_majority.loc[shared], majority.loc[shared]):
                continue
            shift = _cyclic_shift(first_majority.to_numpy(), majority.to_numpy())
            mismatch = (
                f"the rows are in the same order, shifted by {shift}"
                if shift
                else "the rows are in another order, or are other draws"
            )
            first, second = (table.locate(method=method, model=model) for method, model in (first_key, key))
            location = join_locations(
                f"{second} compared with {first}", table.locate(num_train=num_train, num_test=num_test)
            )
            tasks.setdefault((location, mismatch), []).append(str(task))
    return [
        Finding(
            "error",
            "rows with the same subsample number are different draws",
            location,
            f"the share of the majority class among the test texts differs, {mismatch}: {', '.join(names)}",
            "number the subsamples as they were drawn, and do not pair these rows until then",
        )
        for (location, mismatch), names in tasks.items()
    ]


def _cyclic_shift(first: Any, second: Any) -> int:
    """Return the only cyclic shift that makes two arrays equal; 0 if there is none or several."""
    if len(first) != len(second):
        return 0
    shifts = [shift for shift in range(1, len(first)) if np.allclose(np.roll(first, shift), second)]
    return shifts[0] if len(shifts) == 1 else 0

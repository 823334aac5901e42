"""Checks of rows: duplicated or copied rows, and rows of one subsample number that are different draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from peekbench.formatting import pluralize
from peekbench_consistency.findings import (
    BLOCK,
    Finding,
    WideTable,
    as_mapping,
    join_locations,
    join_names,
)

MIN_ROWS = 5  # distinct rows, or coinciding rows, required for a conclusion
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
        One error per pair of methods.
    """
    tasks: dict[str, list[str]] = {}
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
            first, second = (table.locate(method=method, model=model) for method, model in (first_key, key))
            location = join_locations(
                f"{second} compared with {first}", table.locate(num_train=num_train, num_test=num_test)
            )
            tasks.setdefault(location, []).append(str(task))
    return [
        Finding(
            "error",
            "rows with the same subsample number are different draws",
            location,
            f"the share of the majority class among the test texts differs: {join_names(names)}",
            "number the subsamples as they were drawn, and do not pair these rows until then",
        )
        for location, names in tasks.items()
    ]

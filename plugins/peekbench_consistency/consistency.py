"""All looks at a results table, one after the other, and what they found in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench import Analysis, Column, Table
from peekbench_consistency.base_arm import by_method, by_size
from peekbench_consistency.findings import Finding, arrange
from peekbench_consistency.plain import equal_arms, no_better_than_guessing, odd_counts, unequal_numbers
from peekbench_consistency.repeats import copied_blocks, other_draws, shifted_rows

if TYPE_CHECKING:
    import pandas as pd

    from peekbench_consistency import Consistency

FAMILIES = 5  # of statistical tests, among which the level is divided: base by size and by method, shifts, steps, ties
LOOKED_FOR = (
    "base arms that depend on n or on the method",
    "repeated, copied and shifted rows",
    "rows of other draws",
    "equal arms",
    "accuracies that are no multiples of 1/n",
    "unequal numbers of subsamples",
    "scores no better than the commonest class",
)
ORDER = ("fault", "doubt", "note")


def look(results: pd.DataFrame, *, options: Consistency) -> Analysis:
    """Find what should not be in a results table.

    Statistical findings are adjusted so that a table with nothing wrong gives one or more with a chance of at most
    `options.level`: the level is divided among families of tests, and within a family after Holm (1979),
    https://www.jstor.org/stable/4615733, or Bonferroni.
    """
    rows = arrange(results)
    level = options.level / FAMILIES
    findings: list[Finding] = []
    tables: list[Table] = []
    if "base" in rows.arms:
        findings, tables = by_size(rows, level)
        findings += by_method(rows, options.shared_base, level)
    findings += [
        *copied_blocks(rows),
        *shifted_rows(rows, level),
        *other_draws(rows),
        *equal_arms(rows, level),
        *odd_counts(rows, results, level),
        *unequal_numbers(rows),
        *no_better_than_guessing(rows, options.majority),
    ]
    findings.sort(key=lambda finding: ORDER.index(finding.weight))
    return Analysis(
        "consistency",
        tables=(_table(findings, options.level), *tables),
        warnings=tuple(
            f"{finding.what} ({finding.where or 'everywhere'}): {finding.evidence}; {finding.remedy}."
            for finding in findings
            if finding.weight == "fault"
        ),
    )


def _table(findings: list[Finding], level: float) -> Table:
    chance = (
        "Where chance comes in, p is adjusted for all tests of its kind, and a table with nothing wrong gives any such "
        f"finding with a chance of at most {level:g}."
    )
    if not findings:
        looks = tuple((sought,) for sought in LOOKED_FOR)
        return Table("Nothing was found that should not be in the table", (Column("looked for"),), looks, chance)
    columns = tuple(map(Column, ("weight", "what", "where", "evidence", "what to do")))
    body = tuple(
        (found.weight, found.what, found.where or "everywhere", found.evidence, found.remedy) for found in findings
    )
    return Table(
        "What should not be in the table",
        columns,
        body,
        f"Looked for: {', '.join(LOOKED_FOR)}. {chance} A fault cannot be as it should, a doubt may have a good "
        "reason, a note limits what the numbers can show.",
    )

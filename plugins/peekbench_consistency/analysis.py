"""`consistency`: runs all checks of a results table, and lists their findings in one table."""

from __future__ import annotations

import pandas as pd

from peekbench import Analysis, Column, Options, Table
from peekbench_consistency import Consistency
from peekbench_consistency.base_arms import compare_sizes
from peekbench_consistency.findings import Finding, WideTable, make_wide, summarize
from peekbench_consistency.rows import find_copied_blocks, find_mismatched_draws
from peekbench_consistency.scores import (
    find_constant_arms,
    find_equal_arms,
    find_few_subsamples,
    find_majority_guessing,
)

FAMILIES = 3  # statistical tests: base by size, equal arms, constant arms
CHECKS = (
    "base arms that depend on num_test",
    "duplicated and copied rows",
    "rows of different draws",
    "equal arms",
    "arms that never change",
    "too few subsamples for a verdict",
    "scores not above the majority class",
)
SEVERITIES = ("error", "warning", "info")


def check_consistency(results: pd.DataFrame, *, options: Consistency) -> Analysis:
    """Check a results table.

    Statistical findings are adjusted so that a table without errors yields one or more with a probability of at most
    `options.level`: the level is divided among families of tests, and within a family after Holm (1979),
    https://www.jstor.org/stable/4615733, or Bonferroni.

    Parameters
    ----------
    results
        The results table.
    options
        The level.

    Returns
    -------
    Analysis
        A table of findings, errors first; a warning for each kind of error or warning.
    """
    findings = _run_checks(make_wide(results), options)
    return Analysis("consistency", tables=(_finding_table(findings, options.level),), warnings=summarize(findings))


def check_quickly(results: pd.DataFrame, *, options: Options) -> Analysis:
    """Check a results table, for the warnings of every report.

    Parameters
    ----------
    results
        The results table.
    options
        None; the level is that of `Consistency`.

    Returns
    -------
    Analysis
        A warning for each kind of error or warning.
    """
    return Analysis("consistency.quick", warnings=summarize(_run_checks(make_wide(results), Consistency())))


def _run_checks(table: WideTable, options: Consistency) -> list[Finding]:
    """Return all findings, errors first."""
    level = options.level / FAMILIES
    findings = [
        *compare_sizes(table, level),
        *find_copied_blocks(table),
        *find_mismatched_draws(table),
        *find_equal_arms(table, level),
        *find_constant_arms(table, level),
        *find_few_subsamples(table),
        *find_majority_guessing(table),
    ]
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def _finding_table(findings: list[Finding], level: float) -> Table:
    note = (
        "Statistical findings give a p-value, adjusted for all tests of the same kind. The probability of any such "
        f"finding in a table without errors is at most {level:g}."
    )
    if not findings:
        checks = tuple((check,) for check in CHECKS)
        return Table("No inconsistencies were found", (Column("looked for"),), checks, note)
    columns = tuple(map(Column, ("severity", "finding", "location", "evidence", "remedy")))
    body = tuple(
        (finding.severity, finding.title, finding.location or "the whole table", finding.evidence, finding.remedy)
        for finding in findings
    )
    return Table(
        "Inconsistencies in the results",
        columns,
        body,
        f"Looked for: {', '.join(CHECKS)}. {note} An error cannot be correct, a warning may have a good reason, an "
        "info limits what the scores can show.",
    )

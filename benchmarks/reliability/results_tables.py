"""Reads tables of scores as people write them. Each must give the verdicts of the canonical table, or be refused.

The names of the columns, the form, the unit, the order and other columns vary at random. Shuffled rows must give the
same results table, digit by digit.

    python benchmarks/reliability/results_tables.py [--tables 5000] [--seed 0]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import pandas as pd
from hypothesis import HealthCheck, Phase, given, seed, settings

from peekbench.errors import ResultsError
from peekbench.results import tidy
from peekbench.results.analyze import AnalysisOptions, analyze

sys.path.append(str(Path(__file__).parents[2] / "tests" / "fixtures"))
from user_tables import UserTable, user_tables

DIGITS = 9
Verdicts = list[tuple[str | float, ...]]


def read_verdicts(results: pd.DataFrame) -> Verdicts:
    """Return the decisions of a results table with their numbers, in an order that does not depend on names."""
    (summary,) = analyze(results, AnalysisOptions(["summary"])).analyses
    verdicts = [
        (
            verdict.decision,
            *(round(value or 0.0, DIGITS) for value in (verdict.estimate.mean, *verdict.estimate.limits)),
        )
        for verdict in summary.verdicts
    ]
    return sorted(verdicts)


def judge(user_table: UserTable) -> str:
    """Return 'equal' or 'refused'.

    Raises
    ------
    AssertionError
        If the verdicts differ from those of the canonical table, or the order of the rows changes a number.
    """
    table, options = user_table.table, user_table.options
    try:
        results = tidy(table, "table", **options)
    except ResultsError:
        return "refused"
    if not options.get("pair_by_order"):
        shuffled = tidy(table.sample(frac=1, random_state=1), "table", **options)
        pd.testing.assert_frame_equal(shuffled, results, check_exact=True)
    canonical = user_table.canonical
    if results["num_test"].isna().all():  # the user's table lacks the sizes, or has one in a column of unknown meaning
        canonical = canonical.drop(columns="num_test")
    expected_results = tidy(canonical, "canonical")
    if results.equals(expected_results):  # and therefore the verdicts
        return "equal"
    expected, found = read_verdicts(expected_results), read_verdicts(results)
    assert found == expected, f"{found} instead of {expected}, with {options}:\n{table.head(12)}"
    return "equal"


def main() -> None:
    """Print how many tables gave equal verdicts or were refused; end with status 1 at the first that did neither."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    started = time.perf_counter()
    outcomes: Counter[str] = Counter()

    @settings(
        max_examples=arguments.tables,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @seed(arguments.seed)
    @given(user_tables())
    def check(table: UserTable) -> None:
        outcome = judge(table)
        outcomes[f"{outcome}, {'all columns named by options' if 'columns' in table.options else 'no options'}"] += 1

    check()
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:6,} {outcome}")
    print(f"{outcomes.total():6,} tables in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

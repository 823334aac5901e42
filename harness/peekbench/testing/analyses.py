"""Contract checks of analyses, which must be pure functions of the results table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from peekbench.errors import ContractError, ResultsError, SpecError
from peekbench.plugins import registry
from peekbench.plugins.entries import AnalyzerEntry
from peekbench.plugins.protocols import Options
from peekbench.records.analysis import Analysis
from peekbench.records.trials import DesignPoint, PlannedDesign
from peekbench.results.analyze import Seen
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.testing.attempt import Attempt
from peekbench.testing.declaration_checks import check_light_import
from peekbench.testing.outcomes import CheckOutcome, run_checks
from peekbench.testing.repeated_call import (
    RepeatedCall,
    by_name,
    check_generators,
    check_new_process,
    check_second_call,
    check_state,
)
from peekbench.testing.sample_tables import SamplePredictions, sample_results

NUM_SUBSAMPLES = 8  # of each task of the synthetic results


@dataclass(frozen=True, slots=True)
class AnalysisCase:
    """An analysis with results to check it on."""

    use: str
    """Name of the analysis in specs."""
    entry: AnalyzerEntry
    """Entry of the analysis."""
    options: Options
    """Options to call the analysis with."""
    results: pd.DataFrame
    """Results table."""
    calls: RepeatedCall
    """Calls of the analysis with this table."""
    first: Attempt
    """The analysis of a copy of the table, and this copy after the call."""

    def analyze(self, results: pd.DataFrame) -> Analysis:
        """Call the analysis.

        Parameters
        ----------
        results
            Results table.

        Raises
        ------
        ContractError
            If it does not return an `Analysis`.
        """
        return _call(self.entry, self.options, results)


def _call(entry: AnalyzerEntry, options: Options, results: pd.DataFrame) -> Analysis:
    predictions = SamplePredictions(int(results["subsample"].nunique())) if entry.sees_predictions else None
    analysis = entry.analyze(results, options=options, **Seen(predictions=predictions).keywords(entry))
    if not isinstance(analysis, Analysis):
        raise ContractError(f"it returned a {type(analysis).__name__}; return peekbench.Analysis")
    return analysis


def check_analyzer(
    use: str, options: Mapping[str, Any] | None = None, *, results: pd.DataFrame | None = None
) -> list[CheckOutcome]:
    """Do all contract checks of an analysis.

    Parameters
    ----------
    use
        Name of the analysis in specs, `plugin.analysis`.
    options
        Options as in a spec.
    results
        Results table, as `peekbench.load_results` returns it; by default a synthetic one.

    Returns
    -------
    list of CheckOutcome
        Outcomes in the order of `ANALYSIS_CHECKS`.

    Raises
    ------
    PluginError, SpecError
        If there is no such analysis, or the options are invalid.

    Examples
    --------
    >>> next(iter(ANALYSIS_CHECKS))
    'returns an analysis with whole tables'
    >>> outcomes = check_analyzer("permutation")
    >>> all(outcome.passed for outcome in outcomes)
    True
    """
    return list(iterate_analysis_checks(use, options, results=results))


def iterate_analysis_checks(
    use: str, options: Mapping[str, Any] | None = None, *, results: pd.DataFrame | None = None
) -> Iterator[CheckOutcome]:
    """Do the checks of `check_analyzer` one after the other.

    Parameters
    ----------
    use, options, results
        As for `check_analyzer`.

    Yields
    ------
    CheckOutcome
        Outcomes in the order of `ANALYSIS_CHECKS`.
    """
    spec = make_component(AnalysisSpec, use, options)
    return run_checks(ANALYSIS_CHECKS, make_analysis_case(spec.use, spec.entry, spec.options, results), num_required=1)


def make_analysis_case(
    use: str, entry: AnalyzerEntry, options: Options, results: pd.DataFrame | None = None
) -> AnalysisCase:
    """Make a case of an analysis.

    Parameters
    ----------
    use
        Name of the analysis in specs.
    entry
        Its entry.
    options
        Options to call it with.
    results
        Results table; by default a synthetic one, for comparisons one of two runs.
    """
    if results is None:
        results = _sample(entry)
    calls = RepeatedCall(
        use=use,
        callee=entry.analyze,
        describe=_describe,
        arguments=(use, by_name(use, entry), options.model_dump(), results),
        remedy="take the seed from the options",
    )
    return AnalysisCase(use, entry, options, results, calls, Attempt(partial(_analyze_copy, entry, options, results)))


def _analyze_copy(entry: AnalyzerEntry, options: Options, results: pd.DataFrame) -> tuple[Analysis, pd.DataFrame]:
    copy = results.copy(deep=True)
    return _call(entry, options, copy), copy


def _sample(entry: AnalyzerEntry, num_subsamples: int = NUM_SUBSAMPLES, **design: Any) -> pd.DataFrame:
    if entry.role != "comparison":
        return sample_results(num_subsamples, **design)
    runs = [sample_results(num_subsamples, seed=seed, **design).assign(run=f"run {seed}") for seed in (0, 1)]
    return pd.concat(runs, ignore_index=True)


def _describe(use: str, entry: AnalyzerEntry | None, options: dict[str, Any], results: pd.DataFrame) -> str:
    entry = entry or registry.find(use, AnalyzerEntry)
    return repr(_call(entry, entry.options.model_validate(options), results))


def check_returns_analysis(case: AnalysisCase) -> None:
    """Check that an analysis returns an `Analysis` whose tables have a cell for each column."""
    analysis, _ = case.first.result()
    require_whole_tables(analysis)


def require_whole_tables(analysis: Analysis) -> None:
    """Refuse tables in which a row has another number of cells than the table has columns."""
    for table in analysis.tables:
        for number, row in enumerate(table.rows):
            if len(row) != len(table.columns):
                raise ContractError(
                    f"table {table.title!r}, row {number} has {len(row)} cells for {len(table.columns)} columns; give "
                    "one for each, and None for missing values"
                )


def check_results_untouched(case: AnalysisCase) -> None:
    """Check that an analysis does not change the results table."""
    _, results = case.first.result()
    if not results.equals(case.results):
        raise ContractError("it changes the results table; work on a copy")


def check_designs(case: AnalysisCase) -> None:
    """Check that an analysis supports other designs, or refuses them with an error that users understand."""
    for name, results in (
        ("without a base arm", _sample(case.entry, arms=("extra", "test"))),
        ("with a single subsample", _sample(case.entry, 1)),
        ("with a single task", _sample(case.entry, num_tasks=1)),
    ):
        try:
            require_whole_tables(case.analyze(results))
        except (ResultsError, SpecError):  # the design does not suffice, and the message says so
            continue
        except Exception as error:
            raise ContractError(
                f"with a design {name}, it raised {type(error).__name__}: {error}; return what is possible with a "
                "warning, or raise peekbench.errors.ResultsError"
            ) from error


def check_forecast(case: AnalysisCase) -> None:
    """Check that a forecast returns the same `Analysis` at every call, if the entry has one."""
    if case.entry.forecast is None:
        return
    design = PlannedDesign(("first", "second"), (DesignPoint(50, 100, 20, ("task 0", "task 1")),))
    first, second = (case.entry.forecast(design, options=case.options) for _ in range(2))
    if not isinstance(first, Analysis):
        raise ContractError(f"forecast returned a {type(first).__name__}; return peekbench.Analysis")
    require_whole_tables(first)
    if repr(first) != repr(second):
        raise ContractError("forecast gives another result at the second call; take the seed from the options")


def _check_calls(check: Callable[[RepeatedCall], None], case: AnalysisCase) -> None:
    check(case.calls)


ANALYSIS_CHECKS: Mapping[str, Callable[[AnalysisCase], None]] = {
    "returns an analysis with whole tables": check_returns_analysis,
    "other designs are analyzed or refused": check_designs,
    "the results table is unchanged": check_results_untouched,
    "forecasts are repeatable": check_forecast,
    "same analysis at every call": partial(_check_calls, check_second_call),
    "global random state is unused and unchanged": partial(_check_calls, check_generators),
    "same analysis in every process": partial(_check_calls, check_new_process),
    "the state of the process is unchanged": partial(_check_calls, check_state),
    "importing the plugin is fast": check_light_import,
}
"""Checks by their names, in the order in which they are done.

Examples
--------
>>> next(iter(ANALYSIS_CHECKS))
'returns an analysis with whole tables'
"""

"""Contract checks of report formats, which must be pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from peekbench.errors import ContractError, SpecError
from peekbench.plugins.entries import ReportFormatEntry
from peekbench.plugins.report_formats import find_format, to_bytes
from peekbench.records.analysis import Column, Table, Verdict
from peekbench.records.figures import Forest, Interval
from peekbench.records.report import MethodFacts, Report
from peekbench.records.trials import Draw, Trial, TrialFailure
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

METHOD = "größe: 50% [a/b] & <c> \\d_{0} $5"  # with characters that formats must escape


@dataclass(frozen=True, slots=True)
class FormatCase:
    """A report format with reports to check it on."""

    use: str
    """Name of the format in specs."""
    entry: ReportFormatEntry
    """Its entry."""
    calls: RepeatedCall
    """Further calls, with a report that has all parts."""


def sample_report() -> Report:
    """Make a report with all parts: texts that need escapes, missing values, a figure and a failed trial.

    Returns
    -------
    Report
        The same report at every call.

    Examples
    --------
    >>> len(sample_report().tables)
    1
    """
    columns = (Column("task"), Column("bias", "difference"), Column("trials", "count"))
    return Report(
        "sample",
        "1 method on 2 tasks",
        verdicts=(Verdict(METHOD, "bias", "equivalent", f"{METHOD}: the bias is negligible.", 0.001, -0.002, 0.004),),
        warnings=("2 trials are missing.",),
        figures=(Forest("Bias", ((METHOD, (Interval("news", 0.001, -0.002, 0.004),)),)),),
        tables=(Table("Bias by task", columns, (("news", 0.001, 6), (METHOD, None, 0)), note="100% & more."),),
        failures=(TrialFailure(Trial(Draw("news", 50, 200, 1), METHOD), "ValueError: no texts", "Traceback: none"),),
        provenance={"peekbench": "0.1"},
        methods=(MethodFacts(METHOD, "classic.lsa", "num_components 10", "LSA and a linear classifier"),),
        command="peekbench report sample",
    )


def check_report_format(use: str, options: Mapping[str, Any] | None = None) -> list[CheckOutcome]:
    """Do all contract checks of a report format.

    Parameters
    ----------
    use
        Name of the format in specs, `plugin.format`.
    options
        Empty, because report formats have no options.

    Returns
    -------
    list of CheckOutcome
        Outcomes in the order of `FORMAT_CHECKS`.

    Raises
    ------
    PluginError, SpecError
        If there is no such format, or options are given.

    Examples
    --------
    >>> next(iter(FORMAT_CHECKS))
    'renders reports with all parts and with none'
    """
    return list(iterate_format_checks(use, options))


def iterate_format_checks(use: str, options: Mapping[str, Any] | None = None) -> Iterator[CheckOutcome]:
    """Do the checks of `check_report_format` one after the other.

    Parameters
    ----------
    use, options
        As for `check_report_format`.

    Yields
    ------
    CheckOutcome
        Outcomes in the order of `FORMAT_CHECKS`.
    """
    if options:
        raise SpecError(f"{use} is a report format, which has no options; omit them")
    yield from run_checks(FORMAT_CHECKS, make_format_case(use, find_format(use)), num_required=1)


def make_format_case(use: str, entry: ReportFormatEntry) -> FormatCase:
    """Make a case of a report format.

    Parameters
    ----------
    use
        Name of the format in specs.
    entry
        Its entry.
    """
    calls = RepeatedCall(
        use=use,
        callee=entry.render,
        describe=_describe,
        arguments=(use, by_name(use, entry), sample_report()),
        remedy="use nothing but the report",
    )
    return FormatCase(use, entry, calls)


def _describe(use: str, entry: ReportFormatEntry | None, report: Report) -> str:
    return repr((entry or find_format(use)).render(report))


def check_renders(case: FormatCase) -> None:
    """Check that a format renders a report with all parts, does not change it, and renders one that is empty."""
    report = sample_report()
    to_bytes(case.entry.render(report), case.use)
    if report != sample_report():
        raise ContractError("it changes the report; work on a copy")
    to_bytes(case.entry.render(Report("empty", "no results")), case.use)


def _check_calls(check: Callable[[RepeatedCall], None], case: FormatCase) -> None:
    check(case.calls)


FORMAT_CHECKS: Mapping[str, Callable[[FormatCase], None]] = {
    "renders reports with all parts and with none": check_renders,
    "same file at every call": partial(_check_calls, check_second_call),
    "global random state is unused and unchanged": partial(_check_calls, check_generators),
    "same file in every process": partial(_check_calls, check_new_process),
    "the state of the process is unchanged": partial(_check_calls, check_state),
    "importing the plugin is fast": check_light_import,
}
"""Checks of a report format by name.

Examples
--------
>>> next(iter(FORMAT_CHECKS))
'renders reports with all parts and with none'
"""

"""Contract checks of report formats, which must be pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from peekbench.errors import ContractError, PeekbenchError, SpecError
from peekbench.plugins.entries import ReportFormatEntry
from peekbench.plugins.report_formats import find_format, list_files, write_format
from peekbench.records.analysis import Column, Table, Verdict
from peekbench.records.estimates import Quantity, ScoreEstimate
from peekbench.records.figures import Forest, Interval
from peekbench.records.report import MethodFacts, Report, RunContent
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
from peekbench.testing.sample_tables import sample_results

METHOD = "größe: 50% [a/b] & <c> \\d_{0} $5"  # with characters that formats must escape
DETAILS: Mapping[str, Any] = {
    "identifier": "0123456789abcdef" * 2,
    "spec": {
        "name": "sample",
        "seed": 0,
        "tasks": [{"use": "my_plugin.news", "name": "news"}],
        "methods": [{"use": "my_plugin.lsa", "name": METHOD, "options": {"num_components": 10}}],
        "arms": ["base", "extra", "test"],
        "design": {"train": "balanced", "num_train": [50], "num_test": [200], "num_subsamples": 2, "stop": None},
        "analyses": [{"use": "my_plugin.mean", "options": {}}],
    },
    "data": {"news": {"use": "my_plugin.news", "fingerprint": "0" * 64, "rows": 1000, "details": {}}},
    "sessions": [
        {"started": "2026-01-01T00:00:00+00:00", "peekbench": "0.1.0", "python": "3.12.1", "packages": {"numpy": "2.0"}}
    ],
}


def sample_report() -> Report:
    """Make a report of a run with all parts: texts that need escapes, missing values, a figure and a failed trial.

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
        details=DETAILS,
        methods=(MethodFacts(METHOD, "classic.lsa", "num_components 10", "LSA and a linear classifier"),),
        command="peekbench report sample",
        author="Größe & Söhne",
        license="CC-BY-4.0",
        read_run=_read_sample_run,
    )


def _read_sample_run() -> RunContent:
    results = sample_results(2, num_tasks=1).query("method == 'first'").assign(method=METHOD, task="news")
    values: dict[Quantity, float] = {"extra": 0.7, "bias": 0.001, "boost": 0.05}
    estimates = [
        ScoreEstimate(method=METHOD, task=task, quantity=quantity, metric="accuracy", estimate=value, num_trials=2)
        for quantity, value in values.items()
        for task in ("", "news")
    ]
    return RunContent(
        report=replace(sample_report(), read_run=None),
        results=results.reset_index(drop=True),
        estimates=tuple(estimates),
        num_planned=2,
        summaries={"my_plugin.mean": "mean of each effect"},
        copy_store=_write_sample_store,
    )


def _write_sample_store(path: Path) -> None:
    path.write_bytes(b"the store of a run")


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
    'writes reports with all parts and with none'
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
    entry = find_format(use)
    calls = RepeatedCall(
        use=use,
        callee=entry.write,
        describe=_describe,
        arguments=(use, by_name(use, entry), sample_report()),
        remedy="use nothing but the report",
    )
    yield from run_checks(FORMAT_CHECKS, calls, num_required=1)


def _describe(use: str, entry: ReportFormatEntry | None, report: Report) -> str:
    """Let a format write a report, and return the names and the contents of its files."""
    entry = entry or find_format(use)
    with TemporaryDirectory() as folder:
        write_format(use, entry, report, Path(folder) / f"report{entry.suffix}")
        return repr([(name.as_posix(), (Path(folder) / name).read_bytes()) for name in list_files(Path(folder))])


def check_writes(calls: RepeatedCall) -> None:
    """Check that a format writes a report with all parts, does not change it, and writes or refuses an empty one."""
    use, entry, report = calls.arguments
    _describe(use, entry, report)
    if report != sample_report():
        raise ContractError("it changes the report; work on a copy")
    try:
        _describe(use, entry, Report("empty", "no results"))
    except ContractError:
        raise
    except PeekbenchError:
        pass  # a format of runs, which a report without one lacks


FORMAT_CHECKS: Mapping[str, Callable[[RepeatedCall], None]] = {
    "writes reports with all parts and with none": check_writes,
    "same files at every call": check_second_call,
    "global random state is unused and unchanged": check_generators,
    "same files in every process": check_new_process,
    "the state of the process is unchanged": check_state,
    "importing the plugin is fast": check_light_import,
}
"""Checks of a report format by name.

Examples
--------
>>> next(iter(FORMAT_CHECKS))
'writes reports with all parts and with none'
"""

"""Adds the results of analyses to a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from peekbench.records.analysis import Analysis
from peekbench.report.document import Report


def add_analyses(report: Report, analyses: Sequence[Analysis]) -> Report:
    """Return the report with the results of analyses, placed before its own warnings, figures and tables.

    Parameters
    ----------
    report
        Report with a name, a headline and tables on methods and data.
    analyses
        Analyses in the order in which the report shows them.
    """
    warnings = dict.fromkeys(warning for analysis in analyses for warning in analysis.warnings)
    return replace(
        report,
        verdicts=(*(verdict for analysis in analyses for verdict in analysis.verdicts), *report.verdicts),
        warnings=(*warnings, *report.warnings),
        figures=(*(figure for analysis in analyses for figure in analysis.figures), *report.figures),
        tables=(*(table for analysis in analyses for table in analysis.tables), *report.tables),
        attachments={**_attachments(analyses), **report.attachments},
    )


def _attachments(analyses: Sequence[Analysis]) -> dict[str, Callable[[Path], None]]:
    """Collect attachments; an analysis that runs with two sets of options attaches the same name twice."""
    attachments: dict[str, Callable[[Path], None]] = {}
    for analysis in analyses:
        for name, write in analysis.attachments.items():
            unique_name, number = name, 1
            while unique_name in attachments:
                number += 1
                unique_name = f"{Path(name).stem}-{number}{Path(name).suffix}"
            attachments[unique_name] = write
    return attachments

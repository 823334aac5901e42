"""Formats of reports for papers and for other tools: CSV files, LaTeX tables, Every Eval Ever.

In all formats, the score of a method is that of the arm extra, which is uncontaminated; the bias is a second, signed
result; the boost is the third. All have their intervals. A module each writes one of the formats.
"""

from __future__ import annotations

from peekbench import hookimpl
from peekbench.plugins import ReportFormatEntry


@hookimpl
def peekbench_report_formats() -> list[ReportFormatEntry]:
    """Register the formats, each of which is a folder of files."""
    return [
        ReportFormatEntry(
            name="csv",
            write="peekbench_exports.tables:write_csv",
            summary="CSV files: scores of all trials, effects of each trial, estimates",
        ),
        ReportFormatEntry(
            name="latex",
            write="peekbench_exports.latex:write_latex",
            summary="LaTeX table of the averages",
        ),
        ReportFormatEntry(
            name="every-eval-ever",
            write="peekbench_exports.every_eval_ever:write_records",
            summary="records of Every Eval Ever, one JSON file per method",
        ),
    ]

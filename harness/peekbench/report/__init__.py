"""Analyses and provenance to HTML, terminal, text, Markdown, JSON and SVG. The same input gives the same bytes."""

from peekbench.report.comparison import report_of_comparison, report_of_ranking
from peekbench.report.content import Report, report_of_audits, report_of_run, report_of_table
from peekbench.report.files import draw_pictures, write_report
from peekbench.report.terminal import render_in_short, render_tables, render_text
from peekbench.report.texts import text_tables

__all__ = [
    "Report",
    "draw_pictures",
    "render_in_short",
    "render_tables",
    "render_text",
    "report_of_audits",
    "report_of_comparison",
    "report_of_ranking",
    "report_of_run",
    "report_of_table",
    "text_tables",
    "write_report",
]

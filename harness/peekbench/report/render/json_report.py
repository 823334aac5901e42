"""Renders a report as JSON, for programs."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from peekbench.formatting import shorten
from peekbench.records.trials import MAX_ERROR, MAX_TRACEBACK
from peekbench.report.document import Report
from peekbench.report.render.json_schema import SCHEMA_VERSION


def render_json(report: Report) -> str:
    """Return the report as strict JSON in the form of `ReportDocument`, with numbers in full precision.

    Keys are sorted, and numbers that are not finite are null.
    """
    content = {
        "schema_version": SCHEMA_VERSION,
        "name": report.name,
        "headline": report.headline,
        "verdicts": [asdict(verdict) for verdict in report.verdicts],
        "warnings": list(report.warnings),
        "figures": [asdict(figure) for figure in report.figures],
        "tables": [asdict(table) for table in report.tables],
        "failures": [
            {
                "task": failure.trial.draw.task,
                "method": failure.trial.method,
                "num_train": failure.trial.draw.num_train,
                "num_test": failure.trial.draw.num_test,
                "subsample": failure.trial.draw.subsample,
                "error": shorten(failure.error, MAX_ERROR),
                "traceback": shorten(failure.traceback, MAX_TRACEBACK),
            }
            for failure in report.failures
        ],
        "methods": [asdict(method) for method in report.methods],
        "provenance": dict(report.provenance),
        "command": report.command,
        **report.details,
    }
    return json.dumps(_finite(content), indent=1, sort_keys=True, allow_nan=False, ensure_ascii=True) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value

"""Runs the analyses of the study by their specs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from peekbench import Analysis
from peekbench.results.analyze import analyze
from peekbench.spec.analysis_only import load_analysis_only

SPECS = Path(__file__).parents[2] / "specs" / "paper"


def run(spec: str, results: pd.DataFrame) -> tuple[Analysis, ...]:
    """Run the analyses of a spec of the study.

    Parameters
    ----------
    spec
        Name of the spec, without the prefix `analysis_`.
    results
        The results table; the spec may select some of its rows.

    Returns
    -------
    tuple of Analysis
        The analyses in the order of the spec.
    """
    analysis_spec = load_analysis_only(SPECS / f"analysis_{spec}.yaml")
    return analyze(analysis_spec.only.select_rows(results), analysis_spec.analyses)

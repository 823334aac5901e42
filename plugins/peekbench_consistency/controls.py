"""Check of controls: methods whose bias is known show it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import t

from peekbench.formatting import pluralize
from peekbench_consistency.findings import CONFIGURATION, Finding, WideTable, as_mapping, format_p

MIN_P = 0.05  # one-sided level at which a planted bias should be detected


def find_unexpected_controls(table: WideTable, level: float) -> list[Finding]:
    """Find negative controls with a bias, and positive controls without their planted bias.

    One-sample t-test of the biases of all trials, Bonferroni adjustment over negative controls.

    Parameters
    ----------
    table
        The results.
    level
        Level of the adjusted tests.

    Returns
    -------
    list of Finding
        Errors for negative controls, warnings for positive ones.
    """
    rows = table.rows[table.rows["control"] != ""]
    findings = []
    groups = list(rows.groupby(list(CONFIGURATION), sort=False))
    for key, group in groups:
        bias = group["test"] - group["extra"]
        p = _p_above_zero(bias)
        location = table.locate(**as_mapping(key, CONFIGURATION)) or str(key[0])
        mean = f"mean bias {table.format_difference(float(bias.mean()))} in {pluralize(len(bias), 'trial')}"
        if group["control"].iloc[0] == "negative" and 2 * min(p, 1 - p) * len(groups) <= level:
            findings.append(
                Finding(
                    "error",
                    "a negative control has a bias",
                    location,
                    f"{mean}, {format_p(2 * min(p, 1 - p))}",
                    "unlabeled texts cannot change its predictions: find the cause before you trust any verdict",
                )
            )
        elif group["control"].iloc[0] == "positive" and p > MIN_P:
            findings.append(
                Finding(
                    "warning",
                    "a planted bias is not detected",
                    location,
                    mean,
                    "the design may also miss the bias of other methods: draw more subsamples or larger test sets",
                )
            )
    return findings


def _p_above_zero(values: pd.Series[float]) -> float:
    """Return the one-sided p-value of a mean above zero; 0.5 if it is zero or unknown."""
    error = float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    mean = float(values.mean())
    if error == 0 and mean != 0:
        return float(mean < 0)
    return 0.5 if mean == 0 or np.isnan(error) else float(t.sf(mean / error, len(values) - 1))

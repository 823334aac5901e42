"""LaTeX table for the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from peekbench.formatting import capitalize, pluralize, visible
from peekbench.records import POINTS, Report, RunContent, ScoreEstimate
from peekbench.results import label_configuration
from peekbench_exports.tables import read_content

SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", **{sign: "\\" + sign for sign in "&%$#_{}"},
}  # fmt: skip
HEADINGS = {"bias": "Bias", "boost": "Boost"}


def escape(text: str) -> str:
    r"""Return text as LaTeX that prints it.

    Examples
    --------
    >>> escape("50% of R&D_1")
    '50\\% of R\\&D\\_1'
    """
    return re.sub(r'[\\~^<>|"&%$#_{}]', lambda match: SPECIAL[match[0]], visible(text))


def write_latex(report: Report, folder: Path) -> None:
    """Write the table of averages."""
    (folder / "average.tex").write_text(average_table(read_content(report)), encoding="utf-8")


def average_table(run: RunContent) -> str:
    """Return a table of the averages over tasks, one row per configuration."""
    estimates = [estimate for estimate in run.estimates if estimate.is_average]
    quantities = list(dict.fromkeys(estimate.quantity for estimate in estimates))
    groups: dict[tuple[object, ...], list[ScoreEstimate]] = {}
    for estimate in estimates:
        groups.setdefault(estimate.configuration, []).append(estimate)
    score = escape(capitalize(estimates[0].metric))
    rows = [("Method", *(HEADINGS.get(quantity, score) for quantity in quantities), "Verdict")]
    for group in groups.values():
        cells = {estimate.quantity: _format(estimate) for estimate in group}
        decision = next((estimate.decision for estimate in group if estimate.decision), "")
        numbers = (cells.get(quantity, "--") for quantity in quantities)
        rows.append((_label(group[0], estimates), *numbers, escape(decision)))
    heading, *body = (" & ".join(row) + r" \\" for row in rows)
    caption = f"Averages over {pluralize(run.results['task'].nunique(), 'task')}. {_explain(estimates, quantities)}"
    label = re.sub(r"[^a-z0-9]+", "-", run.report.name.lower()).strip("-")
    lines = [
        r"\begin{table}", r"\centering\small", rf"\caption{{{caption}}}", rf"\label{{tab:peekbench-{label}}}",
        r"\medskip",
        rf"\begin{{tabular}}{{l{'r' * len(quantities)}l}}", r"\toprule", heading, r"\midrule", *body, r"\bottomrule",
        r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _label(estimate: ScoreEstimate, estimates: Sequence[ScoreEstimate]) -> str:
    """Return the configuration, with the model and the sizes in which the estimates differ."""
    names = ("model", "num_train", "num_test")
    varying = {
        name: getattr(estimate, name) for name in names if len({getattr(other, name) for other in estimates}) > 1
    }
    label = label_configuration({"method": estimate.method, **varying})
    return escape(label + (" (control)" if estimate.control else ""))


def _format(estimate: ScoreEstimate) -> str:
    """Return an estimate with its interval; fractions in percent and their differences in percentage points."""
    scale = 100 if estimate.units == POINTS else 1
    sign, digits = ("", 1) if estimate.quantity == "extra" else ("+", 2)
    if estimate.units != POINTS:
        digits = 4

    def shown(value: float) -> str:
        rounded = round(value * scale, digits) + 0.0  # + 0.0 turns -0.0 into 0.0
        return f"{rounded:{sign if rounded else ''}.{digits}f}"

    value = estimate.estimate
    if not value.has_interval:
        return f"${shown(value.mean)}$"
    return rf"${shown(value.mean)}$ {{\footnotesize$[{shown(value.low)}, {shown(value.high)}]$}}"


def _explain(estimates: Sequence[ScoreEstimate], quantities: Sequence[str]) -> str:
    boost = ""
    if "boost" in quantities:
        boost = "; boost = extra $-$ base"
    units = ""
    if estimates[0].units == POINTS:
        units = " Scores are in percent, bias and boost in percentage points."
    level, *lower = sorted({estimate.estimate.level for estimate in estimates}, reverse=True)
    within = "".join(rf" ({100 * level:g}\% of an equivalent bias)" for level in lower)
    return (
        f"The {escape(estimates[0].metric)} is that of the arm extra, which is uncontaminated; bias = test $-$ "
        rf"extra{boost}.{units} Brackets: {100 * level:g}\% intervals{within} for new subsamples of the same data; "
        "those of the bias are adjusted for the number of methods and sizes, and for earlier and later analyses."
    )

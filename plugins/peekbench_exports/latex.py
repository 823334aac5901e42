"""LaTeX tables for the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from peekbench.formatting import pluralize, visible
from peekbench.records import POINTS, Report, ScoreEstimate
from peekbench.results import label_configuration
from peekbench_exports.tables import ExportedRun, read_run

SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", **{sign: "\\" + sign for sign in "&%$#_{}"},
}  # fmt: skip
HEADINGS = {"extra": "Score", "bias": "Bias", "boost": "Boost"}


def escape(text: str) -> str:
    r"""Return text as LaTeX that prints it.

    Examples
    --------
    >>> escape("50% of R&D_1")
    '50\\% of R\\&D\\_1'
    """
    return re.sub(r'[\\~^<>|"&%$#_{}]', lambda match: SPECIAL[match[0]], visible(text))


def write_latex(report: Report, folder: Path) -> None:
    """Write a document that compiles, with the tables as files of their own."""
    run = read_run(report, allow_table=True)
    inputs = {"average.tex": average_table(run), "by_task.tex": task_table(run)}
    lines = "".join(rf"\input{{{Path(name).stem}}}" + "\n" for name in inputs)
    files = {**inputs, "main.tex": DOCUMENT.replace("CONTENT\n", lines)}
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")


DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[margin=25mm]{geometry}
\usepackage{booktabs,longtable}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\begin{document}
CONTENT
\end{document}
"""


def average_table(run: ExportedRun) -> str:
    """Return a table of the averages over tasks, one row per configuration."""
    estimates = [estimate for estimate in run.estimates if estimate.is_average]
    rows = [
        (_label(group[0], estimates), *_cells(group, _quantities(estimates)), escape(_decision(group)))
        for group in _groups(estimates)
    ]
    headings = ["Method", *_headings(estimates), "Verdict"]
    caption = f"Averages over {pluralize(len(run.tasks), 'task')}. {_explain(estimates)}"
    lines = [
        r"\begin{table}", r"\centering\small", rf"\caption{{{caption}}}", rf"\label{{tab:peekbench-{_slug(run)}}}",
        r"\medskip",
        rf"\begin{{tabular}}{{l{'r' * (len(headings) - 2)}l}}", r"\toprule", _row(headings), r"\midrule",
        *map(_row, rows), r"\bottomrule", r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def task_table(run: ExportedRun) -> str:
    """Return a table over several pages, one row per task and configuration, below the name of the task."""
    estimates = [estimate for estimate in run.estimates if not estimate.is_average]
    ordered = sorted(estimates, key=lambda estimate: list(run.tasks).index(estimate.task))
    headings = ["Method", *_headings(estimates)]
    lines: list[str] = []
    for task, of_task in groupby(ordered, key=lambda estimate: estimate.task):
        title = rf"\multicolumn{{{len(headings)}}}{{l}}{{\textit{{{escape(task)}}}}} \\*"
        lines += [r"\addlinespace", title] if lines else [title]
        for group in _groups(list(of_task)):
            cells = _cells(group, _quantities(estimates))
            lines.append(_row([rf"\quad {_label(group[0], estimates)}", *cells]))
    caption = f"Each task on its own. {_explain(estimates)}"
    content = [
        r"{\small\setlength{\LTcapwidth}{\linewidth}", rf"\begin{{longtable}}{{l{'r' * (len(headings) - 1)}}}",
        rf"\caption{{{caption}}}\label{{tab:peekbench-{_slug(run)}-tasks}}\\[\medskipamount]", r"\toprule",
        _row(headings), r"\midrule", r"\endfirsthead", r"\toprule", _row(headings), r"\midrule", r"\endhead", *lines,
        r"\bottomrule", r"\end{longtable}", "}",
    ]  # fmt: skip
    return "\n".join(content) + "\n"


def _label(estimate: ScoreEstimate, estimates: Sequence[ScoreEstimate]) -> str:
    """Return the configuration, with the model and the sizes in which the estimates differ."""
    names = ("model", "num_train", "num_test")
    varying = {
        name: getattr(estimate, name) for name in names if len({getattr(other, name) for other in estimates}) > 1
    }
    label = label_configuration({"method": estimate.method, **varying})
    return escape(label + (" (control)" if estimate.control else ""))


def _groups(estimates: Sequence[ScoreEstimate]) -> Iterator[list[ScoreEstimate]]:
    """Yield the estimates of each configuration."""
    groups: dict[tuple[object, ...], list[ScoreEstimate]] = {}
    for estimate in estimates:
        groups.setdefault(estimate.configuration, []).append(estimate)
    yield from groups.values()


def _quantities(estimates: Sequence[ScoreEstimate]) -> list[str]:
    return list(dict.fromkeys(estimate.quantity for estimate in estimates))


def _headings(estimates: Sequence[ScoreEstimate]) -> list[str]:
    score = escape(estimates[0].metric[:1].upper() + estimates[0].metric[1:])
    return [HEADINGS[quantity] if quantity != "extra" else score for quantity in _quantities(estimates)]


def _cells(group: Sequence[ScoreEstimate], quantities: Sequence[str]) -> list[str]:
    by_quantity = {estimate.quantity: estimate for estimate in group}
    return [_format(by_quantity[name]) if name in by_quantity else "--" for name in quantities]


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


def _decision(group: Sequence[ScoreEstimate]) -> str:
    return next((estimate.decision for estimate in group if estimate.decision), "")


def _explain(estimates: Sequence[ScoreEstimate]) -> str:
    boost = "; boost = extra $-$ base" if "boost" in _quantities(estimates) else ""
    units = " Scores are in percent, bias and boost in percentage points." if estimates[0].units == POINTS else ""
    level, *lower = sorted({estimate.estimate.level for estimate in estimates}, reverse=True)
    within = "".join(rf" ({100 * level:g}\% of an equivalent bias)" for level in lower)
    return (
        f"The {escape(estimates[0].metric)} is that of the arm extra, which is uncontaminated; bias = test $-$ "
        rf"extra{boost}.{units} Brackets: {100 * level:g}\% intervals{within} for new subsamples of the same data."
    )


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _slug(run: ExportedRun) -> str:
    return re.sub(r"[^a-z0-9]+", "-", run.name.lower()).strip("-")

"""Forest plots in characters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from peekbench.formatting import format_cell, format_signed
from peekbench.records.figures import Forest, Interval
from peekbench.report.render.figures import ESTIMATE, ZERO, draw_forest
from peekbench.results.analyze import analyze


@pytest.mark.parametrize("zero", [0.0, -0.0, 4e-5, -4e-5])
def test_zero_has_the_same_format_in_tables_and_forest_plots(zero: float) -> None:
    assert format_cell(zero, "difference") == format_signed(zero, "difference") == "0.00"
    assert format_signed(zero / 2, "number") == "0.0000"
    _, row, axis = draw_forest(Forest("f", (("m", (Interval("a", zero, zero - 0.01, zero + 0.01),)),)), 80)
    assert row.numbers == "  0.00 [ -1.00,  +1.00]"
    assert re.search(r"(?<![\d+.-])0(?:\.0)? ", axis.plot)


def column_of(line: str, mark: str) -> int:
    return line.index(mark)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_marks_match_the_axis(width: int) -> None:
    intervals = (
        Interval("zero", 0.0, 0.0, 0.0),
        Interval("up", 0.05, 0.03, 0.07),
        Interval("down", -0.1, -0.15, -0.02),
        Interval("a very long name of a task that is too long for its own column", 0.1, 0.1, 0.1),
    )
    lines = draw_forest(Forest("f", (("method", intervals),)), width)
    assert all(len(line.text()) <= width for line in lines)
    heading, zero, up, down, long, *below, axis = lines
    origin = column_of(heading.plot, ZERO)
    assert column_of(zero.plot, ESTIMATE) == origin
    assert column_of(up.plot, ESTIMATE) > origin > column_of(down.plot, ESTIMATE)
    # Twice the bias to the other side is twice as far from zero.
    distance = column_of(up.plot, ESTIMATE) - origin
    assert origin - column_of(down.plot, ESTIMATE) == pytest.approx(2 * distance, abs=1.5)
    assert ZERO not in down.plot[: origin - 1]
    assert "+5.00 [ +3.00,  +7.00]" in up.numbers
    assert "0" in axis.plot[origin - 1 : origin + 2]
    assert " ".join(" ".join(line.label for line in (long, *below)).split()) == intervals[-1].label
    assert (below == []) == (width > 160)
    assert "points" in axis.numbers


def test_a_forest_of_zeros_has_an_axis() -> None:
    lines = draw_forest(Forest("f", (("null", (Interval("a", 0.0, 0.0, 0.0),)),)), 80)
    assert column_of(lines[1].plot, ESTIMATE) == column_of(lines[0].plot, ZERO)


@pytest.mark.parametrize("width", [60, 120])
@pytest.mark.parametrize(("reach", "tick"), [(0.0004, "+0.0002"), (0.03, "+0.02"), (0.9, "+0.5"), (250.0, "+200")])
def test_scores_other_than_accuracies_are_not_scaled(width: int, reach: float, tick: str) -> None:
    intervals = (Interval("up", reach * 0.6, reach * 0.2, reach), Interval("other", 0.0, -reach * 0.1, reach * 0.1))
    *_, row, other, axis = draw_forest(Forest("f", (("m", intervals),), unit="number"), width)
    assert f"{reach * 0.6:+.4f} [" in row.numbers
    assert "0.0000 [" in other.numbers
    assert "points" not in axis.text()
    assert column_of(row.plot, ESTIMATE) > column_of(other.plot, ESTIMATE)
    assert tick in axis.plot or width == 60


def test_only_marked_intervals_are_averages() -> None:
    intervals = (Interval("average.reviews", 0.1, 0.0, 0.2), Interval("all", 0.1, 0.0, 0.2, is_average=True))
    kinds = [line.kind for line in draw_forest(Forest("f", (("m", intervals),)), 80)]
    assert kinds == ["heading", "row", "average", "axis"]


def test_a_forest_of_25_tasks_has_a_row_for_each(simulate: Callable[..., Any]) -> None:
    results = simulate(0.01, tasks=25, subsamples=5)
    (summary, _) = analyze(results)
    forest = summary.figures[0]
    assert isinstance(forest, Forest)
    lines = draw_forest(forest, 80)
    assert sum(line.kind == "row" for line in lines) == 25
    assert sum(line.kind == "average" for line in lines) == 1

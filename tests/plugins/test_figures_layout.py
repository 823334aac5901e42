"""The layout of figures: axes, tick labels, panels, and the positions of marks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from peekbench.records import Axis, Curve, Curves, Densities, Figure, Forest, Interval, Sample, Violins

mpl = pytest.importorskip("matplotlib", reason="the extra 'figures' is not installed")
pytest.importorskip("arviz_stats", reason="the extra 'figures' is not installed")

from example_figures import POINTS, each_kind, each_large  # noqa: E402

from peekbench_figures.drawing import lay_out  # noqa: E402
from peekbench_figures.style import matplotlib_settings  # noqa: E402


@contextmanager
def drawn(figure: Figure) -> Iterator[Any]:
    with mpl.rc_context(matplotlib_settings("svg", "salt")):
        picture = lay_out(figure, is_alone=True).picture()
        picture.canvas.draw()
        yield picture


@pytest.mark.slow
@each_large
def test_texts_neither_overlap_nor_leave_the_picture(figure: Figure) -> None:
    with drawn(figure) as picture:
        texts = [text for text in picture.texts if text.get_text()]
        for axes in picture.axes:
            for axis, is_across in ((axes.xaxis, True), (axes.yaxis, False)):
                low, high = sorted(axes.get_xlim() if is_across else axes.get_ylim())
                texts += [
                    tick.label1 for tick in axis.get_major_ticks()
                    if tick.label1.get_text() and axes.axison and low <= tick.get_loc() <= high
                ]  # fmt: skip
        boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
        assert len(boxes) > 20
        page = picture.bbox
        for text, box in boxes:
            assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1, text
        for (text, box), (other, another) in itertools.combinations(boxes, 2):
            across = min(box.x1, another.x1) - max(box.x0, another.x0)
            down = min(box.y1, another.y1) - max(box.y0, another.y0)
            assert across <= 0.5 or down <= 1.5, (
                text,
                other,
            )  # pixels: boxes of lines are a little larger than letters


@each_kind
def test_axes_are_labeled_with_units(figure: Figure) -> None:
    with drawn(figure) as picture:
        texts = " ".join(text.get_text() for text in picture.texts)
    assert "accuracy points" in texts
    if isinstance(figure, Curves):
        assert figure.x.label in texts
    assert "Shaded: differences below 0.5" in texts


@pytest.mark.slow
@each_large
def test_ticks_are_labeled_and_include_zero(figure: Figure) -> None:
    with drawn(figure) as picture:
        for axes in (axes for axes in picture.axes if axes.axison):
            if not isinstance(figure, Curves):
                assert "0" in [label.get_text() for label in axes.get_xticklabels()]
            assert len(axes.get_xticks()) >= 2


def test_marks_are_at_the_positions_of_their_values() -> None:
    with drawn(Forest("f", (("", (Interval("a", 0.01, -0.02, 0.03, raw=0.04),)),))) as picture:
        drawn_values = sorted(float(value) for line in picture.axes[0].lines for value in line.get_xdata())
    assert [value for value in drawn_values if value] == pytest.approx([-2.0, 1.0, 3.0, 4.0])


def violin_of(figure: Violins) -> tuple[Any, Any]:
    """Return positions along the axis and the thickness of the only violin there, (n_points,) each."""
    with drawn(figure) as picture:
        (axes,) = picture.axes
        (patch,) = (patch for patch in axes.patches if len(patch.get_path().vertices) > 20)
        outline = patch.get_path().vertices[:-1]
        low, high = axes.get_xlim()
    half = len(outline) // 2
    assert low < outline[:, 0].min() and outline[:, 0].max() < high
    return outline[:half, 0], outline[half:, 1][::-1] - outline[:half, 1]


def test_a_violin_contains_its_values_and_tapers_off_at_both_ends() -> None:
    values = tuple(number / 100 for number in range(-3, 9)) * 4  # as common at the ends as in the middle
    x, thickness = violin_of(Violins("v", Axis("a"), (("", (Sample("x", values),)),)))
    assert -8 < x.min() < -3 and 8 < x.max() < 13
    assert max(thickness[0], thickness[-1]) < 0.05 * thickness.max()
    assert thickness[np.abs(x - 2.5).argmin()] > 0.9 * thickness.max()


def test_a_density_shows_mean_central_interval_and_mark() -> None:
    values = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05)
    with drawn(Densities("d", Axis("a"), (("", (Sample("x", values, mark=0.01),)),), 0.5)) as picture:
        lines = [sorted({round(float(value), 6) for value in line.get_xdata()}) for line in picture.axes[0].lines]
    assert [2.5] in lines  # the mean
    assert [1.25, 3.75] in lines  # the middle half
    assert [1.0] in lines  # the mark


def test_a_logarithmic_axis_of_many_points_is_labeled_at_both_ends() -> None:
    x = tuple(float(size) for size in range(25, 501, 25))
    figure = Curves("c", Axis("x", "count", is_log=True), POINTS, (("a", (Curve("a", x, (0.0,) * len(x)),)),))
    with drawn(figure) as picture:
        shown = [label.get_text() for label in picture.axes[0].get_xticklabels()]
    assert (shown[0], shown[-1]) == ("25", "500")
    assert {"50", "100", "200"} <= set(shown)

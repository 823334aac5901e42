from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from peekbench import Analysis, PeekbenchError
from peekbench.figures import Axis, Curve, Curves, Densities, Figure, Forest, Interval, Sample, Violins, downsample
from peekbench.plugins import Form
from peekbench.report import Report, write_report
from peekbench.testing import check_module_light

mpl = pytest.importorskip("matplotlib", reason="the extra 'figures' is not installed")
pytest.importorskip("arviz_stats", reason="the extra 'figures' is not installed")

from peekbench_figures import draw  # noqa: E402
from peekbench_figures.drawing import lay_out  # noqa: E402
from peekbench_figures.style import rc  # noqa: E402

TASKS = [
    "community-datasets/disaster_response_messages", "hyperpartisan_news_detection", "yahoo_answers_topics", "trec",
    "a task called in several words that go on and on and on until nobody reads them any more, and then on again",
    *(f"task_number_{number}" for number in range(20)),
]  # fmt: skip
MODELS = ("bert", "gpt2")
CONFIGURATIONS = [f"a-method-with-a-name (model/{model}, n={n})" for model in MODELS for n in (50, 100, 500)]
TWO_MODELS = ["bert", "gpt2"]
HOSTILE = '<script>alert("x")</script> $x_1$ & \x00\x1b[31m _under \ud800 日本\nnext'
SVG = "{http://www.w3.org/2000/svg}"
POINTS = Axis("bias, accuracy points", region=0.005)


def forest(tasks: list[str] = TASKS, headings: list[str] = CONFIGURATIONS) -> Forest:
    rng = np.random.default_rng(0)
    groups = []
    for heading in headings:
        values = rng.normal(0, 0.02, len(tasks)).tolist()
        intervals = [Interval(task, x, x - 0.01, x + 0.02, raw=2 * x) for task, x in zip(tasks, values, strict=True)]
        groups.append((heading, (*intervals, Interval("average", 0.001, -0.001, 0.003, is_average=True))))
    return Forest("Bias by task", tuple(groups), "A note.", label="bias, accuracy points", region=0.005)


def samples(labels: list[str], **how: Any) -> tuple[Sample, ...]:
    rng = np.random.default_rng(1)
    return tuple(Sample(label, downsample(rng.normal(0.01, 0.03, 60)), **how) for label in labels)


def violins(tasks: list[str] = TASKS, headings: list[str] = CONFIGURATIONS) -> Violins:
    return Violins("Single differences", POINTS, tuple((one, samples(tasks)) for one in headings), "A note.")


def densities(labels: list[str] = CONFIGURATIONS, headings: list[str] = TWO_MODELS) -> Densities:
    return Densities(
        "Posterior", POINTS, tuple((one, samples(labels, mark=0.02)) for one in headings), 0.89, mark="truth"
    )


def curves(labels: list[str] = CONFIGURATIONS, headings: list[str] = TASKS[:5]) -> Curves:
    x = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
    lines = tuple(
        Curve(label, x, tuple(number + 1 / one for one in x), tuple(number for _ in x), tuple(number + 0.3 for _ in x))
        for number, label in enumerate(labels)
    )
    y = Axis("an effect with a name too long for the height of the panel, in accuracy points", "number", region=0.5)
    return Curves("Progress", Axis("subsamples", "count", is_log=True), y, tuple((one, lines) for one in headings))


LARGE: dict[str, Figure] = {"forest": forest(), "violins": violins(), "densities": densities(), "curves": curves()}
TWO = ["a", "b"]
SMALL: dict[str, Figure] = {
    "forest": forest(TWO, TWO), "violins": violins(TWO, TWO), "densities": densities(TWO, TWO),
    "curves": curves(TWO, TWO),
}  # fmt: skip
each_kind = pytest.mark.parametrize("figure", SMALL.values(), ids=SMALL)
each_large = pytest.mark.parametrize("figure", LARGE.values(), ids=LARGE)


@contextmanager
def drawn(figure: Figure) -> Iterator[Any]:
    with mpl.rc_context(rc("svg", "salt")):
        picture = lay_out(figure, is_alone=True).picture()
        picture.canvas.draw()
        yield picture


@each_kind
@pytest.mark.parametrize("form", ["svg", "inline svg", "png"])
def test_the_same_figure_gives_the_same_bytes_whatever_the_settings(figure: Figure, form: Form) -> None:
    first = draw(figure, form)
    with mpl.rc_context({"font.size": 30, "axes.spines.bottom": False, "xtick.major.size": 9, "svg.fonttype": "path"}):
        draw(SMALL["curves"], "png")
        assert draw(figure, form) == first


def test_drawing_leaves_the_users_settings_alone() -> None:
    before = dict(mpl.rcParams)
    draw(forest(), "svg")
    assert dict(mpl.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


@each_large
def test_no_text_touches_another_or_leaves_the_picture(figure: Figure) -> None:
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
            )  # of pixels: boxes of lines reach a little beyond letters


@each_kind
def test_every_axis_is_labeled_with_its_unit(figure: Figure) -> None:
    with drawn(figure) as picture:
        texts = " ".join(text.get_text() for text in picture.texts)
    assert "accuracy points" in texts
    if isinstance(figure, Curves):
        assert figure.x.label in texts
    assert "Shaded: differences below 0.5" in texts


@each_large
def test_every_tick_is_numbered_and_zero_is_among_them(figure: Figure) -> None:
    with drawn(figure) as picture:
        for axes in (one for one in picture.axes if one.axison):
            if not isinstance(figure, Curves):
                assert "0" in [label.get_text() for label in axes.get_xticklabels()]
            assert len(axes.get_xticks()) >= 2


def test_marks_stand_where_the_numbers_say() -> None:
    with drawn(Forest("f", (("", (Interval("a", 0.01, -0.02, 0.03, raw=0.04),)),))) as picture:
        found = sorted(float(value) for line in picture.axes[0].lines for value in line.get_xdata())
    assert [value for value in found if value] == pytest.approx([-2.0, 1.0, 3.0, 4.0])


def violin_of(figure: Violins) -> tuple[Any, Any]:
    """Places along the axis, and how thick the only violin is there: (n_points,) each."""
    with drawn(figure) as picture:
        (axes,) = picture.axes
        (patch,) = (patch for patch in axes.patches if len(patch.get_path().vertices) > 20)
        outline = patch.get_path().vertices[:-1]
        low, high = axes.get_xlim()
    half = len(outline) // 2
    assert low < outline[:, 0].min() and outline[:, 0].max() < high
    return outline[:half, 0], outline[half:, 1][::-1] - outline[:half, 1]


def test_a_violin_holds_its_values_and_tapers_off_at_both_ends() -> None:
    values = tuple(number / 100 for number in range(-3, 9)) * 4  # as common at the ends as in the middle
    x, thickness = violin_of(Violins("v", Axis("a"), (("", (Sample("x", values),)),)))
    assert -8 < x.min() < -3 and 8 < x.max() < 13
    assert max(thickness[0], thickness[-1]) < 0.05 * thickness.max()
    assert thickness[np.abs(x - 2.5).argmin()] > 0.9 * thickness.max()


@pytest.mark.parametrize("size", [50, 100, 500])
def test_a_violin_of_scores_that_are_multiples_of_one_number_has_no_ripples(size: int) -> None:
    rng = np.random.default_rng(2)
    values = tuple(((rng.binomial(3, 0.5, 400) - 1) / size).tolist())
    _, thickness = violin_of(Violins("v", Axis("a"), (("", (Sample("x", values),)),)))
    turns = np.flatnonzero(np.diff(np.sign(np.diff(thickness))) < 0)
    assert len(turns) == 1


def test_fewer_than_ten_values_are_dots() -> None:
    with drawn(Violins("v", Axis("a"), (("", (Sample("x", tuple(0.01 * one for one in range(9))),)),))) as picture:
        assert not [patch for patch in picture.axes[0].patches if len(patch.get_path().vertices) > 20]
        assert max(len(line.get_xdata()) for line in picture.axes[0].lines) == 9


def test_the_density_of_a_spread_ends_at_zero_and_long_tails_do_not_stretch_the_axis() -> None:
    spreads = np.abs(np.random.default_rng(3).standard_t(1.5, 2000)) / 100
    sample = Sample("x", downsample(spreads))
    with drawn(Densities("d", Axis("a", "spread"), (("", (sample,)),), 0.89)) as picture:
        (axes,) = picture.axes
        curve = max(axes.lines, key=lambda line: len(line.get_xdata()))
        x, height = curve.get_xdata(), -curve.get_ydata()
    assert 0 <= x.min() < 0.05
    assert height[0] - height.min() > 0.8 * (height.max() - height.min())  # which is highest at zero
    assert 100 * np.quantile(sample.values, 0.8) < x.max() < 50 * max(sample.values)
    assert axes.get_xlim()[1] < 30 * max(sample.values)


def test_an_average_is_a_diamond_as_wide_as_its_interval() -> None:
    average = Interval("average", 0.01, -0.02, 0.03, is_average=True)
    with drawn(Forest("f", (("", (average,)),))) as picture:
        (diamond,) = (patch for patch in picture.axes[0].patches if len(patch.get_path().vertices) == 5)
        x, y = diamond.get_path().vertices[:4].T
    assert x == pytest.approx([-2, 1, 3, 1])
    assert y[0] == y[2] and y[1] < y[0] < y[3]


def test_a_density_shows_its_mean_its_middle_and_its_mark() -> None:
    values = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05)
    with drawn(Densities("d", Axis("a"), (("", (Sample("x", values, mark=0.01),)),), 0.5)) as picture:
        lines = [sorted({round(float(value), 6) for value in line.get_xdata()}) for line in picture.axes[0].lines]
    assert [2.5] in lines  # the mean
    assert [1.25, 3.75] in lines  # the middle half
    assert [1.0] in lines  # the mark


def test_densities_end_within_the_axis() -> None:
    with drawn(densities(TWO, TWO)) as picture:
        for axes in picture.axes:
            low, high = axes.get_xlim()
            for line in axes.lines:
                assert low <= min(line.get_xdata()) and max(line.get_xdata()) <= high


def test_centred_panels_have_one_length_numbers_of_their_own_and_zero_where_it_is_near() -> None:
    x = (1.0, 2.0)
    panels = tuple(
        (heading, (Curve("a", x, (y, y + 0.01), (y - wide, y), (y + wide, y + 0.02)),))
        for heading, y, wide in (("near", 0.02, 0.05), ("far", 1.5, 0.01), ("none", 0.0, 0.0))
    )
    figure = Curves("c", Axis("x", "count"), POINTS, panels, is_centered=True)
    with drawn(figure) as picture:
        limits = [axes.get_ylim() for axes in picture.axes]
        for (low, high), (_, (curve,)), axes in zip(limits, panels, picture.axes, strict=True):
            assert low <= 100 * min(curve.low) and 100 * max(curve.high) <= high
            assert any(label.get_text() for label in axes.get_yticklabels())
    assert {round(high - low, 6) for low, high in limits} == {round(limits[0][1] - limits[0][0], 6)}
    assert [low <= 0 <= high for low, high in limits] == [True, False, True]


def test_centred_panels_share_one_axis_where_that_is_little_longer() -> None:
    x = (1.0, 2.0)
    panels = tuple(
        (heading, (Curve("a", x, (middle, middle), (middle - half,) * 2, (middle + half,) * 2),))
        for heading, middle, half in (("wide", 0.0, 0.03), ("narrow", -0.015, 0.01))
    )
    with drawn(Curves("c", Axis("x", "count"), POINTS, panels, is_centered=True)) as picture:
        assert len({axes.get_ylim() for axes in picture.axes}) == 1
        assert [any(label.get_text() for label in axes.get_yticklabels()) for axes in picture.axes] == [True, False]
        assert "begin at different values" not in " ".join(text.get_text() for text in picture.texts)


WIDTHS = {"one": 0.01, "two": 0.012, "leak": 0.2}
SQUEEZED = {
    "violins": Violins(
        "v",
        POINTS,
        tuple((name, (Sample("x", tuple(np.linspace(-wide, wide, 12).tolist())),)) for name, wide in WIDTHS.items()),
    ),
    "curves": Curves(
        "c",
        Axis("x", "count"),
        POINTS,
        tuple((name, (Curve("a", (1.0, 2.0), (0.0, wide)),)) for name, wide in WIDTHS.items()),
    ),
}


@pytest.mark.parametrize("figure", SQUEEZED.values(), ids=SQUEEZED)
def test_a_panel_that_would_squeeze_the_others_has_a_scale_of_its_own_and_says_so(figure: Violins | Curves) -> None:
    with drawn(figure) as picture:
        is_upright = isinstance(figure, Curves)
        one, two, leak = (axes.get_ylim() if is_upright else axes.get_xlim() for axes in picture.axes)
        assert one == two
        assert leak[1] - leak[0] > 5 * (one[1] - one[0])
        (own,) = (text for text in picture.texts if text.get_text() == "(own scale)")
        assert own.get_position()[0] > picture.axes[-1].get_position().x0
        for axes in picture.axes:
            assert any(label.get_text() for label in (axes.get_yticklabels() if is_upright else axes.get_xticklabels()))


@pytest.mark.parametrize(("number", "across"), [(1, 1), (4, 4), (5, 3), (8, 4)])
def test_the_horizontal_axis_is_named_below_each_lowest_panel(number: int, across: int) -> None:
    figure = curves(["line"], [f"panel {one}" for one in range(number)])
    with drawn(figure) as picture:
        places = [axes.get_position() for axes in picture.axes]
        found = [text.get_position() for text in picture.texts if text.get_text().startswith("subsamples")]
    lowest = {round((place.x0 + place.x1) / 2, 3): place.y0 for place in reversed(places)}
    lowest |= {round((place.x0 + place.x1) / 2, 3): place.y0 for place in places}
    assert len(lowest) == across
    assert sorted(round(x, 3) for x, _ in found) == sorted(lowest)
    assert all(0 < lowest[round(x, 3)] - y < 0.2 for x, y in found)


def test_logarithmic_scales_are_named() -> None:
    with drawn(curves(TWO, TWO)) as picture:
        assert "(logarithmic scale)" in " ".join(text.get_text() for text in picture.texts)
    plain = (("a", (Curve("a", (1.0, 2.0), (0.0, 0.1)),)),)
    with drawn(Curves("c", Axis("subsamples", "count"), POINTS, plain)) as picture:
        assert "logarithmic" not in " ".join(text.get_text() for text in picture.texts)


def test_a_logarithmic_axis_of_many_points_is_numbered_at_both_ends() -> None:
    x = tuple(float(size) for size in range(25, 501, 25))
    figure = Curves("c", Axis("x", "count", is_log=True), POINTS, (("a", (Curve("a", x, (0.0,) * len(x)),)),))
    with drawn(figure) as picture:
        shown = [label.get_text() for label in picture.axes[0].get_xticklabels()]
    assert (shown[0], shown[-1]) == ("25", "500")
    assert {"50", "100", "200"} <= set(shown)


def test_changes_of_scores_that_are_no_fractions_have_signs_and_a_zero() -> None:
    figure = Violins("v", Axis("bias in R^2", "change"), (("a", (Sample("x", (0.2, 0.3, 0.4)),)),))
    with drawn(figure) as picture:
        shown = {label.get_text() for label in picture.axes[0].get_xticklabels()}
    assert {"0", "+0.2", "+0.4"} <= shown


@pytest.mark.parametrize("values", [(), (0.01,), (0.0,) * 40, (0.01, 0.02), (1e-12,) * 5 + (0.0,) * 5])
def test_values_too_few_or_all_alike_are_drawn_too(values: tuple[float, ...]) -> None:
    sample = (Sample("x", values),)
    draw(Violins("v", POINTS, (("a", sample),)), "png")
    draw(Densities("d", POINTS, (("a", sample),), 0.89), "svg")


@each_kind
def test_nothing_to_draw_is_drawn(figure: Figure) -> None:
    for empty in (
        Forest("f", ()),
        Violins("v", POINTS, ()),
        Densities("d", POINTS, (), 0.9),
        Curves("c", POINTS, POINTS, ()),
    ):
        assert b"<svg" in draw(empty, "svg")


def test_lines_beyond_the_colors_look_different() -> None:
    labels = [f"line {number}" for number in range(18)]
    with drawn(curves(labels, ["panel"])) as picture:
        looks = [
            (line.get_color(), line.get_marker(), str(line.get_linestyle()), line._unscaled_dash_pattern[1])
            for line in picture.axes[-1].lines
            if len(line.get_xdata()) == 7 and line.get_marker() != "None"  # those are a band's edges
        ]
    assert len(looks) == len(set(looks)) == 18


def test_texts_from_data_stay_texts() -> None:
    names = [HOSTILE]
    for figure in (forest(names, names), violins(names, names), densities(names, names), curves([HOSTILE, "b"], names)):
        root = ElementTree.fromstring(draw(figure, "svg").decode())
        assert not root.findall(f".//{SVG}script")
        shown = " ".join(text.text or "" for text in root.iter(f"{SVG}text"))
        assert ("<script>" in shown and "$x_1$" in re.sub(r"…|\s", "", shown)) or "$x" in shown
        assert "\x00" not in shown and "\ud800" not in shown
        assert draw(figure, "png").startswith(b"\x89PNG")


@each_kind
def test_pictures_in_one_page_share_no_names_and_bring_no_rules(figure: Figure) -> None:
    other = forest(["another"], ["another"])
    one, two = (draw(each, "inline svg").decode() for each in (figure, other))
    names = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (one, two)]
    assert names[0] and not names[0] & names[1]
    for text in (one, two):
        assert "<style" not in text and "http://www.w3.org/1999/xlink" in text
        assert 'role="img"' in text and "currentColor" in text and "#010203" not in text
        assert text.count("var(--mark, #0072b2)") == text.count("#0072b2") > 0  # a page's own, lighter on dark ground
        assert not re.search(r"(href|src|url)\W*(https?:|//)", re.sub(r'xmlns(:\w+)?="[^"]*"', "", text))


@each_kind
def test_a_picture_says_what_it_shows(figure: Figure) -> None:
    root = ElementTree.fromstring(draw(figure, "inline svg").decode())
    assert root.findtext(f"{SVG}title") == figure.title
    assert re.search(r"\d", root.findtext(f"{SVG}desc") or "")
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert figure.title not in texts  # the page has it
    assert figure.title in [text.text for text in ElementTree.fromstring(draw(figure, "svg")).iter(f"{SVG}text")]


def test_numbers_in_texts_keep_their_digits() -> None:
    figure = Forest("f", (("", (Interval("0.123456", 0.5, 0.4, 0.6),)),), unit="number", region=0.0055)
    texts = [text.text for text in ElementTree.fromstring(draw(figure, "svg")).iter(f"{SVG}text")]
    assert "0.123456" in texts
    assert any("0.0055" in (text or "") for text in texts)


def test_25_tasks_are_small_enough_for_a_page() -> None:
    assert len(draw(violins(headings=CONFIGURATIONS[:4]), "inline svg")) < 300_000
    assert len(draw(forest(), "inline svg")) < 200_000


def test_what_is_missing_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PeekbenchError, match=r"matplotlib is not installed; pip install 'peekbench\[figures\]'"):
        draw(forest(), "svg")


def test_importing_the_plugin_imports_no_matplotlib() -> None:
    check_module_light("peekbench_figures")


def test_reports_write_pictures(tmp_path: Path) -> None:
    analysis = Analysis("a", figures=(forest(["a"], ["m"]), curves(["a"], ["m"])))
    report = Report("r", "", (), (), analysis.figures, (), (), {}, {})
    written = write_report(report, tmp_path, ("svg", "png"))
    names = ["01-bias-by-task.svg", "02-progress.svg", "01-bias-by-task.png", "02-progress.png"]
    assert written == [tmp_path / "figures" / name for name in names]
    assert written[0].read_bytes() == draw(analysis.figures[0], "svg")
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == sorted(names)
    write_report(report, tmp_path, ("markdown", "png"))
    shown = re.findall(r"^!\[.+\]\((.+)\)$", (tmp_path / "report.md").read_text(), re.MULTILINE)
    assert [tmp_path / name for name in shown] == written[2:]

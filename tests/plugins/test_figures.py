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

from peekbench import (
    Analysis,
    Axis,
    Curve,
    Curves,
    Densities,
    Figure,
    Forest,
    Form,
    Interval,
    PeekbenchError,
    Sample,
    Violins,
    thinned,
    write_report,
)
from peekbench.report.content import Report
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
    return tuple(Sample(label, thinned(rng.normal(0.01, 0.03, 60)), **how) for label in labels)


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
def test_every_axis_is_labelled_with_its_unit(figure: Figure) -> None:
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


def test_a_violin_holds_its_values_and_a_density_its_mean() -> None:
    values = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05)
    with drawn(Violins("v", Axis("a"), (("", (Sample("x", values),)),))) as picture:
        (violin,) = (patch for patch in picture.axes[0].patches if len(patch.get_path().vertices) > 20)
        x = violin.get_path().vertices[:, 0]
        assert (x.min(), x.max()) == pytest.approx((0, 5), abs=0.02)
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
    figure = Curves("c", Axis("x", "count"), POINTS, panels, is_centred=True)
    with drawn(figure) as picture:
        limits = [axes.get_ylim() for axes in picture.axes]
        for (low, high), (_, (curve,)), axes in zip(limits, panels, picture.axes, strict=True):
            assert low <= 100 * min(curve.low) and 100 * max(curve.high) <= high
            assert any(label.get_text() for label in axes.get_yticklabels())
    assert {round(high - low, 6) for low, high in limits} == {round(limits[0][1] - limits[0][0], 6)}
    assert [low <= 0 <= high for low, high in limits] == [True, False, True]


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


def test_lines_beyond_the_colours_look_different() -> None:
    labels = [f"line {number}" for number in range(18)]
    with drawn(curves(labels, ["panel"])) as picture:
        looks = [
            (line.get_color(), line.get_marker(), str(line.get_linestyle()), line._unscaled_dash_pattern[1])
            for line in picture.axes[-1].lines
            if len(line.get_xdata()) == 7
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

"""Picture files of figures: equal bytes, escaped text, descriptions, and reports that contain them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from peekbench import Analysis, PeekbenchError
from peekbench.plugins import Form
from peekbench.records import Curves, Densities, Figure, Forest, Report, Sample, Violins
from peekbench.report import write_report

mpl = pytest.importorskip("matplotlib", reason="the extra 'figures' is not installed")
pytest.importorskip("arviz_stats", reason="the extra 'figures' is not installed")

from example_figures import POINTS, SMALL, curves, densities, each_kind, forest, violins  # noqa: E402

from peekbench_figures import draw  # noqa: E402

HOSTILE = '<script>alert("x")</script> $x_1$ & \x00\x1b[31m _under \ud800 日本\nnext'
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.slow
@each_kind
@pytest.mark.parametrize("form", ["svg", "inline svg", "png"])
def test_user_settings_do_not_change_the_bytes(figure: Figure, form: Form) -> None:
    first = draw(figure, form)
    with mpl.rc_context({"font.size": 30, "axes.spines.bottom": False, "xtick.major.size": 9, "svg.fonttype": "path"}):
        draw(SMALL["curves"], "png")
        assert draw(figure, form) == first


@pytest.mark.parametrize("values", [(), (0.01,), (0.0,) * 40, (0.01, 0.02), (1e-12,) * 5 + (0.0,) * 5])
def test_few_or_equal_values_are_drawn(values: tuple[float, ...]) -> None:
    sample = (Sample("x", values),)
    draw(Violins("v", POINTS, (("a", sample),)), "png")
    draw(Densities("d", POINTS, (("a", sample),), 0.89), "svg")


@each_kind
def test_empty_figures_are_drawn(figure: Figure) -> None:
    for empty in (
        Forest("f", ()),
        Violins("v", POINTS, ()),
        Densities("d", POINTS, (), 0.9),
        Curves("c", POINTS, POINTS, ()),
    ):
        assert b"<svg" in draw(empty, "svg")


def test_text_from_data_is_escaped() -> None:
    names = [HOSTILE]
    for figure in (forest(names, names), violins(names, names), densities(names, names), curves([HOSTILE, "b"], names)):
        root = ElementTree.fromstring(draw(figure, "svg").decode())
        assert not root.findall(f".//{SVG}script")
        shown = " ".join(text.text or "" for text in root.iter(f"{SVG}text"))
        assert ("<script>" in shown and "$x_1$" in re.sub(r"…|\s", "", shown)) or "$x" in shown
        assert "\x00" not in shown and "\ud800" not in shown
        assert draw(figure, "png").startswith(b"\x89PNG")


@each_kind
def test_inline_pictures_have_different_ids_and_no_style_rules(figure: Figure) -> None:
    other = forest(["another"], ["another"])
    one, two = (draw(drawn, "inline svg").decode() for drawn in (figure, other))
    names = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (one, two)]
    assert names[0] and not names[0] & names[1]
    for text in (one, two):
        assert "<style" not in text and "http://www.w3.org/1999/xlink" in text
        assert 'role="img"' in text and "currentColor" in text and "#010203" not in text
        assert (
            text.count("var(--mark, #0072b2)") == text.count("#0072b2") > 0
        )  # a page sets a lighter color on dark backgrounds
        assert not re.search(r"(href|src|url)\W*(https?:|//)", re.sub(r'xmlns(:\w+)?="[^"]*"', "", text))


@pytest.mark.slow
@each_kind
def test_pictures_have_a_title_and_a_description(figure: Figure) -> None:
    root = ElementTree.fromstring(draw(figure, "inline svg").decode())
    assert root.findtext(f"{SVG}title") == figure.title
    assert re.search(r"\d", root.findtext(f"{SVG}desc") or "")
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert figure.title not in texts  # the page shows the title as text
    assert figure.title in [text.text for text in ElementTree.fromstring(draw(figure, "svg")).iter(f"{SVG}text")]


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "peekbench_figures.drawing", raising=False)
    with pytest.raises(PeekbenchError, match=r"matplotlib.*peekbench\[figures\]"):
        draw(forest(), "svg")


def test_reports_write_pictures(tmp_path: Path) -> None:
    analysis = Analysis("a", figures=(forest(["a"], ["m"]), curves(["a"], ["m"])))
    report = Report("r", "", figures=analysis.figures)
    written = write_report(report, tmp_path, ("svg", "png"))
    names = ["terminal.svg", "01-bias-by-task.svg", "02-progress.svg", "01-bias-by-task.png", "02-progress.png"]
    assert written == [tmp_path / "figures" / name for name in names]
    assert written[1].read_bytes() == draw(analysis.figures[0], "svg")
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == sorted(names)

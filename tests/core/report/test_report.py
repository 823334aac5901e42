from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.cells import cell_len
from rich.console import Console

from peekbench import analyze
from peekbench.errors import ContractError, PeekbenchError
from peekbench.formatting import format_cell, format_signed
from peekbench.records.analysis import Analysis, Column, Table, Verdict
from peekbench.records.figures import Axis, Forest, Interval, Sample, Violins
from peekbench.records.trials import Draw, Trial, TrialFailure
from peekbench.records.units import Unit
from peekbench.report import Report, render_tables, render_text, report_of_table, write_pictures, write_report
from peekbench.report.render.cells import fold_intervals
from peekbench.report.render.forest_plot import ESTIMATE, ZERO, draw_forest
from peekbench.report.render.json_report import render_json
from peekbench.report.render.markdown import escape, render_markdown
from peekbench.report.render.wrapping import wrap

HOSTILE = "[bold]task[/] <script>alert(1)</script> | `x` @team #1 \x1b[31m"


@pytest.fixture
def report(simulate: Callable[..., Any]) -> Report:
    results = simulate({"task0": 0.1, "task1": -0.05, "task2": 0.0, "task3": 0.02, "task4": 0.0}, method="lsa")
    made = report_of_table(Path("scores.csv"), results, analyze(results))
    return replace(made, provenance={"commit": "abc"})


def hostile() -> Report:
    failure = TrialFailure(Trial(Draw(HOSTILE, 5, 5, 0), HOSTILE), HOSTILE, f"Traceback\n```\n</details>{HOSTILE}")
    return Report(
        name=HOSTILE,
        headline=HOSTILE,
        verdicts=(Verdict(HOSTILE, "bias", "inconclusive", HOSTILE),),
        warnings=(HOSTILE,),
        figures=(Forest(HOSTILE, ((HOSTILE, (Interval(HOSTILE, 0.1, 0.0, 0.2),)),), HOSTILE),),
        tables=(Table(HOSTILE, (Column(HOSTILE), Column("n", "number")), ((HOSTILE, math.nan),), HOSTILE),),
        failures=(failure,),
        provenance={"x": HOSTILE},
        details={"inf": [math.inf]},
    )


def as_text(report: Report, width: int = 100, *, complete: bool = True) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    render_text(report, console, complete=complete)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_every_number_is_whole_at_every_width(width: int, report: Report) -> None:
    text = as_text(report, width)
    assert max(map(len, text.splitlines())) <= width
    words = set(text.replace("[", " ").replace("]", " ").replace(",", " ").split())
    for table in report.tables:
        for row in table.rows:
            for cell, column in zip(row, table.columns, strict=True):
                if column.unit not in ("text", "count"):
                    assert format_cell(cell, column.unit) in words
    for verdict in report.verdicts:
        assert " ".join(verdict.sentence.split()[:4]) in " ".join(text.split())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_numbers_stand_beside_long_names(width: int) -> None:
    names = [f"community-datasets.disaster_response_messages_{number}" for number in range(3)]
    columns = (Column("task"), Column("method"), Column("num_train", "count"), Column("num_test", "count"))
    values = tuple(Column(f"value {number}", "difference") for number in range(5))
    rows: Any = tuple((name, name, 50, 100, *(0.1 + number / 50 for number in range(5))) for name in names)
    console = Console(file=io.StringIO(), width=width, color_system=None)
    render_tables([Table("Long", (*columns, *values), rows)], console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= width
    for number in range(5):
        assert text.count(f"+{10 + 2 * number}.00") == len(names)
    assert "…" not in text


LONG = ("community-datasets/disaster_response_messages", "short", "数据集/很长的名字" * 4)
LABELS = ("classic.lsa (num_components 100, regularization 0.5, a third option of which much is said)", "controls.null")


@pytest.fixture
def long_report(simulate: Callable[..., Any]) -> Report:
    """Long names of tasks and methods, two of each design's sizes."""
    parts = [
        simulate(0.02, tasks=3, subsamples=4, num_test=num_test, method=label)
        for label in LABELS
        for num_test in (100, 200)
    ]
    results = pd.concat(parts, ignore_index=True).replace({"task": {f"task{n}": name for n, name in enumerate(LONG)}})
    made = report_of_table(Path("scores.csv"), results, analyze(results))
    methods = Table(
        "Methods",
        tuple(map(Column, ("method", "use", "options", "what it is"))),
        tuple((label, "classic.lsa", "num_components 100", "latent semantic analysis (tf-idf)") for label in LABELS),
    )
    return replace(made, tables=(*made.tables, methods))


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_nothing_is_cropped_at_any_width(width: int, long_report: Report) -> None:
    text = as_text(long_report, width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "…" not in text
    sections = text.split("─" * width + "\n")
    for table in long_report.tables:
        (section,) = (part for part in sections if part.startswith(table.title[:20]))
        for position, column in enumerate(table.columns):
            cells = [str(row[position]) for row in table.rows if column.unit == "text"]
            name = column.name.removesuffix(", low").removesuffix(", high")  # which stand in the estimate's column
            assert set(name.split()) <= set(section.split())
            for word in {word for cell in cells for word in re.findall(r"[a-z]{3,}", cell)}:
                assert section.count(word) >= sum(word in cell for cell in cells), (word, section)
    figure = sections[[part.startswith("Bias by task: ") for part in sections].index(True)]
    assert figure.count("disaster_") == figure.count("messages") == figure.count("short") == 4
    assert figure.count("much is said)") == figure.count("controls.null") == 2


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_rows_can_be_told_apart_in_every_panel(width: int, long_report: Report) -> None:
    text = as_text(long_report, width)
    start = text.index("over these tasks", text.index("Boost and bias over these tasks"))
    section = text[start : text.index("boost = extra - base", start)]
    panels = section.count(" num_test ")
    assert section.count(" effect ") == panels == section.count(" method ")
    assert (panels > 1) == (width < 100)
    assert section.count(" bias ") == section.count(" boost ") == panels * 4


def test_names_are_folded_where_a_reader_would_break_them() -> None:
    assert wrap(LONG[0], 20) == ["community-datasets/", "disaster_response_", "messages"]
    assert wrap(LONG[0], 7) == ["communi", "ty-", "dataset", "s/", "disaste", "r_", "respons", "e_", "message", "s"]
    assert wrap("num_components 100, scale 0.5, -0.25", 14) == ["num_components", "100, scale", "0.5, -0.25"]
    assert wrap("数据集", 4) == ["数据", "集"]
    assert wrap("one\n\ntwo", 9) == ["one", "", "two"]
    assert wrap("", 9) == [""]


def test_verdicts_come_first(report: Report) -> None:
    text = as_text(report)
    places = [text.index(part) for part in (report.verdicts[0].decision, "Bias by task", "Leaderboard", "Provenance")]
    assert places == sorted(places)


def test_verdicts_say_what_they_rest_on(report: Report) -> None:
    assert "(Based on 5 tasks, 200 trials.)" in " ".join(as_text(report).split())
    assert "(Based on 5 tasks, 200 trials.)" in render_markdown(report)


def test_long_tables_are_cut_in_a_terminal_only() -> None:
    table = Table("many", (Column("n", "count"),), tuple((number,) for number in range(7000, 7100)))
    long = replace(hostile(), tables=(table,))
    assert "7,099" not in as_text(long, complete=False)
    assert "70 more rows in the report files" in as_text(long, complete=False)
    assert "7,099" in as_text(long)


def test_markup_and_escape_codes_from_data_stay_text() -> None:
    text = as_text(hostile(), 200)
    assert "[bold]task[/]" in text
    assert "\x1b" not in text


def test_markdown_is_escaped() -> None:
    text = render_markdown(hostile())
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "1 trial failed" in outside
    assert "<script>" not in outside
    assert "@team" not in outside
    assert outside.count("<details>") == outside.count("</details>") == 1
    assert "\x1b" not in text
    assert escape("# a | b\n<i> *x*") == "\\# a \\| b &lt;i&gt; \\*x\\*"
    assert escape("- x") == "\\- x"


def test_a_fence_is_longer_than_what_it_holds() -> None:
    text = render_markdown(hostile())
    body = text[text.index("1 trial failed") :]
    assert "````text" in body
    assert body.count("````") == 2


def test_markdown_tables_have_as_many_cells_as_columns(report: Report) -> None:
    for line in render_markdown(replace(report, name="x")).splitlines():
        if line.startswith("|"):
            counts = {len(fold_intervals(table).columns) + 1 for table in report.tables}
            assert line.replace("\\|", "").count("|") in counts


def test_an_estimate_and_its_interval_are_one_cell() -> None:
    names = ("method", "tasks", "bias", "bias, low", "bias, high", "others, low", "others, high", "x, low")
    units: tuple[Unit, ...] = ("text", "count", *("difference",) * 3, *("change",) * 2, "number")
    table = Table(
        "t",
        tuple(map(Column, names, units)),
        (("a", 5, 0.0147, 0.0091, 0.0203, -1.5, 2, 3), ("b", 5, 0.01, None, None, None, None, None)),
    )
    seen = fold_intervals(table)
    assert [column.name for column in seen.columns] == ["method", "tasks", "bias", "others", "x, low"]
    assert [[cell.text for cell in row] for row in seen.rows] == [
        ["a", "5", "+1.47 [+0.91, +2.03]", "[-1.5000, +2.0000]", "3"],
        ["b", "5", "+1.00", "-", "-"],
    ]
    assert [row[2].number for row in seen.rows] == [0.0147, 0.01]
    assert seen.num_key_columns == 1


def test_json_keeps_every_number_and_is_strict(report: Report) -> None:
    content = json.loads(render_json(report), parse_constant=lambda name: pytest.fail(name))
    assert content["verdicts"][0]["estimate"] == report.verdicts[0].estimate
    assert content["tables"][1]["rows"] == json.loads(json.dumps(report.tables[1].rows))
    assert list(content) == sorted(content)
    strange = json.loads(render_json(hostile()))
    assert strange["inf"] == [None]
    assert strange["tables"][0]["rows"] == [[HOSTILE, None]]
    assert strange["failures"][0]["traceback"].startswith("Traceback")


def test_the_same_report_gives_the_same_bytes(report: Report, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_report(report, tmp_path / name)
        write_pictures(report, tmp_path / name / "pictures")
    files = {path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.*")}
    assert {Path("report.html"), Path("report.json"), Path("cards/lsa.md"), Path("pictures/terminal.svg")} <= files
    assert sum(path.suffix == ".svg" for path in files) == 1 + len(report.figures) > 1
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes()


def test_files_are_chosen_and_places_that_cannot_be_written_are_errors(report: Report, tmp_path: Path) -> None:
    assert [path.name for path in write_report(report, tmp_path / "a", ["json"])] == ["report.json"]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["report.json"]
    (tmp_path / "file").write_text("")
    with pytest.raises(PeekbenchError, match="cannot write .*file/report.html"):
        write_report(report, tmp_path / "file")


def test_what_an_analysis_attaches_stands_next_to_the_report(
    report: Report, simulate: Callable[..., Any], tmp_path: Path
) -> None:
    def write(path: Path) -> None:
        path.write_bytes(b"draws")

    analysis = Analysis("bayes", attachments={"draws.nc": write})
    twice = report_of_table(tmp_path, simulate(0.0, subsamples=2), [analysis, analysis])
    assert list(twice.attachments) == ["draws.nc", "draws-2.nc"]
    with_file = replace(report, attachments=analysis.attachments)
    assert [path.name for path in write_report(with_file, tmp_path, ["json"])] == ["report.json", "draws.nc"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["draws.nc", "report.json"]
    assert (tmp_path / "draws.nc").read_bytes() == b"draws"
    for name in ("../draws.nc", "report.json"):
        with pytest.raises(ContractError, match="plain file name"):
            write_report(replace(report, attachments={name: lambda path: None}), tmp_path)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.12345, "fraction", "12.3%"),
        (0.01624, "difference", "+1.62"),
        (-0.00001, "difference", "0.00"),
        (0.0, "difference", "0.00"),
        (0.0057, "spread", "0.57"),
        (0.0004, "p_value", "<0.001"),
        (0.0126, "p_value", "0.013"),
        (12345, "count", "12,345"),
        (None, "number", "-"),
        (1.5, "seconds", "1.500 s"),
        (-0.0, "number", "0"),
        ("x", "number", "x"),
        (True, "text", "True"),
    ],
)
def test_numbers_as_readers_expect_them(value: Any, unit: Any, text: str) -> None:
    assert format_cell(value, unit) == text


@pytest.mark.parametrize("zero", [0.0, -0.0, 4e-5, -4e-5])
def test_zero_is_the_same_in_tables_and_forests(zero: float) -> None:
    assert format_cell(zero, "difference") == format_signed(zero, "difference") == "0.00"
    assert format_signed(zero / 2, "number") == "0.0000"
    _, row, axis = draw_forest(Forest("f", (("m", (Interval("a", zero, zero - 0.01, zero + 0.01),)),)), 80)
    assert row.numbers == "  0.00 [ -1.00,  +1.00]"
    assert re.search(r"(?<![\d+.-])0(?:\.0)? ", axis.plot)


def column_of(line: str, mark: str) -> int:
    return line.index(mark)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_forest_puts_marks_where_the_axis_says(width: int) -> None:
    intervals = (
        Interval("zero", 0.0, 0.0, 0.0),
        Interval("up", 0.05, 0.03, 0.07),
        Interval("down", -0.1, -0.15, -0.02),
        Interval("a very long name of a task that nobody can be expected to type", 0.1, 0.1, 0.1),
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


def test_forest_of_nothing_but_zeros_has_an_axis() -> None:
    lines = draw_forest(Forest("f", (("null", (Interval("a", 0.0, 0.0, 0.0),)),)), 80)
    assert column_of(lines[1].plot, ESTIMATE) == column_of(lines[0].plot, ZERO)


@pytest.mark.parametrize("width", [60, 120])
@pytest.mark.parametrize(("reach", "tick"), [(0.0004, "+0.0002"), (0.03, "+0.02"), (0.9, "+0.5"), (250.0, "+200")])
def test_forest_of_scores_that_are_no_accuracies_shows_them_as_they_are(width: int, reach: float, tick: str) -> None:
    intervals = (Interval("up", reach * 0.6, reach * 0.2, reach), Interval("other", 0.0, -reach * 0.1, reach * 0.1))
    *_, row, other, axis = draw_forest(Forest("f", (("m", intervals),), unit="number"), width)
    assert f"{reach * 0.6:+.4f} [" in row.numbers
    assert "0.0000 [" in other.numbers
    assert "points" not in axis.text()
    assert column_of(row.plot, ESTIMATE) > column_of(other.plot, ESTIMATE)
    assert tick in axis.plot or width == 60


def test_an_average_is_what_its_record_says() -> None:
    intervals = (Interval("average.reviews", 0.1, 0.0, 0.2), Interval("all", 0.1, 0.0, 0.2, is_average=True))
    kinds = [line.kind for line in draw_forest(Forest("f", (("m", intervals),)), 80)]
    assert kinds == ["heading", "row", "average", "axis"]


def test_forest_of_25_tasks_has_a_line_for_each(simulate: Callable[..., Any]) -> None:
    results = simulate(0.01, tasks=25, subsamples=5)
    (summary, _) = analyze(results)
    forest = summary.figures[0]
    assert isinstance(forest, Forest)
    lines = draw_forest(forest, 80)
    assert sum(line.kind == "row" for line in lines) == 25
    assert sum(line.kind == "average" for line in lines) == 1


def test_texts_name_the_figures_that_they_cannot_show(tmp_path: Path) -> None:
    figures = (Forest("shown", (("m", (Interval("a", 0.1, 0.0, 0.2),)),)), Violins("a violin", Axis("bias"), ()))
    report = Report("r", "", (), (), figures, (), (), {}, {})
    for file in write_report(report, tmp_path, ("text", "markdown")):
        text = file.read_text()
        assert "shown" in text and "report.html only: a violin." in text
    assert "a violin" not in as_text(replace(report, figures=figures[:1]))


def test_json_says_of_what_kind_a_figure_is() -> None:
    figures = (Violins("a violin", Axis("bias"), (("m", (Sample("a", (0.1,)),)),)),)
    (figure,) = json.loads(render_json(Report("r", "", (), (), figures, (), (), {}, {})))["figures"]
    assert figure["kind"] == "violins"
    assert figure["columns"] == [["m", [{"label": "a", "mark": None, "values": [0.1]}]]]

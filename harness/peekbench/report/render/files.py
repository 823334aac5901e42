"""Reports into files, each written whole or not at all."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME

from peekbench.errors import ContractError, PeekbenchError
from peekbench.plugins.protocols import Form
from peekbench.report.build.run_report import Report
from peekbench.report.render.cards import render_cards
from peekbench.report.render.html import render_html
from peekbench.report.render.json_report import render_json
from peekbench.report.render.markdown import render_markdown
from peekbench.report.render.renderers import FOLDER, find_renderer, named_figures
from peekbench.report.render.terminal import render_text, render_top
from peekbench.spec.experiment import DEFAULT_FORMATS

TEXT_WIDTH = 120
PICTURE_WIDTH = 110
PICTURES: tuple[Form, ...] = ("svg", "png")
NAMES = {"html": "report.html", "text": "report.txt", "markdown": "report.md", "json": "report.json"}
CARDS = "cards"

# rich's own template asks a web server for a font; this one asks for what the reader has.
SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
 font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def write_report(report: Report, folder: str | Path, formats: Sequence[str] = DEFAULT_FORMATS) -> list[Path]:
    """Write report.html, .txt, .md and .json, a card a method, pictures, and what analyses attach, and say where.

    Raises
    ------
    PeekbenchError
        Where they cannot be written.
    """
    pictures = next((form for form in PICTURES if form in formats), "")
    render: dict[str, Callable[[Report], str]] = {
        "html": render_html,
        "text": _plain_text,
        "markdown": partial(render_markdown, pictures=pictures),
        "json": render_json,
    }
    written = [_write(Path(folder) / NAMES[name], render[name](report)) for name in formats if name in render]
    if CARDS in formats:
        written += [_write(Path(folder) / CARDS / name, card) for name, card in render_cards(report).items()]
    for form in PICTURES:
        if form in formats:
            written += _draw(report, Path(folder) / FOLDER, form)
    return written + [_attach(Path(folder), name, write) for name, write in report.attachments.items()]


def _draw(report: Report, folder: Path, form: Form) -> list[Path]:
    """Write each figure as a picture; the names of files follow from the titles."""
    render = find_renderer(report.renderer)
    pictures = [(f"{name}.{form}", render(figure, form)) for name, figure in named_figures(report)]
    return [_replace(folder / name, partial(_write_bytes, picture)) for name, picture in pictures]


def _attach(folder: Path, name: str, write: Callable[[Path], None]) -> Path:
    if Path(name).name != name or name in NAMES.values():
        raise ContractError(f"an analysis attaches a file named {name!r}; give a plain file name of its own")
    return _replace(folder / name, write)


def _plain_text(report: Report) -> str:
    console = Console(
        file=io.StringIO(), width=TEXT_WIDTH, color_system=None, force_terminal=False, legacy_windows=False
    )
    render_text(report, console, complete=True)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def draw_pictures(report: Report, folder: str | Path) -> list[Path]:
    """Draw what a terminal shows first, and each figure, as SVG, and say where.

    Raises
    ------
    PeekbenchError
        Where they cannot be written, or nothing is installed that draws figures.
    """
    return [_draw_top(report, Path(folder) / "terminal.svg"), *_draw(report, Path(folder), "svg")]


def _draw_top(report: Report, path: Path) -> Path:
    console = Console(
        file=io.StringIO(),
        record=True,
        width=PICTURE_WIDTH,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    render_top(report, console)
    svg = console.export_svg(
        title=f"peekbench report {report.name}", theme=SVG_EXPORT_THEME, code_format=SVG, unique_id="report"
    )
    return _write(path, svg)


def _write(path: Path, text: str) -> Path:
    return _replace(path, lambda part: _write_text(part, text))


def _write_bytes(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _replace(path: Path, write: Callable[[Path], None]) -> Path:
    part = path.with_name(f".part-{path.name}")  # which keeps the suffix: some libraries choose a format by it
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part)
        part.replace(path)
    except OSError as error:
        raise PeekbenchError(
            f"cannot write {path}: {error.strerror or error}; make the folder writable, or choose another one"
        ) from error
    return path

"""Writes reports into files; each file is written completely or not at all."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from peekbench.cache import atomic_write
from peekbench.errors import ContractError, PeekbenchError
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.entries import ReportFormatEntry
from peekbench.plugins.names import locate_code
from peekbench.plugins.protocols import Form
from peekbench.plugins.registry import find_format
from peekbench.records.report import Report
from peekbench.report.render.content import make_printable
from peekbench.report.render.html import render_html
from peekbench.report.render.json_report import render_json
from peekbench.report.render.markdown import render_markdown
from peekbench.report.render.pictures import FOLDER, make_renderer, name_figures
from peekbench.report.render.terminal import render_screen

MAX_NAME_LENGTH = 80  # characters of a folder's name
FILES = {"html": "report.html", "markdown": "report.md", "json": "report.json"}


def _draw_figures(report: Report, form: Form) -> dict[str, bytes]:
    """Return the pictures of all figures, by file name."""
    draw = make_renderer(report.renderer)
    pictures = name_figures(make_printable(report))
    return {f"{FOLDER}/{picture.name}.{form}": draw(picture.figure, form) for picture in pictures}


RENDER: Mapping[str, Callable[[Report], Mapping[str, str | bytes]]] = {
    "html": lambda report: {FILES["html"]: render_html(report)},
    "markdown": lambda report: {FILES["markdown"]: render_markdown(report)},
    "json": lambda report: {FILES["json"]: render_json(report)},
    "svg": lambda report: {f"{FOLDER}/terminal.svg": render_screen(report), **_draw_figures(report, "svg")},
    "png": lambda report: _draw_figures(report, "png"),
}
"""Content of the files of each of `OWN_FORMATS`, by their paths."""


def write_report(report: Report, folder: str | Path, formats: Sequence[str] | None = None) -> list[Path]:
    """Write a report into a folder, in the formats that it asks for.

    Parameters
    ----------
    report
        Report to write.
    folder
        Folder of the files; it is created.
    formats
        Formats to write instead of `report.formats`: 'html', 'markdown', 'json', 'svg' and 'png' (one
        picture per figure; 'svg' also has one of the screen), and formats of plugins, as `plugin.thing`, which are a
        file or a folder of files.

    Returns
    -------
    list[Path]
        Files that were written.

    Raises
    ------
    PeekbenchError
        If the folder cannot be written, no renderer of figures is installed for 'svg' or 'png', or a format of a
        plugin is missing, fails, or finds files in its folder that it does not write; in the last case, all other
        files are written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> report = Report("quickstart", "2 methods on 2 tasks")
    >>> with TemporaryDirectory() as folder:
    ...     [path.name for path in write_report(report, folder, ["markdown", "json"])]
    ['report.md', 'report.json']
    """
    folder = Path(folder)
    if formats is not None:
        report = replace(report, formats=tuple(locate_code(use, Path.cwd()) for use in formats))
    written = []
    for name in report.formats:
        if name in RENDER:
            written += [_write(folder / path, content) for path, content in RENDER[name](report).items()]
    for use in (name for name in report.formats if name not in RENDER):
        written += _write_format(report, folder, use)
    return written


def folder_name(name: str) -> str:
    """Return the name of the folder for a report that may be named after files, as a portable file name.

    Examples
    --------
    >>> folder_name("january to june"), folder_name("../accuracies")
    ('january-to-june', 'accuracies')
    """
    return re.sub(r"[^\w.-]+", "-", name)[:MAX_NAME_LENGTH].strip("-.") or "report"


def _write_format(report: Report, folder: Path, use: str) -> list[Path]:
    """Write the file or the folder of a format of a plugin, completely or not at all."""
    entry = find_format(use)
    path = folder / folder_name(use)
    if entry.suffix:
        path = folder / f"report-{path.name}{entry.suffix}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=folder, ignore_cleanup_errors=True) as temporary:
            part = Path(temporary) / path.name
            names = write_format(use, entry, make_printable(report), part)
            if not entry.suffix and path.exists():
                shutil.rmtree(path)
            os.replace(part, path)  # noqa: PTH105 - the name says that it must not fail half-way
    except OSError as error:
        raise _cannot_write(path, error) from error
    return [path / name for name in names]


def write_format(use: str, entry: ReportFormatEntry, report: Report, path: Path) -> list[Path]:
    """Let a format of a plugin write a report into a file, or into a folder if it has no suffix.

    Returns
    -------
    list of Path
        Files in the folder, sorted and relative to it; of a file, the path '.'.

    Raises
    ------
    ContractError
        If it writes no file.
    """
    if not entry.suffix:
        path.mkdir()
    Foreign(f"report format {use}", use).call(entry.write, {"report": report, "path": path})
    if files := list_files(path):
        return files
    raise ContractError(f"report format {use} wrote no file; write to the path that is the second argument")


def list_files(path: Path) -> list[Path]:
    """Return the files in a folder and in its folders, sorted and relative to it; of a file, the path '.'."""
    if path.is_file():
        return [Path()]
    return sorted(file.relative_to(path) for file in path.rglob("*") if not file.is_dir())


def _write(path: Path, content: str | bytes) -> Path:
    if isinstance(content, str):
        content = content.encode("utf-8")
    try:
        with atomic_write(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise _cannot_write(path, error) from error
    return path


def _cannot_write(path: Path, error: OSError) -> PeekbenchError:
    remedy = "make the folder writable, or choose another one"
    return PeekbenchError(f"cannot write {path}: {error.strerror or error}; {remedy}")

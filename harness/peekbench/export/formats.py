"""The formats of exports, and the command that writes one of them into a folder."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from peekbench.errors import PeekbenchError
from peekbench.export.content import ExportedRun, Publication, read_run
from peekbench.export.croissant import write_croissant
from peekbench.export.every_eval_ever import write_records
from peekbench.export.latex import write_latex
from peekbench.export.paper_text import write_text
from peekbench.export.ro_crate import write_crate
from peekbench.export.tables import write_tables
from peekbench.plugins.nearest import find_nearest


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format of exports."""

    write: Callable[[ExportedRun, Path], None]
    """Writes the files of the format into an empty folder."""
    summary: str


FORMATS: Mapping[str, ExportFormat] = {
    "csv": ExportFormat(write_tables, "CSV files: scores of all trials, effects of each trial, estimates"),
    "latex": ExportFormat(write_latex, "LaTeX tables and a paragraph on the methods, with references"),
    "text": ExportFormat(write_text, "the paragraph on the methods as plain text"),
    "every-eval-ever": ExportFormat(write_records, "records of Every Eval Ever, one JSON file per method"),
    "ro-crate": ExportFormat(write_crate, "RO-Crate with everything that `peekbench analyze` needs"),
    "croissant": ExportFormat(write_croissant, "the tables as a data set described in Croissant"),
}
"""Formats by their names.

Examples
--------
>>> FORMATS["latex"].summary
'LaTeX tables and a paragraph on the methods, with references'
"""


def export_run(
    store: str | Path,
    to: str,
    folder: str | Path,
    *,
    publication: Publication | None = None,
    allow_incomplete: bool = False,
) -> list[Path]:
    """Export a run.

    Parameters
    ----------
    store
        Store of the run.
    to
        Name of a format, see `FORMATS`.
    folder
        Folder to create. If it exists, it may only have files that the export replaces.
    publication
        Author, license and lock file for formats that have a place for them.
    allow_incomplete
        Export the complete trials of a design with missing trials instead of refusing it.

    Returns
    -------
    list of Path
        The files, sorted.

    Raises
    ------
    PeekbenchError
        If there is no such format, the run has missing trials, or the folder has other files or cannot be written.

    Examples
    --------
    >>> export_run("runs/quickstart.sqlite", "latx", "quickstart")
    Traceback (most recent call last):
    peekbench.errors.PeekbenchError: there is no export format 'latx'; did you mean latex?
    """
    if to not in FORMATS:
        near = find_nearest(to, FORMATS)
        remedy = f"did you mean {near}?" if near else f"formats are {', '.join(FORMATS)}"
        raise PeekbenchError(f"there is no export format {to!r}; {remedy}")
    run = read_run(Path(store), publication or Publication(), allow_incomplete=allow_incomplete)
    return _write_folder(Path(folder), lambda part: FORMATS[to].write(run, part))


def _write_folder(folder: Path, write: Callable[[Path], None]) -> list[Path]:
    """Write a folder completely or not at all."""
    part = folder.absolute().with_name(f".{folder.absolute().name}-{secrets.token_hex(8)}.part")
    try:
        part.mkdir(parents=True)
        try:
            write(part)
            names = _list_files(part)
            if folder.exists():
                _refuse_other_files(folder, names)
                shutil.rmtree(folder)
            os.replace(part, folder)  # noqa: PTH105 - the name says that it must not fail half-way
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise PeekbenchError(
            f"cannot write {folder}: {error.strerror or error}; make the folder writable, or choose another one with "
            "--output"
        ) from error
    return [folder / name for name in names]


def _list_files(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir())


def _refuse_other_files(folder: Path, names: list[Path]) -> None:
    if not folder.is_dir() or folder.is_symlink():
        raise PeekbenchError(f"{folder} is not a folder; choose a folder with --output")
    if others := [str(name) for name in _list_files(folder) if name not in names]:
        raise PeekbenchError(
            f"{folder} has other files, such as {others[0]}; delete the folder, or choose another one with --output"
        )

"""Find the formats of reports that plugins register, and let them write."""

from __future__ import annotations

from pathlib import Path

from peekbench.errors import ContractError, PluginError
from peekbench.plugins import registry
from peekbench.plugins.entries import ReportFormatEntry
from peekbench.plugins.entry_names import split_name
from peekbench.plugins.nearest import find_nearest
from peekbench.plugins.roles import names_with
from peekbench.records.report import OWN_FORMATS, Report


def find_format(use: str) -> ReportFormatEntry:
    """Return a report format of a plugin.

    Parameters
    ----------
    use
        Name of the format in specs, `plugin.thing`.

    Raises
    ------
    PluginError
        If there is no such format. The message names all formats.
    """
    if not registry.is_known(split_name(use)[0]):
        names = [*OWN_FORMATS, *names_with(ReportFormatEntry, lambda _: True)]
        near = find_nearest(use, names)
        raise PluginError(f"{use!r} is not one of {', '.join(names)}" + (f"; did you mean {near}?" if near else ""))
    return registry.find(use, ReportFormatEntry)


def check_format(use: str) -> str:
    """Return the name of a report format that exists.

    Parameters
    ----------
    use
        Name of a format of peekbench, or of one of a plugin.

    Raises
    ------
    PluginError
        If there is no such format; see `find_format`.
    """
    if use not in OWN_FORMATS:
        find_format(use)
    return use


def write_format(use: str, entry: ReportFormatEntry, report: Report, path: Path) -> list[Path]:
    """Let a format of a plugin write a report.

    Parameters
    ----------
    use
        Name of the format, for messages.
    entry
        Its entry.
    report
        Report to write.
    path
        File or folder that does not exist, in a folder that exists.

    Returns
    -------
    list of Path
        Files in the folder, sorted and relative to it; empty if the format is a file.

    Raises
    ------
    ContractError
        If it does not write the file, or nothing into the folder.
    """
    if entry.suffix:
        entry.write(report, path)
        if not path.is_file():
            raise ContractError(f"report format {use} wrote no file; write it to the path that is the second argument")
        return []
    path.mkdir()
    entry.write(report, path)
    if not (files := list_files(path)):
        raise ContractError(f"report format {use} wrote no file; write to the folder that is the second argument")
    return files


def list_files(folder: Path) -> list[Path]:
    """Return the files in a folder and in its folders, sorted and relative to it."""
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir())

"""Find the formats of report files that plugins register."""

from __future__ import annotations

from peekbench.errors import ContractError, PluginError
from peekbench.plugins import registry
from peekbench.plugins.entries import ReportFormatEntry
from peekbench.plugins.entry_names import split_name
from peekbench.plugins.nearest import find_nearest
from peekbench.plugins.roles import names_with
from peekbench.records.report_formats import OWN_FORMATS


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


def to_bytes(content: object, use: str) -> bytes:
    """Return the content of a file that a report format rendered.

    Parameters
    ----------
    content
        What the format returned.
    use
        Name of the format, for messages.

    Raises
    ------
    ContractError
        If it is neither text nor bytes.
    """
    if not isinstance(content, str | bytes):
        raise ContractError(f"report format {use} returned {type(content).__name__}; return str or bytes")
    return content.encode() if isinstance(content, str) else content

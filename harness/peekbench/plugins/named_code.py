"""Names of plugins for files: `peekbench run spec.yaml --plugin my_file.py` lets a spec name `my_file.fit`.

Specs then keep the path of the file, `my_file.py:fit`. Worker processes, other machines and later commands therefore
find the file like any other code without a plugin, and need no such name.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from peekbench.plugins.local_code import names_code

_files: dict[str, Path] = {}
"""Absolute paths of files, by the name that means them."""


def give_name(name: str, file: Path) -> None:
    """Let a name mean a file, as if it were the name of an installed plugin.

    Parameters
    ----------
    name
        Name without a dot.
    file
        Absolute path.
    """
    _files[name] = file


def forget_names() -> None:
    """Let names mean files no longer."""
    _files.clear()


def named_files() -> Mapping[str, Path]:
    """Return the absolute paths of the files that have a name, by name."""
    return MappingProxyType(_files)


def write_out(use: str, folder: Path | None = None) -> str:
    """Return a name with the path of the file instead of the name of the file; other names as they are.

    Parameters
    ----------
    use
        Name such as `my_file.fit`, or `my_file` for the entry of the same name.
    folder
        Folder of the spec, where the path starts. Without it, the path is absolute.

    Examples
    --------
    >>> give_name("my_file", Path("/project/methods/my_file.py"))
    >>> write_out("my_file.fit"), write_out("classic.lsa")
    ('/project/methods/my_file.py:fit', 'classic.lsa')
    >>> forget_names()
    """
    name, dot, entry = use.partition(".")
    if names_code(use) or name not in _files:
        return use
    path = _files[name] if folder is None else os.path.relpath(_files[name], folder.resolve())
    return f"{path}:{entry if dot else name}"


def write_out_all(raw: Mapping[str, Any], folder: Path, keys: Collection[str]) -> Mapping[str, Any]:
    """Return a spec in which all names of entries are written out.

    Parameters
    ----------
    raw
        The spec as plain values; it is not changed.
    folder
        Folder of the spec.
    keys
        Keys of the spec under which entries are named.
    """
    if not _files:
        return raw
    return {key: _write_out_part(value, folder) if key in keys else value for key, value in raw.items()}


def _write_out_part(part: Any, folder: Path) -> Any:
    """Return a component, a list of components, or the settings of a report, with names written out."""
    if isinstance(part, str):
        return write_out(part, folder)
    if isinstance(part, list | tuple):
        return [_write_out_part(item, folder) for item in part]
    if not isinstance(part, Mapping):
        return part
    return {
        key: _write_out_part(value, folder) if key in ("use", "renderer", "formats") else value
        for key, value in part.items()
    }

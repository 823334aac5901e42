"""Suggests the file that was meant by a path that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

MAX_FILES = 1000  # of each folder
SIMILAR = 0.75  # least similarity, between 0 and 1
MAX_NAME = 100  # characters of a name that is compared


def suggest_file(path: Path, folder: Path) -> str:
    """Return a question that names the nearest file; empty if there is none.

    Parameters
    ----------
    path
        Path that does not exist.
    folder
        Folder where relative paths start. It, its folders, its parent and the current folder are searched.
    """
    searched = dict.fromkeys([path.parent, folder, *_list(folder, folders=True), folder.parent, Path.cwd()])
    files: dict[str, Path] = {}
    by_stem: dict[str, Path] = {}  # all files of a kind share their suffix, so it does not make names similar
    for each in searched:
        for found in _list(each):
            files.setdefault(found.name, found)
            by_stem.setdefault(found.stem, found)
    close = get_close_matches(path.stem[:MAX_NAME], by_stem, n=1, cutoff=SIMILAR)
    if path.name not in files and not close:
        return ""
    file = files[path.name] if path.name in files else by_stem[close[0]]
    return f"did you mean {file.relative_to(folder) if file.is_relative_to(folder) else file}?"


def _list(folder: Path, *, folders: bool = False) -> Iterator[Path]:
    try:
        yield from (file for file in islice(folder.iterdir(), MAX_FILES) if file.is_dir() == folders)
    except OSError:  # no folder, or one that cannot be read
        return

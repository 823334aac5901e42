"""The installed name, or the file, that is nearest to a name that nothing has."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

MAX_NAME = 100  # characters of a misspelled name that are compared
SIMILAR = 0.75  # least similarity, between 0 and 1
OF_FEW = 0.6  # the same for names of which there are few, so that another one is hardly meant


def find_nearest(use: str, names: Iterable[str], similar: float = SIMILAR) -> str:
    """Return the name that was probably meant; empty if none is similar.

    Capital letters, hyphens, slashes and a missing or wrong plugin do not matter.

    Examples
    --------
    >>> find_nearest("LSA", ["classic.lsa", "controls.null"]), find_nearest("controls.nul", ["controls.null"])
    ('classic.lsa', 'controls.null')
    """
    written = _normalize(use[:MAX_NAME].replace("/", ".").replace(" ", "_")).removeprefix("peekbench_")
    by_name = {_normalize(name): name for name in names}
    by_last_name: dict[str, str] = {}
    for key, name in by_name.items():
        by_last_name.setdefault(key.rpartition(".")[2], name)
    choices = ((written, by_name), (written.rpartition(".")[2], by_last_name))
    for key, among in choices:
        if key in among:
            return among[key]
    for key, among in choices:
        # Names of another length cannot be similar, and are many times as fast to leave out here.
        possible = [name for name in among if 2 * min(len(name), len(key)) >= similar * (len(name) + len(key))]
        if close := get_close_matches(key, possible, n=1, cutoff=similar):
            return among[close[0]]
    return ""


def find_nearest_file(name: str, names: Iterable[str]) -> str:
    """Return the file that was probably meant; empty if none is similar.

    Names are compared without their suffix, because all files of a kind share it.

    Examples
    --------
    >>> find_nearest_file("smal.yml", ["small.yaml", "x.yaml"]), find_nearest_file("a.yaml", ["x.yaml"])
    ('small.yaml', '')
    """
    by_stem: dict[str, str] = {}
    for candidate in sorted(names, key=lambda candidate: Path(candidate).suffix != Path(name).suffix):
        by_stem.setdefault(_stem(candidate), candidate)
    close = get_close_matches(_stem(name)[:MAX_NAME], by_stem, n=1, cutoff=SIMILAR)
    return by_stem[close[0]] if close else ""


def _stem(name: str) -> str:
    """Return a name without the suffix of a file, which starts with a letter: '2' is none in 'tapt-1.2'."""
    stem = name if not Path(name).suffix[1:2].isalpha() else Path(name).stem
    return _normalize(stem).removeprefix("peekbench_")


def _normalize(name: str) -> str:
    return name.lower().replace("-", "_")

"""Finds the files of modules, and what they import, without importing them."""

from __future__ import annotations

import ast
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path

from peekbench.errors import PluginError
from peekbench.plugins.references import REFERENCE

SUFFIXES = (".py", *EXTENSION_SUFFIXES)
STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
FOLDERS_OF_LIBRARIES = {"site-packages", "dist-packages"}


def is_installed(path: Path) -> bool:
    """Return whether a file or folder is of an installed library, rather than of the user.

    An environment that sees the packages of another one has several folders of libraries. A `.pth` file can name
    others, which have the metadata of their libraries.
    """
    path = path.resolve()
    return (
        path.is_relative_to(STANDARD_LIBRARY)
        or not FOLDERS_OF_LIBRARIES.isdisjoint(path.parts)
        or not _folders_of_libraries(tuple(sys.path)).isdisjoint(path.parents)
    )


@lru_cache(maxsize=16)
def _folders_of_libraries(paths: tuple[str, ...]) -> frozenset[Path]:
    return frozenset(folder for path in paths if any((folder := Path(path).resolve()).glob("*.dist-info")))


def locate(name: str, folders: Sequence[str] | None = None) -> tuple[str, Path] | None:
    """Return the package or module that holds what a dotted name means, with its folder, file or archive.

    Packages without a file of their own are namespaces, which several distributions may share, so the package or module
    below them counts. Nothing is imported.

    Parameters
    ----------
    name
        Such as 'package.module.function'.
    folders
        Folders from which it is imported; by default, those of this process.
    """
    parts = name.split(".")
    path = folders
    for end in range(1, len(parts) + 1):
        module = ".".join(parts[:end])
        loaded = sys.modules.get(module) if folders is None else None
        finders = sys.meta_path if folders is None else [PathFinder]
        specs = (finder.find_spec(module, path) for finder in finders if loaded is None)
        spec = next(filter(None, specs), None)
        if file := getattr(loaded, "__file__", None) or (spec and spec.has_location and spec.origin):
            place = Path(file).parent if Path(file).name.partition(".")[0] == "__init__" else Path(file)
            archives = [] if place.exists() else [parent for parent in place.parents if parent.is_file()]
            return module, (archives or [place])[0]
        path = list(getattr(loaded, "__path__", None) or getattr(spec, "submodule_search_locations", None) or ())
        if not path:
            return None
    return None


def root_of(module: str, place: Path) -> Path:
    """Return the folder from which a module is imported."""
    return place.parents[module.count(".")]


def find_files(module: str, place: Path) -> dict[str, Path]:
    """Return the files of a module or of a whole package by their path below the folder from which it is imported."""
    if place.is_file():  # a module, or an archive of which each file counts
        name = place.relative_to(root_of(module, place)).as_posix() if place.name.endswith(SUFFIXES) else place.name
        return {name: place}
    paths = [path for path in place.rglob("*") if path.name.endswith(SUFFIXES) and path.is_file()]
    names = {path.relative_to(root_of(module, place)): path for path in paths}
    return {  # other names, such as those of the backups of editors, cannot be imported
        name.as_posix(): path
        for name, path in names.items()
        if all(part.partition(".")[0].isidentifier() for part in name.parts)
    }


def find_local_files(root: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return the files below a folder of modules and of all that these import, by their path below the folder.

    Installed libraries take precedence over files and folders of the same name.
    """
    left, done = list(names), set()
    files: dict[str, Path] = {}
    while left:
        found = locate(left.pop(), [str(root)])
        if found is None or found[0] in done:
            continue
        done.add(found[0])
        if is_library(found[0].partition(".")[0]):
            continue
        new = find_files(*found)
        files |= new
        left += [name for path in new.values() for name in needed_modules(read_code(path))]
    return files


def is_library(name: str) -> bool:
    """Return whether a module or package of the first level is in the standard library or installed."""
    if name in sys.stdlib_module_names:
        return True
    found = locate(name)
    return found is not None and is_installed(found[1])


def read_code(path: Path) -> bytes:
    """Return the content of a file on which results depend.

    Raises
    ------
    PluginError
        If it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise PluginError(
            f"cannot read {path}: {error.strerror}; correct its permissions, because results depend on this code"
        ) from error


def imported_modules(content: bytes) -> frozenset[str]:
    """Return the dotted names that the content of a file imports anywhere; none if it is not valid Python."""
    return _read(content)[0]


def needed_modules(content: bytes) -> frozenset[str]:
    """Return the dotted names that the content of a file imports, and the modules that it names by reference."""
    return frozenset().union(*_read(content))


@lru_cache(maxsize=2048)
def _read(content: bytes) -> tuple[frozenset[str], frozenset[str]]:
    with warnings.catch_warnings(action="ignore"):  # the interpreter warns when it imports the module
        try:
            nodes = list(ast.walk(ast.parse(content)))
        except (SyntaxError, ValueError):
            return frozenset(), frozenset()
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    absolute = [node for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return (
        frozenset(names | {f"{node.module}.{alias.name}" for node in absolute for alias in node.names}),
        frozenset(text.partition(":")[0] for text in texts if REFERENCE.fullmatch(text)),
    )

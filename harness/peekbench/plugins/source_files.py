"""The source files of modules, and the names that they import. Nothing is imported."""

from __future__ import annotations

import ast
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from pathlib import Path
from pkgutil import get_importer
from typing import Any

from peekbench.errors import PluginError
from peekbench.plugins.names import FILE

REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
"""Name of a callable in a module."""
SUFFIXES = (FILE, *EXTENSION_SUFFIXES)
STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
FOLDERS_OF_LIBRARIES = {"site-packages", "dist-packages"}


def is_installed(path: Path) -> bool:
    """Return whether a file or folder is of an installed library, rather than of the user."""
    path = path.resolve()
    return path.is_relative_to(STANDARD_LIBRARY) or not FOLDERS_OF_LIBRARIES.isdisjoint(path.parts)


def find_specs(name: str, folders: Sequence[str] | None = None) -> Iterator[ModuleSpec]:
    """Iterate over the packages that a dotted name means, up to a module, without importing them.

    Parameters
    ----------
    name
        Such as 'package.module.function'.
    folders
        Folders from which it is imported; by default, those of this process.
    """
    path = folders
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        module = ".".join(parts[:end])
        spec = None
        if folders is None:
            spec = getattr(sys.modules.get(module), "__spec__", None)
        if spec is None:
            spec = _find_spec(module, path)
        if spec is None:
            return
        yield spec
        if spec.submodule_search_locations is None:
            return
        path = list(spec.submodule_search_locations)


def _find_spec(module: str, folders: Sequence[str] | None) -> ModuleSpec | None:
    """Return the specification of a module in some folders, or at the first level."""
    specs: list[ModuleSpec | None]
    if folders is None:
        specs = [finder.find_spec(module, None) for finder in sys.meta_path]
    else:
        finders: Iterator[Any] = filter(None, map(get_importer, folders))
        specs = [finder.find_spec(module) for finder in finders]
    found = [spec for spec in specs if spec is not None]
    for spec in found:
        if spec.loader is not None:
            return spec
    if not found:
        return None
    namespace = ModuleSpec(module, None)
    namespace.submodule_search_locations = [
        folder for spec in found for folder in spec.submodule_search_locations or ()
    ]
    return namespace


def locate(name: str, folders: Sequence[str] | None = None) -> tuple[str, Path] | None:
    """Return the package or module that holds what a dotted name means, with its folder or file.

    Packages without a file of their own are namespaces, which several distributions may share, so the package or module
    below them counts. Nothing is imported; see `find_specs`.
    """
    for spec in find_specs(name, folders):
        if spec.has_location and spec.origin:
            place = Path(spec.origin)
            if place.name.partition(".")[0] == "__init__":
                place = place.parent
            return spec.name, place
    return None


def root_of(module: str, place: Path) -> Path:
    """Return the folder from which a module is imported."""
    return place.parents[module.count(".")]


def find_files(module: str, place: Path) -> dict[str, Path]:
    """Return the files of a module or of a whole package by their path below the folder from which it is imported."""
    if place.is_file():
        return {place.relative_to(root_of(module, place)).as_posix(): place}
    paths = [path for path in place.rglob("*") if path.name.endswith(SUFFIXES) and path.is_file()]
    names = {path.relative_to(root_of(module, place)): path for path in paths}
    return {  # other names, such as those of the backups of editors, cannot be imported
        name.as_posix(): path
        for name, path in names.items()
        if all(part.partition(".")[0].isidentifier() for part in name.parts)
    }


def find_local_files(root: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return the files below a folder of modules and of all that these import, by their path below the folder."""
    left = list(names)
    files: dict[str, Path] = {}
    while left:
        if found := locate(left.pop(), [str(root)]):
            new = {name: path for name, path in find_files(*found).items() if name not in files}
            files |= new
            left += [name for path in new.values() for name in read_imports(read_code(path))]
    return files


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


@lru_cache(maxsize=2048)
def read_imports(content: bytes) -> frozenset[str]:
    """Return the dotted names that the content of a file needs; none if it is not valid Python.

    These are the names in import statements, except relative ones, and the modules of references in texts.
    """
    with warnings.catch_warnings(action="ignore"):  # the interpreter warns when it imports the module
        try:
            nodes = list(ast.walk(ast.parse(content)))
        except (SyntaxError, ValueError):
            return frozenset()
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and REFERENCE.fullmatch(node.value):
            names.add(node.value.partition(":")[0])
    return frozenset(names)

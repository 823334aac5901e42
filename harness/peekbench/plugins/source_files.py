"""Finds the files of modules, and what they import, without importing them."""

from __future__ import annotations

import ast
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import resolve_name
from pathlib import Path
from pkgutil import get_importer
from typing import Any, NamedTuple

from peekbench.errors import PluginError
from peekbench.plugins.references import REFERENCE, Reference, find_reference, iterate_callables, missing_remedy

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
    specs: list[Any]
    if folders is None:
        specs = [finder.find_spec(module, None) for finder in sys.meta_path]
    else:
        specs = [finder.find_spec(module) for finder in map(get_importer, folders) if finder is not None]
    specs = [spec for spec in specs if spec is not None]
    for spec in specs:
        if spec.loader is not None:
            return spec
    if not specs:
        return None
    namespace = ModuleSpec(module, None)
    namespace.submodule_search_locations = [folder for spec in specs for folder in spec.submodule_search_locations]
    return namespace


def locate(name: str, folders: Sequence[str] | None = None) -> tuple[str, Path] | None:
    """Return the package or module that holds what a dotted name means, with its folder, file or archive.

    Packages without a file of their own are namespaces, which several distributions may share, so the package or module
    below them counts. Nothing is imported; see `find_specs`.
    """
    for spec in find_specs(name, folders):
        if spec.has_location and spec.origin:
            place = Path(spec.origin)
            if place.name.partition(".")[0] == "__init__":
                place = place.parent
            archives = [parent for parent in place.parents if parent.is_file()]
            return spec.name, (archives or [place])[0]
    return None


def find_reference_error(reference: Reference) -> str:
    """Describe what is wrong with a reference, without importing a module; empty if nothing is found."""
    if not REFERENCE.fullmatch(reference.target):
        return "is not of the form 'package.module:function'"
    module = reference.target.partition(":")[0]
    if module == "__main__":
        return "names the module '__main__', which is another one in worker processes"
    if module in sys.modules or _find_module(module) is not None:
        return ""
    return f"names the module {module!r}, which does not exist"


def _find_module(name: str) -> ModuleSpec | None:
    """Return the specification of a module; None if there is none, or if a finder cannot tell."""
    with suppress(Exception):
        for spec in find_specs(name):
            if spec.name == name:
                return spec
    return None


def describe_missing(entry: Any) -> str:
    """Describe the first library that a module with callables of an entry imports in vain; empty if there is none.

    Nothing is imported: importing a module takes seconds, and one that crashes would end the process of the run instead
    of a worker. Only imports at the top level of modules count, because others may be optional.
    """
    for _, function in iterate_callables(entry):
        if reference := find_reference(function):
            module = reference.target.partition(":")[0]
            for library in _find_missing(module):
                return f"it needs {library}, which is not installed; {missing_remedy(library, module)}"
    return ""


def _find_missing(module: str) -> Iterator[str]:
    """Iterate over the libraries that are missing to a module, or to modules of its package or of this project."""
    package = module.partition(".")[0]
    left, done = [module], set[str]()
    while left:
        name = left.pop()
        top = name.partition(".")[0]
        is_own = top == package or top.startswith("peekbench_")
        if not is_own:
            name = top
        if name in done:
            continue
        done.add(name)
        if is_own:
            left += _needed_at_import(name)
        elif name not in sys.modules and _find_module(name) is None:
            yield name


def _needed_at_import(module: str) -> list[str]:
    """Return the dotted names that the file of a module imports at its top level; none if its import will fail."""
    spec = _find_module(module)
    if spec is None or not str(spec.origin).endswith(".py"):
        return []
    with suppress(OSError, ImportError):
        names = _read(Path(str(spec.origin)).read_bytes()).at_top
        return [resolve_name(name, spec.parent) for name in names]
    return []


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


class Imports(NamedTuple):
    """Dotted names in the content of a file."""

    anywhere: frozenset[str] = frozenset()
    """Names that import statements name, except relative ones."""
    by_reference: frozenset[str] = frozenset()
    """Modules of the references in its texts."""
    at_top: frozenset[str] = frozenset()
    """Names that import statements at its top level name; relative ones begin with dots."""


def imported_modules(content: bytes) -> frozenset[str]:
    """Return the dotted names that the content of a file imports anywhere; none if it is not valid Python."""
    return _read(content).anywhere


def needed_modules(content: bytes) -> frozenset[str]:
    """Return the dotted names that the content of a file imports, and the modules that it names by reference."""
    imports = _read(content)
    return imports.anywhere | imports.by_reference


@lru_cache(maxsize=2048)
def _read(content: bytes) -> Imports:
    with warnings.catch_warnings(action="ignore"):  # the interpreter warns when it imports the module
        try:
            tree = ast.parse(content)
        except (SyntaxError, ValueError):
            return Imports()
    nodes = list(ast.walk(tree))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return Imports(
        frozenset(name for node in nodes for name in _imported(node) if not name.startswith(".")),
        frozenset(text.partition(":")[0] for text in texts if REFERENCE.fullmatch(text)),
        frozenset(name for node in tree.body for name in _imported(node)),
    )


def _imported(node: ast.AST) -> list[str]:
    """Return the dotted names that an import statement names: what it imports can be modules."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    start = "." * node.level
    if node.module:
        start += f"{node.module}."
    return [f"{start}{alias.name}" for alias in node.names]

"""Finds and reads the files of modules without importing them."""

from __future__ import annotations

import ast
import hashlib
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import all_suffixes
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from peekbench.errors import PluginError

SUFFIXES = frozenset(all_suffixes())


class Import(NamedTuple):
    """One name that a file imports."""

    num_dots: int
    """Number of leading dots, which make an import relative."""
    name: str
    """Such as 'package.module' or 'package.module.function'."""


@dataclass(frozen=True, slots=True)
class CodeUnit:
    """A module, or a whole package: what an import statement can find without running code."""

    name: str
    """Full name, such as 'namespace.package'."""
    paths: tuple[Path, ...]
    """File of the module, or folder of the package. A namespace package can have several folders."""
    is_namespace: bool = False
    """Whether this is a package without an `__init__` file."""

    @property
    def import_folder(self) -> Path:
        """Folder from which the module is imported, such as `site-packages`."""
        return self.paths[0].parents[self.name.count(".")]

    def files(self) -> Iterator[tuple[str, Path]]:
        """Iterate over the files with code: their path below the import folder and their full path."""
        parent = self.name.replace(".", "/")
        for path in self.paths:
            if path.is_dir():
                yield from _walk(path, parent, frozenset())
            else:
                yield "/".join([*self.name.split(".")[:-1], path.name]), path


def _walk(folder: Path, name: str, parents: frozenset[Path]) -> Iterator[tuple[str, Path]]:
    """Iterate over the importable files below a folder; other names, such as those of editors' backups, cannot be."""
    if (resolved := folder.resolve()) in parents:  # a link to a parent folder
        return
    for path in sorted(folder.iterdir()):
        stem, dot, suffix = path.name.partition(".")
        if not stem.isidentifier():
            continue
        if dot + suffix in SUFFIXES and path.is_file():
            yield f"{name}/{path.name}", path
        elif not dot and path.is_dir():
            yield from _walk(path, f"{name}/{path.name}", parents | {resolved})


def find_unit(module: str) -> CodeUnit | None:
    """Return the outermost package that has a file, or the module, on the path to a module.

    Parameters
    ----------
    module
        Name such as 'package.module'. It may end with the name of something else, such as a function.

    Returns
    -------
    CodeUnit or None
        The module or package. A namespace package only if the name ends there. None if nothing is found, and for
        modules without a file, such as `sys`.

    Examples
    --------
    >>> find_unit("peekbench.records.data").name
    'peekbench'
    """
    name, *parts = module.split(".")
    loaded = sys.modules.get(name)
    spec = None if loaded else find_spec(name)
    file = getattr(loaded, "__file__", None) or (spec and spec.has_location and spec.origin)
    if file:
        return CodeUnit(name, (_module_path(Path(file)),))
    folders = [Path(folder) for folder in getattr(loaded, "__path__", None) or _search_locations(spec)]
    for part in parts:
        name = f"{name}.{part}"
        if path := next(filter(None, (_find_module(folder, part) for folder in folders)), None):
            return CodeUnit(name, (path,))
        folders = [folder / part for folder in folders]
    folders = [folder for folder in folders if folder.is_dir()]
    return CodeUnit(name, tuple(folders), is_namespace=True) if folders else None


def _search_locations(spec: object) -> list[str]:
    return list(getattr(spec, "submodule_search_locations", None) or ())


def _module_path(file: Path) -> Path:
    """Return the folder of a package, the file of another module, or the archive that contains the module."""
    archive = next((path for path in (file, *file.parents) if path.is_file()), file)
    if archive != file:
        return archive
    return file.parent if file.name.partition(".")[0] == "__init__" else file


def _find_module(folder: Path, name: str) -> Path | None:
    """Return the folder of a package with an `__init__` file, or the file of a module; None if there is neither."""
    if any((folder / name / f"__init__{suffix}").is_file() for suffix in SUFFIXES):
        return folder / name
    return next((path for suffix in sorted(SUFFIXES) if (path := folder / f"{name}{suffix}").is_file()), None)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file. An unchanged file is read once per process.

    Raises
    ------
    PluginError
        If the file cannot be read.
    """
    return _hash(*_state(path))


def find_imports(path: Path) -> tuple[Import, ...]:
    """Return what a file with code imports anywhere; nothing for files that are not Python or have wrong syntax.

    Raises
    ------
    PluginError
        If the file cannot be read.
    """
    return _find_imports(*_state(path)) if path.suffix == ".py" else ()


def _state(path: Path) -> tuple[Path, int, int]:
    """Return a file with the time of its last change and its size, by which results on it are cached."""
    try:
        with path.open("rb"):
            state = path.stat()
    except OSError as error:
        raise PluginError(
            f"cannot read {path}: {error.strerror}; correct its permissions, because results depend on this code"
        ) from error
    return path, state.st_mtime_ns, state.st_size


@lru_cache(maxsize=8192)
def _hash(path: Path, _modified: int, _size: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@lru_cache(maxsize=8192)
def _find_imports(path: Path, _modified: int, _size: int) -> tuple[Import, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the interpreter warns when it imports the module
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            return ()
    return tuple(dict.fromkeys(each for node in ast.walk(tree) for each in _imports_of(node)))


def _imports_of(node: ast.AST) -> Iterator[Import]:
    match node:
        case ast.Import():
            yield from (Import(0, alias.name) for alias in node.names)
        case ast.ImportFrom():
            yield from (Import(node.level, f"{node.module or ''}.{alias.name}".strip(".")) for alias in node.names)
        case ast.Call(
            func=ast.Name("import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(str() as name), *_],
        ):
            yield Import(len(name) - len(name.lstrip(".")), name.lstrip("."))

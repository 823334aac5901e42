"""Finds and imports code of users that has no distribution: files, and modules beside a spec.

A file is a module of its own, named after its path and content, so an edited file is imported again. Its folder is at
the end of `sys.path`, from which Python imports the modules beside it, each once. An import that could mean modules in
two folders is refused, and so is a module that was edited after its import.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module, invalidate_caches
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import get_importer
from threading import RLock
from types import ModuleType
from typing import Any

from peekbench.errors import PluginError
from peekbench.plugins.names import FILE, GIVE_SPEC, SESSION, Code, find_nearest_file

REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
"""Name of a callable in a module."""
SUFFIXES = (FILE, *EXTENSION_SUFFIXES)
STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
FOLDERS_OF_LIBRARIES = {"site-packages", "dist-packages"}
PREFIX = "peekbench_file_"
"""Begin of the names of the modules of files."""
MAX_ERROR = 300  # characters of an error of the code
LOCK = RLock()
_folders: set[Path] = set()
"""Folders that are in `sys.path` for code in them."""
_contents: dict[Path, bytes] = {}
"""Contents of the modules beside files when they were first needed."""


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
    namespace.submodule_search_locations = [path for spec in found for path in spec.submodule_search_locations or ()]
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


def load_module(code: str) -> ModuleType:
    """Import a file or a module. A file that has changed is imported again.

    Raises
    ------
    PluginError
        If no caller gave the name, if there is no such file or module on this machine, if it cannot be imported, or if
        a module in its folder has changed or is not the only one of its name.
    """
    if not isinstance(code, Code):
        raise PluginError(f"{code.rstrip(':')} is code that only a store names, which is not imported; {GIVE_SPEC}")
    if code.module is not None:
        return code.module
    name, path = code.rstrip(":"), code.path
    if name == SESSION:
        raise PluginError(
            "only the process of a session has this function, estimator or data; use no other process, or put it into "
            "a file, as in `my_file.py:fit`"
        )
    if not name:
        raise PluginError("nothing stands before the colon; name a file or a module, as in `my_file.py:fit`")
    if path and not path.is_file():
        raise PluginError(_describe_missing_file(path))
    try:
        with LOCK:
            _prepare_imports(code)
            if path:
                return _import_file(path)
            return import_module(name)
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        if path is None and isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise PluginError(
                f"no module {name!r} on this machine; install its distribution, put it beside the spec, or name a "
                "file, as in `use: my_file.py:fit`"
            ) from error
        raise PluginError(
            f"{path or name} cannot be imported: {type(error).__name__}: {str(error)[:MAX_ERROR]}; correct the code, "
            "or install what it imports"
        ) from error


def _describe_missing_file(path: Path) -> str:
    hint = "relative paths start at the folder of the spec; copy it there"
    if near := find_nearest_file(path.name, sorted(file.name for file in path.parent.glob(f"*{FILE}"))):
        hint = f"did you mean {near}?"
    return f"no file {path} on this machine; {hint}"


def _import_file(path: Path) -> ModuleType:
    content = read_code(path)
    name = PREFIX + hashlib.sha256(os.fsencode(path) + b"\0" + content).hexdigest()[:16]
    if name not in sys.modules:
        spec = spec_from_file_location(name, path)
        assert spec is not None
        sys.modules[name] = module_from_spec(spec)
        try:
            exec(compile(content, path, "exec"), vars(sys.modules[name]))  # noqa: S102 - the caller named the file
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def _prepare_imports(code: Code) -> None:
    """Let code import modules from its folder, unless a name is ambiguous or a module was edited."""
    folder, names, files = find_modules(code)
    if code.path is None and not files:
        return  # a module that is not in the folder
    invalidate_caches()
    own = {Path(name).parts[0].partition(".")[0] for name in files}
    for top in sorted({name.partition(".")[0] for name in names}):
        _refuse_ambiguous(top, folder.resolve(), is_own=top in own)
    for path in files.values():
        content = read_code(path)
        if _contents.setdefault(path, content) != content:
            raise PluginError(f"{path} has changed since this process imported it; restart Python, or the notebook")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
        _folders.add(folder.resolve())


def find_modules(code: Code) -> tuple[Path, set[str], dict[str, Path]]:
    """Return the folder of code, the names that it and its modules there import, and the files of these modules."""
    folder, names = code.folder, {code.rstrip(":")}
    if code.path:
        folder, names = code.path.parent, set(read_imports(read_code(code.path)))
    files = find_local_files(folder, names)
    return folder, names.union(*(read_imports(read_code(path)) for path in files.values())), files


def _refuse_ambiguous(top: str, folder: Path, *, is_own: bool) -> None:
    """Refuse a name of the first level that would be imported from a folder of other code."""
    spec = next(find_specs(top), None)
    if spec is None:
        return
    places = [Path(place).resolve() for place in spec.submodule_search_locations or ()]
    if not places and spec.has_location:
        places = [Path(str(spec.origin)).resolve()]
    folders = {place.parent for place in places}
    if is_own and folders != {folder}:
        other = ", ".join(map(str, places)) or "the standard library"
        raise PluginError(f"two modules are named {top!r}: one in {folder}, and {other}; rename the first one")
    if not is_own and folders & _folders:
        raise PluginError(f"no module {top!r} in {folder}, only {places[0]}; copy it there under a name of its own")

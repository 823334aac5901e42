"""Code of users: the files of modules and what they import, and the import of code without a distribution.

Each state of a file and of the modules beside it that it imports is a package of its own in `sys.modules`, named after
the hash of their contents. Specs, cells and threads thus never meet, although their files have the same names.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from pkgutil import get_importer
from types import ModuleType
from typing import Any, NamedTuple

from peekbench.errors import PluginError
from peekbench.plugins.names import FILE, GIVE_SPEC, SESSION, Code, find_nearest_file

REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
"""Name of a callable in a module."""
SUFFIXES = (FILE, *EXTENSION_SUFFIXES)
STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
FOLDERS_OF_LIBRARIES = {"site-packages", "dist-packages"}
PACKAGE = "peekbench_code_"
"""Begin of the names of the packages of snapshots."""
MAX_ERROR = 300  # characters of an error of the code
DOT = "%2E"  # a dot in the name of a file, which in the name of a module would separate packages


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


def root_of(module: str, place: Path) -> Path:
    """Return the folder from which a module is imported."""
    return place.parents[module.count(".")]


def find_files(module: str, place: Path) -> dict[str, Path]:
    """Return the files of a module or of a whole package by their path below the folder from which it is imported."""
    if place.is_file() and not place.name.endswith(SUFFIXES):  # an archive, of which each file counts
        return {place.name: place}
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
        left += [name for path in new.values() for name in read_imports(read_code(path)).needed]
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

    @property
    def needed(self) -> frozenset[str]:
        """Names that import statements name, and the modules of references."""
        return self.anywhere | self.by_reference


@lru_cache(maxsize=2048)
def read_imports(content: bytes) -> Imports:
    """Return the names in the content of a file; none if it is not valid Python."""
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


def load_module(code: str) -> ModuleType:
    """Import a file or a module. A file that has changed is imported again.

    Raises
    ------
    PluginError
        If no caller gave the name, if there is no such file or module on this machine, or if it cannot be imported.
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
    if path is not None:
        name = path.stem.replace(".", DOT)
        _check_exists(path)
    package = ""
    try:
        root, files = _find_local_code(code)
        if files:
            package = f"{Snapshot.of(root, {file: read_code(path) for file, path in files.items()}).name}."
        return import_module(f"{package}{name}")
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(_describe_failed_import(code, error, package)) from error


def _check_exists(path: Path) -> None:
    if path.is_file():
        return
    hint = "relative paths start at the folder of the spec; copy it there"
    if near := find_nearest_file(path.name, sorted(file.name for file in path.parent.glob(f"*{FILE}"))):
        hint = f"did you mean {near}?"
    raise PluginError(f"no file {path} on this machine; {hint}")


def _describe_failed_import(code: Code, error: BaseException, package: str) -> str:
    name = code.rstrip(":")
    missing = ""
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        missing = error.name.removeprefix(package)
    if code.path is None and missing and f"{name}.".startswith(f"{missing}."):
        return (
            f"no module {name!r} on this machine; install its distribution, put it beside the spec, or name a file, as "
            "in `use: my_file.py:fit`"
        )
    remedy = "correct the code, or install what it imports"
    if missing and code.path and code.path.with_name(f"{missing}{FILE}").is_file():
        remedy = f"the file beside it needs an import statement, `import {missing}`"
    return f"{code.path or name} cannot be imported: {type(error).__name__}: {str(error)[:MAX_ERROR]}; {remedy}"


def _find_local_code(code: Code) -> tuple[Path, dict[str, Path]]:
    """Return the folder of code, and the files in it that the code needs; none if another folder has its module."""
    if path := code.path:
        return path.parent, {path.name: path, **find_local_files(path.parent, read_imports(read_code(path)).needed)}
    return code.folder, find_local_files(code.folder, [code.rstrip(":")])


def find_files_of_code(code: Code) -> dict[str, Path]:
    """Return the files of code and of the modules beside it that it needs, by their path below their folder."""
    if code.module is not None:
        return {}
    _, files = _find_local_code(code)
    found = locate(code.rstrip(":"))
    if files or found is None:
        return files
    if is_installed(root_of(*found)):
        return find_files(*found)
    return find_local_files(root_of(*found), [code.rstrip(":")])


class Snapshot:
    """One state of some files below a folder, and the package of their modules in `sys.modules`.

    The name of the package is a hash of the contents, which are all that its modules run, whatever is edited later.
    """

    def __init__(self, name: str, root: Path, contents: Mapping[str, bytes]) -> None:
        self.name, self.root, self.contents = name, root, contents
        self.parts: dict[str, Snapshot] = {}

    @classmethod
    def of(cls, root: Path, contents: Mapping[str, bytes]) -> Snapshot:
        """Return the snapshot of the contents of files, which are given by their path below a folder."""
        digest = hashlib.sha256(os.fsencode(root))
        for file, content in sorted(contents.items()):
            digest.update(b"\0%s\0%d\0%s" % (os.fsencode(file), len(content), content))
        name = f"{PACKAGE}{digest.hexdigest()[:32]}"
        package = ModuleType(name)
        package.__path__ = [str(root)]
        package.__spec__ = ModuleSpec(name, None, loader_state=cls(name, root, contents), is_package=True)
        sys.modules.setdefault(name, package)
        snapshot = cls.find(name)
        assert snapshot is not None
        return snapshot

    @classmethod
    def find(cls, module: str) -> Snapshot | None:
        """Return the snapshot to whose package a module belongs; None if it is no module of a snapshot."""
        package = sys.modules.get(module.partition(".")[0])
        state = getattr(getattr(package, "__spec__", None), "loader_state", None)
        if isinstance(state, cls):
            return state
        return None

    @cached_property
    def tops(self) -> Set[str]:
        """Modules and packages of the first level that the modules import from here."""
        return {top for top in map(_top, self.contents) if not is_library(top)}

    def import_(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - parameters of `__import__`
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import a module for one of this package: `__import__`, except for modules of the same folder."""
        top = name.partition(".")[0]
        if level or top not in self.tops:
            return builtins.__import__(name, globals, locals, fromlist, level)
        package = self.part(top).name
        module = builtins.__import__(f"{package}.{name}", fromlist=fromlist)
        if fromlist:
            return module
        return sys.modules[f"{package}.{top}"]

    def part(self, top: str) -> Snapshot:
        """Return the snapshot of a module and all that it needs, which all that import this module share."""
        if top not in self.parts:
            left, names = [top], set[str]()
            while left:
                if (name := left.pop()) in self.tops - names:
                    names.add(name)
                    contents = [content for file, content in self.contents.items() if _top(file) == name]
                    left += [_top(imported) for content in contents for imported in read_imports(content).needed]
            contents_of = {file: content for file, content in self.contents.items() if _top(file) in names}
            self.parts[top] = Snapshot.of(self.root, contents_of)
        return self.parts[top]

    def find_spec(self, name: str) -> ModuleSpec | None:
        """Return how to import a module of this package, or raise an error if it has no such module."""
        place = name.partition(".")[2].replace(".", "/").replace(DOT, ".")
        for file in (f"{place}/__init__.py", f"{place}.py"):
            if file in self.contents:
                loader = _Loader(self, self.root / file, self.contents[file])
                return spec_from_file_location(name, self.root / file, loader=loader)
        for suffix in EXTENSION_SUFFIXES:
            if f"{place}{suffix}" in self.contents:
                return spec_from_file_location(name, self.root / f"{place}{suffix}")
        if not any(file.startswith(f"{place}/") for file in self.contents):
            raise ModuleNotFoundError(f"No module named {name.partition('.')[2]!r}", name=name)
        return ModuleSpec(name, None, is_package=True)  # a namespace


def _top(name: str) -> str:
    """Return the first level of the path of a file, or of the dotted name of a module."""
    return name.partition("/")[0].partition(".")[0]


class _Loader(SourceLoader):
    """Executes a content, in whose import statements the modules of its snapshot come first."""

    def __init__(self, snapshot: Snapshot, path: Path, content: bytes) -> None:
        self.snapshot, self.path, self.content = snapshot, str(path), content

    def get_filename(self, fullname: str) -> str:
        """Return the path of the file."""
        return self.path

    def get_data(self, path: str | bytes) -> bytes:
        """Return the content."""
        return self.content

    def exec_module(self, module: ModuleType) -> None:
        """Execute the content."""
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": self.snapshot.import_}
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds the modules of snapshots; it has no state."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to import a module; None if it is of no snapshot."""
        if "." in fullname and (snapshot := Snapshot.find(fullname)):
            return snapshot.find_spec(fullname)
        return None


sys.meta_path.insert(0, _Finder())


def complete_target(target: str, module: ModuleType) -> str:
    """Return a reference in a module with the full name of the module that it means there."""
    snapshot, top = Snapshot.find(module.__name__), _top(target.partition(":")[0])
    if snapshot is None or top not in snapshot.tops:
        return target
    return f"{snapshot.part(top).name}.{target}"


def find_pickled_snapshots(content: bytes) -> list[tuple[Path, Mapping[str, bytes]]]:
    """Return the arguments of `Snapshot.of` for the snapshots that another process needs to unpickle objects."""
    names = [name for name in list(sys.modules) if name.startswith(PACKAGE) and name.encode() in content]
    snapshots = [snapshot for name in names if "." not in name and (snapshot := Snapshot.find(name))]
    return [(snapshot.root, snapshot.contents) for snapshot in snapshots]

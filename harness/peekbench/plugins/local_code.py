"""Code without a distribution that a spec names: `my_file.py:fit` in a file, `package.module:fit` in a module.

A name of code is a value, `Code`: the text in the spec, with the folder where it starts. Only such a value can be
imported. A name that is mere text, such as one that was read from the store of somebody else, imports nothing.

Each state of a file and of the modules beside it that it imports is a package of its own in `sys.modules`, named after
the hash of their contents. Specs, cells and threads thus never meet, although their files have the same names.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from importlib import import_module
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from peekbench.errors import PluginError
from peekbench.plugins.similar_names import find_nearest_file
from peekbench.plugins.source_files import (
    find_files,
    find_local_files,
    is_installed,
    is_library,
    locate,
    needed_modules,
    read_code,
    root_of,
)

FILE = ".py"
PACKAGE = "peekbench_code_"
"""Begin of the names of the packages of snapshots."""
SESSION = "__main__"
"""Module of what only this process has: functions, estimators and data of a notebook or a script."""
MAX_ERROR = 300  # characters of an error of the code
DOT = "%2E"  # a dot in the name of a file, which in the name of a module would separate packages
GIVE_SPEC = "if you trust it, give the spec of the run instead of its name or store, or name the code yourself"


class Code(str):
    """Name of code that the caller gave, with the folder where it starts. It is equal to the same text.

    Parameters
    ----------
    text
        Name as in a spec, `my_file.py:fit`, or only the file or module.
    folder
        Folder where relative paths start, and where modules are searched. Codes of different folders differ.
    module
        Module that holds what only this process has. Other processes get the name without it.
    digest
        Hash of the content of the module, if something compares it.

    Examples
    --------
    >>> Code("my_file.py:fit", Path("/a")) == Code("my_file.py:fit", Path("/b"))
    False
    >>> Code("my_file.py", Path("/a")).path
    PosixPath('/a/my_file.py')
    """

    __slots__ = ("digest", "folder", "module")

    folder: Path
    module: ModuleType | None
    digest: str

    def __new__(cls, text: str, folder: Path, module: ModuleType | None = None, digest: str = "") -> Code:
        """Make a name of code."""
        code = super().__new__(cls, text)
        code.folder, code.module, code.digest = folder, module, digest
        return code

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same text, and start at the same folder if both have one."""
        if isinstance(other, Code) and (other.folder, other.module) != (self.folder, self.module):
            return False
        return str.__eq__(self, other)  # the same text: stores keep nothing else

    def __ne__(self, other: object) -> bool:
        """Return whether they differ; see `__eq__`."""
        return not self == other

    __hash__ = str.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the text and the folder."""
        return Code, (str(self), self.folder)

    @property
    def path(self) -> Path | None:
        """Full path of the file; None for a module."""
        file, mark, _ = self.rpartition(":")
        file = file if mark else str(self)
        return self.folder / Path(file).expanduser() if file.endswith(FILE) else None


def locate_code(use: str, folder: Path) -> str:
    """Return a name that the caller gives with the folder where it starts; the names of plugins as they are.

    The same file always has the same name: relative to the folder if it is below it.

    Examples
    --------
    >>> locate_code("./my_file.py:fit", Path("/a")), locate_code("/a/my_file.py:fit", Path("/a"))
    ('my_file.py:fit', 'my_file.py:fit')
    """
    if isinstance(use, Code) or not names_code(use):
        return use
    file, _, name = use.rpartition(":")
    if file.endswith(FILE):
        path = Path(file)
        file = (path.relative_to(folder.absolute()) if path.is_relative_to(folder.absolute()) else path).as_posix()
    return Code(f"{file}:{name}", folder.absolute())


def hold(thing: object, name: str, digest: str = "") -> Code:
    """Return a name for a function, an estimator or data that only this process has."""
    module = ModuleType(SESSION)
    setattr(module, name, thing)
    return Code(f"{SESSION}:{name}", Path.cwd(), module, digest)


def names_code(use: str) -> bool:
    """Return whether a name in a spec means code without a plugin.

    Examples
    --------
    >>> names_code("my_file.py:fit"), names_code("classic.lsa")
    (True, False)
    """
    return ":" in use


def is_refused(use: str) -> bool:
    """Return whether a name means code that no caller gave, such as one in the store of somebody else.

    Examples
    --------
    >>> is_refused("evil.py:analyze"), is_refused("summary"), is_refused(locate_code("my_file.py:analyze", Path("/a")))
    (True, False, False)
    """
    return names_code(use) and not isinstance(use, Code)


def split_code(use: str) -> tuple[str, str]:
    """Split the name of code into the file or module, and the name in it.

    A module without a dot keeps its colon, so that it differs from the name of a plugin.

    Examples
    --------
    >>> split_code("package.module:fit"), split_code("module:fit")
    (('package.module', 'fit'), ('module:', 'fit'))
    """
    code, _, name = use.rpartition(":")
    code = code if is_code(code) else f"{code}:"
    return (Code(code, use.folder, use.module, use.digest) if isinstance(use, Code) else code), name


def is_code(plugin: str) -> bool:
    """Return whether the first part of a split name is a file or a module; names of plugins have neither mark."""
    return any(mark in plugin for mark in ".:")


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
    name = code.rstrip(":")
    if name == SESSION:
        raise PluginError(
            "only the process of a session has this function, estimator or data; use no other process, or put it into "
            "a file, as in `my_file.py:fit`"
        )
    if not name:
        raise PluginError("nothing stands before the colon; name a file or a module, as in `my_file.py:fit`")
    try:
        return _import_module(name, code.folder) if code.path is None else _import_file(code, code.path)
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        remedy = "correct the code, or install what it imports"
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and code.path and code.path.with_name(f"{missing}{FILE}").is_file():
            remedy = f"the file beside it needs an import statement, `import {missing}`"
        raise PluginError(
            f"{code.path or name} cannot be imported: {type(error).__name__}: {str(error)[:MAX_ERROR]}; {remedy}"
        ) from error


def _import_module(name: str, folder: Path) -> ModuleType:
    files = find_local_files(folder, [name])
    package = f"{_take_snapshot(folder, files).name}." if files else ""
    try:
        return import_module(f"{package}{name}")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name.removeprefix(package)}."):
            raise
        raise PluginError(
            f"no module {name!r} on this machine; install its distribution, put it beside the spec, or name a file, as "
            "in `use: my_file.py:fit`"
        ) from error


def _import_file(code: Code, path: Path) -> ModuleType:
    if not path.is_file():
        others = sorted(folder.name for folder in path.parent.glob(f"*{FILE}")) if path.parent.is_dir() else []
        near = find_nearest_file(path.name, others)
        hint = f"did you mean {near}?" if near else "relative paths start at the folder of the spec; copy it there"
        raise PluginError(f"no file {path} on this machine; {hint}")
    snapshot = _take_snapshot(path.parent, find_files_of_code(code))
    return import_module(f"{snapshot.name}.{path.stem.replace('.', DOT)}")


def _take_snapshot(root: Path, files: Mapping[str, Path]) -> Snapshot:
    return Snapshot.of(root, {name: read_code(path) for name, path in files.items()})


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
        return state if isinstance(state, cls) else None

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
        return module if fromlist else sys.modules[f"{package}.{top}"]

    def part(self, top: str) -> Snapshot:
        """Return the snapshot of a module and all that it needs, which all that import this module share."""
        if top not in self.parts:
            left, names = [top], set[str]()
            while left:
                if (name := left.pop()) in self.tops - names:
                    names.add(name)
                    contents = [content for file, content in self.contents.items() if _top(file) == name]
                    left += [_top(imported) for content in contents for imported in needed_modules(content)]
            contents_of = {file: content for file, content in self.contents.items() if _top(file) in names}
            self.parts[top] = Snapshot.of(self.root, contents_of)
        return self.parts[top]

    def find_spec(self, name: str) -> ModuleSpec | None:
        """Return how to import a module of this package, or raise an error if it has no such module."""
        place = name.partition(".")[2].replace(".", "/").replace(DOT, ".")
        for file in (f"{place}/__init__.py", f"{place}.py"):
            if file in self.contents:
                path = self.root / file
                folders = [str(path.parent)] if path.stem == "__init__" else None
                loader = _Loader(self, path, self.contents[file])
                return spec_from_file_location(name, path, loader=loader, submodule_search_locations=folders)
        for file in (f"{place}{suffix}" for suffix in EXTENSION_SUFFIXES):
            if file in self.contents:
                return spec_from_file_location(name, self.root / file)
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
        snapshot = Snapshot.find(fullname) if "." in fullname else None
        return snapshot.find_spec(fullname) if snapshot else None


sys.meta_path.insert(0, _Finder())


def find_files_of_code(code: Code) -> dict[str, Path]:
    """Return the files of code and of the modules beside it that it needs, by their path below their folder."""
    if code.module is not None:
        return {}
    if path := code.path:
        return {path.name: path, **find_local_files(path.parent, needed_modules(read_code(path)))}
    name = code.rstrip(":")
    if (files := find_local_files(code.folder, [name])) or (found := locate(name)) is None:
        return files
    return find_files(*found) if is_installed(root_of(*found)) else find_local_files(root_of(*found), [name])


def complete_target(target: str, module: ModuleType) -> str:
    """Return a reference in a module with the full name of the module that it means there."""
    snapshot, top = Snapshot.find(module.__name__), _top(target.partition(":")[0])
    return f"{snapshot.part(top).name}.{target}" if snapshot and top in snapshot.tops else target


def find_pickled_snapshots(content: bytes) -> list[tuple[Path, Mapping[str, bytes]]]:
    """Return the arguments of `Snapshot.of` for the snapshots that another process needs to unpickle objects."""
    names = [name for name in list(sys.modules) if name.startswith(PACKAGE) and name.encode() in content]
    snapshots = [snapshot for name in names if "." not in name and (snapshot := Snapshot.find(name))]
    return [(snapshot.root, snapshot.contents) for snapshot in snapshots]


def split_name(use: str) -> tuple[str, str]:
    """Split `plugin.thing` into the two names; a plugin's name alone means its entry of the same name.

    Examples
    --------
    >>> split_name("classic.lsa")
    ('classic', 'lsa')
    >>> split_name("summary")
    ('summary', 'summary')
    >>> split_name("my_file.py:fit")
    ('my_file.py', 'fit')
    """
    if names_code(use):
        return split_code(use)
    plugin, dot, entry_name = use.partition(".")
    return plugin, entry_name if dot else plugin


def join_name(plugin: str, entry_name: str) -> str:
    """Return the shortest name that a spec can use for an entry of a plugin.

    Examples
    --------
    >>> join_name("classic", "lsa"), join_name("summary", "summary")
    ('classic.lsa', 'summary')
    """
    if is_code(plugin):
        return f"{plugin.rstrip(':')}:{entry_name}"
    return plugin if entry_name == plugin else f"{plugin}.{entry_name}"

"""Code without a distribution that a spec names: `my_file.py:fit` in a file, `package.module:fit` in a module.

Relative paths of files start at the folder of the spec. The folder is also searched for modules, after all others, so
that a file can import the files beside it.

Code that only a store names is not imported: the store of somebody else must not run code on this machine. Code that
the caller names, in a spec or otherwise, is.
"""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from peekbench.errors import PluginError
from peekbench.plugins.similar_names import find_nearest_file

FILE = ".py"
SESSION = "session_"
"""Begin of the names of what only this process has."""
MAX_ERROR = 300  # characters of an error of the code
STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
FOLDERS_OF_LIBRARIES = {"site-packages", "dist-packages"}
GIVE_SPEC = "if you trust it, give the spec of the run instead of its name or store, or name the code yourself"

_named: set[str] = set()
"""Files and modules that callers named, as `split_code` returns them."""
_distrusted: set[str] = set()
"""Files and modules that only stores name."""
_paths: dict[str, Path] = {}
"""Files by name, as the present spec means them."""
_given: dict[str, ModuleType] = {}
"""Modules that hold functions and estimators of this session, by name."""
_modules: dict[Path, tuple[dict[Path, tuple[int, int]], ModuleType]] = {}
"""Modules made from files, with the times of the last changes and the sizes of the file and those that it imports."""
_helpers: dict[str, Path] = {}
"""Modules beside files that the files import, with their folders."""
_folders: list[str] = []
"""Folders of specs that are searched for modules."""


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


def names_code(use: str) -> bool:
    """Return whether a name in a spec means code without a plugin.

    Examples
    --------
    >>> names_code("my_file.py:fit"), names_code("classic.lsa")
    (True, False)
    """
    return ":" in use


def split_code(use: str) -> tuple[str, str]:
    """Split the name of code into the file or module, and the name in it.

    A module without a dot keeps its colon, so that it differs from the name of a plugin.

    Examples
    --------
    >>> split_code("package.module:fit"), split_code("module:fit")
    (('package.module', 'fit'), ('module:', 'fit'))
    """
    code, _, name = use.rpartition(":")
    return (code if is_code(code) else f"{code}:"), name


def is_code(plugin: str) -> bool:
    """Return whether the first part of a split name is a file or a module; names of plugins have neither mark."""
    return any(mark in plugin for mark in ".:")


def with_full_path(use: str) -> str:
    """Return the name of code with the full path of its file, which means the same file for any spec.

    Examples
    --------
    >>> with_full_path("/project/my_file.py:fit"), with_full_path("classic.lsa")
    ('/project/my_file.py:fit', 'classic.lsa')
    """
    code, name = split_code(use) if names_code(use) else ("", "")
    return f"{find_file(code)}:{name}" if code.endswith(FILE) else use


def bind(uses: Iterable[str], folder: Path) -> None:
    """Let code that the caller names be imported, and the relative paths of its files start at a folder."""
    for use in uses:
        if names_code(use):
            code, _ = split_code(use)
            _named.add(code)
            _distrusted.discard(code)
            _search((folder / Path(code).expanduser()).absolute().parent if code.endswith(FILE) else folder.absolute())
            if code.endswith(FILE):
                _paths[code] = (folder / Path(code).expanduser()).absolute()


def distrust(uses: Iterable[str]) -> None:
    """Import no code that these names of a store mean, unless a caller names it, too."""
    _distrusted.update({split_code(use)[0] for use in uses if names_code(use)} - _named - _given.keys())


def is_refused(use: str) -> bool:
    """Return whether a name means code that only a store names.

    Examples
    --------
    >>> distrust(["/from/a/store.py:analyze"])
    >>> is_refused("/from/a/store.py:analyze"), is_refused("summary")
    (True, False)
    """
    return names_code(use) and split_code(use)[0] in _distrusted


def find_file(code: str) -> Path | None:
    """Return the path of a file; None for a module."""
    if not code.endswith(FILE):
        return None
    return _paths.get(code) or Path(code).expanduser().absolute()


def give(thing: object, name: str, digest: str) -> str:
    """Give a name to a function or an estimator that only this process has, and return the name for specs."""
    code = f"{SESSION}{digest}:"
    module = ModuleType(code)
    setattr(module, name, thing)
    _given[code] = module
    return f"{code}{name}"


def is_given(module: ModuleType) -> bool:
    """Return whether a module holds a function or an estimator of this session."""
    return module.__name__ in _given


def load_module(code: str) -> ModuleType:
    """Import a file or a module. A file that has changed is imported again.

    Raises
    ------
    PluginError
        If only a store names it, if there is no such file or module on this machine, or if it cannot be imported.
    """
    if code in _given:
        return _given[code]
    if code.startswith(SESSION):
        raise PluginError(
            "only the process of a session has this function, estimator or data; use no other process, or put it into "
            "a file, as in `my_file.py:fit`"
        )
    if code in _distrusted:
        raise PluginError(f"{code.rstrip(':')} is code that only a store names, which is not imported; {GIVE_SPEC}")
    if code == ":":
        raise PluginError("nothing stands before the colon; name a file or a module, as in `my_file.py:fit`")
    path = find_file(code)
    try:
        return _import_module(code.rstrip(":")) if path is None else _import_file(path)
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        what = str(path or code.rstrip(":"))
        raise PluginError(
            f"{what} cannot be imported: {type(error).__name__}: {str(error)[:MAX_ERROR]}; correct the code, or "
            "install what it imports"
        ) from error


def find_pickled_files(content: bytes) -> list[str]:
    """Return the paths of the files that another process must load before it can unpickle objects.

    The modules that are made of files have names that no process can import.
    """
    return [str(path) for path, (_, module) in _modules.items() if module.__name__.encode() in content]


def _import_module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise PluginError(
            f"no module {name!r} on this machine; install its distribution, put it beside the spec, or name a file, as "
            "in `use: my_file.py:fit`"
        ) from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        others = sorted(each.name for each in path.parent.glob(f"*{FILE}")) if path.parent.is_dir() else []
        near = find_nearest_file(path.name, others)
        hint = f"did you mean {near}?" if near else "relative paths start at the folder of the spec; copy it there"
        raise PluginError(f"no file {path} on this machine; {hint}")
    if path in _modules and _modules[path][0] == _state([path, *_modules[path][0]]):
        return _modules[path][1]
    _forget_helpers(lambda _: True)  # they may have changed, too
    _search(path.parent)
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"  # no module of another place has it
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    files = [path]
    for helper in set(sys.modules) - before - {name}:
        file = Path(getattr(sys.modules[helper], "__file__", None) or "")
        top = helper.partition(".")[0]
        if file == path.parent / f"{top}{FILE}" or file.is_relative_to(path.parent / top):
            _helpers[helper] = path.parent
            files.append(file)
    _modules[path] = (_state(files), module)
    return module


def _state(files: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Return the times of the last change and the sizes of files."""
    return {file: (status.st_mtime_ns, status.st_size) for file in files if file.is_file() and (status := file.stat())}


def _search(folder: Path) -> None:
    """Search a folder for modules after all installed ones, but before the folders of other specs."""
    _forget_helpers(lambda other: other != folder)
    if str(folder) in _folders:
        _folders.remove(str(folder))
        sys.path.remove(str(folder))
    if str(folder) not in sys.path:
        first = min((sys.path.index(other) for other in _folders if other in sys.path), default=len(sys.path))
        sys.path.insert(first, str(folder))
        _folders.append(str(folder))


def _forget_helpers(is_stale: Callable[[Path], bool]) -> None:
    """Let modules beside files be imported again: other specs may have modules of the same name."""
    for helper in [name for name, folder in _helpers.items() if is_stale(folder)]:
        sys.modules.pop(helper, None)
        del _helpers[helper]


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

"""Imports code of users that has no distribution: files, and modules beside a spec.

A file is a module of its own, named after its path and content, so an edited file is imported again. Its folder is at
the end of `sys.path`, from which Python imports the modules beside it, each once. An import that could mean modules in
two folders is refused, and so is a module that was edited after its import.
"""

from __future__ import annotations

import hashlib
import os
import sys
from importlib import import_module, invalidate_caches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import RLock
from types import ModuleType

from peekbench.errors import PluginError
from peekbench.plugins.names import FILE, GIVE_SPEC, SESSION, Code, find_nearest_file
from peekbench.plugins.source_files import find_local_files, find_specs, read_code, read_imports

PREFIX = "peekbench_file_"
"""Begin of the names of the modules of files."""
MAX_ERROR = 300  # characters of an error of the code
LOCK = RLock()

_folders: set[Path] = set()
"""Folders that are in `sys.path` for code in them."""
_contents: dict[Path, bytes] = {}
"""Contents of the modules beside files when they were first needed."""


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

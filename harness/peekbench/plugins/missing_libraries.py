"""Finds libraries that a plugin's module imports and that are not installed, without importing the module.

Importing it would take seconds, and a module that crashes would end the process of the run instead of a worker.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from peekbench.plugins.references import find_reference, iterate_callables, missing_remedy

OWN = "peekbench"
"""Start of the names of packages whose modules are read, too, besides those of the plugin's package."""


def describe_missing(entry: Any) -> str:
    """Describe the first library that a module with callables of an entry imports in vain; empty if there is none.

    Only imports at the top level of modules count, because others may be optional.
    """
    for _, function in iterate_callables(entry):
        reference = find_reference(function)
        module = reference.target.partition(":")[0] if reference else ""
        for library in _find_missing(module) if module else ():
            return f"it needs {library}, which is not installed; {missing_remedy(library, module)}"
    return ""


def _find_missing(module: str) -> Iterator[str]:
    package = module.partition(".")[0]
    names, done = [module], set[str]()
    while names:
        name = names.pop()
        top = name.partition(".")[0]
        if name in done:
            continue
        done.add(name)
        if top == package or top.startswith(f"{OWN}_"):
            names += [imported for file in _files(name) for imported in _imports(file, name, file.stat().st_mtime_ns)]
        elif not _is_installed(top):
            yield top


def _is_installed(library: str) -> bool:
    if library in sys.modules:
        return True
    try:
        return find_spec(library) is not None
    except (ImportError, ValueError):  # of a finder that cannot tell
        return True


def _files(module: str) -> Iterator[Path]:
    """Yield the file of a module, if there is one, without importing a package."""
    top, *parts = module.split(".")
    spec = find_spec(top)
    if spec is None:
        return
    folders = [Path(folder).joinpath(*parts) for folder in spec.submodule_search_locations or ()]
    candidates = [file for folder in folders for file in (folder / "__init__.py", folder.with_suffix(".py"))]
    if not parts and spec.origin:
        candidates = [Path(spec.origin)]
    yield from (file for file in candidates if file.suffix == ".py" and file.is_file())


@lru_cache(maxsize=8192)
def _imports(file: Path, module: str, _modified: int) -> tuple[str, ...]:
    """Return the dotted names that a file imports at its top level."""
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):  # which the import reports
        return ()
    names: list[str] = []
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    for node in body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            names.append(base)
            if base.startswith((f"{OWN}_", module.partition(".")[0])):  # what it imports can be modules
                names += [f"{base}.{alias.name}" for alias in node.names]
    return tuple(names)

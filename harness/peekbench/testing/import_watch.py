"""Tells changes of the process's state that imports of libraries make from those that a plugin makes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class ImportWatch(MetaPathFinder):
    """While it is in `sys.meta_path`, calls functions before and after each outermost import of a foreign package.

    Parameters
    ----------
    own_packages
        Packages whose imports are not watched.
    before
        Function to call before an import; it returns a value.
    after
        Function to call after the import, with this value.
    """

    def __init__(self, own_packages: frozenset[str], before: Callable[[], Any], after: Callable[[Any], None]) -> None:
        self._own_packages = own_packages
        self._before, self._after = before, after
        self._depth = 0

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module with the other finders, and watch its loader."""
        if fullname.partition(".")[0] in self._own_packages:
            return None
        for finder in sys.meta_path:
            if finder is not self and (find_spec := getattr(finder, "find_spec", None)):
                spec: ModuleSpec | None = find_spec(fullname, path, target)
                if spec is not None:
                    if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                        spec.loader = _WatchedLoader(spec.loader, self)
                    return spec
        return None

    def run(self, loader: Any, module: ModuleType) -> None:
        """Execute a module; the imports in it belong to its own import."""
        if self._depth:
            loader.exec_module(module)
            return
        self._depth += 1  # also while the functions run, which may import modules
        try:
            value = self._before()
            try:
                loader.exec_module(module)
            finally:
                self._after(value)
        finally:
            self._depth -= 1


class _WatchedLoader(Loader):
    """A loader that gives way to the original one when its module is executed."""

    def __init__(self, loader: Any, watch: ImportWatch) -> None:
        self._loader, self._watch = loader, watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        spec.loader = self._loader
        module: ModuleType | None = self._loader.create_module(spec)
        spec.loader = self
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._watch.run(self._loader, module)

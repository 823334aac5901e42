"""Packages whose names, and modules that, are imported at first use."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

IMPORT = re.compile(r"from ([\w.]+) import (\w+) as (\w+)")


def attach_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose stub `__init__.pyi` says where its names are.

    Type checkers read the same stub, so both see the same names. Each of its lines is of the form
    ``from .module import name as name``.
    """
    lines = Path(file).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
    modules = {match[3]: match[1] for line in lines if (match := IMPORT.fullmatch(line))}
    names = sorted(modules)

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name], package), name)
        setattr(sys.modules[package], name, value)  # the next use needs no import
        return value

    return get, names.copy, names


class LazyModule:
    """A module that is imported when one of its names is first used.

    Parameters
    ----------
    name
        Full name of the module.

    Examples
    --------
    >>> LazyModule("math").sqrt(9.0)
    3.0
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Import the module, and return a name of it."""
        return getattr(import_module(self._name), name)

"""Identifies functions and estimators of a session by their code and by the values that they use."""

from __future__ import annotations

import dis
import functools
import hashlib
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from peekbench.errors import PluginError
from peekbench.plugins.functions import clone_estimator, is_estimator
from peekbench.plugins.local_code import is_installed

DIGITS = 8  # hexadecimal digits of a hash
PLAIN = (str, bytes, int, float, complex, bool, type(None), type(...))
IGNORED = {
    "__dataclass_fields__", "__dataclass_params__", "__dict__", "__doc__", "__firstlineno__", "__module__",
    "__static_attributes__", "__weakref__", "_abc_impl",
}  # fmt: skip
"""Members of classes that have no effect on results."""


def hash_text(text: str) -> str:
    """Return a short hash of text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def hash_thing(thing: Any) -> str:
    """Return a hash of a function or an estimator that differs if its code differs, or what the code uses.

    The functions, classes and values of the session that it uses count, and so do modules that are not installed, such
    as those beside a notebook. Of installed libraries, only names count. Estimators count without what they have
    learned, because they are cloned before they are fitted.

    Parameters
    ----------
    thing
        The function or the estimator.

    Examples
    --------
    >>> SHARE = 0.5
    >>> def fit(train):
    ...     return train.labels.mean() > SHARE
    >>> before = hash_thing(fit)
    >>> SHARE = 0.6
    >>> hash_thing(fit) == before
    False
    """
    return hash_text("\n".join(_describe(clone_estimator(thing) if is_estimator(thing) else thing, {})))


def _describe(value: Any, seen: dict[int, Any]) -> Iterator[str]:
    """Yield texts that differ if a value differs."""
    if isinstance(value, PLAIN):
        yield repr(value)
        return
    yield f"{type(value).__module__}.{type(value).__qualname__}"
    if id(value) in seen:
        return
    seen[id(value)] = value  # which keeps its id from being used again
    if isinstance(value, ModuleType):
        yield value.__name__
        if not _is_installed(value.__name__, getattr(value, "__file__", None)):
            yield hashlib.sha256(Path(value.__file__ or "").read_bytes()).hexdigest()
    elif isinstance(value, CodeType):
        yield value.co_code.hex()
        yield from value.co_names
        yield from _describe_all(value.co_consts, seen)
    elif isinstance(value, FunctionType | type) and _is_library(value):
        yield f"{value.__module__}.{value.__qualname__}"
    elif isinstance(value, FunctionType):
        cells = [_cell_content(value, cell) for cell in value.__closure__ or ()]
        used = [value.__globals__[name] for name in sorted(_globals(value.__code__)) if name in value.__globals__]
        parts = (value.__code__, value.__defaults__, value.__kwdefaults__, *cells, *used)
        yield from _describe_all(parts, seen)
    elif isinstance(value, type):
        members = [part for item in sorted(vars(value).items()) if item[0] not in IGNORED for part in item]
        yield from _describe_all((value.__qualname__, *value.__bases__, *members), seen)
    else:
        yield from _describe_object(value, seen)


def _describe_object(value: Any, seen: dict[int, Any]) -> Iterator[str]:
    """Yield texts that differ if an object that is neither code nor plain differs."""
    if isinstance(value, Mapping):
        yield from _describe_all((part for item in value.items() for part in item), seen)
    elif isinstance(value, set | frozenset):
        yield from sorted(" ".join(_describe(part, dict(seen))) for part in value)
    elif isinstance(value, list | tuple):
        yield from _describe_all(value, seen)
    elif isinstance(value, property):
        yield from _describe_all((value.fget, value.fset, value.fdel), seen)
    elif isinstance(value, functools.partial):
        yield from _describe_all((value.func, value.args, value.keywords), seen)
    elif isinstance(value, MethodType):
        yield from _describe_all((value.__func__, value.__self__), seen)
    elif isinstance(value, functools.cached_property):
        yield from _describe(value.func, seen)
    elif callable(inner := getattr(value, "__wrapped__", None)):
        yield from _describe(inner, seen)  # of a static method, a class method or a cached function
    elif not _is_library(type(value)) or hasattr(value, "get_params"):
        yield from _describe_all((type(value), getattr(value, "__dict__", {})), seen)
    else:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        try:
            yield hashlib.sha256(pickle.dumps(value)).hexdigest()
        except Exception as error:  # pickling runs code of any library
            raise PluginError(
                f"the method uses an object of the type {kind}, whose content peekbench cannot compare "
                f"({type(error).__name__}); make it inside of the function, or pass its settings as options"
            ) from error


def _cell_content(function: FunctionType, cell: CellType) -> Any:
    """Return the value of a variable that a function uses from the function around it.

    Raises
    ------
    PluginError
        If the variable has no value yet.
    """
    try:
        return cell.cell_contents
    except ValueError as error:
        names = dict(zip(map(id, function.__closure__ or ()), function.__code__.co_freevars, strict=True))
        raise PluginError(
            f"{function.__name__} uses the variable {names[id(cell)]!r} of the function around it, which has no value "
            f"yet; assign it before you measure {function.__name__}"
        ) from error


def _describe_all(values: Iterable[Any], seen: dict[int, Any]) -> Iterator[str]:
    for value in values:
        yield from _describe(value, seen)


def _globals(code: CodeType) -> set[str]:
    """Return the names that code reads from its module, also in the functions that it defines."""
    names = {str(each.argval) for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_globals(part) for part in code.co_consts if isinstance(part, CodeType)))


def _is_library(value: FunctionType | type) -> bool:
    if isinstance(value, FunctionType):
        file = value.__code__.co_filename
        is_typed_in = file.startswith("<") and not file.startswith("<frozen ")  # of the standard library
        return not is_typed_in and _is_installed(value.__module__, file)
    return _is_installed(value.__module__, getattr(sys.modules.get(value.__module__), "__file__", None))


def _is_installed(module: str | None, path: str | None) -> bool:
    """Return whether a module is of an installed library, rather than of the session or beside it."""
    if module is None or module == "__main__":
        return False
    if module.partition(".")[0] in ("builtins", "peekbench") or path is None:
        return True
    return is_installed(Path(path))

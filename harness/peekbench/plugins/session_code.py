"""Compares functions and estimators by their code and all that it uses, such as those of a session of a named run."""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from peekbench.errors import PluginError
from peekbench.plugins.functions import clone_estimator, is_estimator
from peekbench.plugins.local_code import is_installed

DIGITS = 8  # hexadecimal digits of a short hash
PLAIN = (str, int, float, complex, bool, type(None), type(...), type(NotImplemented))
IGNORED = {
    "__dataclass_fields__", "__dataclass_params__", "__dict__", "__doc__", "__firstlineno__", "__module__",
    "__static_attributes__", "__weakref__", "_abc_impl",
}  # fmt: skip
"""Members of classes that have no effect on results."""


REMEDY = "make it inside of the function, pass its settings as options, or, with `measure`, leave out `name`"


def hash_text(text: str) -> str:
    """Return a short hash of text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def hash_thing(thing: Any) -> str:
    """Return a hash of a function or an estimator that differs if its code differs, or what the code uses.

    The functions, classes, modules and values of the session that it uses count with all their state, as `pickle` sees
    it. Of installed libraries, only names count. Estimators count without what they have learned, because they are
    cloned before they are fitted.

    Parameters
    ----------
    thing
        The function or the estimator.

    Raises
    ------
    PluginError
        If it uses a value whose state cannot be read, such as a lock.

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
    digest = hashlib.sha256()
    try:
        if is_estimator(thing):
            thing = clone_estimator(thing)
        for part in _describe(thing, {}):
            digest.update(f"{len(part)} {part}".encode("utf-8", "surrogatepass"))
    except RecursionError as error:
        raise PluginError(f"an object is nested too deeply to be compared; {REMEDY}") from error
    return digest.hexdigest()


def _describe(value: Any, seen: dict[int, tuple[int, Any]]) -> Iterator[str]:
    """Yield texts that differ if a value differs."""
    yield f"{type(value).__module__}.{type(value).__qualname__}"
    if type(value) in PLAIN:
        yield repr(value)
    elif type(value) in (bytes, bytearray):
        yield hashlib.sha256(value).hexdigest()
    elif id(value) in seen:
        yield str(seen[id(value)][0])
    else:
        seen[id(value)] = (len(seen), value)  # which keeps its id from being used again
        yield from _describe_state(value, seen)


def _describe_state(value: Any, seen: dict[int, tuple[int, Any]]) -> Iterator[str]:
    if isinstance(value, ModuleType | FunctionType | type) and _is_library(value):
        yield f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
    elif isinstance(value, ModuleType):
        yield from _describe({name: member for name, member in vars(value).items() if not name.startswith("__")}, seen)
    elif isinstance(value, type):
        members = {name: member for name, member in vars(value).items() if name not in IGNORED}
        yield from _describe((value.__qualname__, value.__bases__, members), seen)
    elif isinstance(value, FunctionType):
        cells = read_closure(value)
        used = {name: value.__globals__[name] for name in sorted(_globals(value.__code__) & value.__globals__.keys())}
        parts = (value.__code__, value.__defaults__, value.__kwdefaults__, vars(value), cells, used)
        yield from _describe(parts, seen)
    elif isinstance(value, CodeType):
        yield from _describe((value.co_code, value.co_names, value.co_consts), seen)
    elif isinstance(value, property):
        yield from _describe((value.fget, value.fset, value.fdel), seen)
    elif isinstance(value, functools.cached_property):
        yield from _describe(value.func, seen)
    elif callable(inner := getattr(value, "__wrapped__", None)):
        yield from _describe(inner, seen)  # of a static method, a class method or a cached function
    elif type(value) in (set, frozenset):
        yield from sorted(" ".join(_describe(member, dict(seen))) for member in value)
    elif type(value) in (list, tuple):
        for member in value:
            yield from _describe(member, seen)
    elif type(value) is dict:
        yield from _describe([part for item in value.items() for part in item], seen)
    else:
        yield from _describe(_state_of(value), seen)


def _state_of(value: Any) -> Any:
    """Return what `pickle` keeps of an object: its class, slots and attributes, and the items of a list or mapping."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        if reduce:
            state: Any = reduce(value)
        else:
            state = value.__reduce_ex__(4)
    except Exception as error:  # pickling runs code of any library
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise PluginError(
            f"the method or grader uses an object of the type {kind}, whose content peekbench cannot compare "
            f"({type(error).__name__}); {REMEDY}"
        ) from error
    if isinstance(state, str):
        return state
    return [list(part) if isinstance(part, Iterator) else part for part in state]


def read_closure(function: FunctionType) -> list[Any]:
    """Return the values of the variables that a function uses from the function around it.

    Raises
    ------
    PluginError
        If a variable has no value yet.
    """
    values = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values.append(cell.cell_contents)
        except ValueError as error:
            raise PluginError(
                f"{function.__name__} uses the variable {name!r} of the function around it, which has no value yet; "
                f"assign it before you measure {function.__name__}"
            ) from error
    return values


def _globals(code: CodeType) -> set[str]:
    """Return the names that code reads from its module, also in the functions that it defines."""
    names = {
        str(instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    return names.union(*(_globals(part) for part in code.co_consts if isinstance(part, CodeType)))


def _is_library(value: Any) -> bool:
    """Return whether a module, function or class is of an installed library, not of the session or beside it."""
    file: str | None
    if isinstance(value, FunctionType):
        module, file = value.__module__, value.__code__.co_filename
        if file.startswith("<") and not file.startswith("<frozen "):  # typed in, not of the standard library
            return False
    else:
        module = value.__name__ if isinstance(value, ModuleType) else value.__module__
        file = getattr(sys.modules.get(module), "__file__", None)
    top = str(module).partition(".")[0]
    if top == "__main__" or file is None:
        return top in sys.stdlib_module_names
    return top == "peekbench" or is_installed(Path(file))

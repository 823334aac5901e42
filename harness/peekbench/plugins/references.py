"""References of the form ``"package.module:function"``, which are imported at the first call.

An entry may name its callables this way. The module that holds a callable can then import heavy libraries at its top
level, while commands that only read a spec stay fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from importlib import import_module
from typing import Any, Generic, TypeVar, cast, overload

from peekbench.errors import PluginError
from peekbench.formatting import shorten

MAX_ERROR = 300  # characters of another package's error in a message

F = TypeVar("F")


@dataclass(frozen=True)
class Reference:
    """A callable known by name, which is imported when it is called.

    Examples
    --------
    >>> Reference("math:sqrt")(9.0)
    3.0
    """

    target: str
    """``"package.module:function"``."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Import the callable, and call it."""
        return resolve(self.target)(*arguments, **options)


def resolve(target: str) -> Any:
    """Import the callable that a reference names.

    Parameters
    ----------
    target
        ``"package.module:function"``.

    Raises
    ------
    PluginError
        If the module cannot be imported or has no callable of that name.

    Examples
    --------
    >>> resolve("math:sqrt")(9.0)
    3.0
    """
    module, _, name = target.partition(":")
    try:
        function = getattr(import_module(module), name, None)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        problem = f"{type(error).__name__}: {shorten(str(error), MAX_ERROR)}"
        raise PluginError(f"cannot import {target!r}: {problem}; {_import_remedy(error, module)}") from error
    if not callable(function):
        raise PluginError(f"module {module!r} has no {name!r} that can be called; correct the reference {target!r}")
    return function


def _import_remedy(error: BaseException, module: str) -> str:
    """Return how to repair a failed import."""
    missing = str(getattr(error, "name", "")).partition(".")[0]
    if not isinstance(error, ImportError) or missing == module.partition(".")[0]:
        return f"correct the module {module!r} or the reference"
    return f"install {missing}; `pip install 'peekbench[all]'` installs what all plugins of peekbench need"


def find_reference(value: object) -> Reference | None:
    """Return the reference that a callable is or, as a `functools.partial`, wraps; None if there is none.

    Examples
    --------
    >>> from functools import partial
    >>> find_reference(partial(Reference("math:pow"), 2))
    Reference(target='math:pow')
    """
    while isinstance(value, partial):
        value = value.func
    if isinstance(value, Reference):
        return value
    return None


def iterate_callables(entry: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over the callables of an entry that are given, each with the name of its field."""
    for name in (field.name for field in fields(entry)):
        value = getattr(entry, name)
        if name == "preparation" and is_dataclass(value):
            yield from iterate_callables(value)
        elif not isinstance(vars(type(entry)).get(name), CallableField):
            continue
        elif value is not None or not hasattr(type(entry), name):  # a field with a default is optional
            yield name, value


class CallableField(Generic[F]):
    """A dataclass field for a callable or a reference to one; reading it always gives a callable.

    Parameters
    ----------
    default
        Value if none is given. Without it the field is required.
    """

    def __init__(self, *default: F) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        """Remember the name of the field."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> F: ...

    @overload
    def __get__(self, instance: object, owner: type) -> F: ...

    def __get__(self, instance: object | None, owner: type) -> Any:
        """Return the callable, or of the class its default."""
        if instance is not None:
            return instance.__dict__[self._name]
        if self._default:
            return self._default[0]
        raise AttributeError(self._name)  # which tells `dataclass` that the field has no default

    def __set__(self, instance: object, value: F | str) -> None:
        """Store a callable, or a reference if the value is text."""
        if isinstance(value, str):
            value = cast(F, Reference(value))
        instance.__dict__[self._name] = value

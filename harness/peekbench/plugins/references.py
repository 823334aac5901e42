"""References of the form ``"package.module:function"``, which are imported at the first call.

An entry may name its callables this way. The module that holds a callable can then import heavy libraries at its top
level, while commands that only read a spec stay fast.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Generic, TypeVar, overload

from peekbench.errors import PluginError

REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")

F = TypeVar("F")


class Reference:
    """A callable known by name, which is imported when it is first called.

    Parameters
    ----------
    target
        ``"package.module:function"``.

    Examples
    --------
    >>> Reference("math:sqrt")(9.0)
    3.0
    """

    __slots__ = ("_function", "target")

    def __init__(self, target: str) -> None:
        self.target = target
        self._function: Any = None

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Import the callable if it is not imported yet, and call it."""
        if self._function is None:
            self._function = resolve(self.target)
        return self._function(*arguments, **options)

    def __eq__(self, other: object) -> bool:
        """Return whether both name the same callable."""
        return isinstance(other, Reference) and other.target == self.target

    def __hash__(self) -> int:
        """Return a hash of the name."""
        return hash(self.target)

    def __repr__(self) -> str:
        """Return the reference as code."""
        return f"Reference({self.target!r})"

    def __reduce__(self) -> tuple[type[Reference], tuple[str]]:
        """Pickle the name only."""
        return Reference, (self.target,)


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
        function = getattr(import_module(module), name)
    except ImportError as error:
        raise PluginError(f"cannot import {target!r}: {error}; install the missing package") from error
    except AttributeError as error:
        raise PluginError(f"module {module!r} has no {name!r}; correct the reference {target!r}") from error
    if not callable(function):
        raise PluginError(f"{target!r} is not callable; name a function")
    return function


def find_reference_error(reference: Reference) -> str:
    """Describe what is wrong with a reference, without importing its module; empty if nothing is."""
    if not REFERENCE.fullmatch(reference.target):
        return "is not of the form 'package.module:function'"
    module = reference.target.partition(":")[0]
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        spec = None
    return "" if spec else f"names the module {module!r}, which does not exist"


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
        instance.__dict__[self._name] = Reference(value) if isinstance(value, str) else value

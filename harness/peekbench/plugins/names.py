"""Names in specs: entries of plugins, `plugin.thing`, and code without a plugin, such as `my_file.py:fit`.

A name of code is a value, `Code`: the text in the spec, with the folder where it starts. Only such a value can be
imported. A name that is mere text, such as one that was read from the store of somebody else, imports nothing.

An entry may name its callables by references of the form ``"package.module:function"``, which are imported at the first
call. The module that holds a callable can then import heavy libraries at its top level, while commands that only read a
spec stay fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from reprlib import repr as short_repr
from types import ModuleType
from typing import Any, Generic, TypeVar, cast, overload

from peekbench.errors import PluginError
from peekbench.formatting import shorten

FILE = ".py"
SESSION = "__main__"
"""Module of what only this process has: functions, estimators and data of a notebook or a script."""
GIVE_SPEC = "if you trust it, give the spec of the run instead of its name or store, or name the code yourself"
MAX_NAME = 100  # characters of a misspelled name that are compared
SIMILAR = 0.75  # least similarity, between 0 and 1
OF_FEW = 0.6  # the same for names of which there are few, so that another one is hardly meant
MAX_ASKED = 3  # columns that a question names
MAX_ERROR = 300  # characters of another package's error in a message
F = TypeVar("F")


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

    Examples
    --------
    >>> Code("my_file.py:fit", Path("/a")) == Code("my_file.py:fit", Path("/b"))
    False
    >>> Code("my_file.py", Path("/a")).path
    PosixPath('/a/my_file.py')
    """

    __slots__ = ("folder", "module")

    folder: Path
    module: ModuleType | None

    def __new__(cls, text: str, folder: Path, module: ModuleType | None = None) -> Code:
        """Make a name of code."""
        code = super().__new__(cls, text)
        code.folder, code.module = folder, module
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
        file = self.rpartition(":")[0] or str(self)
        if not file.endswith(FILE):
            return None
        return self.folder / Path(file).expanduser()


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
        if path.is_relative_to(folder.absolute()):
            path = path.relative_to(folder.absolute())
        file = path.as_posix()
    return Code(f"{file}:{name}", folder.absolute())


def hold(thing: object, name: str) -> Code:
    """Return a name for a function, an estimator or data that only this process has."""
    module = ModuleType(SESSION)
    setattr(module, name, thing)
    return Code(f"{SESSION}:{name}", Path.cwd(), module)


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


def is_code(plugin: str) -> bool:
    """Return whether the first part of a split name is a file or a module; names of plugins have neither mark."""
    return "." in plugin or ":" in plugin


def split_name(use: str) -> tuple[str, str]:
    """Split a name into the plugin, file or module, and the name in it.

    A plugin's name alone means its entry of the same name. A module without a dot keeps its colon, so that it differs
    from the name of a plugin.

    Examples
    --------
    >>> split_name("classic.lsa"), split_name("summary")
    (('classic', 'lsa'), ('summary', 'summary'))
    >>> split_name("my_file.py:fit"), split_name("module:fit")
    (('my_file.py', 'fit'), ('module:', 'fit'))
    """
    if not names_code(use):
        plugin, dot, name = use.partition(".")
        if not dot:
            name = plugin
        return plugin, name
    code, _, name = use.rpartition(":")
    if not is_code(code):
        code = f"{code}:"
    if isinstance(use, Code):
        code = Code(code, use.folder, use.module)
    return code, name


def join_name(plugin: str, entry_name: str) -> str:
    """Return the shortest name that a spec can use for an entry of a plugin.

    Examples
    --------
    >>> join_name("classic", "lsa"), join_name("summary", "summary")
    ('classic.lsa', 'summary')
    """
    if is_code(plugin):
        return f"{plugin.rstrip(':')}:{entry_name}"
    if entry_name == plugin:
        return plugin
    return f"{plugin}.{entry_name}"


def find_nearest(use: str, names: Iterable[str], similar: float = SIMILAR) -> str:
    """Return the name that was probably meant; empty if none is similar.

    Capital letters, hyphens, slashes and a missing or wrong plugin do not matter.

    Examples
    --------
    >>> find_nearest("LSA", ["classic.lsa", "controls.null"]), find_nearest("controls.nul", ["controls.null"])
    ('classic.lsa', 'controls.null')
    """
    written = _normalize(use[:MAX_NAME].replace("/", ".").replace(" ", "_")).removeprefix("peekbench_")
    by_name = {_normalize(name): name for name in names}
    by_last_name: dict[str, str] = {}
    for key, name in by_name.items():
        by_last_name.setdefault(key.rpartition(".")[2], name)
    choices = ((written, by_name), (written.rpartition(".")[2], by_last_name))
    for key, among in choices:
        if key in among:
            return among[key]
    for key, among in choices:
        # Names of another length cannot be similar, and are many times as fast to leave out here.
        possible = [name for name in among if 2 * min(len(name), len(key)) >= similar * (len(name) + len(key))]
        for close in get_close_matches(key, possible, n=1, cutoff=similar):
            return among[close]
    return ""


def find_nearest_file(name: str, names: Iterable[str]) -> str:
    """Return the file that was probably meant; empty if none is similar.

    Names are compared without their suffix, because all files of a kind share it.

    Examples
    --------
    >>> find_nearest_file("smal.yml", ["small.yaml", "x.yaml"]), find_nearest_file("a.yaml", ["x.yaml"])
    ('small.yaml', '')
    """
    by_stem = {_normalize(Path(file).stem): file for file in names}
    for close in get_close_matches(_normalize(Path(name).stem)[:MAX_NAME], by_stem, n=1, cutoff=SIMILAR):
        return by_stem[close]
    return ""


def ask_for_column(column: str, names: Iterable[str]) -> str:
    """Return a question that names the columns that were probably meant; empty if there are none.

    Examples
    --------
    >>> ask_for_column("label", ["text", "coarse_label", "fine_label"]), ask_for_column("txet", ["text"])
    ("did you mean 'coarse_label' or 'fine_label'? ", "did you mean 'text'? ")
    """
    names = list(names)
    near = [name for name in names if column.lower() in name.lower()][:MAX_ASKED]
    near = near or get_close_matches(column[:MAX_NAME], names, n=1, cutoff=SIMILAR)
    return f"did you mean {' or '.join(map(short_repr, near))}? " if near else ""


def _normalize(name: str) -> str:
    return name.lower().replace("-", "_")


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

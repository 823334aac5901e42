"""Calls a function in a new process, in other conditions, and notes what it changes and leaves.

Hashes of texts and the hour are different, and the working folder is empty.

`call` runs in the process of the checks, `main` in the new one.
"""

from __future__ import annotations

import gc
import io
import logging
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import psutil

from peekbench.cache import cache_folder
from peekbench.errors import ContractError, PluginError
from peekbench.execution.determinism import one_thread_pools
from peekbench.formatting import list_names, shorten
from peekbench.plugins import registry
from peekbench.plugins.entries import Entry
from peekbench.plugins.local_code import PREFIX, load_module
from peekbench.plugins.names import Code, is_code, split_name
from peekbench.plugins.source_files import is_installed

HASH_VARIABLE = "PYTHONHASHSEED"
HALF_A_DAY = 12 * 3600  # seconds; what is morning here is afternoon there
MAX_OUTPUT = 500  # characters of the output of a process that ended early
MAX_VALUE = 80  # characters of a value in a message
MAX_LISTED = 3  # items of a list in a message
SHUTDOWN_TIMEOUT = 1.0
"""Seconds in which threads and processes that were told to stop may end."""
TRACKER = "resource_tracker"  # a process that `multiprocessing` starts once and keeps
HEAVY_LIBRARIES = (
    "arviz", "arviz_stats", "bambi", "bitsandbytes", "datasets", "gensim", "huggingface_hub", "jinja2",
    "matplotlib", "mlflow", "nutpie", "pandas", "peft", "pyarrow", "pymc", "ray", "scipy", "sklearn", "torch",
    "trackio", "transformers", "wandb",
)  # fmt: skip
"""Libraries that take long to import; importing a plugin must import none of them."""


class Named(Protocol):
    """Subject of checks: an entry and what it is checked on."""

    @property
    def use(self) -> str:
        """Name of the entry in specs."""
        ...


@dataclass(frozen=True, slots=True)
class CallReport:
    """What a function did in a new process."""

    value: Any = None
    """What it returned."""
    error: str = ""
    """The exception that it raised, in words."""
    changes: tuple[str, ...] = ()
    """Changes of the process's state, in words."""
    left_running: tuple[str, ...] = ()
    """Threads and processes that still ran after the call, in words."""
    files: tuple[str, ...] = ()
    """Files and folders that its process left in the working folder."""
    output: str = ""
    """What its process wrote to stdout and stderr, without warnings."""

    def require_clean(self) -> None:
        """Refuse changes of the process's state, and what still runs or lies in the working folder."""
        if self.changes:
            raise ContractError(
                f"it changes the state of the process, on which other plugins may depend: {'; '.join(self.changes)}; "
                "restore it, for example in a `finally` block"
            )
        if self.left_running:
            raise ContractError(f"it leaves running: {', '.join(self.left_running)}; end them before it returns")
        if self.files:
            raise ContractError(
                f"it leaves in the working folder: {list_names(self.files, MAX_LISTED)}; write files to a "
                "temporary folder or, if they serve later calls, to the cache"
            )


def call(use: str, function: Callable[..., Any], *arguments: Any) -> CallReport:
    """Call a function in a new process, and return its value and what it changed.

    Parameters
    ----------
    use
        Name of the entry that is checked. If it is among the arguments, the new process finds it by this name.
    function
        Function at the top level of a module.
    *arguments
        Arguments that can be pickled.

    Raises
    ------
    ContractError
        If the arguments cannot be pickled, the function raises an exception, or the process ends before it returns.
    """
    try:
        content = _pickle(use, (function, arguments))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ContractError(
            f"it cannot be called in another process: {error}; define it at the top level of a module"
        ) from error
    variables = {HASH_VARIABLE: "2" if os.environ.get(HASH_VARIABLE) == "1" else "1"}
    variables["TZ"] = _opposite_zone(time.localtime().tm_gmtoff)
    # With the path of this process, which `-c` alone would precede with the working folder.
    path = [str(Path(folder).absolute()) for folder in sys.path]
    with TemporaryDirectory() as folder:
        question, answer, printed, working = (Path(folder) / name for name in ("question", "answer", "printed", "work"))
        question.write_bytes(pickle.dumps((_own_modules(use), _find_files(content), content)))
        working.mkdir()
        code = f"import sys; sys.path[:] = {path!r}; from {__name__} import main; main({folder!r})"
        status = run_code(code, os.environ | variables, printed, working)
        output = printed.read_text(errors="replace").strip()
        if not answer.exists():
            raise ContractError(
                f"it ended another process with status {status}: {shorten(output[-MAX_OUTPUT:], MAX_OUTPUT)}"
            )
        result: CallReport = pickle.loads(answer.read_bytes())  # noqa: S301 - written by the process above
        if result.error:
            raise ContractError(f"in another process, {result.error}")
        left = (path.name for path in working.iterdir() if not path.name.startswith((".", "__pycache__")))
        return replace(result, files=tuple(sorted(left)), output=output)


def _opposite_zone(seconds: int) -> str:
    """Return the time zone, as a value of TZ, whose clock differs by half a day from one ahead of UTC by seconds."""
    west = HALF_A_DAY - seconds  # POSIX counts what is to be added to local time; up to 24 hours are valid
    sign = "-" if west < 0 else ""
    hours, minutes = divmod(abs(west) // 60, 60)
    return f"CHECK{sign}{hours}:{minutes:02}"


def run_code(code: str, environment: Mapping[str, str], printed: Path, folder: Path) -> int:
    """Run code in a new process in a folder, with its output in a file, and return its exit status."""
    with printed.open("wb") as file:  # a process that the code leaves behind would keep a pipe open
        command = [sys.executable, "-c", code]
        return subprocess.run(  # noqa: S603
            command, env=environment, stdout=file, stderr=subprocess.STDOUT, cwd=folder, check=False
        ).returncode


def _pickle(use: str, value: object) -> bytes:
    """Pickle a value; an entry that is registered under its name, which may contain anything, as this name."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, item: Any) -> tuple[str, type[Entry]] | None:
            with suppress(PluginError):
                if isinstance(item, Entry) and registry.find(use, type(item)) is item:
                    return use, type(item)
            return None

    file = io.BytesIO()
    Pickler(file).dump(value)
    return file.getvalue()


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: tuple[str, type[Entry]]) -> Entry:
        return registry.find(*name)


def _own_modules(use: str) -> set[str]:
    """Return the top-level modules of the plugin that has an entry; none for an entry of no plugin, in a test."""
    with suppress(PluginError):
        return {registry.load(split_name(use)[0]).module.partition(":")[0].partition(".")[0]}
    return set()


def main(folder: str) -> None:
    """Answer the question in a folder. This is the whole work of the new process."""
    question = (Path(folder) / "question").read_bytes()
    with one_thread_pools():
        answer = _answer(*pickle.loads(question))  # noqa: S301 - of `call`
    (Path(folder) / "answer").write_bytes(pickle.dumps(answer))


def _find_files(content: bytes) -> list[Code]:
    """Return the files that the new process has to import before it unpickles objects."""
    names = [name for name in list(sys.modules) if name.startswith(PREFIX) and name.encode() in content]
    paths = [Path(str(sys.modules[name].__file__)) for name in names]
    return [Code(path.name, path.parent) for path in paths]


def _answer(own_modules: set[str], files: list[Code], content: bytes) -> CallReport:
    running, state = _list_running(), take_state()
    sys.meta_path.insert(0, _LibraryImports(own_modules, state, running))
    warnings.showwarning = _ignore_warning
    logging.lastResort = logging.NullHandler()
    try:
        for file in files:
            load_module(file)
        function, arguments = _Unpickler(io.BytesIO(content)).load()
        value, error = function(*arguments), ""
    except Exception as raised:
        value, error = None, "".join(traceback.format_exception_only(raised)).strip()
    return CallReport(value, error, tuple(describe_changes(state, take_state())), tuple(_find_left_running(running)))


def _ignore_warning(*arguments: Any, **keywords: Any) -> None:
    """Take the place of `warnings.showwarning`, so that warnings are no output."""


class _LibraryImports(MetaPathFinder):
    """Keeps what the import of an installed library changes or starts out of the changes by the plugin that needs it.

    The import becomes part of the state and of the running threads from before.
    """

    def __init__(self, own_modules: set[str], state: dict[str, object], running: set[tuple[str, int | None]]) -> None:
        self.own_modules, self.state, self.running = own_modules, state, running
        self.importing = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module as usual, and observe its execution if no other library's import is under way."""
        if self.importing or fullname.partition(".")[0] in self.own_modules:
            return None
        specs = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec and spec.loader and spec.has_location and is_installed(Path(str(spec.origin))):
            spec.loader.exec_module = partial(self._execute, spec.loader.exec_module)  # type: ignore[method-assign]
        return spec

    def _execute(self, execute: Callable[[ModuleType], None], module: ModuleType) -> None:
        self.importing = True  # also while the state is read, for which libraries import modules
        before, running = take_state(), _list_running()
        try:
            execute(module)
        finally:
            after = take_state()
            self.importing = False
            self.state |= {name: value for name, value in after.items() if name not in before or before[name] != value}
            self.running |= _list_running() - running


def take_state() -> dict[str, object]:
    """Return the state of this process that libraries share: values by name, in words for messages."""
    root = logging.getLogger()
    # Libraries add filters of their own warnings when they are imported.
    filters = [repr(item) for item in warnings.filters if item[1] is None and item[2].__module__ == "builtins"]
    state: dict[str, object] = {
        "the working folder": str(Path.cwd()),
        "warnings.filters": filters,
        "the root logger": f"{root.level} {root.disabled} {root.handlers}",
        "logging.disable": logging.root.manager.disable,
    }
    state |= {f"os.environ[{name!r}]": value for name, value in os.environ.items()}
    state |= {f"numpy.errstate({name})": value for name, value in np.geterr().items()}
    state |= {f"numpy.printoptions({name})": value for name, value in np.get_printoptions().items()}
    with suppress(AttributeError, KeyError):  # it is not imported, or is being imported
        torch = sys.modules["torch"]
        state["the default dtype of torch"] = torch.get_default_dtype()
        state["the default device of torch"] = str(torch.get_default_device())
        state["torch.is_grad_enabled()"] = torch.is_grad_enabled()
        state["torch.get_num_threads()"] = torch.get_num_threads()
    return state


def describe_changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Return one text for each value that differs, such as "the working folder (was /a, is /b)"."""
    changes = []
    for name in {**before, **after}:
        values = before.get(name, "not set"), after.get(name, "not set")
        if values[0] != values[1]:
            was, is_now = (shorten(str(value), MAX_VALUE) for value in values)
            changes.append(f"{name} (was {was}, is {is_now})")
    return changes


def _list_running() -> set[tuple[str, int | None]]:
    """Return the threads and child processes that run, without threads that no Python code started."""
    multiprocessing.active_children()  # collects those that have ended
    running = {(f"thread {thread.name!r}", thread.ident) for thread in threading.enumerate()}
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended
            command = " ".join(child.cmdline())
            if command and TRACKER not in command:  # one that waits to be collected has no command line
                running.add((f"process {shorten(command, MAX_VALUE)!r}", child.pid))
    return running


def _find_left_running(before: set[tuple[str, int | None]]) -> list[str]:
    """Describe the threads and child processes that run now and did not before, after some time for them to end."""
    gc.collect()  # threads and processes may end with the object that owns them
    deadline = time.monotonic() + SHUTDOWN_TIMEOUT
    while (left := _list_running() - before) and time.monotonic() < deadline:
        time.sleep(0.02)
    counts = Counter(description for description, _ in left)
    return [f"{count} times {text}" if count > 1 else text for text, count in sorted(counts.items())]


@contextmanager
def view_cache() -> Iterator[Path]:
    """Make a temporary folder with all files of the cache, such as models, as links.

    New files, and files that replace others, stay in this folder, so that they neither fill the user's cache nor are
    found by later fits. Folders are not links, because a file that is written into a linked folder would be in the
    cache.
    """
    cache = cache_folder().absolute()
    with TemporaryDirectory(prefix="peekbench-check-", ignore_cleanup_errors=True) as name:
        for place, _, files in os.walk(cache):
            folder = Path(name) / Path(place).relative_to(cache)
            folder.mkdir(exist_ok=True)
            for file in files:
                (folder / file).symlink_to(Path(place) / file)
        yield Path(name)


def check_light_import(subject: Named) -> None:
    """Check that importing the plugin imports no heavy library."""
    plugin, _ = split_name(subject.use)
    if not is_code(plugin):  # code is imported only by specs that name it
        check_module_light(registry.load(plugin).module.partition(":")[0])  # it may name an object of the module


def check_module_light(module: str) -> None:
    """Check that importing a module imports no library that takes long to import, such as torch, pandas or scipy.

    Parameters
    ----------
    module
        Name of the module.

    Raises
    ------
    ContractError
        If it imports one, or cannot be imported.

    Examples
    --------
    >>> check_module_light("json")
    """
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; import {module}; "
        f"print(*sorted({set(HEAVY_LIBRARIES)!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise ContractError(f"{module} cannot be imported on its own: {done.stderr.strip().splitlines()[-1]}")
    if done.stdout.strip():
        raise ContractError(
            f"importing {module} imports {', '.join(done.stdout.split())}; "
            "move the code that needs them to another module and name it by reference, as in 'package.module:function'"
        )

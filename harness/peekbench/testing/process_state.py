"""State of a process that every library shares, such as the working folder: taken before and after, and compared."""

from __future__ import annotations

import builtins
import decimal
import gc
import locale
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from peekbench.formatting import shorten

State = Mapping[str, object]
"""Values by name, which can be compared."""
SHUTDOWN_TIMEOUT = 1.0
"""Seconds in which threads and processes that were told to stop may end."""
HOOKS = ("stdin", "stdout", "stderr", "excepthook", "unraisablehook", "displayhook", "breakpointhook")
TRACKER = "resource_tracker"  # a process that `multiprocessing` starts once and keeps
MAX_LISTED = 3  # new items of a list in a message
MAX_VALUE = 80  # characters of a value in a message


def take_state() -> dict[str, object]:
    """Return the state of this process that libraries share.

    Returns
    -------
    dict
        Values by name, in words for messages. Settings of a library are included if it is imported.
    """
    state: dict[str, object] = {"the working folder": _working_folder()}
    state |= {f"os.environ[{name!r}]": value for name, value in os.environ.items()}
    state |= {f"sys.{name}": getattr(sys, name) for name in HOOKS}
    state |= {f"signal handler {number.name}": signal.getsignal(number) for number in signal.Signals if number > 0}
    state |= {name: read() for name, read in STANDARD_LIBRARY.items()}
    state |= {f"numpy.errstate({name})": value for name, value in np.geterr().items()}
    state |= {f"numpy.printoptions({name})": value for name, value in np.get_printoptions().items()}
    state["numpy.geterrcall"] = np.geterrcall()
    for module, settings in LIBRARIES.items():
        if module in sys.modules:
            state |= _read_library(sys.modules[module], settings)
    return state


def _working_folder() -> str:
    with suppress(OSError):  # the folder has been deleted
        return str(Path.cwd())
    return "deleted"


def _file_mode_mask() -> str:
    mask = os.umask(0)  # it can only be read by setting it
    os.umask(mask)
    return oct(mask)


def _loggers() -> tuple[object, ...]:
    root = logging.getLogger()
    return root.level, root.disabled, tuple(map(repr, root.handlers)), logging.root.manager.disable


STANDARD_LIBRARY: Mapping[str, Callable[[], object]] = {
    "warnings.filters": lambda: [repr(entry) for entry in warnings.filters],
    "warnings.showwarning": lambda: warnings.showwarning,
    "warnings.formatwarning": lambda: warnings.formatwarning,
    "sys.path": lambda: list(sys.path),
    "sys.argv": lambda: list(sys.argv),
    "sys.meta_path": lambda: [repr(finder) for finder in sys.meta_path],
    "sys.getrecursionlimit()": sys.getrecursionlimit,
    "sys.getswitchinterval()": sys.getswitchinterval,
    "sys.gettrace()": sys.gettrace,
    "sys.getprofile()": sys.getprofile,
    "threading.excepthook": lambda: threading.excepthook,
    "the names of builtins": lambda: {name: id(value) for name, value in vars(builtins).items() if name != "_"},
    "the file mode mask (os.umask)": _file_mode_mask,
    "the locale": lambda: locale.setlocale(locale.LC_ALL),
    "the time zone": lambda: (time.tzname, time.timezone),
    "the root logger or logging.disable": _loggers,
    "socket.getdefaulttimeout()": socket.getdefaulttimeout,
    "gc.isenabled()": gc.isenabled,
    "gc.get_threshold()": gc.get_threshold,
    "the decimal context": lambda: repr(decimal.getcontext()),
    "the alarm of signal.setitimer": lambda: signal.getitimer(signal.ITIMER_REAL)[0] > 0,
}

LIBRARIES: Mapping[str, Mapping[str, Callable[[Any], object]]] = {
    "torch": {
        "the default dtype of torch": lambda torch: str(torch.get_default_dtype()),
        "the default device of torch": lambda torch: str(torch.get_default_device()),
        "torch.is_grad_enabled()": lambda torch: torch.is_grad_enabled(),
        "torch.is_inference_mode_enabled()": lambda torch: torch.is_inference_mode_enabled(),
        "torch.is_anomaly_enabled()": lambda torch: torch.is_anomaly_enabled(),
        "torch.get_num_threads()": lambda torch: torch.get_num_threads(),
        "torch.are_deterministic_algorithms_enabled()": lambda torch: torch.are_deterministic_algorithms_enabled(),
        "torch.get_float32_matmul_precision()": lambda torch: torch.get_float32_matmul_precision(),
        "torch.backends.cudnn": lambda torch: (
            torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic,
        ),
        "torch.set_printoptions": lambda torch: repr(torch._tensor_str.PRINT_OPTS),
    },
    "sklearn": {"sklearn.get_config()": lambda sklearn: sklearn.get_config()},
    "pandas": {"the options of pandas": lambda pandas: _pandas_options(pandas)},
    "matplotlib": {"matplotlib.rcParams": lambda matplotlib: matplotlib.rcParams.copy()},
    "transformers": {
        "the verbosity of transformers": lambda transformers: transformers.utils.logging.get_verbosity(),
    },
}  # fmt: skip
"""Settings of libraries, by module and name."""


def _pandas_options(pandas: Any) -> dict[str, object]:
    return {name: pandas.get_option(name) for name in OPTIONS_OF_PANDAS}


OPTIONS_OF_PANDAS = (
    "display.max_rows", "display.max_columns", "display.max_colwidth", "display.precision", "display.width",
)  # fmt: skip


def _read_library(module: Any, settings: Mapping[str, Callable[[Any], object]]) -> Iterator[tuple[str, object]]:
    """Iterate over the settings that this version of a library has."""
    for name, read in settings.items():
        with suppress(AttributeError, ImportError, KeyError):  # it is being imported, or another version
            yield name, read(module)


def find_changes(before: State, after: State) -> list[str]:
    """Return the names of the values that differ.

    Parameters
    ----------
    before, after
        Results of `take_state`.
    """
    return [name for name in {**before, **after} if not _is_same(before, after, name)]


def _is_same(before: State, after: State, name: str) -> bool:
    return name in before and name in after and bool(before[name] == after[name])


def describe_changes(before: State, after: State) -> list[str]:
    """Return one text for each value that differs, such as "the working folder (was /a, is /b)".

    Parameters
    ----------
    before, after
        Results of `take_state`.
    """
    return [_describe(name, before, after) for name in find_changes(before, after)]


def _describe(name: str, before: State, after: State) -> str:
    first, second = before.get(name), after.get(name)
    if isinstance(first, list) and isinstance(second, list) and len(second) > len(first):
        added = [shorten(str(item), MAX_VALUE) for item in second if item not in first]
        return f"{name} (added: {', '.join(added[:MAX_LISTED])})" if added else name
    values = [_show(state[name]) if name in state else "not set" for state in (before, after)]
    short = all(len(value) <= MAX_VALUE for value in values)
    return f"{name} (was {values[0]}, is {values[1]})" if short and values[0] != values[1] else name


def _show(value: object) -> str:
    return shorten(value if isinstance(value, str) else repr(value), 10 * MAX_VALUE)


def list_running() -> set[tuple[str, int | None]]:
    """Return the threads and child processes of this process that run.

    Returns
    -------
    set of tuple
        Description and number of each. Threads that no Python code started, such as those of BLAS, are left out.
    """
    others = (thread for thread in threading.enumerate() if thread is not threading.main_thread())
    threads = {(f"thread {thread.name!r}", thread.ident) for thread in others}
    multiprocessing.active_children()  # collects those that have ended
    return threads | set(_child_processes())


def _child_processes() -> Iterator[tuple[str, int]]:
    """Iterate over the descriptions and ids of child processes that run."""
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended
            command = " ".join(child.cmdline())
            if command and TRACKER not in command:  # one that waits to be collected has no command line
                yield f"process {shorten(command, MAX_VALUE)!r}", child.pid


def find_left_behind(before: set[tuple[str, int | None]]) -> list[str]:
    """Describe the threads and child processes that run now and did not before, after some time for them to end.

    Parameters
    ----------
    before
        Result of `list_running`.
    """
    gc.collect()  # threads and processes may end with the object that owns them
    deadline = time.monotonic() + SHUTDOWN_TIMEOUT
    while (left := list_running() - before) and time.monotonic() < deadline:
        time.sleep(0.02)
    counts = Counter(description for description, _ in left)
    return [
        f"{count} times {description}" if count > 1 else description for description, count in sorted(counts.items())
    ]


def used_memory() -> int:
    """Return the memory of this process in bytes; on Linux, including memory that was allocated and never written."""
    memory = psutil.Process().memory_info()
    return int(getattr(memory, "data", memory.rss))

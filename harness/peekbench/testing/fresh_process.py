"""Calls a function in a new process, in which hashes of texts, process id and time are other ones.

`call` runs in the process of the checks, `main` in the new one.
"""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from peekbench.errors import ContractError
from peekbench.execution.determinism import one_thread_pools
from peekbench.formatting import shorten
from peekbench.plugins.local_code import find_pickled_files, load_module
from peekbench.testing.footprint import Footprint
from peekbench.testing.import_watch import ImportWatch
from peekbench.testing.process_state import (
    describe_changes,
    find_changes,
    find_left_behind,
    list_running,
    take_state,
)

HASH_VARIABLE = "PYTHONHASHSEED"
DAY = 24 * 3600
MAX_OUTPUT = 500  # characters of the output of a process that ended early


def _other_hash_seed() -> int:
    """Return a seed that this process does not have."""
    return 2 if os.environ.get(HASH_VARIABLE) == "1" else 1


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What differs between two processes."""

    hash_seed: int = field(default_factory=_other_hash_seed)
    """Seed of the hashes of texts, on which the order of sets depends."""
    clock_shift: float = -400 * DAY - 3661
    """Seconds by which `time.time` and the like are ahead. It is negative, so that no cached file seems to be old."""
    own_packages: frozenset[str] = frozenset()
    """Packages of the plugin. The changes of the process's state that imports of other packages make are allowed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a function did in a new process."""

    value: Any = None
    """What it returned."""
    error: str = ""
    """The exception that it raised, in words."""
    changes: tuple[str, ...] = ()
    """Changes of the process's state, in words."""
    left_behind: tuple[str, ...] = ()
    """Threads and processes that still ran after the call, in words."""
    files: tuple[str, ...] = ()
    """Files and folders that it wrote in the working folder and that still exist."""
    hosts: tuple[str, ...] = ()
    """Other machines that it looked up or connected to."""


def call(surroundings: Surroundings, function: Callable[..., Any], *arguments: Any) -> Answer:
    """Call a function in a new process, and return its value and what it changed.

    Parameters
    ----------
    surroundings
        What is different in the new process.
    function
        Function at the top level of a module.
    *arguments
        Arguments that can be pickled.

    Raises
    ------
    ContractError
        If the arguments cannot be pickled, or the process ends before the function returns.
    """
    generators = random.getstate(), np.random.get_state()
    try:
        content = pickle.dumps((function, arguments))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ContractError(
            f"it cannot be called in another process: {error}; define it at the top level of a module"
        ) from error
    variables = os.environ | {HASH_VARIABLE: str(surroundings.hash_seed)}
    with TemporaryDirectory() as folder:
        question, answer = Path(folder) / "question", Path(folder) / "answer"
        question.write_bytes(pickle.dumps((surroundings, generators, find_pickled_files(content), content)))
        # With the path of this process: `-c` alone would first search the working folder.
        code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main({str(folder)!r})"
        command, printed = [sys.executable, "-c", code], Path(folder) / "printed"
        with printed.open("wb") as file:  # a process that the function leaves behind would keep a pipe open
            done = subprocess.run(command, env=variables, stdout=file, stderr=subprocess.STDOUT, check=False)  # noqa: S603
        if not answer.exists():
            output = printed.read_text(errors="replace").strip()
            raise ContractError(
                f"it ended another process with status {done.returncode}: {shorten(output[-MAX_OUTPUT:], MAX_OUTPUT)}"
            )
        result: Answer = pickle.loads(answer.read_bytes())  # noqa: S301 - written by the process above
        return result


def main(folder: str) -> None:
    """Answer the question in a folder. This is the whole work of the new process."""
    question = (Path(folder) / "question").read_bytes()
    surroundings, generators, files, content = pickle.loads(question)  # noqa: S301 - of `call`
    random.setstate(generators[0])
    np.random.set_state(generators[1])
    with one_thread_pools():
        answer = _answer(surroundings, files, content)
    (Path(folder) / "answer").write_bytes(pickle.dumps(answer))


def _answer(surroundings: Surroundings, files: Iterable[str], content: bytes) -> Answer:
    state: dict[str, object] = {}

    def allow_changes(before: dict[str, object]) -> None:
        after = take_state()
        for name in find_changes(before, after):
            if name in after:
                state[name] = after[name]
            else:
                state.pop(name, None)

    footprint = Footprint()
    sys.addaudithook(footprint)
    watch = ImportWatch(surroundings.own_packages, take_state, allow_changes)
    with _shifted_clock(surroundings.clock_shift):
        sys.meta_path.insert(0, watch)
        running = list_running()
        state |= take_state()
        try:
            for file in files:
                load_module(file)
            function, arguments = pickle.loads(content)  # noqa: S301 - of `call`
            value, error = function(*arguments), ""
        except Exception as raised:
            value, error = None, "".join(traceback.format_exception_only(raised)).strip()
        changes = describe_changes(state, take_state())
        sys.meta_path.remove(watch)
        left_behind = find_left_behind(running)
    return Answer(value, error, tuple(changes), tuple(left_behind), footprint.files(), footprint.hosts())


@contextmanager
def _shifted_clock(seconds: float) -> Iterator[None]:
    """Shift the functions of `time` that tell the time of the day."""
    now, now_ns = time.time, time.time_ns
    names = ("localtime", "gmtime", "ctime")
    originals = {name: getattr(time, name) for name in names}
    original_strftime = time.strftime
    time.time = lambda: now() + seconds
    time.time_ns = lambda: now_ns() + int(seconds * 1e9)
    for name, original in originals.items():
        setattr(time, name, lambda given=None, original=original: original(time.time() if given is None else given))
    time.strftime = lambda form, given=None: original_strftime(form, given or time.localtime())
    try:
        yield
    finally:
        time.time, time.time_ns, time.strftime = now, now_ns, original_strftime
        for name, original in originals.items():
            setattr(time, name, original)

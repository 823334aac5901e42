"""Behaviors of methods that attack a run, and the plugin that has them and a method that behaves well."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import pickle
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import numpy as np

from peekbench import (
    Analysis,
    AnalyzerEntry,
    Context,
    Dataset,
    DataSourceEntry,
    Folders,
    Inputs,
    Labeled,
    MethodEntry,
    Options,
    PeekbenchError,
    Predictor,
    Task,
    hookimpl,
)
from peekbench.plugins import Preparation
from peekbench.records import Forest, Interval


class NoTextError(Exception):
    """An exception whose text cannot be formatted."""

    def __str__(self) -> str:
        """Raise an error."""
        raise RuntimeError("no text")


class NotAnError(BaseException):
    """An exception that is not an Exception."""


class UnpicklableError(Exception):
    """An exception that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__(lambda: None)


class RaisesWhenDeleted:
    """An object whose deletion raises an error."""

    def __del__(self) -> None:
        """Raise an error."""
        raise RuntimeError("deleted")


def with_bad_notes() -> BaseException:
    """Return an exception whose notes are no list."""
    error = ValueError("unusual")
    error.__notes__ = 7  # type: ignore[assignment]
    return error


def chained() -> BaseException:
    """Return an exception with many causes."""
    error: BaseException = ValueError("first")
    for number in range(300):
        following = ValueError(f"link {number}")
        following.__cause__ = error
        error = following
    return error


def recurse(depth: int = 0) -> int:
    """Recurse without end."""
    return recurse(depth + 1) + 1


def fork_and(child: Callable[[], object]) -> None:
    """Fork, and run a function in the child process, which then returns from the fit."""
    process = os.fork()
    if process == 0:
        child()
    elif child is not sleep_long:
        os.waitpid(process, 0)


def sleep_long() -> None:
    """Sleep for longer than the attack takes."""
    time.sleep(600)


def fail() -> None:
    """Raise an error."""
    raise RuntimeError("raised")


def kill_parent() -> None:
    """Kill the main process in the middle of a fit."""
    os.kill(os.getppid(), signal.SIGKILL)
    sleep_long()


def stop_parent() -> None:
    """Stop the main process and let it continue."""
    os.kill(os.getppid(), signal.SIGSTOP)
    os.kill(os.getppid(), signal.SIGCONT)


def fork_pool() -> None:
    """Use processes as methods usually do."""
    with get_context("fork").Pool(2) as pool:
        pool.map(abs, [-1, -2])


def write_everywhere() -> None:
    """Write to every open file except the standard ones."""
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\0\0\0\4junk")
        except OSError:
            continue


def redirect_everywhere() -> None:
    """Replace every open file except the standard ones."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3, 64):
        if descriptor != null:
            os.dup2(null, descriptor)


KEPT: list[Any] = []


def exhaust_descriptors() -> None:
    """Open files until no more can be opened."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    KEPT.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(100))


def delete_working_directory() -> None:
    """Change to a directory and delete it."""
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    Path(folder).rmdir()


def delete_store() -> None:
    """Delete the store of the run and its companions."""
    for path in Path("runs").glob("*.sqlite*"):
        path.unlink()


def start_thread(target: Callable[[], object], *, daemon: bool) -> None:
    """Start a thread that the fit leaves behind."""
    threading.Thread(target=target, daemon=daemon).start()


def patch(module: Any, name: str) -> None:
    """Replace a function by one that fails."""
    setattr(module, name, lambda *arguments, **keywords: fail())


LONG = 5_000_000  # characters of long texts

MARKS = Analysis("marks", figures=(Forest("Marks", (("all", (Interval("a", 0.1, 0.0, 0.2),)),)),))
UNIFORM = Predictor(lambda inputs: np.full((len(inputs), 2), 0.5))
Behavior = Callable[[], object]
TOGETHER: dict[str, Behavior] = {}
ALONE: dict[str, Behavior] = {}


def together(behavior: Behavior) -> Behavior:
    """Register a behavior that runs with others."""
    TOGETHER[behavior.__name__] = behavior
    return behavior


def alone(behavior: Behavior) -> Behavior:
    """Register a behavior that may disturb later fits of its worker, or the main process."""
    ALONE[behavior.__name__] = behavior
    return behavior


def raising(name: str, make: Callable[[], BaseException]) -> None:
    """Register a behavior that raises an exception."""

    def behavior() -> object:
        raise make()

    behavior.__name__ = name
    together(behavior)


def acting(name: str, action: Callable[[], object], register: Callable[[Behavior], Behavior] = together) -> None:
    """Register a behavior that does something and returns a valid predictor."""

    def behavior() -> object:
        action()
        return UNIFORM

    behavior.__name__ = name
    register(behavior)


def returning(name: str, make: Callable[[], object]) -> None:
    """Register a behavior that returns something."""
    make.__name__ = name
    together(make)


def predicting(name: str, predict: Callable[[Any], Any]) -> None:
    """Register a behavior of a predictor."""
    returning(name, lambda: Predictor(predict))


SIGNALS = (
    signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV, signal.SIGABRT, signal.SIGHUP, signal.SIGALRM,
    signal.SIGBUS, signal.SIGPIPE,
)  # fmt: skip

raising("raise SystemExit(0)", lambda: SystemExit(0))
raising("raise SystemExit with a text", lambda: SystemExit("text"))
raising("raise KeyboardInterrupt", KeyboardInterrupt)
raising("raise GeneratorExit", GeneratorExit)
raising("raise StopIteration", StopIteration)
raising("raise CancelledError", asyncio.CancelledError)
raising("raise a BaseException", NotAnError)
raising("raise MemoryError", MemoryError)
raising("raise BrokenPipeError", BrokenPipeError)
raising("raise EOFError", EOFError)
raising("raise an error of peekbench", lambda: PeekbenchError("of a plugin"))
raising("raise a long text", lambda: ValueError("x" * LONG))
raising("raise a long text with lines", lambda: ValueError("x\n" * (LONG // 2)))
raising("raise an error without text", NoTextError)
raising("raise an error with bad notes", with_bad_notes)
raising("raise an error that cannot be pickled", UnpicklableError)
raising("raise a chain of errors", chained)
raising("raise a group of errors", lambda: ExceptionGroup("group", [ValueError(str(n)) for n in range(1000)]))
raising("raise a lone surrogate", lambda: ValueError("\ud83d"))
raising("raise escape sequences", lambda: ValueError("\x1b]0;title\x07\x1b[2J\u202e"))
raising("raise a null character", lambda: ValueError("a\0b"))
raising("raise an error with an odd name", lambda: type("A\nB\x1b[31m", (Exception,), {})("odd"))
acting("recurse without end", recurse)
acting("os._exit(0)", lambda: os._exit(0))
acting("os._exit(7)", lambda: os._exit(7))
acting("os.abort", os.abort)
for number in SIGNALS:
    acting(f"{number.name} to itself", lambda number=number: os.kill(os.getpid(), number))  # type: ignore[misc]
acting("SIGKILL to its group", lambda: os.killpg(os.getpgid(0), signal.SIGKILL))
acting("close all files but standard ones", lambda: os.closerange(3, 64))
acting("close all files", lambda: os.closerange(0, 64))
acting("write to all files", write_everywhere)
acting("redirect all files", redirect_everywhere)
acting("fork, the copy returns", lambda: fork_and(lambda: None))
acting("fork, the copy raises", lambda: fork_and(fail))
acting("fork, the copy exits", lambda: fork_and(lambda: sys.exit(0)))
acting("fork, the copy writes to all files", lambda: fork_and(write_everywhere))
acting("fork, the copy sleeps", lambda: fork_and(sleep_long))
acting("fork a pool", fork_pool)
acting("leave a process", lambda: subprocess.Popen(["sleep", "600"]))
acting("leave a daemon thread", lambda: start_thread(sleep_long, daemon=True))
acting("leave a thread", lambda: start_thread(sleep_long, daemon=False))
acting("leave a thread that raises", lambda: start_thread(fail, daemon=False))
acting("exit handler that raises", lambda: atexit.register(fail))
acting("change the working directory", lambda: os.chdir("/"))
acting("delete the working directory", delete_working_directory)
acting("clear the environment", os.environ.clear)
acting("change the number of threads", lambda: os.environ.update(OMP_NUM_THREADS="64", PEEKBENCH_THREADS="x"))
acting("turn numpy's warnings into errors", lambda: np.seterr(all="raise"))
acting("seed the global generators", lambda: (random.seed(1), np.random.seed(1)))
acting("print 5 MB", lambda: print("x" * LONG))
acting("print escape sequences", lambda: print("\x1b]0;title\x07\x1b[2J"))
acting("write to standard output", lambda: os.write(1, b"raw\xff\n"))
acting("read standard input", input)
acting("disable garbage collection", gc.disable)
acting("file mode mask", lambda: os.umask(0o777))
acting("object that fails when deleted", lambda: RaisesWhenDeleted())
acting("use 200 MB", lambda: np.ones(25_000_000))
returning("return None", lambda: None)
returning("return a class", lambda: Predictor)
returning("return a generator", lambda: (number for number in range(3)))
returning("metrics that are text", lambda: Predictor(UNIFORM.predict, {"a": "text"}))  # type: ignore[dict-item]
returning("metrics that are not finite", lambda: Predictor(UNIFORM.predict, {"a": float("nan")}))
returning("metrics with odd names", lambda: Predictor(UNIFORM.predict, {"\x1b[31m<b>\ud83d": 1.0}))
returning("10,000 metrics", lambda: Predictor(UNIFORM.predict, {str(n): 1.0 for n in range(10_000)}))
predicting("predict NaN", lambda inputs: np.full((len(inputs), 2), np.nan))
predicting("predict the wrong shape", lambda inputs: np.full((len(inputs), 3), 1 / 3))
predicting("predict too few rows", lambda inputs: np.full((1, 2), 0.5))
predicting("predict None", lambda inputs: None)
predicting("predict text", lambda inputs: np.full((len(inputs), 2), "0.5"))
predicting("predict objects", lambda inputs: np.full((len(inputs), 2), None))
predicting("predict ragged lists", lambda inputs: [[0.5], [0.5, 0.5]])
predicting("predict complex numbers", lambda inputs: np.full((len(inputs), 2), 0.5j))
predicting("predict huge numbers", lambda inputs: np.full((len(inputs), 2), 1e308))
predicting("predict negative numbers", lambda inputs: np.tile([-1.0, 2.0], (len(inputs), 1)))
predicting("predict half precision", lambda inputs: np.full((len(inputs), 2), 0.5, dtype=np.float16))
predicting("predict a masked array", lambda inputs: np.ma.array(np.full((len(inputs), 2), 0.5), mask=True))
predicting("predict and exit", lambda inputs: os._exit(3))
acting("use up the descriptors", exhaust_descriptors, alone)
acting("SIGTERM to the main process", lambda: os.kill(os.getppid(), signal.SIGTERM), alone)
acting("SIGINT to the main process", lambda: os.kill(os.getppid(), signal.SIGINT), alone)
acting("SIGKILL to the main process", kill_parent, alone)
acting("harmless signals to the main process", lambda: os.kill(os.getppid(), signal.SIGWINCH), alone)
acting("stop and continue the main process", stop_parent, alone)
acting("ignore SIGTERM", lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN), alone)
acting("limit of file sizes", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)), alone)
acting("limit of recursion", lambda: sys.setrecursionlimit(60), alone)
acting("warnings are errors", lambda: warnings.simplefilter("error"), alone)
acting("clear sys.path", sys.path.clear, alone)
acting("remove numpy from sys.modules", lambda: sys.modules.pop("numpy"), alone)
acting("no standard output", lambda: setattr(sys, "stdout", None), alone)
acting("patch pickle", lambda: patch(pickle, "dumps"), alone)
acting("patch the connection", lambda: patch(connection.Connection, "send"), alone)
acting("patch os.getpid", lambda: patch(os, "getpid"), alone)
acting("patch time", lambda: patch(time, "monotonic"), alone)
acting("trace every call", lambda: sys.settrace(lambda *arguments: None), alone)
acting("exit handler that sleeps", lambda: atexit.register(sleep_long), alone)
acting("thread that prints", lambda: start_thread(lambda: [print("x") for _ in range(10_000)], daemon=True), alone)
acting("SIGHUP to the main process", lambda: os.kill(os.getppid(), signal.SIGHUP), alone)
acting("stop itself", lambda: os.kill(os.getpid(), signal.SIGSTOP), alone)
acting("delete the store", delete_store, alone)
acting("delete the reports folder", lambda: shutil.rmtree("reports", ignore_errors=True), alone)


class Behave(Options):
    """Options of the method `behave`."""

    behavior: str


def behave(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Behave, context: Context) -> Any:
    """Behave as the option says."""
    return {**TOGETHER, **ALONE}[options.behavior]()


class Steady(Options):
    """Options of the method `steady`."""

    seconds: float = 0.0  # of a fit
    salt: int = 0  # makes several of them differ
    log: str = ""  # file that gets a line for each trial that begins


def steady(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Steady, context: Context) -> Predictor:
    """Predict random numbers that depend on seed and salt and on nothing else, with some floating-point work."""
    if options.log and unlabeled is None:
        with Path(options.log).open("a") as log:
            log.write(f"{task.name} {options.salt} {context.seed}\n")
    time.sleep(options.seconds)
    shares = np.random.default_rng([context.seed, options.salt]).dirichlet(np.ones(2), size=100)
    return Predictor(lambda inputs: np.stack([shares[len(text) % 100] for text in inputs]))


class Texts(Options):
    """Options of the data source `texts`."""

    revision: int = 0


def texts(*, options: Texts, folders: Folders) -> Dataset:
    """Return short texts in two classes."""
    return Dataset([f"text {'x' * row} {row}" for row in range(120)], [row % 2 for row in range(120)], ("a", "b"))


@hookimpl
def peekbench_data_sources() -> list[DataSourceEntry]:
    """Register the data source."""
    return [
        DataSourceEntry(
            name="texts", options=Texts, load=texts, summary="short texts",
            preparation=Preparation(pin=lambda options, folders: {"revision": 7}),
        )
    ]  # fmt: skip


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    """Register the methods."""
    return [
        MethodEntry(name="behave", options=Behave, method=behave, summary="behaves badly"),
        MethodEntry(name="steady", options=Steady, method=steady, summary="behaves well"),
    ]


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    """Register the analysis."""
    return [
        AnalyzerEntry(name="none", analyze=lambda results, options: Analysis("none"), summary="no tables"),
        AnalyzerEntry(name="marks", analyze=lambda results, options: MARKS, summary="a figure"),
    ]

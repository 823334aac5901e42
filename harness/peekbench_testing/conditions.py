"""Conditions in which plugins are called: a time limit, and in a new process another time and no network."""

from __future__ import annotations

import datetime
import gc
import ipaddress
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import psutil

from peekbench.errors import ContractError

HOURS = 11  # no divisor of a day: after several steps, it was day and night, and an odd and an even hour
LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname")
CONNECTIONS = ("socket.connect", "socket.sendto")
REAL = datetime.datetime


class TimeLimitError(ContractError):
    """A call of a plugin that does not end."""


@contextmanager
def time_limit(seconds: float, doing: str) -> Iterator[None]:
    """End the block with a `TimeLimitError` after some seconds; never outside the main thread, or without signals.

    Parameters
    ----------
    seconds
        Time limit.
    doing
        What the block does, for the message.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise TimeLimitError(
            f"{doing} takes more than {seconds:g} s; correct the loop or the wait that does not end, or give it more "
            f"time, such as `--timeout {10 * seconds:g}`, in Python `timeout={10 * seconds:g}`"
        )

    handler = signal.signal(signal.SIGALRM, stop)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # again, if the plugin catches the exception
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


class Clock:
    """Lets `time` and, in some modules, `datetime` give another hour and day. Measured durations stay correct."""

    def __init__(self) -> None:
        self.seconds = 0
        """Seconds that are added to the time: earlier, so that no cache expires."""
        self.datetime = self._make_datetime()
        """Takes the place of the class `datetime`."""
        self.module = ModuleType("datetime")
        """Takes the place of the module `datetime`."""
        vars(self.module).update({**vars(datetime), "datetime": self.datetime})

    def install(self) -> None:
        """Replace the functions of `time` in this process."""
        read = {name: getattr(time, name) for name in ("time", "time_ns", "localtime", "gmtime", "ctime", "strftime")}

        def now() -> float:
            return float(read["time"]()) + self.seconds

        def convert(name: str) -> Callable[..., Any]:
            return lambda seconds=None: read[name](now() if seconds is None else seconds)

        def format_time(pattern: str, moment: Any = None) -> str:
            return str(read["strftime"](pattern, time.localtime() if moment is None else moment))

        changed: dict[str, Any] = {name: convert(name) for name in ("localtime", "gmtime", "ctime")}
        changed |= {"time": now, "time_ns": lambda: read["time_ns"]() + self.seconds * 10**9, "strftime": format_time}
        for name, function in changed.items():
            setattr(time, name, function)
        self.move([])

    def move(self, modules: Iterable[ModuleType]) -> None:
        """Change the hour and, after some calls, the day.

        Parameters
        ----------
        modules
            Modules in which names for `datetime` get the other time. Compiled libraries need the class as it is.
        """
        self.seconds -= HOURS * 3600
        for module in modules:
            for name, value in list(vars(module).items()):
                if value is REAL:
                    setattr(module, name, self.datetime)
                elif value is datetime:
                    setattr(module, name, self.module)

    def _make_datetime(self) -> Any:
        """Return a class that acts like `datetime`, and makes its instances, but has another current time."""

        class Type(type):
            def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
                return REAL(*arguments, **keywords) if cls is shifted else super().__call__(*arguments, **keywords)

            def __instancecheck__(cls, instance: Any) -> bool:
                return isinstance(instance, REAL) if cls is shifted else super().__instancecheck__(instance)

            def __subclasscheck__(cls, other: type) -> bool:
                return issubclass(other, REAL) if cls is shifted else super().__subclasscheck__(other)

        def read(name: str) -> Any:
            def read_time(cls: type, *arguments: Any, **keywords: Any) -> Any:
                owner = REAL if cls is shifted else cls
                moment = vars(REAL)[name].__get__(None, owner)(*arguments, **keywords)
                return moment + datetime.timedelta(seconds=self.seconds)

            return classmethod(read_time)

        names = {"now": read("now"), "utcnow": read("utcnow"), "__module__": "datetime", "__doc__": REAL.__doc__}
        shifted = Type("datetime", (REAL,), names)
        return shifted


CLOCK = Clock()
"""Clock of this process."""


def forbid_network() -> list[str]:
    """Refuse connections of this process to other machines, and return a list that receives their names."""
    hosts: list[str] = []

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in LOOKUPS:
            host = arguments[0]
        elif event in CONNECTIONS and isinstance(arguments[1], tuple):  # others are of this machine
            host = arguments[1][0]
        else:
            return
        if isinstance(host, bytes):
            host = host.decode(errors="replace")
        if isinstance(host, str) and not _is_here(host):
            hosts.append(host)
            error = socket.gaierror if event in LOOKUPS else ConnectionRefusedError
            raise error(f"`peekbench check` has blocked a connection to {host}, because results must not depend on it")

    sys.addaudithook(refuse)
    return hosts


def _is_here(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host in ("", "localhost", socket.gethostname())
    return address.is_loopback or address.is_unspecified


def read_memory() -> int:
    """Return the bytes of memory that this process has allocated; those in use if the system does not tell."""
    gc.collect()
    memory = psutil.Process().memory_info()
    return int(getattr(memory, "data", memory.rss))

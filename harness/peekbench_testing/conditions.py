"""Conditions in which plugins are called: a time limit, and in a new process no network."""

from __future__ import annotations

import gc
import ipaddress
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from peekbench.errors import ContractError

LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname")
CONNECTIONS = ("socket.connect", "socket.sendto")


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

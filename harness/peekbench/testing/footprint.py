"""Notes which files a process writes into its working folder, and which other machines it connects to."""

from __future__ import annotations

import ipaddress
import os
import platform
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

WRITES: Mapping[str, int] = {
    "open": 0,
    "os.mkdir": 0,
    "os.rename": 1,
    "os.symlink": 1,
    "os.link": 1,
    "sqlite3.connect": 0,
}
"""Audit events of new and changed files, with the position of the path among their arguments."""
LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname")
CONNECTIONS = ("socket.connect", "socket.sendto")


class Footprint:
    """An audit hook for `sys.addaudithook`; libraries that write files without Python are not noticed."""

    def __init__(self) -> None:
        self._folder, self._temporary = os.path.realpath("."), os.path.realpath(tempfile.gettempdir())
        self._paths: set[str] = set()
        self._hosts: set[str] = set()

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an event."""
        if event in WRITES:
            path = arguments[WRITES[event]]
            if isinstance(path, str | bytes | os.PathLike) and (event != "open" or _is_writable(arguments[2])):
                self._paths.add(os.path.realpath(os.fsdecode(path)))
        elif event in LOOKUPS:
            self._add_host(arguments[0])
        elif event in CONNECTIONS and isinstance(arguments[1], tuple):  # others are sockets of files
            self._add_host(arguments[1][0])

    def _add_host(self, host: str | bytes | None) -> None:
        name = os.fsdecode(host or "")
        if name and not _is_this_machine(name):
            self._hosts.add(name)

    def hosts(self) -> tuple[str, ...]:
        """Return the names and addresses of other machines that the process looked up or connected to."""
        return tuple(sorted(self._hosts))

    def files(self) -> tuple[str, ...]:
        """Return the files and folders in the working folder that were written and still exist.

        Hidden ones, compiled modules, and those in a folder of temporary files are left out.
        """
        paths = [Path(path) for path in sorted(self._paths)]
        inside = [path for path in paths if path.is_relative_to(self._folder) and path.exists()]
        if Path(self._temporary).is_relative_to(self._folder):
            inside = [path for path in inside if not path.is_relative_to(self._temporary)]
        names = [path.relative_to(self._folder) for path in inside]
        return tuple(
            str(name) for name in names if not any(part.startswith((".", "__pycache__")) for part in name.parts)
        )


def _is_writable(flags: int) -> bool:
    return bool(flags & (os.O_WRONLY | os.O_RDWR))


def _is_this_machine(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host in ("localhost", platform.node())
    return address.is_loopback or address.is_unspecified

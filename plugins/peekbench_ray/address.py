"""Addresses of Ray clusters: checks that something answers, because Ray itself tries a wrong address for minutes."""

from __future__ import annotations

import os
import socket

from peekbench import PeekbenchError

AUTO = "auto"
ADDRESS_VARIABLE = "RAY_ADDRESS"
PROBE_TIMEOUT = 5.0  # seconds


def find_address(address: str) -> str:
    """Return the address of a running cluster, after a connection to it has succeeded.

    Parameters
    ----------
    address
        `host:port`, or 'auto' for `$RAY_ADDRESS`, or else the cluster that was started last on this machine.

    Raises
    ------
    PeekbenchError
        If it is no such address, or nothing answers there.
    """
    place = "executor.options.address"
    if address == AUTO:
        address = os.environ.get(ADDRESS_VARIABLE, "")
        place = f"${ADDRESS_VARIABLE}"
        if address in ("", AUTO):
            return AUTO  # which Ray finds in a file
    if "://" in address:
        raise PeekbenchError(
            f"{place}: {address} is an address of Ray Client, which cannot be used; run peekbench on a machine of the "
            "cluster, with the address that `ray start --head` prints, such as 10.0.0.1:6379, or with 'auto'"
        )
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise PeekbenchError(
            f"{place}: {address} is not an address; give host and port, such as 10.0.0.1:6379, or 'auto'"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), PROBE_TIMEOUT).close()
    except OSError as error:
        raise PeekbenchError(
            f"{place}: no Ray cluster answers at {address} ({error}); start one with `ray start --head`, correct the "
            "address, or leave it out to use this machine only"
        ) from error
    return address

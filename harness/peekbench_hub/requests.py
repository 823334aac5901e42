"""Requests of the Hub's client library: tried again after temporary errors, and limited in time and size.

The client library limits how long a server may be silent, and verifies neither the length of an answer nor the headers
that it uses as names of files. Its other uses in this process have no limits of this module.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from functools import cache
from threading import Thread
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
from huggingface_hub import constants, get_session, set_client_factory
from huggingface_hub.errors import HfHubHTTPError

from peekbench_hub.names import ETAG, is_valid, quote

Result = TypeVar("Result")
TEMPORARY_STATUS = (408, 429, 500, 502, 503, 504)
PAUSES = (1, 2)  # seconds before each retry
MAX_ANSWER_BYTES = 2**25  # of an answer that is not a file
MAX_ANSWER_SECONDS = 12 * constants.HF_HUB_ETAG_TIMEOUT  # by default 120: a large listing on a slow network
MIN_BYTES = 2**14  # of a file, in each HF_HUB_DOWNLOAD_TIMEOUT seconds
UNCOMPRESSED = {"accept-encoding": "identity"}  # the size of a compressed body would say nothing
OFFICIAL_HOSTS = ("huggingface.co", "hf.co")

_max_bytes: ContextVar[int | None] = ContextVar("_max_bytes", default=None)
"""Limit of each answer; None for requests that are not made by `request`."""


class RefusedAnswerError(Exception):
    """An answer that is not safe to use. The message says what the server did."""


def request(
    operation: Callable[[], Result], max_bytes: int = MAX_ANSWER_BYTES, seconds: float = MAX_ANSWER_SECONDS
) -> Result:
    """Call a function that sends requests through the client library, again after temporary errors.

    Parameters
    ----------
    operation
        The function.
    max_bytes
        Size of the largest answer.
    seconds
        Time limit of each call.

    Raises
    ------
    RefusedAnswerError
        If an answer is too large, too slow or unsafe.
    """
    _limit_client()
    for pause in PAUSES:
        try:
            return _call(operation, max_bytes, seconds)
        except Exception as error:
            if not find_status(error, TEMPORARY_STATUS):
                raise
        time.sleep(pause)
    return _call(operation, max_bytes, seconds)


def find_status(error: BaseException | None, status: Sequence[int]) -> Exception | None:
    """Return the cause of an error that is a response with one of some HTTP status; None if there is no such cause."""
    while error is not None:
        if isinstance(error, HfHubHTTPError | httpx2.HTTPStatusError) and error.response.status_code in status:
            return error
        error = error.__cause__
    return None


def limits_of_file(size: int) -> tuple[int, float]:
    """Return the limits in bytes and seconds of the download of a file with a size in bytes."""
    return max(size, MAX_ANSWER_BYTES), constants.HF_HUB_DOWNLOAD_TIMEOUT * (1 + size / MIN_BYTES)


def _call(operation: Callable[[], Result], max_bytes: int, seconds: float) -> Result:
    """Call the function in a thread, because no timeout of the client library ends answers that arrive byte by byte."""
    future: Future[Result] = Future()

    def work() -> None:
        _max_bytes.set(max_bytes)
        try:
            future.set_result(operation())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=work, daemon=True, name="peekbench-hub").start()
    try:
        return future.result(seconds)
    except TimeoutError as error:
        raise RefusedAnswerError(
            f"did not finish its answer in {seconds:.0f} seconds; for a slow network, set HF_HUB_ETAG_TIMEOUT and "
            "HF_HUB_DOWNLOAD_TIMEOUT to more seconds"
        ) from error


@cache
def _limit_client() -> None:
    """Let the client library make clients with the hooks of the present one and `_check`, once per process.

    Hooks of the present client alone would not last, because the client library makes a new one after an error of TLS.
    """
    hooks = get_session().event_hooks  # they include the check of HF_HUB_OFFLINE
    limited = {**hooks, "response": [_check, *hooks["response"]]}
    set_client_factory(lambda: httpx2.Client(event_hooks=limited, follow_redirects=True, timeout=None))


def _check(response: httpx2.Response) -> None:
    """Refuse an unsafe answer, also of a redirect, and limit its size."""
    max_bytes, headers = _max_bytes.get(), response.headers
    if max_bytes is None:
        return
    response.stream = _LimitedStream(response.stream, max_bytes)
    if response.status_code in TEMPORARY_STATUS:  # the client library would wait as long as the server asks it to
        raise HfHubHTTPError(f"{response.status_code} {http.client.responses[response.status_code]}", response=response)
    if response.request.method == "HEAD":
        requested = response.request.url.path.split("/")  # the client library uses these headers as names of files
        if "x-repo-commit" in headers and headers["x-repo-commit"] not in requested:
            raise RefusedAnswerError(f"named another commit, {quote(headers['x-repo-commit'])}")
        for name in ("etag", "x-linked-etag"):
            if name in headers and not is_valid(ETAG, headers[name]):
                raise RefusedAnswerError(f"sent the invalid {name} header {quote(headers[name])}")
        if urlsplit(constants.ENDPOINT).hostname not in OFFICIAL_HOSTS:
            headers.pop("x-xet-hash", None)  # such a download would not use this client and its limits
    elif headers.get("content-encoding", "identity").lower() != "identity":
        raise RefusedAnswerError("compressed its answer although the request excludes compression")


class _LimitedStream(httpx2.SyncByteStream):
    """Body of an answer that ends with an error if it is too large."""

    def __init__(self, stream: Any, max_bytes: int) -> None:
        self._stream, self._max_bytes = stream, max_bytes

    def __iter__(self) -> Iterator[bytes]:
        total = 0
        for chunk in self._stream:
            total += len(chunk)
            if total > self._max_bytes:
                raise RefusedAnswerError(f"sent more than {self._max_bytes:,} bytes")
            yield chunk

    def close(self) -> None:
        """Close the connection or give it back to the pool."""
        self._stream.close()

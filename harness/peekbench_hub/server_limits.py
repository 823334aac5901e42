"""Checks and limits of what a server sends, before any of it becomes a path, memory or a long wait.

The client library uses the commit and the ETag of an answer as names of files, waits as long as a server asks it to,
and reads answers of any length. The hooks of this module check every response of an operation that runs in `guarded`;
other uses of the client library in this process are not affected.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import httpx2
from huggingface_hub import constants, get_session, set_client_factory
from huggingface_hub.errors import HfHubHTTPError

from peekbench_hub.names import COMMIT, ETAG, is_valid, printable

Result = TypeVar("Result")
TIMEOUT = 10.0  # seconds until a server that sends nothing, or almost nothing, counts as unreachable
MIN_BYTES = 2**14  # bytes of a body that count as progress within TIMEOUT
MAX_WAIT = 5  # seconds that a server may ask the client to wait before a retry
MAX_ERRORS = 2  # temporary errors of a server after which an operation is not tried again
MAX_RESPONSES = 150  # per operation; a page of a listing has 1,000 files
MAX_ANSWER_SECONDS = 120.0  # of an operation that downloads no file
MAX_ANSWER_BYTES = 2**25  # of one answer that is not a file
MAX_WEB_FILE_BYTES = 2**30  # of a file whose size no server has announced
TEMPORARY_STATUS = (408, 429, 500, 502, 503, 504)
TOO_MANY_REQUESTS = 429
OFFICIAL_HOSTS = ("huggingface.co", "hf.co")
POLL_INTERVAL = 0.05  # seconds between two looks at a running operation
Body = Literal["answers", "file"]


class RefusedAnswerError(Exception):
    """An answer that is not safe to use. The message says what the server did."""


class RateLimitError(Exception):
    """The server refuses requests because there were too many. The message says how long it asks to wait."""


@dataclass(slots=True)
class Transfer:
    """State of an operation, shared between the thread that runs it and the thread that watches it."""

    body: Body
    """Whether the operation downloads a file or reads answers about repositories."""
    commit: str = ""
    """Full SHA that answers about files must have; empty for any."""
    file_bytes: int | None = None
    """Announced size of the file."""
    num_responses: int = 0
    num_errors: int = 0
    retry_after: float = 0.0
    """Seconds to wait after the last temporary error."""
    waiting_since: float | None = None
    """Time of the last progress of the current request; None between requests, which may take any time."""
    is_cancelled: bool = False
    problem: Exception | None = None
    """First problem, kept in case that the client library handles the exception."""

    def refuse(self, problem: str) -> RefusedAnswerError:
        """Return the error for an answer, and remember it."""
        error = RefusedAnswerError(problem)
        self.problem = self.problem or error
        return error


_current: ContextVar[Transfer | None] = ContextVar("_current", default=None)
_install_lock = threading.Lock()
_is_installed = False


def guarded(operation: Callable[[], Result], transfer: Transfer) -> Result:
    """Run an operation of the client library, again after a temporary error, with limits on sizes, waits and time.

    Parameters
    ----------
    operation
        Function that sends requests through the session of the client library. It runs in a thread of its own,
        because a server can delay it in ways that no timeout of the client library covers.
    transfer
        Limits and state of the operation.

    Raises
    ------
    RefusedAnswerError
        If an answer is too large, too slow or unsafe.
    RateLimitError
        If the server refuses requests for longer than a short wait.
    """
    _install()
    results: list[Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        _current.set(transfer)
        try:
            while True:
                try:
                    results.append(operation())
                    return
                except (HfHubHTTPError, httpx2.HTTPStatusError) as error:
                    if error.response.status_code not in TEMPORARY_STATUS or transfer.is_cancelled:
                        raise
                    time.sleep(transfer.retry_after)  # `_check_status` limits the wait and the number of errors
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True, name="peekbench-hub")
    started = time.monotonic()
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL_INTERVAL)
            _check_time(transfer, started)
    finally:
        transfer.is_cancelled = True
    if transfer.problem is not None:
        raise transfer.problem from (errors[0] if errors and errors[0] is not transfer.problem else None)
    if errors:
        raise errors[0]
    return results[0]


def _check_time(transfer: Transfer, started: float) -> None:
    now, waiting_since = time.monotonic(), transfer.waiting_since
    limit = max(TIMEOUT, constants.HF_HUB_DOWNLOAD_TIMEOUT) if transfer.body == "file" else TIMEOUT
    if waiting_since is not None and now - waiting_since > limit + POLL_INTERVAL:
        remedy = "; set HF_HUB_DOWNLOAD_TIMEOUT to more seconds for a slow network" if transfer.body == "file" else ""
        raise transfer.refuse(f"sent less than {MIN_BYTES:,} bytes in {limit:g} seconds{remedy}")
    if transfer.body == "answers" and now - started > MAX_ANSWER_SECONDS:
        raise transfer.refuse(f"did not finish its answers in {MAX_ANSWER_SECONDS:g} seconds")


def _install() -> None:
    """Replace the client of the client library by one with the same hooks and those of this module.

    The hooks are not added to the existing client, because the client library makes a new one after an error of TLS.
    A client that the user configured keeps its hooks, but not its transport: set proxies and certificates with the
    environment variables HTTPS_PROXY and SSL_CERT_FILE.
    """
    global _is_installed
    with _install_lock:
        if _is_installed:
            return
        hooks = get_session().event_hooks  # they include the check of HF_HUB_OFFLINE
        set_client_factory(
            lambda: httpx2.Client(
                event_hooks={
                    "request": [*hooks["request"], _check_request],
                    "response": [_check_response, *hooks["response"]],
                },
                follow_redirects=True,
                timeout=None,
            )
        )
        _is_installed = True


def _check_request(request: httpx2.Request) -> None:
    transfer = _current.get()
    if transfer is None:
        return
    transfer.num_responses += 1
    if transfer.num_responses > MAX_RESPONSES:
        raise transfer.refuse(f"sent more than {MAX_RESPONSES} pages or redirects")
    if "authorization" in request.headers and not _may_have_token(request.url.host):
        raise transfer.refuse(f"redirects the access token to another host, {printable(request.url.host)}")
    request.headers["accept-encoding"] = "identity"  # the size of a compressed body would say nothing
    timeouts: dict[str, Any] = request.extensions.get("timeout", {})
    request.extensions["timeout"] = {
        name: TIMEOUT if timeouts.get(name) is None else timeouts[name] for name in ("connect", "read", "write", "pool")
    }
    if transfer.waiting_since is None:  # otherwise, the previous request got no response
        transfer.waiting_since = time.monotonic()


def _may_have_token(host: str) -> bool:
    is_official = any(host == name or host.endswith(f".{name}") for name in OFFICIAL_HOSTS)
    return is_official or host == urlsplit(constants.ENDPOINT).hostname


def _check_response(response: httpx2.Response) -> None:
    transfer = _current.get()
    if transfer is None:
        return
    transfer.waiting_since = time.monotonic()
    _check_status(response, transfer)
    if response.headers.get("content-encoding", "identity").lower() != "identity" and response.request.method != "HEAD":
        raise transfer.refuse("compressed its answer although the request excludes compression")
    limit = MAX_ANSWER_BYTES
    if transfer.body == "file":
        if response.request.method == "HEAD":
            _check_file_headers(response, transfer)
        elif transfer.file_bytes is not None:
            limit = max(limit, transfer.file_bytes)
        else:
            limit = MAX_WEB_FILE_BYTES
    if response.is_success and response.request.method == "GET":
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if transfer.body == "answers" and kind != "application/json" and not kind.endswith("+json"):
            raise transfer.refuse(
                f"answered with {printable(kind) or 'no content type'} instead of JSON, as the login page of a network "
                "does"
            )
        if transfer.body == "file" and not transfer.commit and kind == "text/html":
            raise transfer.refuse("answered with a web page instead of the file, as the login page of a network does")
    announced = response.headers.get("content-length", "")
    if announced.isdecimal() and (len(announced) > 18 or int(announced) > limit) and response.request.method != "HEAD":
        raise transfer.refuse(f"announced {printable(announced)} bytes, more than the limit of {limit:,}")
    response.stream = _CountedStream(response.stream, transfer, limit)


def _check_status(response: httpx2.Response, transfer: Transfer) -> None:
    if response.status_code not in TEMPORARY_STATUS:
        return
    transfer.num_errors += 1
    reset = re.search(r";\s*t\s*=\s*(\d+)", response.headers.get("ratelimit", ""))
    waits = response.headers.get("retry-after", "").strip(), reset[1] if reset else ""
    seconds = max(filter(str.isdecimal, waits), key=lambda wait: (len(wait), wait), default="")
    is_long = len(seconds) > 9 or (seconds != "" and int(seconds) > MAX_WAIT)
    if not is_long and transfer.num_errors <= MAX_ERRORS:
        transfer.retry_after = float(seconds or transfer.num_errors)
        return  # the client library or `guarded` waits and tries again
    if response.status_code == TOO_MANY_REQUESTS:
        error = RateLimitError(f"{printable(seconds)} seconds" if seconds else "some minutes")
        transfer.problem = transfer.problem or error
        raise error
    if is_long:
        raise transfer.refuse(
            f"answered with status {response.status_code} and asks to wait {printable(seconds)} seconds"
        )
    raise transfer.refuse(f"answered {transfer.num_errors} times with an error, the last with {response.status_code}")


def _check_file_headers(response: httpx2.Response, transfer: Transfer) -> None:
    """Check the headers that the client library uses as names of files."""
    commit = response.headers.get("x-repo-commit")
    if commit is not None and (not is_valid(COMMIT, commit) or commit != (transfer.commit or commit)):
        raise transfer.refuse(f"named the commit {printable(repr(commit))} instead of {transfer.commit}")
    for header in ("etag", "x-linked-etag"):
        value = response.headers.get(header)
        if value is not None and not is_valid(ETAG, value):
            raise transfer.refuse(f"sent the invalid {header} header {printable(repr(value))}")
    if not _is_official_endpoint():
        response.headers.pop("x-xet-hash", None)  # such a download would not use this session and its checks
    if not response.is_success and not response.is_redirect:
        return
    size: str = response.headers.get("x-linked-size") or response.headers.get("content-length") or ""
    if not response.is_success and "x-linked-size" not in response.headers:
        return  # the redirect announces the size of its own body
    if not re.fullmatch(r"\d{1,18}", size, re.ASCII):
        raise transfer.refuse(f"announced no valid size of the file ({printable(size) or 'none'})")
    transfer.file_bytes = int(size)
    free = _free_bytes(Path(constants.HF_HUB_CACHE))
    if transfer.file_bytes > free:
        raise transfer.refuse(
            f"announced a file of {transfer.file_bytes:,} bytes, but the disk of {constants.HF_HUB_CACHE} has "
            f"{free:,} bytes left; free disk space, or set HF_HOME to a folder on another disk"
        )


def _is_official_endpoint() -> bool:
    return urlsplit(constants.ENDPOINT).hostname in OFFICIAL_HOSTS


def _free_bytes(folder: Path) -> int:
    folder = folder.expanduser().absolute()
    existing = next(path for path in (folder, *folder.parents) if path.is_dir())
    return shutil.disk_usage(os.fspath(existing)).free


class _CountedStream(httpx2.SyncByteStream):
    """Body of a response that ends with an error if it is too large or the operation was given up."""

    def __init__(self, stream: Any, transfer: Transfer, limit: int) -> None:
        self._stream = stream
        self._transfer = transfer
        self._limit = limit

    def __iter__(self) -> Iterator[bytes]:
        total = since_mark = 0
        for chunk in self._stream:
            total += len(chunk)
            since_mark += len(chunk)
            if self._transfer.is_cancelled:
                raise RefusedAnswerError("the operation was given up")
            if total > self._limit:
                raise self._transfer.refuse(f"sent more than {self._limit:,} bytes")
            if since_mark >= MIN_BYTES:
                since_mark = 0
                self._transfer.waiting_since = time.monotonic()
            yield chunk

    def close(self) -> None:
        """Close the connection or give it back to the pool."""
        self._transfer.waiting_since = None
        self._stream.close()

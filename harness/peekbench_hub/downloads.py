"""Commits, file lists and downloads of Hub repositories, with errors that users can act on.

Files are always requested with the full SHA of a commit, and their content is compared with the hashes that the Hub
lists for this commit, so a file is either the right one or missing, online or offline.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from peekbench import DataError
from peekbench.cache import atomic_write, read_cached, write_cached
from peekbench.errors import UnavailableError
from peekbench.formatting import shorten, visible
from peekbench_hub.names import COMMIT, DIGEST, FILE, is_valid, quote

RepositoryKind: TypeAlias = Literal["dataset", "model"]
FULL_SHA = re.compile(r"[0-9a-f]{40}")
TOO_MANY_REQUESTS = (429,)
REFUSED_STATUS = (401, 403)  # HTTP status: unknown account, or missing permission
MISSING_STATUS = (404, 410)
MAX_FILES = 50_000  # of one commit; the Hub's lists of more files are incomplete
MAX_WEB_FILE_BYTES = 2**30
MAX_WEB_FILE_SECONDS = 3600
LENGTH_OF_SHA256 = 64
MAX_MESSAGE = 300  # characters of an error of the client library, which may contain text of a server
FORMAT_ERRORS = (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Errors of the client library when an answer has another format than that of the Hub."""
NOT_SAVED = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
"""Error numbers of files that cannot be written."""


class NotFoundError(Exception):
    """A repository, commit or file that the Hub does not have. Another source may have it."""


class HubFile(NamedTuple):
    """A file of a commit."""

    digest: str
    """SHA-256 of a file in LFS; otherwise, the SHA-1 that git computes for a blob."""
    size: int
    """Number of bytes."""


# Answers of the Hub are cached in small files. They give the same commit again without a network, and without an import
# of the client library, which costs time and memory in every worker.


def _cache_file(cache: Path, kind: RepositoryKind, *key: str) -> Path:
    """Return the file that caches an answer of the Hub."""
    digest = hashlib.sha256(
        "\n".join((kind, os.environ.get("HF_ENDPOINT", "").rstrip("/"), *key)).encode()
    ).hexdigest()[:16]
    return cache / "hub" / f"{re.sub(r'[^A-Za-z0-9._-]', '@', key[-1])[:60]}-{digest}.json"


def resolve(kind: RepositoryKind, repository: str, branch: str, cache: Path, description: str) -> str:
    """Return the full SHA of the commit that a branch pointed to when this machine first asked.

    Parameters
    ----------
    kind
        Kind of the repository.
    repository
        Id of the repository.
    branch
        Branch, tag or commit.
    cache
        Cache folder, which keeps the answer for later calls, online or offline.
    description
        What is requested, for error messages.

    Raises
    ------
    NotFoundError
        If the repository or the branch does not exist.
    DataError
        If the Hub is unavailable or requires an account.
    """
    cache_file = _cache_file(cache, kind, repository, branch)
    cached = read_cached(cache_file)
    if cached and is_valid(COMMIT, cached["sha"]):
        return str(cached["sha"])
    sha = _ask(kind, repository, branch, description).sha
    if sha is None:
        raise NotFoundError(f"{repository}: the Hub names no commit of {branch}")
    if not is_valid(COMMIT, sha):
        raise _unusable(description, f"named the commit {quote(sha)}, which is not a full SHA")
    write_cached(cache_file, {"repository": repository, "branch": branch, "sha": sha})
    return str(sha)


def list_files(kind: RepositoryKind, repository: str, sha: str, cache: Path, description: str) -> dict[str, HubFile]:
    """Return the files of a commit by their paths.

    Parameters
    ----------
    kind
        Kind of the repository.
    repository
        Id of the repository.
    sha
        Full SHA of the commit.
    cache
        Cache folder, which keeps the answer for later calls, online or offline.
    description
        What is requested, for error messages.

    Raises
    ------
    NotFoundError
        If the repository or the commit does not exist.
    DataError
        If the Hub is unavailable or requires an account.
    """
    cache_file = _cache_file(cache, kind, repository, "files", sha)
    if cached := read_cached(cache_file):
        return {path: HubFile(*file) for path, file in cached["files"].items()}
    listed = _ask(kind, repository, sha, description, files_metadata=True).siblings or ()
    if len(listed) > MAX_FILES:
        raise _unusable(description, f"listed more than {MAX_FILES:,} files")
    files = {}
    for item in listed:
        path, digest = item.rfilename, item.lfs.sha256 if item.lfs else item.blob_id
        if not is_valid(FILE, path):
            raise _unusable(description, f"listed the file {quote(path)}, which is not a valid name")
        if not is_valid(DIGEST, digest):
            raise _unusable(description, f"listed {path} with {quote(digest)}, which is not a valid hash")
        if not isinstance(item.size, int):
            raise _unusable(description, f"listed {path} without its size")
        files[path] = HubFile(digest, item.size)
    write_cached(cache_file, {"repository": repository, "sha": sha, "files": files})
    return files


def _ask(kind: RepositoryKind, repository: str, revision: str, description: str, **what: Any) -> Any:
    """Return the Hub's answer about a revision of a repository."""
    from huggingface_hub import HfApi, constants  # noqa: PLC0415 - not needed if the answer is cached

    from peekbench_hub.requests import UNCOMPRESSED, request  # noqa: PLC0415 - imports the client library

    what |= {"repo_type": kind, "revision": revision, "timeout": constants.HF_HUB_ETAG_TIMEOUT}
    with _translated_errors(kind, repository, description):
        return request(partial(HfApi(headers=UNCOMPRESSED).repo_info, repository, **what))


def download(
    kind: RepositoryKind, repository: str, sha: str, files: Mapping[str, HubFile], cache: Path, description: str
) -> list[Path]:
    """Download files of a commit, unless the client library has cached them, and verify their content.

    A file is verified when it is first used and when its size or its time of change differs from then.

    Parameters
    ----------
    kind
        Kind of the repository.
    repository
        Id of the repository.
    sha
        Full SHA of the commit.
    files
        Files by their paths, from `list_files`.
    cache
        Cache folder, which keeps the states of the verified files.
    description
        What is requested, for error messages.

    Returns
    -------
    list of Path
        Local path of each file.

    Raises
    ------
    NotFoundError
        If the repository, the commit or a file does not exist.
    DataError
        If the Hub is unavailable or requires an account, or a file has other content.
    """
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - slow to import, and few commands download

    from peekbench_hub.requests import UNCOMPRESSED, limits_of_file, request  # noqa: PLC0415 - imports the client library

    paths = []
    cache_file = _cache_file(cache, kind, repository, "verified", sha)
    verified = read_cached(cache_file) or {}
    states = {}
    with _translated_errors(kind, repository, description):
        for file, (digest, size) in files.items():
            if not (is_valid(FILE, file) and is_valid(COMMIT, sha)):
                raise NotFoundError(f"{description}: {quote(file)} is not a valid name of a file")
            fetch = partial(hf_hub_download, repository, file, repo_type=kind, revision=sha, headers=UNCOMPRESSED)
            path = Path(request(fetch, *limits_of_file(size)))
            status = path.stat()
            states[file] = [digest, status.st_size, status.st_mtime_ns]
            if verified.get(file) != states[file]:
                _verify(path, digest, f"{file} of {description}")
            paths.append(path)
    if not states.items() <= verified.items():
        write_cached(cache_file, {**verified, **states})
    return paths


def _verify(path: Path, digest: str, description: str) -> None:
    """Remove a file of the client library's cache and raise an error if it has other content than announced."""
    is_lfs = len(digest) == LENGTH_OF_SHA256
    computed = hashlib.sha256() if is_lfs else hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        hashlib.file_digest(file, lambda: computed)
    if computed.hexdigest() != digest:
        path.resolve().unlink()  # the path may be a link to it; the next call downloads the file again
        raise UnavailableError(
            description,
            f"the file has the {'SHA-256' if is_lfs else 'SHA-1 of git'} {computed.hexdigest()}, but the Hub lists "
            f"{digest}: it is damaged or not the Hub's, and was removed from {path.parent}. Try again to download it; "
            "if this recurs, check the disk, HF_ENDPOINT and the network, such as its proxy",
        )


def download_web_file(url: str, path: Path) -> None:
    """Download a file that is not on the Hub.

    Parameters
    ----------
    url
        Address of the file.
    path
        Where to save it.

    Raises
    ------
    NotFoundError
        If the file does not exist.
    DataError
        If the server is unavailable, or the file cannot be saved.
    """
    from huggingface_hub import constants, get_session  # noqa: PLC0415 - slow to import, and rarely used

    from peekbench_hub.requests import UNCOMPRESSED, RefusedAnswerError, request  # noqa: PLC0415 - as above

    def fetch() -> None:
        timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
        with get_session().stream("GET", url, headers=UNCOMPRESSED, timeout=timeout) as response:
            if response.status_code in MISSING_STATUS:
                raise NotFoundError(f"{url}: no such file")
            response.raise_for_status()
            if response.headers.get("content-type", "").startswith("text/html"):
                raise RefusedAnswerError("answered with a web page instead of the file")
            with atomic_write(path) as temporary, temporary.open("xb") as file:
                for chunk in response.iter_bytes():
                    file.write(chunk)

    with _translated_errors("dataset", url, url):
        request(fetch, MAX_WEB_FILE_BYTES, MAX_WEB_FILE_SECONDS)


@contextmanager
def _translated_errors(kind: RepositoryKind, repository: str, description: str) -> Iterator[None]:
    """Turn errors of the client library into errors that users can act on."""
    import httpx2  # noqa: PLC0415 - slow to import, and only requests need it
    from huggingface_hub import errors, is_offline_mode  # noqa: PLC0415 - as above

    from peekbench_hub.requests import TEMPORARY_STATUS, RefusedAnswerError, find_status  # noqa: PLC0415 - as above

    page = f"huggingface.co/{'datasets/' if kind == 'dataset' else ''}{repository}"
    try:
        yield
    except RefusedAnswerError as error:
        raise _unusable(description, str(error)) from error
    except errors.GatedRepoError as error:
        raise DataError(
            f"{description}: the repository is gated. Ask for access on its page, {page}, then log in with "
            "`hf auth login` or set HF_TOKEN"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise NotFoundError(f"{description}: no such repository, or a private one") from error
    except errors.HFValidationError as error:
        raise NotFoundError(f"{description}: not a valid repository id") from error
    except errors.RevisionNotFoundError as error:
        raise NotFoundError(f"{description}: no such commit or branch") from error
    except errors.RemoteEntryNotFoundError as error:
        raise NotFoundError(f"{description}: no such file") from error
    except (OSError, httpx2.HTTPError) as error:
        if refusal := find_status(error, REFUSED_STATUS):
            raise DataError(
                f"{description}: the Hub refuses access to this account ({_first_line(refusal)}). Ask for access on "
                f"its page, {page}, and log in again with `hf auth login`, or set HF_TOKEN, with a token that has "
                "access to gated repositories"
            ) from error
        if find_status(error, TOO_MANY_REQUESTS):
            problem = (
                "the Hub refuses requests because there were too many (429 Too Many Requests). Wait some minutes, or "
                "log in with `hf auth login` for a higher limit, then try again"
            )
        elif is_offline_mode():
            problem = (
                "not in this machine's cache, and HF_HUB_OFFLINE is set. Run `peekbench validate --download SPEC` with "
                "a network connection, or name a local folder"
            )
        elif isinstance(error, OSError) and error.errno in NOT_SAVED:
            raise DataError(
                f"{description}: cannot save the files: {error}; free disk space, or set HF_HOME to a writable folder"
            ) from error
        else:
            reason = _first_line(find_status(error, TEMPORARY_STATUS) or error)
            problem = (
                f"cannot be reached ({reason}). Check the network and HF_ENDPOINT and try again, or set "
                "HF_HUB_OFFLINE=1 to use cached files only"
            )
        raise UnavailableError(description, problem) from error
    except (*FORMAT_ERRORS, httpx2.InvalidURL) as error:
        cause = f"{type(error).__name__}: {_first_line(error)}"
        raise _unusable(description, f"sent an answer that is not in the Hub's format ({cause})") from error


def _unusable(description: str, problem: str) -> UnavailableError:
    """Return the error for a server that does not behave like the Hub."""
    return UnavailableError(
        description,
        f"the server {problem}. Check HF_ENDPOINT and the network, such as its proxy or login page, and try again",
    )


def _first_line(error: Exception) -> str:
    """Return the first line of an error's message, without the id of the request."""
    lines = [line.strip() for line in str(error)[:10_000].splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith("(Request ID")), type(error).__name__)
    return shorten(visible(first), MAX_MESSAGE)

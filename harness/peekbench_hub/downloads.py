"""Commits, files and downloads of Hub repositories through `huggingface_hub`, with errors that users can act on.

Files are always requested with the full SHA of a commit, and their content is compared with the hashes that the Hub
lists for this commit, so a file is either the right one or missing, online or offline.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from peekbench import DataError
from peekbench.cache import atomic_write, read_cached, write_cached

RepositoryKind: TypeAlias = Literal["dataset", "model"]
FULL_SHA = re.compile(r"[0-9a-f]{40}")
LENGTH_OF_SHA256 = 64
MISSING_STATUS = (404, 410)  # of HTTP


class NotFoundError(Exception):
    """A repository, commit or file that the Hub does not have. Another source may have it."""


class HubFile(NamedTuple):
    """A file of a commit."""

    digest: str
    """SHA-256 of a file in LFS; otherwise, the SHA-1 that git computes for a blob."""
    size: int
    """Number of bytes."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a repository and its files."""

    kind: RepositoryKind
    repository: str
    sha: str
    files: Mapping[str, HubFile]

    def __str__(self) -> str:
        """Return the commit as shown in messages."""
        return f"{_describe(self.kind, self.repository)}, commit {self.sha}"


def _describe(kind: RepositoryKind, repository: str) -> str:
    return f"the {'model' if kind == 'model' else 'dataset repository'} {repository}"


def _cache_file(cache: Path, kind: RepositoryKind, repository: str, name: str) -> Path:
    """Return the file that caches an answer of the Hub."""
    key = "\n".join((kind, os.environ.get("HF_ENDPOINT", "").rstrip("/"), repository, name))
    return cache / "hub" / f"{repository.replace('/', '@')}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def find_commit(kind: RepositoryKind, repository: str, revision: str, cache: Path) -> Commit:
    """Return a commit with its files; that of a branch is the one to which it pointed when this machine first asked.

    Parameters
    ----------
    kind
        Kind of the repository.
    repository
        Id of the repository.
    revision
        Full SHA of a commit, branch or tag.
    cache
        Cache folder, which keeps the answer for later calls, online or offline.

    Raises
    ------
    NotFoundError
        If the repository or the revision does not exist.
    DataError
        If the Hub is unavailable or requires an account.
    """
    answer = read_cached(_cache_file(cache, kind, repository, revision))
    if answer is None:
        from huggingface_hub import HfApi, constants  # noqa: PLC0415 - slow to import, and not needed if cached

        with _translated_errors(kind, repository, f"{_describe(kind, repository)}, {revision}"):
            what: dict[str, Any] = {"repo_type": kind, "revision": revision, "files_metadata": True}
            info: Any = HfApi().repo_info(repository, timeout=constants.HF_HUB_ETAG_TIMEOUT, **what)
        listed = {item.rfilename: (item.lfs.sha256 if item.lfs else item.blob_id, item.size) for item in info.siblings}
        answer = {"sha": info.sha, "files": listed}
        for name in {revision, info.sha}:
            write_cached(_cache_file(cache, kind, repository, name), answer)
    return Commit(kind, repository, answer["sha"], {path: HubFile(*file) for path, file in answer["files"].items()})


def download(commit: Commit, names: Sequence[str], cache: Path) -> list[Path]:
    """Download files of a commit, unless `huggingface_hub` has cached them, and verify their content.

    A file is verified when it is first used and when its size or its time of change differs from then.

    Parameters
    ----------
    commit
        Result of `find_commit`.
    names
        Names of its files.
    cache
        Cache folder, which keeps the states of the verified files.

    Returns
    -------
    list of Path
        Local path of each file.

    Raises
    ------
    NotFoundError
        If the Hub no longer has a file.
    DataError
        If the Hub is unavailable or requires an account, or a file has other content.
    """
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - slow to import, and few commands download

    states_file = _cache_file(cache, commit.kind, commit.repository, f"verified {commit.sha}")
    verified = read_cached(states_file) or {}
    paths, states = [], {}
    for name in names:
        with _translated_errors(commit.kind, commit.repository, f"{name} of {commit}"):
            path = Path(hf_hub_download(commit.repository, name, repo_type=commit.kind, revision=commit.sha))
        status = path.stat()
        states[name] = [status.st_size, status.st_mtime_ns]
        if verified.get(name) != states[name]:
            _verify(path, commit.files[name], f"{name} of {commit}")
        paths.append(path)
    if not states.items() <= verified.items():
        write_cached(states_file, {**verified, **states})
    return paths


def _verify(path: Path, file: HubFile, description: str) -> None:
    """Remove a file of the cache of `huggingface_hub` and raise an error if it has other content than the Hub lists."""
    size = path.stat().st_size
    computed, kind = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False), "SHA-1 of git"
    if len(file.digest) == LENGTH_OF_SHA256:
        computed, kind = hashlib.sha256(), "SHA-256"
    with path.open("rb") as content:
        hashlib.file_digest(content, lambda: computed)
    if computed.hexdigest() != file.digest:
        path.resolve().unlink()  # the path may be a link to it; the next call downloads the file again
        raise DataError(
            f"{description}: the file has the {kind} {computed.hexdigest()} and {size:,} bytes, but the Hub lists "
            f"{file.digest} and {file.size:,} bytes; it was damaged, and is now removed from {path.parent}. Try again "
            "to download it; if this recurs, check the disk and the network"
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

    with _translated_errors("dataset", url, url):
        response = get_session().get(url, timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT)
        if response.status_code in MISSING_STATUS:
            raise NotFoundError(f"{url}: no such file")
        response.raise_for_status()
        with atomic_write(path) as temporary:
            temporary.write_bytes(response.content)


@contextmanager
def _translated_errors(kind: RepositoryKind, repository: str, description: str) -> Iterator[None]:
    """Turn errors of `huggingface_hub` into errors that users can act on."""
    import httpx2  # noqa: PLC0415 - slow to import, and only requests need it
    from huggingface_hub import errors, is_offline_mode  # noqa: PLC0415 - as above

    try:
        yield
    except errors.GatedRepoError as error:
        page = f"huggingface.co/{'datasets/' if kind == 'dataset' else ''}{repository}"
        raise DataError(
            f"{description}: the repository is gated. Ask for access on its page, {page}, then log in with "
            "`hf auth login` or set HF_TOKEN"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise NotFoundError(
            f"{_describe(kind, repository)}: it does not exist, or is private and needs `hf auth login`"
        ) from error
    except errors.HFValidationError as error:
        raise NotFoundError(f"{description}: not a valid repository id") from error
    except errors.RevisionNotFoundError as error:
        raise NotFoundError(f"{description}: no such commit or branch") from error
    except errors.RemoteEntryNotFoundError as error:
        raise NotFoundError(f"{description}: no such file") from error
    except (OSError, ValueError, httpx2.HTTPError) as error:  # ValueError: an answer that is not the Hub's
        if isinstance(error, OSError) and error.errno:
            raise DataError(
                f"{description}: cannot save the files: {error}; free disk space, or set HF_HOME to a writable folder"
            ) from error
        problem = (
            f"cannot be reached ({_find_reason(error)}). Check the network, HF_ENDPOINT and `hf auth login` and try "
            "again, or set HF_HUB_OFFLINE=1 to use cached files only"
        )
        if is_offline_mode():
            problem = (
                "not in this machine's cache, and HF_HUB_OFFLINE is set. Run `peekbench validate --download SPEC` with "
                "a network connection, or name a local folder"
            )
        raise DataError(f"{description}: {problem}") from error


def _find_reason(error: BaseException) -> str:
    """Return the first line of the message of an error, or of its cause that has the Hub's response."""
    shown: Any = error
    while shown is not None and getattr(shown, "response", None) is None:
        shown = shown.__cause__
    return str(shown or error).strip().partition("\n")[0] or type(error).__name__

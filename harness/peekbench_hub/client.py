"""Asks the Hub for a repository's commit and files, downloads files of one commit, and puts what goes wrong into words.

A file that is named with its commit's full SHA is either the right one or not there, with a network and without.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from peekbench import DataError
from peekbench.cache import read_cached, write_cached
from peekbench.errors import UnavailableError

RepositoryKind: TypeAlias = Literal["dataset", "model"]
FULL_SHA = re.compile(r"[0-9a-f]{40}")
REFUSED = (401, 403)  # what servers answer where somebody is unknown, or may not do a thing
TIMEOUT = 10.0  # seconds until a server that does not answer counts as unreachable


class NotFoundError(Exception):
    """A place no longer has what it is said to have; another one may."""


# What the Hub said is kept in small files: with them, a task is found again without a network, at the same commit, and
# without importing the client library, which takes its time and some memory in every worker.


def _memo(cache: Path, kind: RepositoryKind, *key: str) -> Path:
    digest = hashlib.sha256(
        "\n".join((kind, os.environ.get("HF_ENDPOINT", "").rstrip("/"), *key)).encode()
    ).hexdigest()[:16]
    return cache / "hub" / f"{key[-1].replace('/', '@')[:60]}-{digest}.json"


def resolve(kind: RepositoryKind, repository: str, branch: str, cache: Path, sought: str) -> str:
    """Full SHA of the commit that a branch pointed to when this machine first asked.

    Parameters
    ----------
    cache
        Where the answer is kept, so that the same commit is found the next time, and without a network too.
    sought
        What is looked for, in words, for messages.

    Raises
    ------
    NotFoundError
        Where repository or branch do not exist.
    DataError
        Where the Hub cannot be asked, or asks for an account.
    """
    memo = _memo(cache, kind, repository, branch)
    if known := read_cached(memo):
        return str(known["sha"])
    from huggingface_hub import HfApi

    with explained(kind, repository, sought):
        sha = HfApi().repo_info(repository, repo_type=kind, revision=branch, timeout=TIMEOUT).sha
    if sha is None:
        raise NotFoundError(f"{repository}: the Hub names no commit of {branch}")
    write_cached(memo, {"repository": repository, "branch": branch, "sha": sha})
    return sha


def list_files(kind: RepositoryKind, repository: str, sha: str, cache: Path, sought: str) -> list[str]:
    """Paths of a commit's files; arguments and errors as `resolve`."""
    memo = _memo(cache, kind, repository, sha)
    if known := read_cached(memo):
        return list(known["files"])
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    api = HfApi()
    with explained(kind, repository, sought):
        api.repo_info(repository, repo_type=kind, revision=sha, timeout=TIMEOUT)  # fails at once; listing tries on
        tree = api.list_repo_tree(repository, revision=sha, repo_type=kind, recursive=True)
        files = [item.path for item in tree if isinstance(item, RepoFile)]
    write_cached(memo, {"repository": repository, "sha": sha, "files": files})
    return files


def download(kind: RepositoryKind, repository: str, sha: str, files: Sequence[str], sought: str) -> list[Path]:
    """Files of a commit, from the client library's cache where they are there; errors as `resolve`."""
    from huggingface_hub import hf_hub_download

    with explained(kind, repository, sought):
        return [
            Path(hf_hub_download(repository, file, repo_type=kind, revision=sha, etag_timeout=TIMEOUT))
            for file in files
        ]


@contextmanager
def explained(kind: RepositoryKind, repository: str, sought: str) -> Iterator[None]:
    """Turn what the client library raises into what a user can act on."""
    import httpx2
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise DataError(
            f"{sought}: the repository is gated. Ask for access on its page, {_page(kind, repository)}, then log in "
            "with `hf auth login` or set HF_TOKEN"
        ) from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        from huggingface_hub import is_offline_mode

        if refusal := _refusal(error):  # which the client library takes for a broken connection
            raise _refused(kind, repository, sought, refusal) from error
        raise (not_cached(sought) if is_offline_mode() else unreachable(sought, error)) from error
    except errors.RepositoryNotFoundError as error:
        raise NotFoundError(f"{sought}: no such repository, or a private one") from error
    except errors.HFValidationError as error:
        raise NotFoundError(f"{sought}: that is no name of a repository") from error
    except errors.RevisionNotFoundError as error:
        raise NotFoundError(f"{sought}: no such commit or branch") from error
    except errors.RemoteEntryNotFoundError as error:
        raise NotFoundError(f"{sought}: no such file") from error
    except (OSError, httpx2.HTTPError) as error:
        if refusal := _refusal(error):
            raise _refused(kind, repository, sought, refusal) from error
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise DataError(
                f"{sought}: cannot be kept: {error}; make room, or set HF_HOME to a folder that can be written"
            ) from error
        raise unreachable(sought, error) from error


def _page(kind: RepositoryKind, repository: str) -> str:
    return f"huggingface.co/{'datasets/' if kind == 'dataset' else ''}{repository}"


def _refusal(error: BaseException | None) -> Exception | None:
    """The server's answer that it knows no such account, or does not let it have this, if that lies behind an error."""
    from huggingface_hub.errors import HfHubHTTPError

    while error is not None:
        if isinstance(error, HfHubHTTPError) and error.response.status_code in REFUSED:
            return error
        error = error.__cause__
    return None


def _refused(kind: RepositoryKind, repository: str, sought: str, refusal: Exception) -> DataError:
    return DataError(
        f"{sought}: the Hub refuses it to this account ({_first_line(refusal)}). Ask for access on its page, "
        f"{_page(kind, repository)}, and log in again with `hf auth login`, or set HF_TOKEN, by a token that may read "
        "gated repositories"
    )


def not_cached(sought: str) -> UnavailableError:
    """The error that something is not here, and that nobody may be asked."""
    return UnavailableError(
        sought,
        "not in this machine's cache, and HF_HUB_OFFLINE is set. Run `peekbench prefetch SPEC` where there is a "
        "network, or name a local folder",
    )


def unreachable(sought: str, error: Exception) -> UnavailableError:
    """The error that a server does not answer."""
    return UnavailableError(
        sought,
        f"cannot be reached ({_first_line(error)}). Check the network and HF_ENDPOINT and try again; with "
        "HF_HUB_OFFLINE=1 only what is cached is used",
    )


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("(Request ID")), type(error).__name__)

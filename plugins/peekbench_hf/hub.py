"""Finds a task's files on the Hub, at one commit, and downloads them.

`datasets.load_dataset` is not used: it refuses repositories with a loading script, silently joins all configurations of
the conversion branch, and offline returns the newest cached copy whatever revision is asked for. A file that is named
with its commit's full SHA has none of these ways to go wrong.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from peekbench import DataError, read_cached, write_cached
from peekbench_hf.definition import CONVERSION, HubFiles, Place, WebFile

FULL_SHA = re.compile(r"[0-9a-f]{40}")
SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.")
TIMEOUT = 10.0  # seconds until a server that does not answer counts as unreachable


class GoneError(Exception):
    """A place no longer has what it is said to have; another one may."""


@dataclass(frozen=True, slots=True)
class Located:
    """Files that are known to be there, at one commit, and not downloaded yet."""

    place: Place
    origin: str
    """Where from, in words."""
    revision: str
    """Full SHA of the commit; empty where there is none to know."""
    identity: str
    """Differs where the files may differ."""
    fetch: Callable[[], list[Path]]
    """Downloads what is not cached; the files in order."""


def locate(place: Place, revision: str, cache: Path) -> Located:
    """Find the files of a place, asking the Hub only what this machine does not know yet.

    Parameters
    ----------
    revision
        Full SHA, or a branch, in the place of the recorded one; may be empty.
    cache
        Where the answers are kept, so that the next time the same commit is found, and without a network too.

    Raises
    ------
    GoneError
        Where repository, revision or files do not exist.
    DataError
        Where the Hub cannot be asked, or asks for an account.
    """
    if isinstance(place, WebFile):
        return _locate_on_the_web(place, cache)
    wanted = revision or place.revision or place.branch
    sought = f"{place.files} in the dataset repository {place.repository}, {wanted}"
    sha = wanted if FULL_SHA.fullmatch(wanted) else _resolve(place.repository, wanted, cache, sought)
    files = _list_files(place.repository, sha, cache, sought)
    chosen = place.choose(files)
    if not chosen:
        raise GoneError(f"{sought}: no such file; {_instead(place, files)}")
    _check_shards(sought, chosen)
    origin = f"{place.files} in the dataset repository {place.repository}, commit {sha}"
    fetch = partial(_download, place, sha, chosen, origin)
    return Located(place, origin, sha, f"{place.repository}@{sha} {chosen}", fetch)


def locate_in_mirror(place: Place, mirror: Path, revision: str) -> Located:
    """Find the files of a place in a local mirror.

    Raises
    ------
    GoneError
        Where they are not there.
    DataError
        Where some of them are missing.
    """
    if isinstance(place, WebFile):
        return _from_disk(place, [mirror / "web" / place.address.partition("://")[2]], f"{place}, in a local mirror")
    branch = revision or place.branch
    folders = [mirror / "datasets" / place.repository / name.replace("/", "@") for name in (place.revision, branch)]
    for folder in folders if place.revision and not revision else folders[1:]:
        inside = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
        if chosen := place.choose(inside):
            _check_shards(str(folder), chosen)
            return _from_disk(place, [folder / name for name in chosen], f"{place}, in a local mirror")
    raise GoneError(f"{folders[-1] / place.files}: no such file")


def _from_disk(place: Place, paths: list[Path], origin: str) -> Located:
    try:
        states = [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    except FileNotFoundError as error:
        raise GoneError(f"{error.filename}: no such file") from error
    return Located(place, origin, "", repr(states), lambda: paths)


def _instead(place: HubFiles, files: list[str]) -> str:
    """What there is where there are none."""
    config, split, *_ = [*place.files.split("/"), "", ""]
    if any(file.startswith(f"{config}/partial-{split}/") for file in files):
        return (
            f"the Hub's copy is truncated ({config}/partial-{split} has the first rows only), and part of a dataset is "
            "never taken for the whole"
        )
    if place.branch == CONVERSION:
        splits = sorted({file.rpartition("/")[0] for file in files if file.endswith(".parquet")})
        return f"there are, as configuration/split, {', '.join(splits) or 'none'}"
    return f"there are {', '.join(files[:8]) or 'none'}{', ...' if len(files) > 8 else ''}"


def _check_shards(sought: str, files: tuple[str, ...]) -> None:
    counts = [match.groups() for match in map(SHARD.search, files) if match]
    if counts and len(counts) != int(counts[0][1]):
        raise DataError(f"{sought}: {len(counts)} of {int(counts[0][1])} files are there; complete them")


# What the Hub said is kept in small files: with them, a task is found again without a network, at the same commit, and
# without importing the client library, which takes its time and some memory in every worker.


def _memo(cache: Path, *key: str) -> Path:
    digest = hashlib.sha256("\n".join(key).encode()).hexdigest()[:16]
    return cache / "hf" / "known" / f"{key[-1].replace('/', '@')[:60]}-{digest}.json"


def _resolve(repository: str, branch: str, cache: Path, sought: str) -> str:
    memo = _memo(cache, _endpoint(), repository, branch)
    if known := read_cached(memo):
        return str(known["sha"])
    from huggingface_hub import HfApi

    with _explained(repository, sought):
        sha = HfApi().dataset_info(repository, revision=branch, timeout=TIMEOUT).sha
    if sha is None:
        raise GoneError(f"{repository}: the Hub names no commit of {branch}")
    write_cached(memo, {"repository": repository, "branch": branch, "sha": sha})
    return sha


def _list_files(repository: str, sha: str, cache: Path, sought: str) -> list[str]:
    memo = _memo(cache, _endpoint(), repository, sha)
    if known := read_cached(memo):
        return list(known["files"])
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    api = HfApi()
    with _explained(repository, sought):
        api.dataset_info(repository, revision=sha, timeout=TIMEOUT)  # fails at once; listing would try half a minute
        tree = api.list_repo_tree(repository, revision=sha, repo_type="dataset", recursive=True)
        files = [item.path for item in tree if isinstance(item, RepoFile)]
    write_cached(memo, {"repository": repository, "sha": sha, "files": files})
    return files


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "").rstrip("/")


def _download(place: HubFiles, sha: str, files: tuple[str, ...], sought: str) -> list[Path]:
    from huggingface_hub import hf_hub_download

    with _explained(place.repository, sought):
        return [
            Path(hf_hub_download(place.repository, file, repo_type="dataset", revision=sha, etag_timeout=TIMEOUT))
            for file in files
        ]


def _locate_on_the_web(place: WebFile, cache: Path) -> Located:
    """Download the file, if it is not here yet: there is no other way to find out whether it is there."""
    import pooch
    from huggingface_hub import is_offline_mode

    folder = cache / "hf" / "web" / hashlib.sha256(place.address.encode()).hexdigest()[:16]
    name = place.address.rpartition("/")[2]
    if not (folder / name).is_file():
        if is_offline_mode():
            raise _not_cached(place.address)
        pooch.get_logger().setLevel("WARNING")
        try:
            pooch.retrieve(
                place.address,
                known_hash=None,
                fname=name,
                path=folder,
                downloader=pooch.HTTPDownloader(timeout=TIMEOUT),
            )
        except OSError as error:
            if getattr(getattr(error, "response", None), "status_code", 0) in (404, 410):
                raise GoneError(f"{place}: no such file") from error
            raise _unreachable(place.address, error) from error
    return _from_disk(place, [folder / name], place.address)


@contextmanager
def _explained(repository: str, sought: str) -> Iterator[None]:
    """Turn what the client library raises into what a user can act on."""
    import httpx2
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise DataError(
            f"{sought}: the repository is gated. Ask for access on its page, "
            f"huggingface.co/datasets/{repository}, then log in with `hf auth login` or set HF_TOKEN"
        ) from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        from huggingface_hub import is_offline_mode

        raise (_not_cached(sought) if is_offline_mode() else _unreachable(sought, error)) from error
    except errors.RepositoryNotFoundError as error:
        raise GoneError(f"{sought}: no such repository, or a private one") from error
    except errors.RevisionNotFoundError as error:
        raise GoneError(f"{sought}: no such commit or branch") from error
    except errors.RemoteEntryNotFoundError as error:
        raise GoneError(f"{sought}: no such file") from error
    except (OSError, httpx2.HTTPError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise DataError(
                f"{sought}: cannot be kept: {error}; make room, or set HF_HOME to a folder that can be written"
            ) from error
        raise _unreachable(sought, error) from error


def _not_cached(sought: str) -> DataError:
    return DataError(
        f"{sought}: not in this machine's cache, and HF_HUB_OFFLINE is set. Run `peekbench prefetch SPEC` where there "
        "is a network, or set `data_dir` to a local mirror"
    )


def _unreachable(sought: str, error: Exception) -> DataError:
    return DataError(
        f"{sought}: cannot be reached ({_first_line(error)}). Check the network and HF_ENDPOINT and try again; with "
        "HF_HUB_OFFLINE=1 only what is cached is used"
    )


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("(Request ID")), type(error).__name__)

"""Finds a task's files on the Hub, at one commit, and downloads them.

`datasets.load_dataset` is not used: it refuses repositories with a loading script, silently joins all configurations of
the conversion branch, and offline returns the newest cached copy whatever revision is asked for. A file that is named
with its commit's full SHA has none of these ways to go wrong.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from peekbench import DataError
from peekbench_hf.definition import CONVERSION, HubFiles, Place, WebFile
from peekbench_hub.client import (
    FULL_SHA,
    TIMEOUT,
    NotFoundError,
    download,
    list_files,
    not_cached,
    resolve,
    unreachable,
)

SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.")


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
    NotFoundError
        Where repository, revision or files do not exist.
    DataError
        Where the Hub cannot be asked, or asks for an account.
    """
    if isinstance(place, WebFile):
        return _locate_on_the_web(place, cache)
    wanted = revision or place.revision or place.branch
    sought = f"{place.files} in the dataset repository {place.repository}, {wanted}"
    sha = wanted if FULL_SHA.fullmatch(wanted) else resolve("dataset", place.repository, wanted, cache, sought)
    files = list_files("dataset", place.repository, sha, cache, sought)
    chosen = place.choose(files)
    if not chosen:
        raise NotFoundError(f"{sought}: no such file; {_instead(place, files)}")
    _check_shards(sought, chosen)
    origin = f"{place.files} in the dataset repository {place.repository}, commit {sha}"
    fetch = partial(download, "dataset", place.repository, sha, chosen, origin)
    return Located(place, origin, sha, f"{place.repository}@{sha} {chosen}", fetch)


def locate_in_mirror(place: Place, mirror: Path, revision: str) -> Located:
    """Find the files of a place in a local mirror.

    Raises
    ------
    NotFoundError
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
    raise NotFoundError(f"{folders[-1] / place.files}: no such file")


def _from_disk(place: Place, paths: list[Path], origin: str) -> Located:
    try:
        states = [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    except FileNotFoundError as error:
        raise NotFoundError(f"{error.filename}: no such file") from error
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


def _locate_on_the_web(place: WebFile, cache: Path) -> Located:
    """Download the file, if it is not here yet: there is no other way to find out whether it is there."""
    import pooch
    from huggingface_hub import is_offline_mode

    folder = cache / "hf" / "web" / hashlib.sha256(place.address.encode()).hexdigest()[:16]
    name = place.address.rpartition("/")[2]
    if not (folder / name).is_file():
        if is_offline_mode():
            raise not_cached(place.address)
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
                raise NotFoundError(f"{place}: no such file") from error
            raise unreachable(place.address, error) from error
    return _from_disk(place, [folder / name], place.address)

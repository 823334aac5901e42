"""Locate a task's files on the Hub at one commit, on the web or in a local mirror, and download them.

This module does not use `datasets.load_dataset`. That function refuses repositories with a loading script, joins all
configurations of the conversion branch without warning, and offline returns the newest cached copy for any requested
revision. Requesting each file by its commit's full SHA avoids these problems.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from peekbench import DataError
from peekbench_hf.definition import CONVERSION, HubFiles, Location, WebFile
from peekbench_hub.downloads import (
    FULL_SHA,
    NotFoundError,
    download,
    download_web_file,
    list_files,
    resolve,
)

SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.")


@dataclass(frozen=True, slots=True)
class LocatedFiles:
    """Files that are known to exist, at one commit, and may not be downloaded yet."""

    location: Location
    origin: str
    """Description of the location for messages and reports."""
    revision: str
    """Full SHA of the commit; empty for files without a commit."""
    identity: str
    """A string that differs between files with different contents."""
    fetch: Callable[[], list[Path]]
    """Downloads files that are not cached; returns the paths of all files in order."""


def locate(location: Location, revision: str, cache: Path) -> LocatedFiles:
    """Find the files of a location; asks the Hub only for what this machine has not looked up before.

    Parameters
    ----------
    location
        Files on the Hub or on the web.
    revision
        Full SHA or branch that replaces the location's own; may be empty.
    cache
        Folder in which the Hub's answers are stored, so that later calls find the same commit, even offline.

    Raises
    ------
    NotFoundError
        If the repository, the revision or the files do not exist.
    DataError
        If the Hub is unavailable or requires an account.
    """
    if isinstance(location, WebFile):
        return _locate_on_web(location, cache)
    reference = revision or location.revision or location.branch
    requested = f"{location.files} in the dataset repository {location.repository}, {reference}"
    if FULL_SHA.fullmatch(reference):
        sha = reference
    else:
        sha = resolve("dataset", location.repository, reference, cache, requested)
    files = list_files("dataset", location.repository, sha, cache, requested)
    chosen = location.choose(files)
    if not chosen:
        raise NotFoundError(f"{requested}: no such file; {_describe_alternatives(location, list(files))}")
    _check_shards(requested, chosen)
    origin = f"{location.files} in the dataset repository {location.repository}, commit {sha}"
    digests = {file: files[file] for file in chosen}
    fetch = partial(download, "dataset", location.repository, sha, digests, cache, origin)
    return LocatedFiles(location, origin, sha, f"{location.repository}@{sha} {digests}", fetch)


def locate_in_mirror(location: Location, mirror: Path, revision: str) -> LocatedFiles:
    """Find the files of a location in a local mirror.

    Parameters
    ----------
    location
        Files on the Hub or on the web.
    mirror
        Root folder of the mirror.
    revision
        Commit or branch that replaces the location's own; may be empty.

    Raises
    ------
    NotFoundError
        If the mirror does not have the files.
    DataError
        If some of the files are missing.
    """
    if isinstance(location, WebFile):
        path = mirror / "web" / location.url.partition("://")[2]
        return _locate_on_disk(location, [path], f"{location}, in a local mirror")
    branch = revision or location.branch
    folders = [
        mirror / "datasets" / location.repository / name.replace("/", "@") for name in (location.revision, branch)
    ]
    for folder in folders if location.revision and not revision else folders[1:]:
        paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
        if chosen := location.choose(paths):
            _check_shards(str(folder), chosen)
            return _locate_on_disk(location, [folder / name for name in chosen], f"{location}, in a local mirror")
    raise NotFoundError(f"{folders[-1] / location.files}: no such file")


def _locate_on_disk(location: Location, paths: list[Path], origin: str) -> LocatedFiles:
    try:
        states = [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    except FileNotFoundError as error:
        raise NotFoundError(f"{error.filename}: no such file") from error
    return LocatedFiles(location, origin, "", repr(states), lambda: paths)


def _describe_alternatives(location: HubFiles, files: list[str]) -> str:
    """Describe what a repository contains instead of the requested files."""
    config, split, *_ = [*location.files.split("/"), "", ""]
    if any(file.startswith(f"{config}/partial-{split}/") for file in files):
        return (
            f"the Hub's copy is truncated ({config}/partial-{split} contains only the first rows), and peekbench does "
            "not load truncated data"
        )
    if location.branch == CONVERSION:
        splits = sorted({file.rpartition("/")[0] for file in files if file.endswith(".parquet")})
        return (
            f"available configurations and splits: {', '.join(splits) or 'none'}; set `config`, `split` and "
            "`test_split` to these"
        )
    return f"available files: {', '.join(files[:8]) or 'none'}{', ...' if len(files) > 8 else ''}"


def _check_shards(requested: str, files: tuple[str, ...]) -> None:
    shards = [match.groups() for match in map(SHARD.search, files) if match]
    if shards and len(shards) != int(shards[0][1]):
        raise DataError(f"{requested}: only {len(shards)} of {int(shards[0][1])} files exist; add the missing files")


def _locate_on_web(location: WebFile, cache: Path) -> LocatedFiles:
    """Download the file if it is not cached; there is no other way to find out whether it exists."""
    folder = cache / "hf" / "web" / hashlib.sha256(location.url.encode()).hexdigest()[:16]
    name = location.url.rpartition("/")[2]
    if not (folder / name).is_file():
        download_web_file(location.url, folder / name)
    return _locate_on_disk(location, [folder / name], location.url)

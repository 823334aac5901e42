"""Locate a task's files on the Hub at one commit, on the web or in a local mirror.

This module does not use `datasets.load_dataset`. That function refuses repositories with a loading script, joins all
configurations of the conversion branch without warning, and offline returns the newest cached copy for any requested
revision. Requesting each file by its commit's full SHA avoids these problems.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from peekbench import DataError
from peekbench_hf.definition import CONVERSION, HubFiles, Location, WebFile
from peekbench_hub.downloads import NotFoundError, download, download_web_file, find_commit

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
        folder = cache / "hf" / "web" / hashlib.sha256(location.url.encode()).hexdigest()[:16]
        path = folder / location.url.rpartition("/")[2]
        if not path.is_file():  # there is no other way to find out whether it exists
            download_web_file(location.url, path)
        return _locate_on_disk(location, [path], location.url)
    reference = revision or location.revision or location.branch
    commit = find_commit("dataset", location.repository, reference, cache)
    chosen = location.choose(commit.files)
    if not chosen:
        place = f"{location.first_pattern} in the dataset repository {location.repository}, {reference}"
        raise NotFoundError(f"{place}: {_describe_alternatives(location, list(commit.files))}")
    _check_shards(f"{commit}", chosen)
    fetch = partial(download, commit, chosen, cache)
    identity = f"{location.repository}@{commit.sha} {chosen}"
    return LocatedFiles(location, f"{location.first_pattern} in {commit}", commit.sha, identity, fetch)


def locate_in_mirror(location: Location, revision: str, mirror: Path) -> LocatedFiles:
    """Find the files of a location in a local mirror.

    Parameters
    ----------
    location
        Files on the Hub or on the web.
    revision
        Commit or branch that replaces the location's own; may be empty.
    mirror
        Root folder of the mirror.

    Raises
    ------
    NotFoundError
        If the mirror does not have the files.
    DataError
        If some of the files are missing.
    """
    origin = f"{location}, in a local mirror"
    if isinstance(location, WebFile):
        return _locate_on_disk(location, [mirror / "web" / location.url.partition("://")[2]], origin)
    branches = [revision or location.branch]
    if location.revision and not revision:
        branches.insert(0, location.revision)
    for branch in branches:
        folder = mirror / "datasets" / location.repository / branch.replace("/", "@")
        chosen = location.choose(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        if chosen:
            _check_shards(str(folder), chosen)
            return _locate_on_disk(location, [folder / name for name in chosen], origin)
    raise NotFoundError(f"{folder / location.files}: no such file")


def _locate_on_disk(location: Location, paths: list[Path], origin: str) -> LocatedFiles:
    try:
        states = [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    except FileNotFoundError as error:
        raise NotFoundError(f"{error.filename}: no such file") from error
    return LocatedFiles(location, origin, "", repr(states), lambda: paths)


def _describe_alternatives(location: HubFiles, files: Sequence[str]) -> str:
    """Describe what a repository contains instead of the requested files."""
    if location.branch == CONVERSION:
        splits = sorted({file.rpartition("/")[0] for file in files if file.endswith(".parquet")})
        return (
            f"no such configuration and split; available: {', '.join(splits) or 'none'}. Set `config`, `split` and "
            "`test_split` to these"
        )
    return f"no such file; available files: {', '.join(files[:8]) or 'none'}{', ...' if len(files) > 8 else ''}"


def _check_shards(place: str, files: Sequence[str]) -> None:
    shards = [match.groups() for match in map(SHARD.search, files) if match]
    if shards and len(shards) != int(shards[0][1]):
        raise DataError(f"{place}: only {len(shards)} of {int(shards[0][1])} files exist; add the missing files")

"""A view of the cache in which fits on sample data may write, without a trace in the cache itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from peekbench.cache import cache_folder


@contextmanager
def view_cache() -> Iterator[Path]:
    """Make a temporary folder with all files of the cache, such as models, as links.

    New files, and files that replace others, stay in this folder, so that they neither fill the user's cache nor are
    found by later fits. Folders are not links, because a file that is written into a linked folder would be in the
    cache.

    Yields
    ------
    pathlib.Path
        The folder, which is deleted after the block.
    """
    cache = cache_folder().absolute()
    with TemporaryDirectory(prefix="peekbench-check-", ignore_cleanup_errors=True) as name:
        view = Path(name)
        for place, _, files in os.walk(cache):
            folder = view / Path(place).relative_to(cache)
            folder.mkdir(exist_ok=True)
            for file in files:
                (folder / file).symlink_to(Path(place) / file)
        yield view

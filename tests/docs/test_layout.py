"""CONTRIBUTING.md lists the folders of the repository and states limits that hold; the README works outside it."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from importlib.metadata import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
GENERATED = {"__pycache__", "build", "dist", "reports", "runs", "screenshots", "site"}


def test_the_layout_lists_every_folder() -> None:
    listed = set(re.findall(r"^    ([\w./*]+)/ ", TEXT, re.MULTILINE))
    folders = {
        str(folder.relative_to(ROOT))
        for parent in (ROOT, ROOT / "harness", ROOT / "tests")
        for folder in parent.iterdir()
        if folder.is_dir() and folder.name not in GENERATED and any(folder.glob("*.*"))
    }
    missing = {name for name in folders if name[0] != "." and not any(fnmatch(name, pattern) for pattern in listed)}
    assert missing <= {"harness", "tests", "plugins"}
    assert all((ROOT / name).is_dir() for name in listed if "*" not in name)


def test_files_have_at_most_the_stated_number_of_lines() -> None:
    (limit,) = re.findall(r"at most (\d+) lines", TEXT)
    for folder in ("harness", "plugins"):
        for path in (ROOT / folder).rglob("*.py"):
            assert len(path.read_text().splitlines()) <= int(limit), path


def test_links_of_the_installed_description_are_absolute() -> None:
    """A package index shows the README, but has none of the files that it links to."""
    links = re.findall(r"\]\(([^)]+)\)", metadata("peekbench")["Description"])
    assert len(links) > 10
    assert [link for link in links if not link.startswith("https://")] == []

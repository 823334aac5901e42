"""The index of the benchmarks names every script."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = [path for path in sorted(FOLDER.rglob("*.py")) if 'if __name__ == "__main__"' in path.read_text("utf-8")]


def test_the_index_names_every_script() -> None:
    named = set(re.findall(r"python benchmarks/([\w/]+\.py)", (FOLDER / "README.md").read_text("utf-8")))
    assert named == {path.relative_to(FOLDER).as_posix() for path in SCRIPTS}

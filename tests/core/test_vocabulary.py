"""The vocabulary check of `tox run -e lint`: it finds replaced terms and names file, line and remedy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / ".ci" / "check_vocabulary.py"


def check(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "page.md"
    file.write_text(text)
    return subprocess.run([sys.executable, CHECK, file], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "text", ["It is dear to compute.", "an honest score", "MOST_ROWS = 3", "other than such tasks"]
)
def test_a_replaced_term_fails_with_its_place(text: str, tmp_path: Path) -> None:
    done = check(f"# Title\n\n{text}\n", tmp_path)
    assert done.returncode == 1
    assert "page.md:3:" in done.stdout


def test_plain_english_passes(tmp_path: Path) -> None:
    assert check("It is expensive to compute, and its default is 3.\n", tmp_path).returncode == 0

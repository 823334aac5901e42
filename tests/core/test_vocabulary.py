"""The vocabulary check of `tox run -e lint`: it finds replaced terms and names file, line and remedy."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "check_vocabulary.py"
EXAMPLES = """
It is dear to compute. | no_faults = 1 | It cannot be had. | what could be got at | all but for one | x is no number
it stands twice | getting what it needs | what he mended | written anew | killed for want of memory | Caution: slow
of_such_tasks | the honest score | spec.yaml: good, 2 tasks | make_use(x) | circumstances | a Painter | borrow(model)
thinned | Situation | doing(layer, f) | held weights | LOOK = 1.0 | _Bench | peekbench_summary.finer | preset: printed
Silence | GoneError | MOST_ROWS = 3 | _adopt | a doubt | the catalogue | what came of it | counted(3, "trial")
""".strip().replace("\n", " | ")


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_a_replaced_term_fails_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("# Title\n\nIt is dear to compute.\n")
    done = subprocess.run([sys.executable, SCRIPT, file], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "page.md:3:" in done.stdout
    file.write_text("It is expensive to compute, and its default is 3.\n")
    assert subprocess.run([sys.executable, SCRIPT, file], check=False).returncode == 0


@pytest.mark.parametrize("text", EXAMPLES.split(" | "))
def test_each_example_is_found(text: str, tmp_path: Path, script: dict[str, Any]) -> None:
    file = tmp_path / "page.md"
    file.write_text(f"{text}\n")
    assert script["find_terms"](file)


def test_every_term_has_an_example(script: dict[str, Any]) -> None:
    assert not [term for term in script["TERMS"] if not re.search(term.pattern, EXAMPLES)]


def test_a_term_is_found_across_lines(tmp_path: Path, script: dict[str, Any]) -> None:
    file = tmp_path / "page.md"
    file.write_text("other than such\n  tasks\n")
    assert "page.md:1:" in script["find_terms"](file)[0]

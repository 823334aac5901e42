"""The index of the benchmarks names every script, and the attack can be started from a checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from limits import TIMEOUT

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = [path for path in sorted(FOLDER.rglob("*.py")) if 'if __name__ == "__main__"' in path.read_text("utf-8")]


def test_the_index_names_every_script() -> None:
    named = set(re.findall(r"python benchmarks/([\w/]+\.py)", (FOLDER / "README.md").read_text("utf-8")))
    assert named == {path.relative_to(FOLDER).as_posix() for path in SCRIPTS}


def test_the_parts_of_the_attack_find_the_fixtures_of_tests() -> None:
    folder = FOLDER / "reliability"
    code = f"""
import importlib, sys
from pathlib import Path
sys.path.insert(0, {str(folder)!r})
path, loaded = list(sys.path), set(sys.modules)
for name in {sorted(path.stem for path in folder.glob("*.py"))!r}:
    try:
        importlib.import_module(name)
    except ImportError as error:
        assert error.name == "ray", (name, error)
    sys.path[:] = path  # the next one is imported as if it were the first
    for module in set(sys.modules) - loaded:
        if (getattr(sys.modules[module], "__file__", None) or "").startswith({str(FOLDER.parent / "tests")!r}):
            del sys.modules[module]
"""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(FOLDER.parent / name) for name in ("harness", "plugins")),
    }
    process = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert process.returncode == 0, process.stderr

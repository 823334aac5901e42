"""The README's Python example, without a main guard, in every way in which people run Python."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from limits import TIMEOUT

README = (Path(__file__).parents[2] / "README.md").read_text()
SPEC = """
name: small
tasks: [toy.words]
methods: [toy.vote]
design: {num_train: 12, num_test: 30, num_subsamples: 4}
analyses: [permutation]
executor: {use: local, options: {workers: 2}}
"""
NOTEBOOK = """
import sys
del sys.modules["__main__"].__spec__
sys.modules["__main__"].__dict__.pop("__file__", None)
exec(compile(sys.stdin.read(), "<cell>", "exec"), sys.modules["__main__"].__dict__)
"""


@pytest.mark.slow
@pytest.mark.parametrize("source", ["script", "standard input", "notebook"])
def test_the_example_of_the_readme_needs_no_main_guard(source: str, tmp_path: Path) -> None:
    example, *_ = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    example = example.replace("specs/quickstart.yaml", "small.yaml") + "\nprint(run.finished, 'finished')\n"
    (tmp_path / "small.yaml").write_text(SPEC)
    (tmp_path / "script.py").write_text(example)
    arguments = {"script": ["script.py"], "standard input": ["-"], "notebook": ["-c", NOTEBOOK]}[source]
    completed = subprocess.run(
        [sys.executable, *arguments], cwd=tmp_path, input=example, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines()[-1] == "4 finished", completed.stderr
    assert "Traceback" not in completed.stderr

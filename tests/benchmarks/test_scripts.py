"""Scripts of the benchmarks: their index, some kills of runs, and parts of the script for a GPU that fail."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_the_index_names_every_script() -> None:
    scripts = {path for path in FOLDER.rglob("*.py") if 'if __name__ == "__main__"' in path.read_text("utf-8")}
    named = set(re.findall(r"python benchmarks/([\w/]+\.py)", (FOLDER / "README.md").read_text("utf-8")))
    assert named == {path.relative_to(FOLDER).as_posix() for path in scripts}


@pytest.mark.simulation
def test_killed_and_interrupted_runs_give_the_results_of_an_undisturbed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER / "reliability"))
    assert importlib.import_module("kills").attack(num_kills=5, num_bursts=1, seed=1) == []


def test_a_part_that_fails_prints_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER / "speed"))
    gpu = importlib.import_module("gpu")
    for part, seconds in {"bert-large": 60, "bert-base": 0.2}.items():
        assert gpu.run_part(part, seconds, tmp_path, is_rehearsal=True) == {}
    gpu.print_table({"bert-base": {"ours": 2.0, "trainer": 6.0, "times_as_fast": 3.0}, "workers": {"workers_8": 41.25}})
    printed = capsys.readouterr().out
    for text in ("bert-large FAILED (exit status 1): ", "bert-base FAILED (longer than 0 s)", "qlora: no figures",
                 "| bert-base | 2 | 6 | 3 | - | - |", "8 workers: 41.2 trials per minute"):  # fmt: skip
        assert text in printed
    assert set(gpu.FUNCTIONS) < set(gpu.PARTS)

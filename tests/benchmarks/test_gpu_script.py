"""The script for a GPU: a part that fails prints why, and its figures are missing from the table."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "speed"


def test_a_part_that_fails_prints_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    gpu = importlib.import_module("gpu")
    assert gpu.run_part("bert-large", 60, tmp_path, is_rehearsal=True) == {}
    assert "bert-large FAILED (exit status 1): " in capsys.readouterr().out
    assert gpu.run_part("bert-base", 0.2, tmp_path, is_rehearsal=True) == {}
    assert "bert-base FAILED (longer than 0 s)" in capsys.readouterr().out
    gpu.print_table({"bert-base": {"ours": 2.0, "trainer": 6.0, "times_as_fast": 3.0}, "workers": {"workers_8": 41.25}})
    printed = capsys.readouterr().out
    assert "| bert-base | 2 | 6 | 3 | - | - |" in printed
    assert "8 workers: 41.2 trials per minute" in printed
    assert "qlora: no figures" in printed
    assert set(gpu.FUNCTIONS) < set(gpu.PARTS)

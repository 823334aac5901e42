"""Some kills and bursts of signals of `benchmarks/reliability/kills.py`: nothing is lost, and nothing is left."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest


@pytest.mark.simulation
def test_killed_and_interrupted_runs_give_the_results_of_an_undisturbed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks" / "reliability"))
    assert importlib.import_module("kills").attack(num_kills=5, num_bursts=1, seed=1) == []

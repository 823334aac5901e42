"""Some kills, signals and full disks of `benchmarks/reliability/attack.py`: nothing is lost, and nothing is left."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "reliability"


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module(request.param)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("script", "attack", "number"), [("attack_kills", "kills", 6), ("attack_kills", "bursts", 1)], indirect=["script"]
)
def test_killed_and_interrupted_runs_give_the_results_of_an_undisturbed_one(
    script: ModuleType, attack: str, number: int
) -> None:
    tally = getattr(script, attack)(script.Budget(number, seed=1))
    assert tally.defects == []
    assert tally.survived == number


@pytest.mark.simulation
@pytest.mark.parametrize("script", ["attack_disk"], indirect=True)
def test_a_run_that_cannot_write_says_so_and_succeeds_later(script: ModuleType) -> None:
    """Full disks and read-only folders need mounts, which not every machine permits."""
    tally = script.disk(script.Budget(1), only="run: folder in the place of attack.sqlite-wal")
    assert tally.defects == []
    assert tally.refused == 1

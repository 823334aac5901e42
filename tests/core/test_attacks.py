"""A part of the attacks of benchmarks/attack_specs.py and attack_tables.py: each input is read or refused clearly."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SEED = 1  # the scripts use 0


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    bounds = importlib.import_module("attack_bounds")
    monkeypatch.setattr(bounds, "MAX_SECONDS", 60)  # tests share the processor
    return importlib.import_module(request.param)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "attack", "number", "min_accepted"),
    [
        ("attack_specs", "attack", 300, 10),
        ("attack_tables", "attack_tables", 60, 10),
        ("attack_tables", "attack_files", 60, 2),
    ],
    indirect=["script"],
)
def test_hostile_inputs_are_read_or_refused(script: ModuleType, attack: str, number: int, min_accepted: int) -> None:
    tally: Any = getattr(script, attack)(number, SEED)
    assert tally.failures == []
    assert tally.tried == number
    assert min_accepted <= tally.accepted < number

"""A part of the attacks of `benchmarks/reliability/attack.py`: each input is read or refused clearly."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "reliability"
SEED = 1  # the scripts use 0


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(importlib.import_module("attack_tally"), "MAX_SECONDS", 60)  # tests share the processor
    return importlib.import_module(request.param)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("script", "attack", "number", "min_accepted"),
    [
        ("attack_inputs", "specs", 300, 10),
        ("attack_inputs", "tables", 60, 10),
        ("attack_inputs", "logs", 40, 10),
        ("attack_inputs", "files", 40, 2),
    ],
    indirect=["script"],
)
def test_hostile_inputs_are_read_or_refused(script: ModuleType, attack: str, number: int, min_accepted: int) -> None:
    tally: Any = getattr(script, attack)(script.Budget(number, SEED))
    assert tally.defects == []
    assert tally.tried == number
    assert min_accepted <= tally.survived < number


@pytest.mark.simulation
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [1, 3], ids=["in threads", "in turns"])
@pytest.mark.parametrize("script", ["attack_code"], indirect=True)
def test_code_of_the_same_name_in_several_folders_never_mixes(script: ModuleType, seed: int, tmp_path: Path) -> None:
    assert script.play(tmp_path, seed) == []


@pytest.mark.simulation
@pytest.mark.parametrize("script", ["attack_blocked"], indirect=True)
@pytest.mark.parametrize(("attack", "number"), [("blocked", 4), ("smaller", 2)])
def test_no_store_blocks_a_corrected_or_smaller_spec(script: ModuleType, attack: str, number: int) -> None:
    tally: Any = getattr(script, attack)(script.Budget(number, SEED))
    assert tally.defects == []
    assert tally.survived == number


@pytest.mark.simulation
@pytest.mark.parametrize("script", ["attack_labels"], indirect=True)
def test_labels_become_the_same_classes_from_every_source(script: ModuleType) -> None:
    tally = script.labels(script.Budget(len(script.make_labels()), SEED))
    assert tally.defects == []
    assert min(tally.survived, tally.refused) > 50

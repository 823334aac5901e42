"""Some behaviors of `benchmarks/reliability/attack.py plugins` disturb neither other methods nor the report."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "reliability"))
attack_plugins = import_module("attack_plugins")
BEHAVIORS = [
    "raise a long text",
    "raise an error with bad notes",
    "os._exit(0)",
    "close all files",
    "fork, the copy returns",
    "leave a process",
    "change the working directory",
    "metrics with odd names",
]


@pytest.mark.simulation
def test_methods_that_behave_badly_disturb_no_others(tmp_path: Path) -> None:
    expected = attack_plugins.attack(tmp_path / "undisturbed", [])
    attacked = attack_plugins.attack(tmp_path / "attacked", BEHAVIORS)
    assert attacked.problems == expected.problems == []
    assert attacked.status == 3
    assert attacked.steady == expected.steady
    failed = {behavior for behavior, result in attacked.results.items() if result != "survived"}
    assert failed == set(BEHAVIORS[:4])

"""What all tests have: a plugin of their own, found as installed ones are, and small specs that use it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

INSTALLED = Path(__file__).parent / "installed"
sys.path.append(str(INSTALLED))
# For the processes that tests start.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(INSTALLED), os.environ.get("PYTHONPATH")]))


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and reports go to the test's own folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def make_raw() -> Callable[..., dict[str, Any]]:
    """A small valid spec as plain values; keyword arguments replace its parts."""

    def make(**parts: Any) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "name": "small",
            "seed": 7,
            "tasks": [{"use": "toy.words", "name": "a"}, {"use": "toy.words", "name": "b", "options": {"seed": 1}}],
            "methods": ["toy.vote", "toy.constant"],
            "design": {"num_train": 12, "num_test": 30, "num_subsamples": 3},
        }
        return {**spec, **parts}

    return make


@pytest.fixture
def make_spec(make_raw: Callable[..., dict[str, Any]], tmp_path: Path) -> Callable[..., Any]:
    """The same as an `ExperimentSpec`."""
    from peekbench.spec import make_spec as validate

    def make(**parts: Any) -> Any:
        return validate(make_raw(**parts), folder=tmp_path)

    return make

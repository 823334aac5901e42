"""Fits that use the global generators of random, numpy and torch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import peekbench as pb

TEXTS = [f"text {row}" for row in range(120)]
FEW: dict[str, Any] = {"num_train": 10, "num_test": 40, "num_subsamples": 2, "progress": False}


def guess(draw: Callable[[int], Any]) -> Callable[..., Any]:
    """Return a method that predicts a random class for each text, in the fit."""

    def fit(unlabeled: Any, train: Any) -> Any:
        classes = dict(zip(TEXTS, np.asarray(draw(len(TEXTS))) > 0, strict=True))
        return lambda texts: [int(classes[text]) for text in texts]

    return fit


def draw_torch(size: int) -> Any:
    torch = pytest.importorskip("torch", reason="its global generator is seeded")
    return torch.randn(size).numpy()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("draw", [lambda size: np.random.normal(size=size), draw_torch], ids=["numpy", "torch"])
def test_global_generators_are_seeded(draw: Any) -> None:
    data = TEXTS, [row % 2 for row in range(120)]
    first, second = (pb.measure(guess(draw), data, name=name, **FEW).arms for name in ("first", "second"))
    assert first["test"].tolist() == second["test"].tolist()


@pytest.mark.slow
def test_torch_that_a_fit_imports_is_seeded() -> None:
    pytest.importorskip("torch", reason="its global generator is seeded")
    Path("own.py").write_text(
        "def load(folders):\n"
        "    from peekbench import Dataset\n"
        "    return Dataset([f'text {row}' for row in range(120)], [row % 2 for row in range(120)], ('a', 'b'))\n"
        "def fit(unlabeled, train):\n"
        "    import torch\n"
        "    values = (torch.randn(200) > 0).int().tolist()\n"
        "    return lambda texts: [values[int(text[5:])] for text in texts]\n"
    )
    spec = {
        "name": "own",
        "tasks": [{"name": "own", "use": "own.py:load"}],
        "methods": ["own.py:fit"],
        "design": {"num_train": 10, "num_test": 40, "num_subsamples": 2},
        "executor": {"use": "local", "options": {"in_process": True}},
    }
    Path("own.yaml").write_text(json.dumps(spec))
    subprocess.run([sys.executable, "-m", "peekbench", "run", "own.yaml"], check=True, capture_output=True)
    fresh = pb.load_results("runs/own.sqlite")["score"].tolist()
    import torch

    assert torch.__name__ in sys.modules
    pb.run("own.yaml", progress=False, fresh=True)
    assert pb.load_results("runs/own.sqlite")["score"].tolist() == fresh

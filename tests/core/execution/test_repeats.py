"""Fits that are made twice, and differ although their seeds are the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import peekbench as pb
from peekbench.execution import fits
from peekbench.report import report_of_run
from peekbench.report.render.json_report import render_json
from peekbench.store.reader import Store

TEXTS = [f"text {row}" for row in range(120)]
FEW: dict[str, Any] = {"num_train": 10, "num_test": 40, "num_subsamples": 2, "progress": False}
UNSEEDED = np.random.default_rng()


def guess(draw: Callable[[int], Any]) -> Callable[..., Any]:
    """Return a method that predicts a random class for each text, in the fit."""

    def fit(unlabeled: Any, train: Any) -> Any:
        classes = dict(zip(TEXTS, np.asarray(draw(len(TEXTS))) > 0, strict=True))
        return lambda texts: [int(classes[text]) for text in texts]

    return fit


def draw_torch(size: int) -> Any:
    torch = import_module("torch")
    return torch.randn(size).numpy()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def measure(fit: Any, **options: Any) -> tuple[list[Any], list[str]]:
    data = options.pop("data", (TEXTS, [row % 2 for row in range(120)]))
    run = pb.measure(fit, data, **{**FEW, **options})
    with Store.open(run.store) as store:
        found = store.repeats()
    return found, [text for text in run.report().warnings if "This noise is part of all intervals" in text]


def test_randomness_without_a_seed_is_stored_and_reported_with_its_size() -> None:
    (found,), (warning,) = measure(guess(lambda size: UNSEEDED.normal(size=size)))
    trial, repeat = found
    assert trial.draw.subsample == 0
    assert 0 < repeat.num_changed < repeat.num_predictions
    assert f"{repeat.first:.4f} and {repeat.second:.4f}, and {repeat.num_changed} of" in warning
    (stated,) = json.loads(render_json(report_of_run(next(Path("runs").glob("*.sqlite")))))["repeats"]
    assert stated == {"method": trial.method, **trial.draw._asdict(), **asdict(repeat)}


needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="its global generator is seeded")


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda size: np.random.normal(size=size), id="numpy"),
        pytest.param(draw_torch, id="torch", marks=needs_torch),
    ],
)
def test_global_generators_are_seeded(draw: Any) -> None:
    (found,), warnings = measure(guess(draw))
    assert (found[1].num_changed, warnings) == (0, [])
    assert found[1].first == found[1].second


def test_the_first_score_is_that_of_the_stored_predictions() -> None:
    (found,), _ = measure(guess(lambda size: UNSEEDED.normal(size=size)), crossover=False)
    results = pb.load_results(next(Path("runs").glob("*.sqlite")))
    extra = results[(results["arm"] == "extra") & (results["subsample"] == found[0].draw.subsample)]
    assert found[1].num_predictions == 40
    assert extra["score"].tolist() == [pytest.approx(found[1].first)]


def test_long_fits_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "MAX_SECONDS", 0.0)
    assert measure(guess(lambda size: UNSEEDED.normal(size=size))) == ([], [])


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

"""What all tests have: a plugin of their own, found as installed ones are, and small specs that use it."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import pandas as pd

# Tests interrupt runs, but a process that `nohup` or a shell starts in the background inherits ignored signals.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Idle threads of BLAS and OpenMP spin, on cores that other tests need. Libraries read this when they are imported.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[_variable] = "1"

FIXTURES = Path(__file__).parent / "fixtures"
sys.path.append(str(FIXTURES))
# For the processes that tests start.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(FIXTURES), os.environ.get("PYTHONPATH")]))


def pytest_collection_finish() -> None:
    """Let garbage collections, which fits and checks do, skip the objects of all libraries that tests import."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs and reports go to the test's own folder, from which no later test imports modules."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(tmp_path) in repr(sys.modules[name]):
            del sys.modules[name]


@pytest.fixture(scope="session")
def simulate() -> Callable[..., Any]:
    """Results tables with known effects."""

    def make(
        bias: dict[str, float] | float,
        *,
        tasks: int = 5,
        subsamples: int = 40,
        num_test: int = 200,
        noise: float = 0.02,
        seed: int = 0,
        method: str = "method",
    ) -> pd.DataFrame:
        """Accuracies with a boost of 0.05 and the given bias, one for all tasks or by task."""
        import numpy as np
        import pandas as pd

        from peekbench.results import tidy

        rng = np.random.default_rng(seed)
        rows = []
        for number in range(tasks):
            task = f"task{number}"
            mean_bias = bias[task] if isinstance(bias, dict) else bias
            for subsample in range(subsamples):
                ability = 0.6 + 0.02 * number + rng.normal(0, 0.03)
                scores = ability + np.array([-0.05, 0.0, mean_bias]) + rng.normal(0, noise, 3)
                counts = np.clip(np.round(scores * num_test), 0, num_test)
                for arm, count in zip(("base", "extra", "test"), counts, strict=True):
                    rows.append((task, method, 50, num_test, subsample, arm, count / num_test))
        columns = ["task", "method", "num_train", "num_test", "subsample", "arm", "score"]
        return tidy(pd.DataFrame(rows, columns=columns), "simulated", independent_tasks=True)

    return make


@pytest.fixture(scope="session")
def published() -> Path:
    """The study's published accuracies, which are no part of the project."""
    folder = Path(__file__).parents[2] / "shared" / "data" / "published_accuracies"
    if not folder.is_dir():
        pytest.skip("the study's published accuracies are not beside the repository")
    return folder


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
            "executor": {"use": "local", "options": {"in_process": True}},  # no time to start a worker
            "report": {"formats": ["json"]},  # no time to draw figures
        }
        spec |= parts
        if isinstance(spec["design"], dict):
            spec["design"] = {"stop": "none", **spec["design"]}  # all trials, whatever their verdicts
        return spec

    return make


@pytest.fixture
def make_spec(make_raw: Callable[..., dict[str, Any]], tmp_path: Path) -> Callable[..., Any]:
    """The same as an `ExperimentSpec`."""
    from peekbench.spec.experiment import make_spec as validate

    def make(**parts: Any) -> Any:
        return validate(make_raw(**parts), folder=tmp_path)

    return make

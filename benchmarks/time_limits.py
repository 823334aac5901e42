"""Fits that hang cost a run their time limit and little more, and no other trial is lost.

    python benchmarks/time_limits.py [--trials 200] [--timeout 2] [--workers 2]

About an eighth of the trials hang. The script prints how long one of them keeps a worker beyond the time limit, and
compares all other trials with those of a run in which nothing hangs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests" / "fixtures"))
os.environ["PYTHONPATH"] = os.pathsep.join([sys.path[-1], os.environ.get("PYTHONPATH", "")])

from peekbench.execution.runner import RunSummary, run
from peekbench.results.read import load_results
from peekbench.spec.experiment import make_spec

SECONDS = 0.02  # of a fit that does not hang, of which a trial has three


def run_spec(name: str, error: str, arguments: argparse.Namespace) -> tuple[RunSummary, float]:
    options = {"error": error, "share": 0.125, "seconds": SECONDS}
    raw: dict[str, Any] = {
        "name": name,
        "tasks": ["toy.words"],
        "methods": [{"use": "toy.faulty", "options": options}],
        "design": {"num_train": 12, "num_test": 30, "num_subsamples": arguments.trials},
        "executor": {"use": "local", "options": {"workers": arguments.workers}},
        "timeout": arguments.timeout,
    }
    start = time.perf_counter()
    summary = run(make_spec(raw, folder=Path.cwd()))
    return summary, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--timeout", type=float, default=2.0, help="seconds")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        undisturbed, expected = run_spec("undisturbed", "none", arguments)
        hanging, seconds = run_spec("hanging", "hang", arguments)
        keys = ["subsample", "arm"]
        all_scores = load_results(undisturbed.store).set_index(keys)["score"]
        scores = load_results(hanging.store).set_index(keys)["score"]
    is_equal = np.array_equal(all_scores.loc[scores.index], scores)
    # Workers wait for hanging fits side by side.
    each = (seconds - expected) * arguments.workers / hanging.failed
    print(f"{hanging.failed} of {arguments.trials} trials hang; {hanging.finished} have finished")
    print(f"each costs {each:.2f} s of a worker with a time limit of {arguments.timeout:g} s")
    print(f"the other trials have {'the same' if is_equal else 'DIFFERENT'} scores as without hanging trials")
    assert hanging.failed + hanging.finished == arguments.trials
    assert is_equal


if __name__ == "__main__":
    main()

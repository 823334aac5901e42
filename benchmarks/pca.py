"""Compares the study's PCA experiment in peekbench and in a plain scikit-learn loop: seconds and scores.

The loop uses scikit-learn's `PCA`, `LinearRegression` and `r2_score` on the same rows. It runs on some of the trials,
and its time is scaled to all of them.

    python benchmarks/pca.py [--spec specs/paper/pca.yaml] [--plain 2000] [--workers 2]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from peekbench import ExperimentSpec, load_dataset, load_spec
from peekbench.data.sampling import Sampler
from peekbench.execution.determinism import one_thread_pools
from peekbench.execution.planning import make_trials
from peekbench.records.trials import Trial
from peekbench.results.sequential import run
from peekbench.store.writer import Store

ROOT = Path(__file__).parent.parent
ARMS = ("base", "extra", "test")


def plain_scores(spec: ExperimentSpec, trials: list[Trial]) -> tuple[dict[tuple[Trial, str], float], float]:
    """Return R^2 by trial and arm, and the seconds without drawing the rows."""
    method = spec.methods[0]
    tasks = {task.name: task for task in spec.tasks}
    samplers: dict[str, tuple[Any, Sampler]] = {}
    scores: dict[tuple[Trial, str], float] = {}
    seconds = 0.0
    for trial in trials:
        name = trial.draw.task
        if name not in samplers:
            dataset = load_dataset(spec.source(tasks[name]))
            sampler = Sampler(dataset, spec.design_of(tasks[name]), spec.seed, name)
            samplers[name] = np.asarray(dataset.inputs), sampler
        inputs, sampler = samplers[name]
        rows = sampler.draw(trial.draw)
        num_components = spec.options(method, name).model_dump()["num_components"]
        started = time.perf_counter()
        train, train_targets = inputs[rows.train], sampler.labels[rows.train]
        test, test_targets = inputs[rows.test], sampler.labels[rows.test]
        base = LinearRegression().fit(train, train_targets)
        scores[trial, "base"] = r2_score(test_targets, base.predict(test))
        for arm, unlabeled in (("extra", inputs[rows.extra]), ("test", test)):
            pca = PCA(num_components).fit(unlabeled)
            model = LinearRegression().fit(pca.transform(train), train_targets)
            scores[trial, arm] = r2_score(test_targets, model.predict(pca.transform(test)))
        seconds += time.perf_counter() - started
    return scores, seconds


def stored_scores(path: Path) -> dict[tuple[str, int, str], float]:
    """Return R^2 by task, subsample and arm."""
    with Store.open(path) as store:
        columns = store.result_columns()
    keys = zip(columns["task"], columns["subsample"], columns["arm"], strict=True)
    return dict(zip(keys, columns["score"], strict=True))


def main() -> None:
    """Run both, and print the times and the largest difference of scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", type=Path, default=ROOT / "specs" / "paper" / "pca.yaml")
    parser.add_argument("--plain", type=int, default=2000, help="Number of trials of the plain loop.")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    spec = load_spec(arguments.spec).with_executor_options(workers=arguments.workers)
    trials = list(make_trials(spec))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pca.sqlite"
        before, started = os.times(), time.perf_counter()
        summary = run(spec, store=path)
        seconds, after = time.perf_counter() - started, os.times()
        processor = sum(after[:4]) - sum(before[:4])
        stored = stored_scores(path)
        size = path.stat().st_size
    assert (summary.finished, summary.failed) == (len(trials), 0)
    print(
        f"peekbench, {arguments.workers} workers: {len(trials):,} trials in {seconds:.0f} s "
        f"(target for the full spec: 120 s), {seconds / len(trials) * 1000:.2f} ms per trial, "
        f"processor time {processor:.0f} s; store {size / 1e6:,.0f} MB"
    )
    part = trials[:: max(1, len(trials) // arguments.plain)]
    with one_thread_pools():
        scores, seconds = plain_scores(spec, part)
    print(
        f"plain scikit-learn loop, one process: {len(part):,} trials in {seconds:.1f} s, "
        f"{seconds / len(part) * len(trials):.0f} s for all"
    )
    differences = [
        abs(score - stored[trial.draw.task, trial.draw.subsample, arm]) for (trial, arm), score in scores.items()
    ]
    print(f"largest difference of {len(differences):,} scores: {max(differences):.1e} (target: 1e-9)")


if __name__ == "__main__":
    main()

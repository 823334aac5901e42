"""Measures the report of a large run: a store of 25 tasks x 4 methods x 270 subsamples with simulated scores.

Prints the seconds of reading, analyzing, checking and rendering, the size of the HTML, and whether a second report of
the same store has the same bytes. If playwright and chromium are installed, it also prints the time to sort the largest
table.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from peekbench.execution.planning import group_trials, make_trials
from peekbench.records.trials import ArmResult, TrialResult
from peekbench.report import report_of_run, write_report
from peekbench.report.build.descriptions import check_results, warn_of_run
from peekbench.results import load_results
from peekbench.spec.experiment import ExperimentSpec, make_spec
from peekbench.store.writer import Store

TASKS, SUBSAMPLES, NUM_TEST = 25, 270, 100
METHODS = ("classic.lsa", "lsa-50", "classic.word2vec", "classic.self_training")
BATCH = 1000  # trials per transaction
SORT_ALL = """() => [...document.querySelectorAll("table[data-sort]")]
  .map((table) => [table.tBodies[0].rows.length, ...[...table.querySelectorAll("thead button")].map((button) => {
    const start = performance.now();
    button.click();
    table.offsetHeight;
    return performance.now() - start;
  })])"""


def large_spec(folder: Path) -> ExperimentSpec:
    """Return the spec of the run."""
    raw = {
        "name": "large",
        "tasks": [{"use": "docstrings.numpy", "name": f"task{number}"} for number in range(TASKS)],
        "methods": [{"name": name, "use": "classic.lsa" if name == "lsa-50" else name} for name in METHODS],
        "design": {"num_train": 50, "num_test": NUM_TEST, "num_subsamples": SUBSAMPLES},
    }
    return make_spec(raw, folder=folder)


KNOWN = {
    "kind": "classification", "rows": 1000, "class_names": ["no", "yes"], "class_counts": [500, 500],
    "splits": {}, "details": {}, "fingerprint": "simulated",
}  # fmt: skip
"""Facts about the data of a task that is never loaded."""
SESSION: dict[str, Any] = {
    "started": "2026-01-01T00:00:00+00:00", "command": ["peekbench", "run", "large.yaml"], "peekbench": "0",
    "python": "3", "packages": {}, "git": None,
    "machine": {"processor": "none", "architecture": "none", "cores": 1, "memory": 2**30, "system": "none"},
}  # fmt: skip


def fill(path: Path, spec: ExperimentSpec, facts: Mapping[str, Mapping[str, Any]], number: int | None = None) -> None:
    """Store simulated outcomes of the first trials of a spec, or of all, in the form that workers return."""
    outcomes = islice(_outcomes(spec), number)
    with Store.for_run(path, spec, facts) as store:
        store.add_session(SESSION, "here")
        while batch := list(islice(outcomes, BATCH)):
            store.save(*batch)


def _outcomes(spec: ExperimentSpec) -> Iterator[TrialResult]:
    rng = np.random.default_rng(0)
    keys = {method.name: method.base_key() for method in spec.methods}
    effects = {name: 0.01 * number for number, name in enumerate(keys)}
    for item in group_trials(make_trials(spec), keys, set()):
        num_test = item.trials[0].draw.num_test
        labels, rows = np.arange(num_test, dtype=np.int64) % 2, np.arange(num_test)
        for position, trial in enumerate(item.trials):
            arms = ("base", "extra", "test") if position == 0 else ("extra", "test")
            results = tuple(_arm(rng, arm, num_test, effects[trial.method]) for arm in arms)
            yield TrialResult(trial, labels, rows, results)


def _arm(rng: np.random.Generator, arm: str, num_test: int, effect: float) -> ArmResult:
    accuracy = 0.6 + 0.05 * (arm != "base") + effect * (arm == "test")
    correct = int(rng.binomial(num_test, accuracy))
    predictions = np.full((num_test, 2), 0.5, dtype=np.float32)
    metrics = {"loss": float(rng.normal(2, 0.1))}
    scores: dict[str, float | None] = {
        "num_correct": correct,
        "score": correct / num_test,
        "log_loss": 0.69,
        "brier": 0.5,
    }
    scores |= {"macro_f1": accuracy, "bits_per_byte": None}
    return ArmResult(arm, scores, 0.1, 0.01, metrics, predictions)


def checking_seconds(path: Path, spec: ExperimentSpec) -> float:
    """Return the CPU seconds of the checks that every report runs."""
    results = load_results(path)
    with Store.open(path) as store:
        tasks, texts = store.tasks(), store.texts()
    designs = {task.name: spec.design_of(task) for task in spec.tasks}
    start = time.process_time()
    checks = check_results(results)
    of_run = list(warn_of_run(designs, tasks, texts, results))
    seconds = time.process_time() - start
    print(f"warnings: {[warning for check in checks for warning in check.warnings] + of_run}")
    return seconds


def sorting_times(page_path: Path) -> list[list[float]] | None:
    """Return the number of rows of each table and the milliseconds to sort by each column; None without a browser."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - optional
    except ImportError:
        return None
    chromium = shutil.which("chromium")
    if chromium is None:
        return None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(page_path.as_uri())
        times: list[list[float]] = page.evaluate(SORT_ALL)
        browser.close()
    return times


def main() -> None:
    """Run all measurements."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "large.sqlite"
        start = time.perf_counter()
        spec = large_spec(folder)
        fill(path, spec, {task.name: KNOWN for task in spec.tasks})
        print(f"simulated: {time.perf_counter() - start:.1f} s, {path.stat().st_size / 1e6:.0f} MB", flush=True)
        for attempt in ("one", "two"):
            start, start_cpu = time.perf_counter(), time.process_time()
            report = report_of_run(path)
            middle = time.perf_counter()
            write_report(report, folder / attempt)
            end, cpu = time.perf_counter(), time.process_time() - start_cpu
            print(
                f"report {attempt}: {end - start:.1f} s; reading and analyzing {middle - start:.1f} s, "
                f"rendering {end - middle:.1f} s",
                flush=True,
            )
        checking = checking_seconds(path, large_spec(folder))
        print(f"checks: {checking:.2f} CPU seconds, {checking / cpu:.1%} of those of report two")
        files = [path for path in (folder / "one").rglob("*") if path.is_file()]
        same = all(
            file.read_bytes() == (folder / "two" / file.relative_to(folder / "one")).read_bytes() for file in files
        )
        print(f"identical bytes: {same}, {len(files)} files")
        html = folder / "one" / "report.html"
        print(f"report.html: {html.stat().st_size / 1e6:.2f} MB")
        times = sorting_times(html)
        if times is None:
            print("sorting: not measured, because playwright or chromium is not installed")
            return
        rows, *milliseconds = max(times, key=lambda table: table[0])
        median, maximum = np.median(milliseconds), max(milliseconds)
        print(f"sorting {rows:.0f} rows, by column: median {median:.0f}, maximum {maximum:.0f} ms")


if __name__ == "__main__":
    main()

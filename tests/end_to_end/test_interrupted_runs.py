"""Runs that are interrupted, killed and resumed.

Workers are always separate processes. The main process of a run is one too where a signal ends it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from commands import run_command
from limits import TIMEOUT

from peekbench.errors import StoreError
from peekbench.records.trials import Trial
from peekbench.store.reader import Store


def write_spec(name: str, **parts: Any) -> Path:
    spec = {
        "name": name,
        "seed": 5,
        "tasks": [{"use": "toy.words", "name": "a"}, {"use": "toy.words", "name": "b", "options": {"seed": 1}}],
        "methods": [
            "toy.vote",
            {"use": "toy.vote", "name": "bold", "options": {"boldness": 3}},
            {"use": "toy.faulty", "name": "slow", "options": {"error": "none", "seconds": 0.01}},
        ],
        "design": {"num_train": 12, "num_test": 30, "num_subsamples": 12},
        "analyses": ["toy.count"],
        "report": {"formats": ["markdown"]},
        **parts,
    }
    path = Path(f"{name}.yaml")
    path.write_text(yaml.safe_dump(spec))
    return path


def start(spec: Path, workers: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "peekbench", "run", str(spec), "--workers", str(workers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def finish(spec: Path, workers: int = 1) -> subprocess.CompletedProcess[str]:
    return run_command("run", str(spec), "--workers", str(workers))


def done(name: str) -> set[Trial]:
    try:
        store = Store.open(f"runs/{name}.sqlite")
    except StoreError as error:
        assert "no such file" in str(error) or "is still empty" in str(error)
        return set()
    with store:
        return store.done()


def numbers(name: str) -> tuple[dict[str, list[Any]], list[bytes]]:
    """Return all results of a run except times: the results table, and every prediction."""
    with Store.open(f"runs/{name}.sqlite") as store:
        columns = {key: values for key, values in store.result_columns().items() if not key.endswith("seconds")}
        trials = sorted(store.done(), key=str)
        arms = ("base", "extra", "test")
        predictions = [store.predictions(trial)[arm].numbers.tobytes() for trial in trials for arm in arms]
    return columns, predictions


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, f"timed out waiting for {what}"
        time.sleep(0.02)


def children(process: subprocess.Popen[str]) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def wait_for_trials(name: str, number: int, process: subprocess.Popen[str]) -> None:
    """Wait until a number of trials is stored, or the run has completed."""
    wait_for(lambda: len(done(name)) >= number or process.poll() is not None, f"{number} trials")


def wait_for_end(processes: list[psutil.Process]) -> None:
    wait_for(lambda: have_ended(processes), "workers to end")


def have_ended(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers() -> None:
    results = []
    for workers in (1, 2):
        methods = ["toy.vote", {"use": "toy.vote", "name": "bold", "options": {"boldness": 3}}, "classic.lsa"]
        design = {"num_train": 12, "num_test": 30, "num_subsamples": 4}
        spec = write_spec(f"workers{workers}", methods=methods, design=design)
        assert finish(spec, workers).returncode == 0
        results.append(numbers(f"workers{workers}"))
    assert len(results[0][0]["task"]) == 2 * 3 * 4 * 3
    assert results[0] == results[1]


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "sign"), [(1, signal.SIGINT), (2, signal.SIGTERM)])
def test_an_interrupted_run_keeps_finished_trials_and_says_how_to_resume(workers: int, sign: signal.Signals) -> None:
    spec = write_spec("cut", design={"num_train": 12, "num_test": 30, "num_subsamples": 60})
    process = start(spec, workers)
    wait_for(lambda: len(done("cut")) > 5, "the first trials")
    workers_before = children(process)
    if sign is signal.SIGINT:
        os.killpg(process.pid, sign)  # like a terminal, to all processes of the run
    else:
        process.send_signal(sign)
    out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 128 + sign, (out, err)
    assert "runs/cut.sqlite. To resume the run: peekbench run cut.yaml" in err
    assert "Traceback" not in err
    stored = done("cut")
    assert 5 < len(stored) < 360
    wait_for_end(workers_before)
    again = finish(write_spec("cut", design={"num_train": 12, "num_test": 30, "num_subsamples": 60}), 2)
    assert again.returncode == 0
    assert f"{len(stored):,} already done" in again.stderr


SIGNALS_IN_EXEC = """
import os, signal
from peekbench.cli import app
def run_command():
    exec("while True: os.kill(os.getpid(), signal.SIGTERM)")
app.run_command = run_command
app.main()
"""


def test_a_signal_in_generated_code_gives_its_exit_status() -> None:
    """Python's own status of a KeyboardInterrupt in `exec` is that of SIGINT, even if the exception is caught."""
    Path("generated.py").write_text(SIGNALS_IN_EXEC)
    done = subprocess.run([sys.executable, "-m", "generated"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, "")


@pytest.mark.slow
def test_a_worker_killed_once_is_replaced_and_its_trial_repeated(tmp_path: Path) -> None:
    dies = {"use": "toy.faulty", "name": "dies", "options": {"error": "kill", "marker": str(tmp_path / "died")}}
    completed = finish(write_spec("once", methods=["toy.vote", dies]), 2)
    assert (tmp_path / "died").exists()
    assert completed.returncode == 0, completed.stderr
    assert len(done("once")) == 48


@pytest.mark.slow
def test_a_trial_that_always_kills_its_worker_fails_and_others_continue() -> None:
    dies = {"use": "toy.faulty", "name": "dies", "options": {"error": "kill", "share": 0.2}}
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 6}
    completed = finish(write_spec("always", methods=["toy.vote", dies], design=design), 2)
    assert completed.returncode == 3, completed.stderr
    with Store.open("runs/always.sqlite") as store:
        failures = store.failures()
    assert len(done("always")) + len(failures) == 24
    assert 0 < len(failures) < 12
    assert all(failure.trial.method == "dies" for failure in failures)
    assert all("worker process died (signal 9) 3 times" in failure.error for failure in failures)
    assert f"{len(failures)} trial" in completed.stderr


@pytest.mark.slow
def test_failures_are_stored_and_reported_and_other_trials_continue() -> None:
    errors = ["raise", "exit", "surrogate", "nan", "shape", "sum", "type"]
    faulty = [{"use": "toy.faulty", "name": error, "options": {"error": error, "share": 0.5}} for error in errors]
    spec = write_spec("faulty", methods=["toy.vote", *faulty], analyses=["summary", "permutation"])
    completed = finish(spec)
    assert completed.returncode == 3, completed.stderr
    with Store.open("runs/faulty.sqlite") as store:
        failures = store.failures()
        assert len(store.done()) + len(failures) == 24 * 8
    numbers_failed = Counter(failure.trial.method for failure in failures)
    assert set(numbers_failed) == set(errors)
    assert all(0 < number < 24 for number in numbers_failed.values())
    assert all("Traceback" in failure.traceback for failure in failures)
    report = Path("reports/faulty/report.md").read_text()
    assert f"{len(failures)} trials failed" in report
    assert "The design has missing trials" in report
    assert "subsamples missing" in report
    assert f"{len(failures)} trials failed" in completed.stderr
    assert "Traceback" not in completed.stderr


@pytest.mark.slow
def test_failed_trials_are_repeated_by_the_next_run(tmp_path: Path) -> None:
    marker = tmp_path / "fixed"
    faulty = {"use": "toy.faulty", "name": "faulty", "options": {"marker": str(marker)}}
    spec = write_spec("fixed", methods=["toy.vote", faulty])
    assert finish(spec).returncode == 3
    assert marker.exists()
    assert len(done("fixed")) == 47
    completed = finish(spec)
    assert completed.returncode == 0
    assert "47 already done" in completed.stderr
    assert len(done("fixed")) == 48


@pytest.mark.slow
def test_processes_started_by_methods_end_with_a_killed_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PEEKBENCH_TEST_OF", str(tmp_path))
    parts = {"tasks": ["toy.words"], "design": {"num_train": 12, "num_test": 30, "num_subsamples": 3}}
    completed = finish(write_spec("family", methods=["toy.family"], **parts), 2)
    assert completed.returncode == 0, completed.stderr
    leaves = {"use": "toy.family", "name": "leaves", "options": {"orphan": 600}}
    executor = {"use": "local", "options": {"retries": 0}}
    completed = finish(write_spec("orphans", methods=["toy.constant", leaves], executor=executor, **parts), 2)
    assert completed.returncode == 3, completed.stderr
    assert "worker process died (signal 9) 1 times" in " ".join(completed.stdout.split())
    assert len(done("orphans")) == 3
    assert [process for process in psutil.process_iter() if _belongs_to(process, tmp_path)] == []


def _belongs_to(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.pid != os.getpid() and process.environ().get("PEEKBENCH_TEST_OF") == str(folder)
    except psutil.Error:
        return False

"""Run methods that behave badly, and look whether they disturb the run, other methods, the store or the report.

Most behaviors run together in one run, each as a method with one trial. Those that attack the main process, the
store or the state of their worker run alone. In every run, the method `steady` must give the results of an undisturbed
run, or fail, but never other results; all trials must be stored; the report must be written; no process must be left.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from attack_behaviors import ALONE, TOGETHER
from attack_runs import REPORT, STORE, errors, finish, left_processes, prepare, start, workers_of
from attack_tally import Budget, Tally

from peekbench.results import load_results
from peekbench.store.reader import Store

TIME_LIMIT = 300.0  # seconds of one run
MAX_STORED_TEXT = 30_000  # characters of a failure
HEARTBEAT = "still running"
"""Part of the line that a log gets every two minutes while no trial finishes."""
ENDS_THE_RUN = {
    "SIGTERM to the main process": 143,
    "SIGINT to the main process": 130,
    "SIGHUP to the main process": 129,
    "SIGKILL to the main process": -signal.SIGKILL,
    "delete the store": 2,
}
"""Exit statuses of the behaviors that end a run; another run completes it."""
STOPS = "stop itself"


@dataclass(frozen=True, slots=True)
class Attacked:
    """State of a run after an attack."""

    status: int | None
    results: dict[str, str]
    """`survived`, or the first line of the failure, by behavior."""
    problems: list[str]
    steady: dict[int, float]


def attack(folder: Path, behaviors: list[str]) -> Attacked:
    """Run behaviors in one run in a folder, and examine what is left."""
    methods = [{"use": "attack.behave", "name": f"b{n}", "options": {"behavior": b}} for n, b in enumerate(behaviors)]
    executor = {"use": "local", "options": {"retries": 1}}
    prepare(folder, methods=["attack.steady", *methods], executor=executor)
    process = start(folder)
    if STOPS in behaviors:
        _continue_after_heartbeat(folder, process)
    status = finish(process, TIME_LIMIT)
    if status is None:
        return Attacked(status, {}, [f"took over {TIME_LIMIT:.0f} s"], {})
    return _examine(folder, behaviors, status)


def _continue_after_heartbeat(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the log says that the run waits for a worker, and let the worker continue whenever it stops itself."""
    end = time.monotonic() + TIME_LIMIT
    while process.poll() is None and time.monotonic() < end:
        if HEARTBEAT in errors(folder):
            for worker in workers_of(folder, process.pid):
                with suppress(psutil.Error):
                    worker.resume()
        time.sleep(0.2)


def _examine(folder: Path, behaviors: list[str], status: int) -> Attacked:
    problems = [f"left the process {process.pid}" for process in left_processes(folder)]
    ending = next((ENDS_THE_RUN[behavior] for behavior in behaviors if behavior in ENDS_THE_RUN), None)
    results: dict[str, str] = {}
    steady: dict[int, float] = {}
    if (folder / STORE).exists():
        more, results, steady = _examine_store(folder, behaviors, is_complete=status in (0, 3))
        problems += more
    elif ending is None:
        problems.append("no store")
    if status not in ((0, 3) if ending is None else (ending,)):
        problems.append(f"exit status {status}: {errors(folder)[-300:]}")
    if "Traceback" in errors(folder) and ending is not None:
        problems.append(f"a traceback: {errors(folder)[-300:]}")
    if status in (0, 3) and not (folder / REPORT / "report.txt").exists():
        problems.append("no report")
    if STOPS in behaviors and HEARTBEAT not in errors(folder):
        problems.append("no heartbeat")
    return Attacked(status, results, problems, steady)


def _examine_store(
    folder: Path, behaviors: list[str], *, is_complete: bool
) -> tuple[list[str], dict[str, str], dict[int, float]]:
    """Return problems, the result of each behavior, and the scores of the method `steady`."""
    problems = []
    names = {f"b{number}": behavior for number, behavior in enumerate(behaviors)}
    with Store.open(folder / STORE) as store:
        failures = store.failures()
        done = store.done()
    results = {names[trial.method]: "survived" for trial in done if trial.method in names}
    for failure in failures:
        if len(failure.error) + len(failure.traceback) > MAX_STORED_TEXT:
            problems.append(f"{len(failure.error) + len(failure.traceback):,} characters of a failure are stored")
        if failure.trial.method in names:
            results[names[failure.trial.method]] = f"failed: {failure.error.splitlines()[0][:70]!r}"
    if is_complete and len(done) + len(failures) != 1 + len(names):
        problems.append("trials are missing")
    if not done:
        return problems, results, {}
    table = load_results(folder / STORE)
    table = table[(table["method"] == "attack.steady") & (table["arm"] == "test")]
    return problems, results, dict(zip(table["subsample"].tolist(), table["score"].tolist(), strict=True))


def plugins(budget: Budget, behaviors: tuple[str, ...] = (*TOGETHER, *ALONE)) -> Tally:
    """Run behaviors, those of `TOGETHER` in one run.

    A trial that fails with an error that names it counts as refused.
    """
    tally = Tally("plugins")
    with tempfile.TemporaryDirectory() as name:
        expected = attack(Path(name, "undisturbed"), []).steady
        chosen = behaviors[: budget.number]
        grouped = [behavior for behavior in chosen if behavior in TOGETHER]
        runs = [group for group in (grouped, *([behavior] for behavior in chosen if behavior in ALONE)) if group]
        for position in Budget(len(runs), seconds=budget.seconds):
            attacked = attack(Path(name, str(position)), runs[position])
            problems = list(attacked.problems)
            if not attacked.steady.items() <= expected.items():
                problems.append("the results of another method have changed")
            if runs[position] == grouped and attacked.steady != expected:
                problems.append("another method has failed")
            for behavior in runs[position]:
                result = attacked.results.get(behavior, f"exit status {attacked.status}")
                tally.add(f"{behavior}: {result}", problems, refused=result != "survived")
    return tally

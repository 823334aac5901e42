"""Jobs of a batch cluster as processes on one machine: they are killed, interrupted, repeated and merged."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import run_command
from limits import TIMEOUT

from peekbench.records.trials import Trial
from peekbench.store.merging import open_shard
from peekbench.store.reader import Store

OUT = Path("out")
SPEC = Path("jobs.yaml")


def write_spec() -> None:
    spec = {
        "name": "jobs",
        "seed": 5,
        "tasks": [{"use": "toy.words", "name": "a"}, {"use": "toy.words", "name": "b", "options": {"seed": 1}}],
        "methods": [
            "toy.vote",
            {"use": "toy.vote", "name": "bold", "options": {"boldness": 3}},
            {"use": "toy.faulty", "name": "slow", "options": {"error": "none", "seconds": 0.04}},
        ],
        "design": {"num_train": 12, "num_test": 30, "num_subsamples": 6},
        "analyses": ["toy.count"],
        "report": {"formats": ["text"]},
        "executor": {"use": "local", "options": {"in_process": True}},
    }
    SPEC.write_text(yaml.safe_dump(spec))
    SPEC.with_stem("processes").write_text(yaml.safe_dump({**spec, "executor": "local"}))


def start(shard: str) -> subprocess.Popen[str]:
    """Start a job with one worker process."""
    command = ["worker", "processes.yaml", "--shard", shard, "--out", str(OUT), "--workers", "1"]
    return subprocess.Popen(
        [sys.executable, "-m", "peekbench", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # without the shell's decision to ignore signals
    )


def read(number: int) -> list[set[Trial]]:
    """Return the finished trials in the stores of a shard."""
    found = []
    for path in sorted(OUT.glob(f"shard-{number}-*.sqlite")):
        with open_shard(path, is_whole=True) as store:
            found.append(store.done() if store is not None else set())
    return found


def send_signals(plans: list[tuple[subprocess.Popen[str], int, int, signal.Signals]]) -> None:
    """Send each process a signal as soon as the stores of a shard have a number of trials."""
    deadline = time.monotonic() + TIMEOUT
    while plans:
        assert time.monotonic() < deadline, f"timed out waiting for the trials of {plans}"
        for plan in list(plans):
            process, number, trials, sent = plan
            if sum(map(len, read(number))) >= trials:
                process.send_signal(sent)
                plans.remove(plan)
        time.sleep(0.005)


def contents(path: str) -> tuple[dict[str, list[Any]], list[bytes]]:
    """Return all results of a store except times, and every prediction."""
    with Store.open(path) as store:
        columns = {name: values for name, values in store.result_columns().items() if not name.endswith("seconds")}
        trials = sorted(store.done(), key=str)
        arms = [arm for trial in trials for _, arm in sorted(store.predictions(trial).items())]
        return columns, [arm.numbers.tobytes() for arm in arms]


def run_script(task: int, status: int) -> tuple[list[str], int]:
    """Run the script of the documentation without SLURM: workers exit with a status. Return its commands."""
    page = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text(encoding="utf-8")
    script = page.partition("### A SLURM job array")[2].partition("```sh\n")[2].partition("```")[0]
    replacements = f"""
    source() {{ :; }}
    scontrol() {{ echo "scontrol $*" >> commands; }}
    srun() {{ echo "$*" >> commands; return {status}; }}
    """
    Path("jobs.sh").write_text(replacements + script)
    Path("commands").unlink(missing_ok=True)
    variables = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_CPUS_PER_TASK": "4", "SLURM_JOB_ID": "77"}
    done = subprocess.run(["bash", "jobs.sh"], env=variables, check=False, capture_output=True, text=True)
    assert not done.stderr
    return Path("commands").read_text().splitlines(), done.returncode


def test_the_script_for_job_arrays_runs_all_shards_and_requeues_interrupted_jobs() -> None:
    commands = [
        f"--ntasks=1 peekbench worker my_experiment.yaml --shard {shard}/1000 --out /shared/shards --workers 4"
        for shard in (1, 2, 3, 4, 997, 998, 999, 1000)
    ]
    assert run_script(1, status=0) == (commands[:4], 0)
    assert run_script(250, status=3) == (commands[4:], 3)
    assert run_script(1, status=143) == ([commands[0], "scontrol requeue 77"], 143)


@pytest.mark.slow
def test_jobs_that_are_killed_interrupted_and_repeated_add_up_to_a_run() -> None:
    rng = random.Random(18)
    write_spec()
    killed, repeated, interrupted = (start(f"{number}/2") for number in (1, 1, 2))
    num_trials = rng.randrange(1, 5)  # of both jobs of shard 1
    send_signals([(killed, 1, num_trials, signal.SIGKILL), (interrupted, 2, 2, signal.SIGTERM)])
    merged = run_command("merge", str(SPEC), str(OUT))
    assert merged.returncode == 3
    assert "trials missing" in merged.stderr
    assert run_command("run", str(SPEC), "--store", "whole.sqlite").returncode == 0

    _, errors = interrupted.communicate(timeout=TIMEOUT)
    assert interrupted.returncode == 128 + signal.SIGTERM
    assert "To go on with this shard: peekbench worker processes.yaml --shard 2/2 --out out" in errors
    for job in (killed, repeated):
        job.communicate(timeout=TIMEOUT)
    assert [job.returncode for job in (killed, repeated)] == [-signal.SIGKILL, 0]

    num_before = len(read(2))
    again = run_command("worker", str(SPEC), "--shard", "2/2", "--out", str(OUT))
    assert again.returncode == 0, again.stderr
    assert f"were in {OUT} already" in again.stdout
    assert "nothing to do" in run_command("worker", str(SPEC), "--shard", "1/2", "--out", str(OUT)).stdout
    assert num_before == 1
    assert len(read(1)) == 2
    first, second = read(2)
    assert first
    assert second
    assert not first & second

    merged = run_command("merge", str(SPEC), str(OUT))
    assert merged.returncode == 0, merged.stderr
    assert "all 36 trials are there" in merged.stdout
    assert contents("runs/jobs.sqlite") == contents("whole.sqlite")
    assert run_command("check-store", "jobs").returncode == 0

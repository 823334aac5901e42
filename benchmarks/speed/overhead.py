"""Measures the overhead of peekbench: start-up, planning, a trial, and a resumed run. Prints results, asserts nothing.

Start-up times are processor times as multiples of that of `python -c pass`, measured in the same run. The trials use a
method that only returns class shares (`toy.constant` of the tests), so that the time measured is that of peekbench.

    python benchmarks/speed/overhead.py [--trials 27000]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from peekbench.execution.runner import run
from peekbench.spec.experiment import parse_spec

ROOT = Path(__file__).parents[2]
TOY = ROOT / "tests" / "fixtures"
REPEATS = 15


def processor_time(command: list[str]) -> float:
    """Return the seconds of the processor that a command takes, with modules that are already compiled."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start_up() -> None:
    """Print the start-up time of two commands and of their required libraries, relative to a bare interpreter.

    Each command alternates with the bare interpreter, so that other programs affect both.
    """
    peekbench = str(Path(sys.executable).with_name("peekbench"))
    for name, command, target in (
        ("import typer", [sys.executable, "-c", "import typer"], None),
        ("import pydantic", [sys.executable, "-c", "from pydantic import BaseModel"], None),
        ("peekbench --help", [peekbench, "--help"], 8),
        ("peekbench validate specs/quickstart.yaml", [peekbench, "validate", "specs/quickstart.yaml"], 20),
    ):
        processor_time(command)  # which compiles modules and caches the docstrings
        times = [(processor_time([sys.executable, "-c", "pass"]), processor_time(command)) for _ in range(REPEATS)]
        bare, seconds = (median(column) for column in zip(*times, strict=True))
        limit = f"   (target: at most {target})" if target else ""
        print(f"{name:<45} {seconds * 1000:7.1f} ms, {seconds / bare:5.1f} times `python -c pass`{limit}")


SPEC = """
name: overhead
tasks: [{{use: toy.words, options: {{num_classes: 6, num_rows: 2000}}}}]
methods: [toy.constant]
design: {{num_train: 50, num_test: 200, num_subsamples: {subsamples}}}
analyses: [toy.count]
executor: {{use: local, options: {{workers: {workers}}}}}
"""


def planning(trials: int) -> None:
    """Print seconds and memory of planning, in a separate process."""
    code = f"""
import resource, sys, time
sys.path.append({str(TOY)!r})
from pathlib import Path
from peekbench.execution.fit_plans import group_trials
from peekbench.spec.experiment import parse_spec
spec = parse_spec({SPEC.format(subsamples=trials, workers=1)!r}, folder=Path.cwd())
started = time.perf_counter()
planned = list(spec.trials())
items = list(group_trials(planned, spec.base_keys(), set()))
seconds = time.perf_counter() - started
print(f"{{len(items):,}} trials planned in {{seconds:.2f}} s, "
      f"{{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}} MB peak memory   (target: 2 s, 500 MB)")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def trials(number: int, workers: int, folder: Path) -> None:
    """Print milliseconds per trial of a long run, seconds to resume it, and the size of its store."""
    sys.path.append(str(TOY))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TOY), os.environ.get("PYTHONPATH")]))
    spec = parse_spec(SPEC.format(subsamples=number, workers=workers), folder=folder)
    store = folder / f"workers-{workers}.sqlite"
    started = time.perf_counter()
    run(spec, store=store)
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    again = run(spec, store=store)
    resumed = time.perf_counter() - started
    assert again.finished == 0
    print(
        f"{number:,} trials, {workers} worker{'s' * (workers > 1)}: {seconds:.1f} s, {seconds / number * 1000:.2f} ms "
        f"per trial (target: 3 ms in one process); resuming took {resumed:.2f} s (target: 3 s); "
        f"store {store.stat().st_size / 1e6:.0f} MB (target: 1,000 MB)"
    )


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=27_000)
    arguments = parser.parse_args()
    start_up()
    planning(100_000)
    with tempfile.TemporaryDirectory() as folder:
        for workers in (1, 2):
            trials(arguments.trials, workers, Path(folder))
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()

"""What the harness itself costs: start-up, planning, a trial, a resumed run. Prints figures, asserts nothing.

Start-up times are multiples of a bare `python -c pass` taken in the same run. The trials use a method that does nothing
but return class shares (`toy.constant` of the tests), so that what is timed is peekbench.

    python benchmarks/overhead.py [--trials 27000]
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

ROOT = Path(__file__).parent.parent
TOY = ROOT / "tests" / "installed"
REPEATS = 9


def fastest(command: list[str]) -> float:
    """Seconds of the fastest of several runs of a command."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        times.append(time.perf_counter() - started)
    return min(times)


def start_up() -> None:
    """Start-up of two commands, and of what they cannot do without, as multiples of a bare interpreter's."""
    peekbench = str(Path(sys.executable).with_name("peekbench"))
    bare = fastest([sys.executable, "-c", "pass"])
    print(f"python -c pass                                {bare * 1000:7.1f} ms")
    subprocess.run([peekbench, "validate", "specs/quickstart.yaml"], check=True, capture_output=True, cwd=ROOT)
    for name, command, bar in (
        ("import typer", [sys.executable, "-c", "import typer"], None),
        ("import pydantic", [sys.executable, "-c", "from pydantic import BaseModel"], None),
        ("peekbench --help", [peekbench, "--help"], 10),
        ("peekbench validate specs/quickstart.yaml", [peekbench, "validate", "specs/quickstart.yaml"], 30),
    ):
        seconds = fastest(command)
        limit = f"   (bar: at most {bar})" if bar else ""
        print(f"{name:<45} {seconds * 1000:7.1f} ms, {seconds / bare:5.1f} times the bare start{limit}")


SPEC = """
name: overhead
tasks: [{{use: toy.words, options: {{num_classes: 6, num_rows: 2000}}}}]
methods: [toy.constant]
design: {{num_train: 50, num_test: 200, num_subsamples: {subsamples}}}
analyses: [toy.count]
executor: {{use: local, options: {{workers: {workers}}}}}
"""


def planning(trials: int) -> None:
    """Seconds and memory of planning, in a process of its own."""
    code = f"""
import resource, sys, time
sys.path.append({str(TOY)!r})
from pathlib import Path
from peekbench.plan import group, make_trials
from peekbench.spec import parse_spec
spec = parse_spec({SPEC.format(subsamples=trials, workers=1)!r}, folder=Path.cwd())
started = time.perf_counter()
planned = list(make_trials(spec))
items = list(group_trials(planned, {{m.name: m.base_key() for m in spec.methods}}, set()))
seconds = time.perf_counter() - started
print(f"{{len(items):,}} trials planned in {{seconds:.2f}} s, "
      f"{{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}} MB at the most   (bar: 2 s, 500 MB)")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def trials(number: int, workers: int, folder: Path) -> None:
    """Milliseconds a trial in a run of many, its resumption, and the size of its store."""
    sys.path.append(str(TOY))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TOY), os.environ.get("PYTHONPATH")]))
    from peekbench.execution.runner import run
    from peekbench.spec.experiment import parse_spec

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
        f"a trial (bar: 3 ms in one process); 'nothing to do' after {resumed:.2f} s (bar: 3 s); "
        f"store {store.stat().st_size / 1e6:.0f} MB (bar: 1,000 MB)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=27_000)
    options = parser.parse_args()
    start_up()
    planning(100_000)
    with tempfile.TemporaryDirectory() as folder:
        for workers in (1, 2):
            trials(options.trials, workers, Path(folder))
    print(f"memory of this process at the most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()

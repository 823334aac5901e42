"""Print the processor time of the quickstart's run alone and beside `peekbench watch`, and that of the watcher.

Usage: python benchmarks/watching_cost.py [--subsamples 50]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

QUICKSTART = Path(__file__).parents[1] / "specs" / "quickstart.yaml"
PEEKBENCH = [sys.executable, "-m", "peekbench"]
STORE = Path("runs", "quickstart.sqlite")


def run(folder: Path, *, is_watched: bool) -> tuple[float, float, float]:
    """Return the seconds of a run, and the processor time of the run and of the watcher."""
    started = time.monotonic()
    process = subprocess.Popen([*PEEKBENCH, "run", "quickstart.yaml", "--quiet"], cwd=folder)
    watcher = None
    if is_watched:
        while not (folder / STORE).is_file():
            time.sleep(0.1)
        command = [*PEEKBENCH, "watch", str(STORE)]
        watcher = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    if status:
        raise SystemExit("the run failed")
    watched = 0.0
    if watcher is not None:
        _, _, own = os.wait4(watcher.pid, 0)
        watched = own.ru_utime + own.ru_stime
    return seconds, usage.ru_utime + usage.ru_stime, watched


def main() -> None:
    """Run the quickstart alone and beside a watcher."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subsamples", type=int, default=50, help="subsamples of each task")
    arguments = parser.parse_args()
    spec = yaml.safe_load(QUICKSTART.read_text(encoding="utf-8"))
    spec["design"]["num_subsamples"] = arguments.subsamples
    times = {}
    for is_watched in (False, True):
        with TemporaryDirectory() as folder:
            Path(folder, "quickstart.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
            times[is_watched] = run(Path(folder), is_watched=is_watched)
    (alone, own, _), (beside, shared, watcher) = times[False], times[True]
    print(f"run alone: {own:.1f} s of processor time, {alone:.0f} s")
    print(f"beside the watcher: {shared:.1f} s ({shared / own:.3f} of alone), {beside:.0f} s")
    print(f"watcher: {watcher:.1f} s of processor time, {watcher / beside:.1%} of one core, with its start")


if __name__ == "__main__":
    main()

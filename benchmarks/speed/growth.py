"""Measures how time and memory grow with trials: to resume a run, to make its report, to analyze a table of scores.

The stores contain simulated outcomes and are written by the code that runs use. Each measurement is a process of its
own: `peekbench report` of a run with four analyses, `peekbench analyze` of a table with two rows for each trial, and a
run up to the first outcome of a trial that its store lacks. Prints a table in Markdown, asserts nothing.

    python benchmarks/speed/growth.py [--sizes 1000 10000 100000 1000000] [--picture docs/figures/growth.svg]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

sys.path.append(str(Path(__file__).parents[2] / "tests" / "fixtures"))  # which has the plugin `toy`

from large_tables import make_table
from report import fill

from peekbench.cli import GARBAGE_THRESHOLD
from peekbench.data.preflight import describe_tasks
from peekbench.execution.progress import NullProgress
from peekbench.plugins import Outcome
from peekbench.results.sequential import run
from peekbench.spec.experiment import load_spec

TASKS, METHODS = 5, 10
NUM_TEST = 20
NUM_MISSING = 500
"""Trials that the store lacks: all methods of several draws."""
ROWS_PER_TRIAL = 2
ANALYSES = ("summary", "permutation", "power", "consistency")


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    seconds: float
    processor: float
    """Seconds of the processor, including those of child processes."""
    memory: float
    """Peak memory of the largest process, in GB."""


Costs: TypeAlias = dict[int, dict[str, Cost]]
"""Costs by number of trials and by operation."""


class FirstTrial(NullProgress):
    """Ends the process at the first outcome of a trial."""

    def advance(self, outcome: Outcome) -> None:
        """End the process."""
        os._exit(0)


def write_spec(folder: Path, num_trials: int) -> Path:
    """Write the spec of a run and return its path."""
    path = folder / "growth.yaml"
    tasks = [
        f"  - {{use: toy.words, name: task{number}, options: {{num_classes: 2, num_rows: 2000}}}}"
        for number in range(TASKS)
    ]
    methods = [f"  - {{use: toy.constant, name: method{number}}}" for number in range(METHODS)]
    lines = [
        "name: growth", "tasks:", *tasks, "methods:", *methods,
        f"design: {{num_train: 20, num_test: {NUM_TEST}, num_subsamples: {num_trials // (TASKS * METHODS)}}}",
        f"analyses: [{', '.join(ANALYSES)}]", "report: {allow_incomplete: true}",
        "executor: {use: local, options: {workers: 1, in_process: true}}",
    ]  # fmt: skip
    path.write_text("\n".join(lines))
    return path


def measure(command: Sequence[str], folder: Path) -> Cost:
    """Run a command in a folder and return its cost.

    Linux counts the memory of this process at the start of the command as the command's, so this one stays small.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, os.environ.get("PYTHONPATH")]))}
    started = time.perf_counter()
    output = (folder / "output.txt").open("wb")
    child = os.posix_spawn(
        command[0],
        list(command),
        environment,
        file_actions=[(os.POSIX_SPAWN_DUP2, output.fileno(), 1), (os.POSIX_SPAWN_DUP2, output.fileno(), 2)],
    )
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - started
    output.close()
    if status:
        raise SystemExit(f"{command} failed:\n{(folder / 'output.txt').read_text()}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20)


def measure_size(num_trials: int, folder: Path) -> Iterator[tuple[str, Cost]]:
    """Yield the operations with their costs for one number of trials. A store in the folder is used again."""
    this = [sys.executable, __file__]
    peekbench = str(Path(sys.executable).with_name("peekbench"))
    reports = ["--reports", str(folder / "reports")]
    spec, store, table = write_spec(folder, num_trials), folder / "growth.sqlite", folder / "scores.csv"
    if not store.exists():
        yield "fill", measure([*this, "--fill", str(spec), str(num_trials)], folder)
    yield "resume", measure([*this, "--resume", str(spec)], folder)
    measure([*this, "--table", str(table), str(num_trials * ROWS_PER_TRIAL)], folder)
    yield "analyze", measure([peekbench, "analyze", str(table), *reports], folder)
    yield "report", measure([peekbench, "report", str(store), *reports], folder)


def print_table(costs: Costs) -> None:
    """Print all costs as a table in Markdown."""
    operations = {"resume": "resume a run", "report": "`peekbench report`", "analyze": "`peekbench analyze`"}
    print(f"| trials | {' | '.join(operations.values())} |")
    print(f"|---{'|---' * len(operations)}|")
    for size, of_size in costs.items():
        cells = [
            f"{cost.seconds:.1f} s, {cost.processor:.1f} s of the processor, {cost.memory:.2f} GB"
            for cost in (of_size[name] for name in operations)
        ]
        print(f"| {size:,} | {' | '.join(cells)} |")


def draw(costs: Costs, path: Path) -> None:
    """Draw time and memory against the number of trials."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    seconds, memory = figure.subplots(1, 2)
    names = {"resume": "resume a run", "report": "peekbench report", "analyze": "peekbench analyze (2 rows per trial)"}
    for marker, (name, label) in zip("os^", names.items(), strict=True):
        of_name = {size: cost[name] for size, cost in costs.items() if name in cost}
        for axes, values in (
            (seconds, [cost.processor for cost in of_name.values()]),
            (memory, [cost.memory for cost in of_name.values()]),
        ):
            axes.loglog(list(of_name), values, marker=marker, label=label)
    seconds.set(xlabel="trials", ylabel="seconds of the processor")
    memory.set(xlabel="trials", ylabel="peak memory, GB")
    seconds.set_yticks([1, 2, 5, 10, 20, 50, 100])
    memory.set_yticks([0.2, 0.5, 1, 2, 5])
    for axes in (seconds, memory):
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
        axes.grid(visible=True, alpha=0.3)
    figure.legend(*seconds.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """Measure all sizes, or do the step of one process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--picture", type=Path, help="file of a plot, SVG or PNG")
    parser.add_argument("--stores", type=Path, help="folder to keep the stores in; its stores are used again")
    parser.add_argument(
        "--costs", type=Path, help="JSON file of costs to add to, so that sizes can be measured in turn"
    )
    parser.add_argument("--fill", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--resume", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--table", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fill:
        spec = load_spec(Path(arguments.fill[0]))
        number = int(arguments.fill[1]) - min(NUM_MISSING, int(arguments.fill[1]) // 2)
        fill(spec.folder / "growth.sqlite", spec, describe_tasks(spec), number)
    elif arguments.table:
        make_table(int(arguments.table[1])).to_csv(arguments.table[0], index=False)
    elif arguments.resume:
        gc.set_threshold(GARBAGE_THRESHOLD)  # as commands do
        run(load_spec(arguments.resume), store=arguments.resume.with_suffix(".sqlite"), progress=FirstTrial())
    else:
        measure_all(arguments.sizes, arguments.stores, arguments.costs, arguments.picture)


def measure_all(sizes: Sequence[int], stores: Path | None, costs_path: Path | None, picture: Path | None) -> None:
    """Measure some sizes, and print and draw their costs with those of a file."""
    costs: Costs = {}
    if costs_path and costs_path.exists():
        stored = json.loads(costs_path.read_text())
        costs = {int(size): {name: Cost(**cost) for name, cost in of_size.items()} for size, of_size in stored.items()}
    for size in sizes:
        with nullcontext(stores) if stores else tempfile.TemporaryDirectory() as parent:
            folder = Path(parent).resolve() / str(size)
            folder.mkdir(parents=True, exist_ok=True)
            for name, cost in measure_size(size, folder):
                costs.setdefault(size, {})[name] = cost
                loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
                print(f"{size:,} trials, {name}: {cost}; load {loads}", file=sys.stderr, flush=True)
    costs = dict(sorted(costs.items()))
    if costs_path:
        plain = {size: {name: asdict(cost) for name, cost in of_size.items()} for size, of_size in costs.items()}
        costs_path.write_text(json.dumps(plain, indent=1))
    print_table(costs)
    if picture:
        draw(costs, picture)


if __name__ == "__main__":
    main()

"""Attack peekbench with kills, full disks, hostile files and methods that behave badly, and print what happened.

    python benchmarks/reliability/attack.py [SECTION ...] [--scale 0.1] [--seconds 3600] [--page docs/reliability.md]

The result is a Markdown table. Every other outcome than the same results as without an attack, or an error that says
what to do, is a defect: a traceback, another number, a file outside of the named folders, a command that is executed,
a process or a temporary file that is left, more than 10 seconds or 1 GB for a refusal. The exit status is 1 if there
is a defect.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from attack_tally import Budget, Tally, limit_memory

SECONDS_OF_LAST_INPUT = 300.0  # seconds for the last input of a section
BEGIN, END = "<!-- attack: begin -->\n", "<!-- attack: end -->\n"
"""Lines of a page around the table."""


@dataclass(frozen=True)
class Section:
    """A part of the attack."""

    module: str
    what: str
    number: int
    limits_memory: bool = False
    """Whether all inputs are tried in one process, whose memory is limited."""


SECTIONS = {
    "kills": Section("attack_kills", "one signal to the main process, a worker or both, at a random moment", 100),
    "bursts": Section("attack_kills", "2 to 10 signals in quick succession, also while a run closes", 50),
    "disk": Section("attack_disk", "full disks, read-only folders, wrong kinds of files, for all that is written", 64),
    "stores": Section("attack_stores", "damaged stores and write-ahead logs", 240),
    "specs": Section("attack_inputs", "mutated specs", 10_000, limits_memory=True),
    "tables": Section("attack_inputs", "mutated tables of scores", 1_500, limits_memory=True),
    "logs": Section("attack_inputs", "mutated logs of other tools", 1_000, limits_memory=True),
    "files": Section("attack_inputs", "mutated data files", 140, limits_memory=True),
    "labels": Section("attack_labels", "labels that stand for a missing label, by source of data", 23),
    "bounds": Section("attack_inputs", "small inputs that stand for much more, and special files", 43, True),
    "hub": Section("attack_inputs", "answers of a hostile data server", 82),
    "code": Section("attack_code", "specs and cells with code of the same names, in turns and in threads", 100),
    "plugins": Section("attack_plugins", "methods that behave badly", 109),
    "blocked": Section("attack_blocked", "changed specs after runs that failed before a result, and after others", 84),
    "smaller": Section("attack_blocked", "fewer subsamples after interrupted and finished runs", 40),
}


def attack(name: str, budget: Budget) -> Tally:
    """Try the inputs of a section in this process."""
    function = getattr(importlib.import_module(SECTIONS[name].module), name)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if SECTIONS[name].limits_memory:
            warnings.simplefilter("error")
            function(Budget(4, budget.seed + 1))  # imports plugins before the memory is limited
            limit_memory()
        tally: Tally = function(budget)
        os.chdir("/")
    return tally


def attack_in_process(name: str, budget: Budget) -> Tally:
    """Try the inputs of a section in a process of its own, which may be limited, killed or changed by them."""
    pool = ProcessPoolExecutor(1, get_context("spawn"))
    try:
        return pool.submit(attack, name, budget).result(budget.seconds + SECONDS_OF_LAST_INPUT)
    except Exception as error:
        return Tally(name, defects=[f"the attack ended with {type(error).__name__}: {error}"])
    finally:
        for process in (pool._processes or {}).values():
            process.kill()
        pool.shutdown(cancel_futures=True)


def format_table(tallies: dict[str, Tally], numbers: dict[str, int]) -> str:
    """Return the Markdown table of the outcomes."""
    columns = ("section", "what is tried", "tried", "survived", "refused", "defects")
    rows = [columns, ("---",) * 2 + ("---:",) * 4]
    for name, tally in tallies.items():
        tried = f"{tally.tried:,}" if tally.tried >= numbers[name] else f"{tally.tried:,} of {numbers[name]:,}"
        counts = (f"{tally.survived:,}", f"{tally.refused:,}", f"{len(tally.defects):,}")
        rows.append((name, SECTIONS[name].what, tried, *counts))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def update_page(page: Path, table: str) -> None:
    """Replace the table of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Run the sections and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"one of {', '.join(SECTIONS)}; default: all")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the number of inputs")
    parser.add_argument("--seconds", type=float, default=3600, help="longest time of each section")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, help="page whose table is replaced")
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}; choose from {', '.join(SECTIONS)}")
    names = options.sections or list(SECTIONS)
    numbers = {name: max(1, round(SECTIONS[name].number * options.scale)) for name in names}
    tallies = {}
    for name in names:
        tallies[name] = attack_in_process(name, Budget(numbers[name], options.seed, options.seconds))
        print(tallies[name], file=sys.stderr, flush=True)
    table = format_table(tallies, numbers)
    print(table, end="")
    if options.page is not None:
        update_page(options.page, table)
    sys.exit(any(tally.defects for tally in tallies.values()))


if __name__ == "__main__":
    main()

"""Runs the specs of the atlas and writes docs/atlas.md, docs/rules.md, figures and numbers from their stores.

Numbers are in docs/atlas.json and, of official test sets, in reports/published/official/official.json. Runs are
resumed where they ended; tables without a finished run keep their numbers. The tasks of the
Hub are run with --hub, or if PEEKBENCH_HUB_MIRROR names a mirror. Scores that were published in docs/ become rows, too:
name the file in PUBLISHED of atlas_numbers.py, and what is scored in LANGUAGE_MODELS of atlas_page.py.

    python benchmarks/atlas/atlas.py [--only SPEC ...] [--hub] [--no-run] [--runs FOLDER] [--output PAGE]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from atlas_numbers import ON_THE_HUB, SPECS, collect, missing_specs, spec_names
from atlas_page import write_page
from atlas_records import Atlas
from official_numbers import OFFICIAL, PUBLISHED_OFFICIAL, SIZES, collect_official, read_official

INTERRUPTED = 128  # and above: a signal ended the run


def main() -> int:
    """Run the specs and write the page; return 1 if a run failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*OFFICIAL, *SIZES, *spec_names()]
    parser.add_argument(
        "--only", nargs="+", choices=names, metavar="SPEC", help=f"run these specs only, of {', '.join(names)}"
    )
    parser.add_argument("--hub", action="store_true", help="also run the tasks of the Hub")
    parser.add_argument("--no-run", action="store_true", help="write the page from the stores that exist")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), help="folder of the stores, as `peekbench run` has it"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=SPECS.parents[1] / "docs" / "atlas.md",
        help="page to write; figures and numbers are written next to it (default: %(default)s)",
    )
    arguments = parser.parse_args()
    is_hub_used = arguments.hub or bool(os.environ.get("PEEKBENCH_HUB_MIRROR"))
    chosen = arguments.only or [name for name in names if is_hub_used or name not in ON_THE_HUB]
    failed = [] if arguments.no_run else run_specs(chosen)
    numbers = arguments.output.with_suffix(".json")
    earlier = Atlas.model_validate_json(numbers.read_text(encoding="utf-8")) if numbers.is_file() else None
    atlas = collect(arguments.runs, earlier)
    found = collect_official(arguments.runs, read_official())
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    numbers.write_text(atlas.model_dump_json(indent=1) + "\n", encoding="utf-8")
    PUBLISHED_OFFICIAL.write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
    write_page(atlas, found, arguments.output)
    for name in failed:
        print(f"{name}.yaml: its run failed, see above", file=sys.stderr)
    for name, run in atlas.runs.items():
        if earlier is not None and earlier.runs.get(name) == run:
            print(f"{name}.yaml: no newer run, the numbers of commit {run.commit} are kept")
    for name in [*(name for name in (*OFFICIAL, *SIZES) if name not in found.runs), *missing_specs(atlas)]:
        print(f"{name}.yaml: no finished run, left out of {arguments.output}")
    return 1 if failed else 0


def run_specs(names: Sequence[str]) -> list[str]:
    """Run or resume specs one after the other; return the names of those that failed."""
    return [name for name in names if run_spec(name) != 0]


def run_spec(name: str) -> int:
    """Run or resume a spec in a process of its own, and return its exit status."""
    process = subprocess.Popen([sys.executable, "-m", "peekbench", "run", SPECS / f"{name}.yaml"])
    while True:
        try:
            status = process.wait()
        except KeyboardInterrupt:  # Ctrl-C reaches the run, too, which saves its results before it ends
            continue
        if status >= INTERRUPTED:
            raise SystemExit(status)
        return status


if __name__ == "__main__":
    sys.exit(main())

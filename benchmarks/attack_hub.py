"""Loads datasets from a hostile Hub on the loopback interface, once for each of its behaviors.

For each behavior, the script prints the result, the time until the refusal and the peak memory of the process that
loads the data. It exits with status 1 if a behavior is accepted, causes a traceback, takes more than 10 seconds or
1 GB, writes outside of the caches or receives the access token. The behaviors are those of
`tests/fixtures/hostile_hub.py`.

    python benchmarks/attack_hub.py [--only etag] [--processes 4]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "fixtures"))

from hostile_hub import BEHAVIORS, HostileHub, attack, planted_files


def main() -> None:
    """Run all behaviors and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="run the behaviors whose names contain this text")
    parser.add_argument("--processes", type=int, default=4, help="number of processes at a time")
    parser.add_argument("--messages", action="store_true", help="print the messages")
    options = parser.parse_args()
    names = [name for name in BEHAVIORS if options.only in name]
    with HostileHub() as hub, tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.processes) as pool:
        homes = [Path(folder, str(number)) for number in range(len(names))]
        outcomes = [
            outcome for part in pool.map(lambda name, home: attack([name], home, hub), names, homes) for outcome in part
        ]
        planted = [path for home in homes for path in planted_files(home)]
        leaked = hub.leaked
    for outcome in outcomes:
        mark = "" if outcome.is_good() else "  <- PROBLEM"
        print(f"{outcome.name:34} {outcome.result:9} {outcome.seconds:5.1f} s {outcome.peak / 1e6:5.0f} MB{mark}")
        if options.messages:
            print(f"    {outcome.message}")
    bad = [outcome.name for outcome in outcomes if not outcome.is_good()]
    print(
        f"{len(outcomes)} behaviors, {len(outcomes) - len(bad)} refused, "
        f"{sum(outcome.result == 'traceback' for outcome in outcomes)} tracebacks, {len(planted)} files outside of the "
        f"caches, {len(leaked)} tokens leaked; slowest {max(outcome.seconds for outcome in outcomes):.1f} s"
    )
    sys.exit(bool(bad or planted or leaked))


if __name__ == "__main__":
    main()

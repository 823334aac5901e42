"""Load datasets from a hostile Hub on the loopback interface, once for each behavior that the server knows.

Each must be refused within limits of time and memory; files outside of the caches and the access token must be safe.
The behaviors are those of `tests/fixtures/hostile_hub.py`.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attack_tally import Budget, Tally

sys.path.append(str(Path(__file__).parents[1] / "tests" / "fixtures"))

from hostile_hub import BEHAVIORS, HostileHub, Outcome, attack, planted_files

PROCESSES = 4


def hub(budget: Budget) -> Tally:
    """Load one dataset for each behavior, in processes of their own."""
    tally = Tally("hub")
    names = list(BEHAVIORS)[: budget.number]
    with HostileHub() as server, tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(PROCESSES) as pool:

        def load(behavior: str) -> tuple[Outcome, list[Path]]:
            home = Path(name, behavior)
            (outcome,) = attack([behavior], home, server)
            return outcome, planted_files(home)

        batches = [names[start : start + PROCESSES] for start in range(0, len(names), PROCESSES)]
        for position in Budget(len(batches), seconds=budget.seconds):
            for outcome, planted in pool.map(load, batches[position]):
                found = f"{outcome.result} after {outcome.seconds:.1f} s with {outcome.peak / 1e6:.0f} MB"
                problems = [] if outcome.is_good() else [f"{found}: {outcome.message}"]
                problems += [f"planted {path}" for path in planted]
                tally.add(outcome.name, problems, refused=True)
                tally.slowest = max(tally.slowest, outcome.seconds)
        tally.defects += [f"the access token was sent to {host}" for host in server.leaked]
    return tally

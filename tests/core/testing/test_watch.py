"""Progress and time limits of contract checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from faulty_methods import Knob, sleeps
from limits import TIMEOUT

from peekbench import MethodEntry
from peekbench.testing import METHOD_CHECKS, make_case
from peekbench.testing.outcomes import run_checks
from peekbench.testing.watch import Watch, watching


def test_a_check_that_hangs_is_ended(tmp_path: Path) -> None:
    announced: list[tuple[str, int, int]] = []
    case = make_case("toy.vote", MethodEntry(name="tried", options=Knob, method=sleeps, summary=""), Knob(), tmp_path)
    with watching(Watch(lambda *check: announced.append(check), time_limit=0.5)):
        outcomes = list(run_checks(METHOD_CHECKS, case, num_required=2))
    first, *others = METHOD_CHECKS
    assert announced == [(first, 1, len(METHOD_CHECKS))]
    assert "did not end within 0.5 s" in outcomes[0].message
    assert "faulty_methods.py, line " in outcomes[0].message
    assert [outcome.name for outcome in outcomes if not outcome.was_run] == others


@pytest.mark.slow
def test_code_that_no_signal_interrupts_ends_the_process() -> None:
    code = (
        "import signal; from peekbench.testing import watch; watch.SHUTDOWN_TIMEOUT = 0.5\n"
        "with watch.watching(watch.Watch(lambda *_: None, 0.2)), watch.watched('some', 1, 1):\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]); signal.sigwait([signal.SIGUSR1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=TIMEOUT)
    assert done.returncode == 1
    assert 'File "<string>", line 3' in done.stderr

"""Runs of peekbench in processes of their own that are disturbed, and what is left of them.

The runs use `attack_behaviors` as an installed plugin, in a distribution that exists only in the folder of the run.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
import yaml

MARKER = "PEEKBENCH_ATTACK"
"""Environment variable that all processes of a run inherit; its value is the folder of the run."""
NAME = "attack"
STORE = Path("runs", f"{NAME}.sqlite")
REPORT = Path("reports", NAME)
EXPECTED = (f"{NAME}.yaml", "plugin", "runs", "reports", "cache", "log", "out.txt", "err.txt")
"""What may lie in the folder of a run."""
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
COMPANIONS = ("-wal", "-shm", ".lock")
"""Endings of the files beside a store."""


def prepare(folder: Path, **parts: Any) -> None:
    """Make the folder of a run with its spec and with the plugin."""
    folder.mkdir(parents=True)
    write_spec(folder / f"{NAME}.yaml", **parts)
    distribution = folder / "plugin" / "peekbench_attack-1.0.dist-info"
    distribution.mkdir(parents=True)
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: peekbench-attack\nVersion: 1.0\n")
    (distribution / "entry_points.txt").write_text("[peekbench]\nattack = attack_behaviors\n")


def write_spec(path: Path, **parts: Any) -> None:
    """Write a small spec; keyword arguments replace its parts."""
    spec = {
        "name": NAME,
        "tasks": ["attack.texts"],
        "methods": ["attack.steady"],
        "design": {"num_train": 10, "num_test": 20, "num_subsamples": 1},
        "analyses": ["attack.none"],
        "report": {"formats": ["text"]},
        **parts,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(spec))


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of commands in a folder."""
    path = [str(folder / "plugin"), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    own = {"PYTHONPATH": os.pathsep.join(path), MARKER: str(folder), "PEEKBENCH_CACHE": str(folder / "cache")}
    return {**os.environ, **own}


def start(
    folder: Path,
    *arguments: str,
    stdout: Path | None = None,
    max_file_size: int | None = None,
    variables: Mapping[str, str] = NO_VARIABLES,
) -> subprocess.Popen[bytes]:
    """Start a command in a folder.

    Parameters
    ----------
    folder
        Folder of the command. Its output goes into `out.txt` and `err.txt` there.
    *arguments
        Command and options; by default, the spec is run.
    stdout
        File for the standard output instead of `out.txt`.
    max_file_size
        Size in bytes that no file may exceed.
    variables
        Environment variables.
    """

    def set_up() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # shells ignore it for commands in the background
        if max_file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_size, max_file_size))

    with (stdout or folder / "out.txt").open("wb") as out, (folder / "err.txt").open("wb") as err:
        return subprocess.Popen(
            [sys.executable, "-m", "peekbench", *(arguments or ("run", f"{NAME}.yaml"))],
            cwd=folder, env={**environment(folder), **variables}, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            start_new_session=True, preexec_fn=set_up,
        )  # fmt: skip


def finish(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Return the exit status of a command; None if it takes too long and was killed."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def errors(folder: Path) -> str:
    """Return the error output of the last command in a folder."""
    return (folder / "err.txt").read_text(errors="replace")


def left_processes(folder: Path, seconds: float = 5.0) -> list[psutil.Process]:
    """Return the processes of a run that have not ended within some seconds, and kill them."""
    end = time.monotonic() + seconds
    while (left := list(_running(folder))) and time.monotonic() < end:
        time.sleep(0.05)
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    return left


def workers_of(folder: Path, main: int) -> list[psutil.Process]:
    """Return the worker processes of a run."""
    return [process for process in _running(folder) if process.pid != main and _parent(process) == main]


def _parent(process: psutil.Process) -> int | None:
    with suppress(psutil.Error):
        return process.ppid()
    return None


def _running(folder: Path) -> Iterator[psutil.Process]:
    """Yield the processes whose environment names a folder, which they had to inherit from its commands."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARKER) == str(folder):
                yield process


def left_files(folder: Path, allowed: Sequence[str] = ()) -> list[str]:
    """Return the temporary and unexpected files in a folder, except those whose last part is allowed."""
    store = {STORE.name, *(f"{STORE.name}{ending}" for ending in COMPANIONS if ending == ".lock")}
    left = [path for path in folder.iterdir() if path.name not in (*EXPECTED, *allowed)]
    left += [path for path in folder.glob("runs/*") if path.name not in (*store, *allowed)]
    left += [path for path in folder.rglob(".*") if path.name not in allowed]
    left += [path for path in folder.rglob("*.part") if path.name not in allowed]
    return sorted({str(path.relative_to(folder)) for path in left})


def count_lines(path: Path) -> Mapping[str, int]:
    """Return how often each line occurs in a file, which may be missing."""
    counts: dict[str, int] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        counts[line] = counts.get(line, 0) + 1
    return counts

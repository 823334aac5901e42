"""Put an obstacle in the way of everything that peekbench writes, and look what happens.

The obstacles are a full disk, a limit of file sizes, a read-only folder, a file in the place of a folder, a folder in
the place of a file, and a folder that is moved during a run. A command must end with the right exit status and an error
that names the file or its folder, or do without a cache. It must lose nothing that was stored and leave no temporary
file. Without the obstacle, the same command must succeed, and a run must have the results of an undisturbed one.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from attack_runs import (
    COMPANIONS,
    NAME,
    REPORT,
    STORE,
    errors,
    finish,
    left_files,
    left_processes,
    prepare,
    start,
    write_spec,
)
from attack_stores import differences, finished_trials, results
from attack_tally import Budget, Tally

sys.path.append(str(Path(__file__).parents[2] / "tests" / "fixtures"))

from hostile_hub import HostileHub

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000  # of Linux's unshare
DISK = "32m"
FILLER = "filler"
ASIDE = ".aside"
"""Ending of files that are moved out of the way, beside their folder."""


@cache
def enter_mount_namespace() -> None:
    """Let this process mount file systems that no other process sees. Root may do so, and other users on most systems.

    Raises
    ------
    OSError
        If the system does not permit it.
    """
    user, group = os.geteuid(), os.getegid()
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(CLONE_NEWNS if user == 0 else CLONE_NEWNS | CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "no mount namespace: run the attack as root, or allow user namespaces")
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _mount("--make-rprivate", "/")


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only."""
    enter_mount_namespace()
    folder.mkdir(parents=True, exist_ok=True)
    _mount("--bind", str(folder), str(folder))
    _mount("-o", "remount,ro,bind", str(folder))
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def full_disk(folder: Path, free: int) -> Iterator[None]:
    """Put a folder on a disk that has some bytes left. The disk has space afterwards, and stays."""
    enter_mount_namespace()
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder.with_name(folder.name + ASIDE)
    shutil.copytree(folder, aside)
    _mount("-t", "tmpfs", "-o", f"size={DISK}", "none", str(folder))
    shutil.copytree(aside, folder, dirs_exist_ok=True)
    shutil.rmtree(aside)
    with (folder / FILLER).open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            filler.truncate(max(0, filler.tell() - free))
    try:
        yield
    finally:
        (folder / FILLER).unlink()


@contextmanager
def replaced(path: Path, *, by_folder: bool) -> Iterator[None]:
    """Put a folder with a file, or a file, in the place of a path."""
    aside = path.with_name(path.name + ASIDE)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.rename(aside)
    if by_folder:
        path.mkdir()
        (path / "content").touch()
    else:
        path.write_text("a file of the user\n")
    try:
        yield
    finally:
        if by_folder:
            shutil.rmtree(path)
        else:
            path.unlink()
        if aside.exists():
            aside.rename(path)


def unmount_all(folder: Path) -> None:
    """Unmount all disks below a folder."""
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for mount in reversed(mounts):
        if mount.startswith(f"{folder}/"):
            subprocess.run(["umount", mount], check=True)


TIME_LIMIT = 180.0
FORMATS = ("html", "text", "markdown", "json", "cards", "svg", "png")
FILES = {
    "html": "report.html", "text": "report.txt", "markdown": "report.md", "json": "report.json",
    "cards": "cards/attack.steady.md", "svg": "figures/01-marks.svg", "png": "figures/01-marks.png",
}  # fmt: skip
ALLOWED = ("data", "out", "specs", "scores.csv", "hub", ".locks", ".agent_harnesses.json")
"""Files of the cases; the last three are those of the client library of the Hub."""
DEVICE = Path("/dev/full")
TABLE = "task,method,num_test,base,extra,test\n" + "".join(
    f"task {number % 2},method {number // 4},100,0.6{number},0.7{number},0.7{number}\n" for number in range(8)
)


Obstacle = Callable[[Path], AbstractContextManager[None]]
"""Returns a context with an obstacle, given the folder of a command."""


@dataclass(frozen=True)
class Case:
    """A command with an obstacle."""

    label: str
    command: tuple[str, ...]
    """Empty to run the spec without a store."""
    obstacle: Obstacle
    status: int = 2
    says: str = ""
    """What the error output must contain."""
    max_file_size: int | None = None
    stdout: Path | None = None
    vanishes: str = ""
    """Folder that is moved away once the run has begun."""


def _obstacles(folder: str, file: str = "") -> Iterator[tuple[str, Obstacle]]:
    """Yield the obstacles to write into a folder, and to write a file of it."""
    yield f"full disk, {folder}", lambda base: full_disk(base / folder, free=0)
    yield f"read-only, {folder}", lambda base: read_only(base / folder)
    yield f"file in the place of {folder}", lambda base: replaced(base / folder, by_folder=False)
    if file:
        yield f"folder in the place of {file}", lambda base: replaced(base / folder / file, by_folder=True)


def _none(base: Path) -> AbstractContextManager[None]:
    return nullcontext()


def cases() -> Iterator[Case]:
    """Yield all cases."""
    run = ("run", f"{NAME}.yaml")
    for label, obstacle in _obstacles("runs", STORE.name):
        yield Case(f"run: {label}", (), obstacle, says="runs")
    for free in (60_000, 150_000, 400_000):
        yield Case(f"run: {free:,} bytes left", (), partial(_fill, free), says="disk")
        yield Case(f"run: files of at most {free:,} bytes", (), _none, says="store", max_file_size=free)
    yield Case("run: runs moved during the run", (), _none, says="moved", vanishes="runs")
    for name in (f"{STORE.name}.lock", f"{STORE.name}-wal"):
        yield Case(f"run: folder in the place of {name}", (), partial(_replace, f"runs/{name}"), says=name)
    yield Case("run: store is a device", ("run", f"{NAME}.yaml", "--store", str(DEVICE)), _none, says="regular file")
    for label, obstacle in _obstacles("reports"):
        yield Case(f"run: {label}", run, obstacle, says="reports")
    for name in FORMATS:
        file = f"{REPORT}/{FILES[name]}"
        yield Case(
            f"report: folder in the place of {FILES[name]}", ("report", NAME), partial(_replace, file), says=str(REPORT)
        )
    written = {
        "report --reports": (("report", NAME, "--format", "svg", "--reports", "out"), "out", ""),
        "analyze --reports": (("analyze", "scores.csv", "--reports", "out"), "out", ""),
        "compare --reports": (("compare", NAME, "data/other.sqlite", "--reports", "out"), "out", ""),
    }
    for name, (command, folder, file) in written.items():
        for label, obstacle in _obstacles(folder, file):
            yield Case(f"{name}: {label}", command, obstacle, says=folder)
    analyze = written["analyze --reports"][0]
    yield Case("analyze --reports: files of at most 100 bytes", analyze, _none, says="out", max_file_size=100)
    for command in (run, ("report", NAME), ("analyze", "scores.csv"), ("show", "spec-schema")):
        yield Case(f"{command[0]}: full standard output", command, _none, says="standard output", stdout=DEVICE)
    for label, obstacle in _obstacles("cache"):
        yield Case(f"docstrings: {label}", ("validate", "data/docstrings.yaml"), obstacle, status=0)
        yield Case(f"prepared data: {label}", ("validate", "data/hub.yaml"), obstacle, status=0)
        if not label.startswith("full"):  # training takes minutes before anything is written
            yield Case(
                f"trained model: {label}", ("validate", "--download", "data/model.yaml"), obstacle, says="finetune"
            )
    for label, obstacle in _obstacles("hub"):
        yield Case(f"download: {label}", ("validate", "data/hub.yaml"), obstacle, says="hub")


def _replace(file: str, base: Path) -> AbstractContextManager[None]:
    return replaced(base / file, by_folder=True)


def _fill(free: int, base: Path) -> AbstractContextManager[None]:
    return full_disk(base / "runs", free)


def make_template(folder: Path) -> dict[str, Any]:
    """Write the specs and a finished run, and return its results."""
    methods = [
        {"use": "attack.steady", "options": {"seconds": 0.002}},
        {"use": "attack.steady", "name": "other", "options": {"salt": 1}},
    ]
    design = {"num_train": 10, "num_test": 20, "num_subsamples": 60}
    parts = {"methods": methods, "design": design, "analyses": ["attack.marks"]}
    prepare(folder, **parts, report={"formats": list(FORMATS)})
    write_spec(folder / "specs" / f"{NAME}.yaml", **parts)
    design = {"num_train": 7, "num_test": 3, "num_subsamples": 1}
    hub = {"use": "hf.dataset", "name": "hub", "options": {"id": "bad/usual", "files": "*.parquet"}}
    model = {"use": "finetune.tapt", "options": {"model": "builtin:bert-nano"}}
    write_spec(folder / "data" / "docstrings.yaml", tasks=["docstrings.sklearn"], design=design)
    write_spec(folder / "data" / "hub.yaml", tasks=[hub], design=design)
    write_spec(folder / "data" / "model.yaml", methods=[model], design=design)
    (folder / "scores.csv").write_text(TABLE)
    status = finish(start(folder), TIME_LIMIT)
    if status != 0:
        raise RuntimeError(f"the undisturbed run ended with exit status {status}: {errors(folder)}")
    shutil.copy(folder / STORE, folder / "data" / "other.sqlite")
    return results(folder / STORE)


def attack(case: Case, base: Path, expected: dict[str, Any], hub: str) -> list[str]:
    """Run the command of a case with and without its obstacle, and return the problems."""
    variables = {"HF_ENDPOINT": hub, "HF_HOME": str(base / "hub"), "NO_PROXY": "*"}
    if not case.command:
        shutil.rmtree(base / "runs")
        (base / "runs").mkdir()
    trials = finished_trials(base / STORE)
    with case.obstacle(base):
        process = start(base, *case.command, stdout=case.stdout, max_file_size=case.max_file_size, variables=variables)
        if case.vanishes:
            while process.poll() is None and "already done" not in errors(base):
                time.sleep(0.01)
            (base / case.vanishes).rename(base / f"{case.vanishes}{ASIDE}")
        status = finish(process, TIME_LIMIT)
    if case.vanishes:
        shutil.rmtree(base / case.vanishes, ignore_errors=True)
        (base / f"{case.vanishes}{ASIDE}").rename(base / case.vanishes)
    # The log of a store on a full disk cannot be copied into the file, and keeps what is not in the file.
    logs = () if case.command else tuple(f"{STORE.name}{ending}" for ending in COMPANIONS)
    problems = _check(case, base, status, (*ALLOWED, *logs))
    if not trials <= finished_trials(base / STORE):
        problems.append("stored trials are lost")
    if "--download" in case.command or DEVICE.as_posix() in case.command:
        return problems  # training takes minutes; a device stays full
    status = finish(start(base, *case.command, variables=variables), TIME_LIMIT)
    if status != 0:
        problems.append(f"exit status {status} without the obstacle: {errors(base)[-300:]}")
    problems += [f"left the file {name}" for name in left_files(base, ALLOWED)]
    if status == 0 and not case.command:
        problems += differences(base / STORE, expected)
    return problems


def _check(case: Case, base: Path, status: int | None, allowed: tuple[str, ...]) -> list[str]:
    """Check the end of a command."""
    text = errors(base)
    problems = [f"left the process {process.pid}" for process in left_processes(base)]
    problems += [f"left the file {name}" for name in left_files(base, allowed)]
    if status != case.status:
        problems.append(f"exit status {status} instead of {case.status}")
    if "Traceback" in text or "Exception ignored" in text:
        problems.append("a traceback")
    messages = [line for line in text.splitlines() if line.startswith("peekbench: ")]
    if case.status and not any(case.says in message for message in messages):
        problems.append(f"the error does not name {case.says}")
    return [*problems, text[-600:]] if problems else []


@contextmanager
def _copied(template: Path, base: Path) -> Iterator[None]:
    shutil.copytree(template, base, symlinks=True)
    try:
        yield
    finally:
        unmount_all(base)
        shutil.rmtree(base)


def disk(budget: Budget, only: str = "") -> Tally:
    """Try all cases whose labels contain a text. Runs that do without a cache count as survived."""
    tally = Tally("disk")
    with HostileHub() as server, tempfile.TemporaryDirectory() as name:
        template = Path(name, "template")
        expected = make_template(template)
        chosen = [case for case in cases() if only in case.label]
        for position in Budget(len(chosen), seconds=budget.seconds):
            case = chosen[position]
            with _copied(template, Path(name, str(position))):
                problems = attack(case, Path(name, str(position)), expected, server.endpoint)
            tally.add(case.label, problems, refused=case.status != 0)
    return tally

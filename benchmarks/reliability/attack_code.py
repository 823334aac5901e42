"""Use specs whose code has the same names in several folders, in turns and in threads, and look whether they mix.

Each folder has a number, which its data source, method, analysis, executor, observer, report format and notebook cell
return, mostly through modules beside them that have the same names in all folders. Another number is a defect.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

from attack_tally import Budget, Tally

import peekbench as pb
from peekbench.report import report_of_run

CODE = """
from pathlib import Path

import numpy as np

from peekbench import Analysis, Dataset, hookimpl
from peekbench.plugins import ExecutorEntry, ObserverEntry, ReportFormatEntry
{imports}

def number():
    {lazily}
    return {value}

def load(num_rows: int = 60) -> Dataset:
    rows = range(num_rows)
    return Dataset([f"text {{row}}" for row in rows], [row % 2 for row in rows], (f"a{{number()}}", f"b{{number()}}"))

def fit(unlabeled, train, task):
    share = 0.5 + number() / 100
    return lambda texts: np.tile([share, 1 - share], (len(texts), 1))

def count(results):
    return Analysis("count", warnings=(f"number {{number()}}",))

def note(what):
    Path(__file__).with_name(f"{{what}}.txt").write_text(str(number()))

def execute(items, work, *, options):
    note("executor")
    for item in items:
        yield list(work(item))

class Observer:
    def run_started(self, event):
        note("observer")

def observe(*, options, folders):
    return Observer()

def write(report, path):
    path.write_text(str(number()))

@hookimpl
def peekbench_executors():
    return [ExecutorEntry(name="own", execute=execute, summary="in this process")]

@hookimpl
def peekbench_observers():
    return [ObserverEntry(name="own", observe=observe, summary="a file")]

@hookimpl
def peekbench_report_formats():
    return [ReportFormatEntry(name="own", write=write, suffix=".txt", summary="a number")]
"""
IMPORTS = (
    ("import helper", "", "helper.NUMBER"),
    ("", "import helper", "helper.NUMBER"),
    ("from helper import NUMBER", "", "NUMBER"),
    ("", "from parts.deep import NUMBER", "NUMBER"),
    ("import parts.deep as deep", "", "deep.NUMBER"),
    ("import parts.deep", "", "parts.deep.NUMBER"),
    ("", "from parts import deep", "deep.NUMBER"),
)
"""Statements at the top and in a function, and what they import."""
NAMES = ("my_file.py", "./my_file.py", "{folder}/my_file.py", "my_file", "inner.my_file", "inner/my_file.py")
CELL = """
def fit(unlabeled, train, task):
    return lambda texts: np.tile([0.5 + NUMBER / 100, 0.5 - NUMBER / 100], (len(texts), 1))
"""
DESIGN = {"num_train": 10, "num_test": 10, "num_subsamples": 2}


def write_folder(folder: Path, number: int, rng: random.Random) -> str:
    """Write the code of a folder, and return the name of its file or module."""
    name = rng.choice(NAMES)
    place = folder / "inner" if "inner" in name else folder
    root = folder if name.startswith("inner.") else place
    for each in (place, root / "parts"):
        each.mkdir(parents=True, exist_ok=True)
    imports, lazily, value = rng.choice(IMPORTS)
    (place / "my_file.py").write_text(CODE.format(imports=imports, lazily=lazily or "pass", value=value))
    (root / "helper.py").write_text("from more import NUMBER\n")
    (root / "parts" / "__init__.py").write_text("")
    (root / "parts" / "deep.py").write_text("from .base import NUMBER\n")
    (root / "parts" / "base.py").write_text("import more\nNUMBER = more.NUMBER\n")
    write_number(root / "more.py", number)
    return name.format(folder=folder)


def write_number(path: Path, number: int) -> None:
    """Write a module of the same size and time of change as before."""
    path.write_text(f"NUMBER = {number}\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))


def use_folder(folder: Path, number: int, seed: int) -> Iterator[list[str]]:
    """Do what a user does with the spec of a folder, and yield after each step what is wrong."""
    rng = random.Random(seed)
    name = write_folder(folder, number, rng)
    yield []
    yield from _use_spec(folder, name, number)
    yield _cell(number)
    root = next(folder.rglob("more.py"))
    write_number(root, number + 20)
    yield []
    yield from _use_spec(folder, name, number + 20)


def _use_spec(folder: Path, name: str, number: int) -> Iterator[list[str]]:
    raw = {
        "name": f"run-{number}", "tasks": [f"{name}:load"], "methods": [f"{name}:fit"], "design": DESIGN,
        "analyses": [f"{name}:count"], "executor": f"{name}:own", "observers": [f"{name}:own"],
        "report": {"formats": [f"{name}:own"]},
    }  # fmt: skip
    path = folder / f"{number}.yaml"
    path.write_text(json.dumps(raw))
    spec = pb.load_spec(path)
    yield []
    run = pb.run(spec, store=folder / f"{number}.sqlite", progress=False)
    yield _compare("method", {number}, _numbers(run))
    for what in ("executor", "observer"):
        (file,) = folder.rglob(f"{what}.txt")
        yield _compare(what, str(number), file.read_text())
    report = run.report()
    yield _compare("analysis", f"number {number}", report.warnings[0])
    (written,) = report.save(folder / f"report {number}")
    yield _compare("report format", str(number), written.read_text())
    rows = pb.load_dataset(spec.source(spec.tasks[0]))
    yield _compare("data source", (f"a{number}", f"b{number}"), rows.class_names)
    again = report_of_run(run.store, given=pb.load_spec(path).code)
    yield _compare("analysis of a stored run", f"number {number}", again.warnings[0])
    try:
        pb.load_run(run.store).report()
        yield ["a report imports code that only its store names"]
    except pb.PeekbenchError as error:
        yield [] if "is not imported" in str(error) else [str(error)]


def _cell(number: int) -> list[str]:
    import numpy as np  # noqa: PLC0415 - as in a notebook

    namespace: dict[str, Any] = {"np": np, "__name__": "__main__", "NUMBER": number}
    exec(CELL, namespace)
    data = ([f"text {row}" for row in range(60)], ["a", "b"] * 30)
    return _compare("cell", {number}, _numbers(pb.measure(namespace["fit"], data, design=DESIGN, progress=False)))


def _numbers(run: pb.Run) -> set[int]:
    shares = run.predictions.to_pandas()["probability"]
    return {round(100 * float(share)) - 50 for share in shares}


def _compare(what: str, expected: object, found: object) -> list[str]:
    return [] if expected == found else [f"{what}: {found} instead of {expected}"]


def play(folder: Path, seed: int) -> list[str]:
    """Use several folders at once, in turns or in threads, and return what is wrong."""
    rng = random.Random(seed)
    numbers = rng.sample(range(1, 20), rng.choice((2, 2, 3)))
    for number in numbers:
        (folder / str(number)).mkdir()
    users = {number: use_folder(folder / str(number), number, rng.randrange(10**9)) for number in numbers}
    if rng.random() < 0.5:
        return _use_in_threads(users)
    problems = []
    while users:
        number = rng.choice(sorted(users))
        try:
            problems += next(users[number])
        except StopIteration:
            del users[number]
    return problems


def _use_in_threads(users: dict[int, Iterator[list[str]]]) -> list[str]:
    problems: list[str] = []
    start = Barrier(len(users))

    def work(user: Iterator[list[str]]) -> None:
        start.wait()
        try:
            for found in user:
                problems.extend(found)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            problems.append(f"{type(error).__name__}: {str(error)[:300]} ({place.filename}:{place.lineno})")

    threads = [Thread(target=work, args=(user,)) for user in users.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems


def code(budget: Budget) -> Tally:
    """Use folders with code of the same names at once."""
    tally = Tally("code")
    warnings.simplefilter("ignore")
    for number in budget:
        with tempfile.TemporaryDirectory() as folder:
            try:
                problems = play(Path(folder).resolve(), budget.seed * 1_000_000 + number)
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                problems = [f"{type(error).__name__}: {str(error)[:300]} ({place.filename}:{place.lineno})"]
            tally.add(f"folders {number}", problems)
    return tally

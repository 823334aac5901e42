"""The option `--plugin` of commands: entries of a file by the name of the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run_command

import peekbench as pb

CODE = """
import numpy as np
from peekbench import Analysis, AnalyzerEntry, Dataset, hookimpl
from peekbench.plugins import TaskGroupEntry, DataSourceEntry

def fit(unlabeled, train, task, smoothing: float = 1.0):
    'Class shares of train.'
    counts = np.bincount(train.labels, minlength=task.num_classes) + smoothing
    return lambda texts: np.tile(counts / counts.sum(), (len(texts), 1))

def words(folders, *, options):
    return Dataset([f"text {row}" for row in range(200)], [row % 2 for row in range(200)], ("a", "b"))

@hookimpl
def peekbench_data_sources():
    return [DataSourceEntry(name="words", load=words, summary="words"),
            TaskGroupEntry(name="all", members=("words",), summary="all words")]

@hookimpl
def peekbench_analyzers():
    return [AnalyzerEntry(name="rows", analyze=count, summary="counts rows")]

def count(results, *, options):
    return Analysis("rows", warnings=(f"{len(results)} rows",))
"""
SPEC = """
name: small
tasks: [my_file.all]
methods: [my_file.fit]
design: {num_train: 10, num_test: 20, num_subsamples: 2}
analyses: [my_file.rows]
executor: {use: local, options: {in_process: true}}
"""


@pytest.fixture(autouse=True)
def _files() -> None:
    Path("code").mkdir()
    Path("code/peekbench_my_file.py").write_text(CODE)
    Path("specs").mkdir()
    Path("specs/small.yaml").write_text(SPEC)


def peek(*arguments: str, status: int = 0) -> str:
    done = run_command(*arguments)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_entries_of_a_file_are_known_to_the_command_only() -> None:
    option = ("--plugin", "code/peekbench_my_file.py")
    assert "my_file.fit " in peek("show", "methods", *option)
    assert "peekbench_my_file.py\n" in peek("show", "plugins", *option)
    assert "smoothing: number, default 1.0" in peek("show", "my_file.fit", *option)
    assert "peekbench_my_file.py:fit?" in peek("show", "my_file.fitt", *option, status=2)
    assert '"my_file.fit"' in peek("show", "spec-schema", *option)
    assert "no plugin 'my_file' is installed" in peek("validate", "specs/small.yaml", status=2)


@pytest.mark.slow
def test_the_store_of_a_run_names_the_path_of_the_file() -> None:
    assert "4 rows" not in peek("run", "specs/small.yaml", "-p", "code/peekbench_my_file.py")
    run = pb.load_run("small")
    used = [part.use for parts in (run.spec.tasks, run.spec.methods, run.spec.analyses) for part in parts]
    assert used == [f"../code/peekbench_my_file.py:{name}" for name in ("words", "fit", "rows")]
    assert "6 rows" in peek("report", "small")
    with Path("code/peekbench_my_file.py").open("a") as file:
        file.write("x = 1\n")
    command = ("run", "specs/small.yaml", "-p", "code/peekbench_my_file.py")
    Path("specs/small.yaml").write_text(SPEC.replace("num_subsamples: 2", "num_subsamples: 3"))
    assert "peekbench_my_file.py changed" in peek(*command, status=2)


@pytest.mark.parametrize(
    ("file", "code", "message"),
    [
        ("empty.py", "x = 1", "no hook, such as peekbench_methods, and no function"),
        ("wrong.py", "def f(a):\n    pass", "none of its functions can be an entry:\n  f(a) is no method"),
        ("broken.py", "import nosuch", "cannot be imported: ModuleNotFoundError"),
        ("classic.py", CODE, "the installed plugin 'classic' (peekbench_classic) has the same name"),
        ("my file.py", CODE, "rename the file with letters"),
        ("my_file.py", CODE, "peekbench_my_file.py has the same name, 'my_file'"),
        ("text.txt", "", "is not a file of Python"),
        (".", None, "is a folder; give a file"),
        ("code/my_file.py", None, "no such file; did you mean code/peekbench_my_file.py?"),
    ],
)
def test_files_without_entries_and_names_of_others_are_refused(file: str, code: str | None, message: str) -> None:
    if code is not None:
        Path(file).write_text(code)
    assert message in peek("show", "--plugin", "code/peekbench_my_file.py", "--plugin", file, status=2)


def test_a_missing_plugin_that_is_a_file_is_suggested() -> None:
    Path("my_file.py").write_text(CODE)
    assert "give --plugin my_file.py or write `use: my_file.py:fit`" in peek("validate", "specs/small.yaml", status=2)

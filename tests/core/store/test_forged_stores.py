"""Stores with right checksums and wrong numbers or names: each is refused, or its report is as before."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from commands import run_command

from peekbench.errors import PeekbenchError, StoreError
from peekbench.execution.runner import run
from peekbench.report import report_of_run
from peekbench.report.render.json_report import render_json
from peekbench.spec.experiment import make_spec as validate
from peekbench.store.schema import TABLES, add_triggers

FOREIGN = ("text", b"bytes", "{}", math.inf, 1e308, -1, 10**15, None)
"""Values that are put into every column. SQLite stores NaN as NULL."""
FREE = ("fit_seconds", "predict_seconds", "provenance", "host", "look", "position", "model", "summary", "description")
"""Columns that a report may show in another value: forged times, machines and words cannot be told from true ones."""
WITH_JSON = ("run", "tasks", "sessions", "hosts", "looks", "texts")
"""Tables of JSON values, which are read without checks of their form, as is the column `metrics`."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete store of two tasks, two methods and a control, of which a report has been made."""
    folder = tmp_path_factory.mktemp("finished")
    tasks = [{"use": "toy.words", "name": "a"}, {"use": "toy.words", "name": "b", "options": {"seed": 1}}]
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 3}
    methods = ["toy.vote", "toy.constant", "controls.null"]
    raw = {"name": "small", "seed": 7, "tasks": tasks, "methods": methods, "design": design}
    path = run(validate({**raw, "analyses": ["summary"]}, folder=folder), store=folder / "small.sqlite").store
    report_of_run(path)
    return path


def forge(path: Path, statement: str, *values: object) -> None:
    """Change a store as its writer does, so that all its checksums are right."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        add_triggers(connection)
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(statement, values)


def read_report(path: Path) -> dict[str, Any]:
    """Return what the report of a run says, and refuse it as any command does."""
    document: dict[str, Any] = json.loads(render_json(report_of_run(path)))
    return {name: document[name] for name in ("verdicts", "figures", "methods", "data")}


def list_columns(path: Path) -> Iterator[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        for table in TABLES:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            yield from ((table, name) for name in columns if table not in WITH_JSON and name != "metrics")


@pytest.mark.simulation
def test_a_forged_value_is_refused_or_changes_nothing(finished: Path, tmp_path: Path) -> None:
    path = tmp_path / "forged.sqlite"
    before = read_report(Path(shutil.copy(finished, path)))
    columns, num_refused, survivors = list(list_columns(path)), 0, []
    for table, column in columns:
        for value in FOREIGN:
            shutil.copy(finished, path)
            one_row = {"tasks": "name = 'a'", "methods": "name = 'toy.vote'", "bases": "method = 'toy.vote'"}
            try:
                forge(path, f"UPDATE {table} SET {column} = ? WHERE {one_row.get(table, 1)}", value)
            except sqlite3.IntegrityError:  # also a forger cannot store two rows with the same key
                continue
            try:
                after = read_report(path)
            except PeekbenchError as error:
                num_refused += 1
                assert len(str(error)) < 10_000
                continue
            except Exception as error:
                survivors.append((table, column, value, repr(error)))
                continue
            if after != before and column not in FREE:
                survivors.append((table, column, value, "another report"))
    assert num_refused > 4 * len(columns)
    assert survivors == [], "\n".join(map(str, survivors))


@pytest.mark.parametrize(
    ("statement", "value", "problem"),
    [
        ("UPDATE arms SET score = ? WHERE id = 2", 2, "score BETWEEN -1e+150 AND 1.0"),
        ("UPDATE arms SET score = ? WHERE id = 2", "text", "score BETWEEN -1e+150 AND 1.0"),
        ("UPDATE arms SET score = ? WHERE id = 2", -math.inf, "score BETWEEN -1e+150 AND 1.0"),
        ("UPDATE arms SET num_scored = ? WHERE id = 2", 7.5, "typeof(num_scored) = 'integer'"),
        ("UPDATE arms SET num_correct = ? WHERE id = 2", 10**9, "num_correct <= num_scored"),
        ("UPDATE arms SET draw = ? WHERE id = 2", 99, "the table arms belongs to a row that the table draws has not"),
        ("UPDATE arms SET arm = ? WHERE id = 2", "a\n::x", "arm NOT GLOB"),
        ("UPDATE draws SET test_labels = ?", None, "the labels or the rows of the test texts of task a"),
    ],
)
def test_the_refusal_says_what_is_wrong(statement: str, value: object, problem: str, finished: Path) -> None:
    path = Path(shutil.copy(finished, "forged.sqlite"))
    forge(path, statement, value)
    with pytest.raises(StoreError) as caught:
        report_of_run(path)
    assert problem in str(caught.value)
    assert "`peekbench check-store` lists what is wrong" in str(caught.value)


def test_commands_refuse_a_forged_store(finished: Path) -> None:
    path = Path(shutil.copy(finished, "forged.sqlite"))
    forge(path, "UPDATE arms SET score = 2 WHERE id = 2")
    for command in ("report", "analyze", "check-store", "compare"):
        done = run_command(command, str(path))
        assert done.returncode == 2
        assert "a value in the table arms is not valid" in done.stdout + done.stderr

"""`peekbench backup` and `peekbench check-store`."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from peekbench.cli.app import app, run_command
from peekbench.errors import StoreError
from peekbench.execution.observers import Observers
from peekbench.execution.runner import run
from peekbench.records.runs import TrialFinished
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store import writer
from peekbench.store.maintenance import back_up, check_store
from peekbench.store.reader import Store
from peekbench.store.schema import add_triggers

MakeSpec = Callable[..., ExperimentSpec]


class _BackUp:
    """Backs up a store after each trial."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.copies: list[Path] = []

    def trial_finished(self, event: TrialFinished) -> None:
        self.copies.append(Path(f"copy-{len(self.copies)}.sqlite"))
        back_up(self.path, self.copies[-1])


def test_a_backup_during_a_run_has_the_trials_saved_so_far(
    make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CHECKPOINT_SECONDS", float("inf"))
    display = _BackUp(Path("runs/small.sqlite"))
    run(make_spec(), observers=Observers(display))
    assert len(display.copies) == 12
    assert sorted(map(str, Path().iterdir())) == sorted(["runs", *map(str, display.copies)]), "no companion files"
    sizes = []
    for copy in display.copies:
        assert check_store(copy).problems == ()
        with Store.open(copy) as store:
            sizes.append(len(store.done()))
    assert sizes == sorted(sizes)
    assert sizes[0] >= 1
    assert sizes[-1] == 12
    assert run(make_spec(), store=display.copies[0]).resumed == sizes[0]


def test_a_backup_replaces_no_file(make_spec: MakeSpec) -> None:
    path = run(make_spec()).store
    Path("mine").write_text("mine")
    with pytest.raises(StoreError, match="mine exists; give the path of a new file"):
        back_up(path, Path("mine"))
    with pytest.raises(StoreError, match="No such file or directory; create the folder"):
        back_up(path, Path("missing/copy.sqlite"))
    assert Path("mine").read_text() == "mine"
    assert sorted(map(str, Path().iterdir())) == ["mine", "runs"]


def test_scores_of_regression_are_checked(make_spec: MakeSpec) -> None:
    spec = make_spec(
        tasks=[{"use": "toy.numbers", "name": "a"}],
        methods=["tabular.standardize"],
        design={"num_train": 12, "num_test": 120, "num_subsamples": 2},
    )
    outcome = check_store(run(spec).store)
    assert (outcome.trials, outcome.arms, outcome.problems) == (2, 6, ())


def test_a_score_that_differs_from_its_predictions_is_found(make_spec: MakeSpec) -> None:
    """All checksums are right, as if a defect of peekbench had stored the score."""
    path = run(make_spec()).store
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        add_triggers(connection)
        connection.execute("UPDATE arms SET num_correct = num_correct + 1 WHERE id = 2")
        connection.execute("UPDATE arms SET log_loss = NULL WHERE id = 3")
    problems = check_store(path).problems
    assert len(problems) == 2
    assert re.search(r"arm extra of task a, .* toy\.\w+.*: num_correct is \d+, but \d+ from its", problems[0])
    assert "log_loss is None, but " in problems[1]


def test_the_commands(make_spec: MakeSpec, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = run(make_spec()).store
    runner = CliRunner()
    assert runner.invoke(app, ["check-store", "small"]).output == f"{path}: OK: 12 trials, 36 arms\n"
    assert runner.invoke(app, ["backup", "small", "copy.sqlite"]).output == "written: copy.sqlite\n"
    left = {entry.name for folder in (path.parent, Path()) for entry in folder.glob("*.sqlite*")}
    assert left == {path.name, f"{path.name}.lock", "copy.sqlite"}  # reading leaves no companion files
    with closing(sqlite3.connect("copy.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE arms SET score = 7.5 WHERE draw = 1")
        connection.execute("UPDATE predictions SET numbers = x'00'")
    outcome = runner.invoke(app, ["check-store", "copy.sqlite"])
    assert outcome.exit_code == 2
    assert "copy.sqlite: the rows of the table arms are not those that were stored" in outcome.output
    assert len(outcome.output.splitlines()) <= 51
    assert "the store is damaged; restore a copy" in outcome.output.splitlines()[-1]
    Path("text").write_text("a text")
    monkeypatch.setattr("sys.argv", ["peekbench", "check-store", "text"])
    assert run_command() == 2
    assert "text is a file of another kind, not a run" in capfd.readouterr().err

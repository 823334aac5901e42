"""What commands print where: one screen, everything, JSON or errors only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import run_command

from peekbench import load_spec
from peekbench.execution.runner import run


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the spec and the store of a run."""
    folder = tmp_path_factory.mktemp("stored")
    raw: dict[str, Any] = {
        "name": "small",
        "seed": 7,
        "tasks": ["toy.words"],
        "methods": ["toy.vote"],
        "design": {"num_train": 12, "num_test": 30, "num_subsamples": 3},
        "executor": {"use": "local", "options": {"in_process": True}},
        "report": {"formats": ["json"]},
    }
    (folder / "small.yaml").write_text(yaml.safe_dump(raw))
    printing = {"use": "toy.faulty", "options": {"error": "none", "printed": 9}}
    (folder / "printing.yaml").write_text(yaml.safe_dump({**raw, "name": "printing", "methods": [printing]}))
    (folder / "runs").mkdir()
    run(load_spec(folder / "small.yaml"), store=folder / "runs" / "small.sqlite")
    return folder


@pytest.fixture(autouse=True)
def _in_folder(stored: Path, _own_folder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stored)


TALKING = """
from peekbench import Options, hookimpl
from peekbench.plugins import ObserverEntry

def fit(train, task):
    print("printed by a method")
    return lambda texts: [[1 / task.num_classes] * task.num_classes] * len(texts)

class Talker:
    def __init__(self, *, options, folders):
        print("printed by an observer")
    def run_started(self, event):
        pass

@hookimpl
def peekbench_observers():
    return [ObserverEntry(name="talker", options=Options, observe=Talker, summary="prints")]
"""


def test_what_plugins_print_is_no_part_of_the_output() -> None:
    Path("talking.py").write_text(TALKING)
    raw = yaml.safe_load(Path("small.yaml").read_text())
    raw |= {"name": "talking", "methods": ["talking.py:fit"], "observers": ["talking.py:talker"]}
    Path("talking.yaml").write_text(yaml.safe_dump(raw))
    done = run_command("run", "talking.yaml", "--json")
    assert json.loads(done.stdout)["name"] == "talking"
    assert "printed by a method" in done.stderr
    assert "printed by an observer" in done.stderr


@pytest.mark.slow
def test_json_is_the_only_output_and_equals_the_file() -> None:
    done = run_command("run", "printing.yaml", "--json")
    assert done.stdout == Path("reports/printing/report.json").read_text()
    assert json.loads(done.stdout)["name"] == "printing"
    assert "0 already done" in done.stderr
    assert "x" * 9 in done.stderr  # what the method prints in this process
    for source in ("small", "small.yaml", "runs/small.sqlite"):
        for command in (["report"], ["analyze"], ["compare"]):
            printed = run_command(*command, source, "--json")
            assert printed.returncode == 0, printed.stderr
            assert json.loads(printed.stdout)["schema_version"]
            assert printed.stderr == ""


@pytest.mark.slow
def test_quiet_prints_errors_only() -> None:
    done = run_command("run", "small.yaml", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    changed = Path("small.yaml").read_text().replace("num_subsamples: 3", "num_subsamples: 4")
    Path("changed.yaml").write_text(changed)
    assert "warning: changed.yaml has changes" in run_command("report", "changed.yaml").stderr
    assert run_command("report", "changed.yaml", "-q").stderr == ""
    failed = run_command("report", "gone", "-q")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert "gone: no run of this name" in failed.stderr
    assert "--full and --json exclude each other" in run_command("report", "small", "--full", "--json").stderr


@pytest.mark.slow
def test_full_prints_every_table() -> None:
    screen, full = run_command("report", "small"), run_command("report", "small", "--full")
    assert len(screen.stdout.splitlines()) < len(full.stdout.splitlines()) / 2
    assert "All tables: peekbench report small --full" in screen.stdout
    for part in ("Provenance", "identifier: "):
        assert part in full.stdout
        assert part not in screen.stdout

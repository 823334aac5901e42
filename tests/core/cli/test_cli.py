"""The commands: their output, files and exit statuses."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer.testing
import yaml
from commands import run_command
from typer.core import TyperGroup

import peekbench
from peekbench import cli
from peekbench.cli.app import GROUPS, app
from peekbench.store.reader import Store

COMMANDS = [name for group in GROUPS.values() for name in group]


def peek(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = run_command(*arguments)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


@pytest.fixture
def spec(make_raw: Any) -> str:
    Path("small.yaml").write_text(yaml.safe_dump(make_raw()))
    return "small.yaml"


def test_commands_are_few_and_the_help_of_each_is_one_screen() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    commands = group.commands
    assert set(commands) == set(COMMANDS)
    assert len(commands) <= 12
    options = [option for command in commands.values() for option in command.params]
    assert sum(option.param_type_name == "option" for option in options) <= 80
    for name in commands:
        shown = typer.testing.CliRunner().invoke(app, [name, "--help"], terminal_width=80).stdout
        assert f"Example: peekbench {name}" in " ".join(shown.split())
        assert len(shown.splitlines()) <= 40


@pytest.mark.slow
def test_run_report_and_analyze_one_store(spec: str, make_raw: Any) -> None:
    Path(spec).write_text(yaml.safe_dump(make_raw(report={})))
    ran = peek("run", spec)
    assert "12 of 12 trials" in ran.stdout
    files = {path.name: path.read_bytes() for path in Path("reports/small").rglob("*.*")}
    assert set(files) == {"report.html", "report.md", "report.json"}
    again = peek("run", spec)
    assert "nothing to do: all 12 trials are in runs/small.sqlite" in again.stderr
    assert "12 of 12 trials done" in peek("report", "small").stdout
    assert "12 of 12 trials done" in peek("report", "runs/small.sqlite").stdout
    assert {path.name: path.read_bytes() for path in Path("reports/small").rglob("*.*")} == files
    assert "toy.vote" in peek("analyze", "runs/small.sqlite").stdout
    content = json.loads(files["report.json"])
    assert content["schema_version"] == 12
    assert content["spec"]["seed"] == 7


@pytest.mark.slow
def test_runs_are_compared_and_ranked(spec: str) -> None:
    peek("run", spec)
    Path("other.yaml").write_text(Path(spec).read_text().replace("name: small", "name: other"))
    peek("run", "other.yaml")
    ranked = peek("compare", "small", "runs/other.sqlite", "--reports", "c").stdout
    assert "small: toy.vote" in ranked
    assert "Leaderboard, by accuracy of extra" in ranked
    compared = json.loads(Path("c/comparison-of-small-other/report.json").read_text())
    assert compared["runs"] == ["runs/small.sqlite", "runs/other.sqlite"]
    assert "no run of this name" in peek("compare", "nothing", status=2).stderr


def test_validate_checks_all_specs(spec: str) -> None:
    Path("bad.yaml").write_text("name: bad")
    Path("small-data.yaml").write_text(Path(spec).read_text().replace("num_test: 30", "num_test: 3000"))
    done = peek("validate", "bad.yaml", spec, "small-data.yaml", status=2)
    assert f"{spec}: OK: 2 tasks, 2 methods, 12 trials" in done.stdout
    peek("run", spec)
    Path(spec).write_text(Path(spec).read_text().replace("seed: 7", "seed: 8"))
    assert "another experiment named 'small'. Changed:\n  seed" in peek("validate", spec, status=2).stderr
    assert "bad.yaml is invalid" in done.stderr
    assert "small-data.yaml: task a: 400 rows, but" in done.stderr
    assert "task b: 400 rows, but" in done.stderr, "all tasks are checked"


@pytest.mark.slow
def test_downloads_print_steps(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEEKBENCH_CACHE", "cache")
    Path(spec).write_text(Path(spec).read_text().replace("toy.constant", "toy.short"))
    lines = peek("validate", "--download", spec).stdout.splitlines()
    assert lines[:-1] == ["[1/3] a", "[2/3] b", "[3/3] toy.short"]


@pytest.mark.slow
def test_quickstart_writes_the_spec_that_it_runs(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Path("shipped.yaml")
    shipped.write_text("# schema\n" + Path(spec).read_text())
    monkeypatch.setattr("peekbench.cli.run.SHIPPED", shipped)
    peek("quickstart")
    assert Path("quickstart.yaml").read_text() == Path(spec).read_text()
    assert "nothing to do" in peek("quickstart").stderr, "it is resumed as `peekbench run` does"
    Path("quickstart.yaml").write_text(Path(spec).read_text().replace("seed: ", "seed: 1"))
    assert "peekbench run quickstart.yaml" in peek("quickstart", status=2).stderr


@pytest.mark.slow
def test_quickstart_of_an_official_split_begins_with_the_score_to_publish() -> None:
    rng = np.random.default_rng(0)
    for split, number in (("train", 60), ("test", 41)):
        words = rng.integers(0, 60, size=(number, 8)) + 9 * (np.arange(number)[:, None] % 2)
        rows = [" ".join(f"w{word}" for word in of_text) for of_text in words]
        table = pd.DataFrame({"text": rows, "label": np.arange(number) % 2})
        table.to_csv(f"{split}.csv", index=False)
    pd.read_csv("test.csv").rename(columns={"label": "topic"}).to_csv("other.csv", index=False)
    assert "two files with texts and labels" in peek("quickstart", "--official", "train.csv", status=2).stderr
    wrong = " ".join(peek("quickstart", "--official", "other.csv", "test.csv", status=2).stderr.split())
    assert "available columns: 'text', 'topic'" in wrong
    assert "To name columns, add --text COLUMN --label COLUMN" in wrong
    assert not Path("official.yaml").exists()
    done = peek("quickstart", "--official", "train.csv", "test.csv")
    shown = " ".join(done.stdout.split())
    arms = peekbench.load_run("official").arms.query("method == 'lsa-50'")[["all", "extra", "bias"]].mean()
    assert f"To publish {arms['extra']:.1%} [" in shown
    assert f"Usual score {arms['all']:.1%} for one fit that adapts to all these test texts" in shown
    verb = "profit" if arms["bias"] > 0 else "suffer"
    assert f"Fits {verb} by {abs(100 * arms['bias']):.2f} points from the test texts" in shown
    assert "33 of 41 test rows adapted to" in Path("reports/official/report.md").read_text()


@pytest.mark.slow
def test_list_tasks_shows_known_facts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PEEKBENCH_CACHE", str(tmp_path / "cache"))
    before = peek("show", "tasks").stdout
    assert re.search(r"^  hf\.trec +6 +5,452  - +see its card$", before, re.MULTILINE)
    assert re.search(r"^  hf\.limit +2 +23,559  - +cc-by-sa-4\.0$", before, re.MULTILINE)
    assert re.search(r"^  files +texts and labels in a CSV", before, re.MULTILINE)
    shown = peek("show", "hf.trec").stdout
    for part in ("revision: text", "instruction: The text is a question."):
        assert part in shown


@pytest.mark.slow
def test_store_and_reports_can_be_elsewhere(spec: str, make_raw: Any) -> None:
    Path(spec).write_text(yaml.safe_dump(make_raw(executor="local")))
    done = peek("run", spec, "--store", "here/it.sqlite", "--reports", "there", "--workers", "2")
    assert Path("here/it.sqlite").exists()
    assert Path("there/small/report.json").exists()
    assert "Report: there/small/report.json\n" in done.stdout


@pytest.mark.slow
def test_report_draws_pictures_without_a_network(spec: str) -> None:
    peek("run", spec)
    done = peek("report", "small", "--format", "svg")
    assert "Report: reports/small/figures/" in done.stdout
    assert len(list(Path("reports/small/figures").glob("*.svg"))) > 2
    svg = Path("reports/small/figures/terminal.svg").read_text()
    assert svg.startswith("<svg")
    assert "toy.vote" in svg.replace("&#160;", " ")
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.slow
def test_missing_trials_are_refused_unless_allowed(tmp_path: Path) -> None:
    Path("holes.csv").write_text("task,subsample,extra,test\na,0,0.5,0.6\na,1,0.5,0.6\nb,0,0.5,0.6\n")
    refused = peek("analyze", "holes.csv", status=2)
    assert "task b, method method: 1 of 2 subsamples missing or incomplete (1)" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert "Warning" in peek("analyze", "holes.csv", "--allow-incomplete").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "none.yaml"], "none.yaml: no such file or folder"),
        (["validate", "bad.yaml"], "methods[0].use: no method 'toy.voet'; did you mean toy.vote?"),
        (["validate", "few.yaml"], "task a: 400 rows, but num_train 12 + 2 x num_test 300 = 612 are needed"),
        (["validate", "kinds.yaml"], "but task toy.numbers is regression; choose a method for this kind of task"),
        (["report", "none"], "no run of this name, as runs/none.sqlite does not exist; the runs are: none"),
        (["show", "toy.voet"], "no entry 'toy.voet'; did you mean toy.vote?"),
        (["check", "toy.vote", "--options", "[1]"], "is not a mapping"),
        (["show", "metods"], "did you mean methods?"),
        (["ls"], "no command 'ls'; try `peekbench show`"),
        (["analyzes"], "try `peekbench analyze`"),
        (["xyz"], "try `peekbench --help`"),
    ],
)
def test_errors_have_status_2_and_no_traceback(arguments: list[str], message: str, make_raw: Any) -> None:
    large = {"num_train": 12, "num_test": 300, "num_subsamples": 1}
    for name, parts in (
        ("bad", {"methods": ["toy.voet"]}),
        ("few", {"design": large}),
        ("kinds", {"tasks": ["toy.numbers"]}),
    ):
        Path(f"{name}.yaml").write_text(yaml.safe_dump(make_raw(**parts)))
    done = peek(*arguments, status=2)
    assert message in done.stderr
    assert done.stderr.startswith("peekbench: ")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_plan_counts_and_times(spec: str) -> None:
    done = peek("plan", spec)
    assert "small: 12 trials, 36 fits" in done.stdout
    assert "toy.vote, num_train 12, num_test 30: 0." in done.stdout
    assert "time: about" in done.stdout
    assert re.search(r"time: about .*, 1 worker", done.stdout)
    assert "time" not in peek("plan", spec, "--no-pilot").stdout
    assert not Path("runs").exists()


@pytest.mark.slow
def test_plan_forecasts_when_verdicts_are_settled(spec: str, make_raw: Any) -> None:
    def plan(*options: str) -> str:
        return " ".join(peek("plan", spec, "--no-pilot", *options).stdout.split())

    assert "zero: settled: the probability of a verdict if there is no bias. More: --power. The noise was not" in plan()
    peek("run", spec)
    for shown, has_means in ((plan(), False), (plan("--power"), True)):
        assert "The noise is that of the trials in the store" in shown
        assert (" mean " in shown) == has_means
    with Store.open("runs/small.sqlite") as store:
        assert len(store.looks()) == 1
    Path(spec).write_text(Path(spec).read_text().replace("seed: 7", "seed: 8"))
    assert "The noise was not measured" in plan(), "the trials in the store are of another experiment"
    Path("own.yaml").write_text(yaml.safe_dump(make_raw(methods=["controls.null"])))
    assert "methods that are no controls" in peek("plan", "own.yaml", "--no-pilot").stderr


@pytest.mark.slow
def test_a_method_that_always_fails_has_no_planned_time_and_is_stopped(make_raw: Any) -> None:
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 60}
    raw = make_raw(methods=["toy.faulty", "toy.constant"], design=design, analyses=["toy.count"])
    Path("faulty.yaml").write_text(yaml.safe_dump({**raw, "report": {"formats": []}}))
    planned = peek("plan", "faulty.yaml", status=3)
    assert "RuntimeError: this method is broken" in planned.stderr
    assert "toy.faulty: time unknown, because its pilot failed" in planned.stdout
    assert "time of the other methods: about" in planned.stdout
    ran = peek("run", "faulty.yaml", status=3)
    assert re.search(r"toy\.faulty: its first 10 trials failed; its other \d+ trials were not tried", ran.stderr)
    assert "To retry them: peekbench run faulty.yaml (--keep-going tries all trials)" in ran.stderr


@pytest.mark.slow
def test_show_and_version() -> None:
    listed = peek("show").stdout
    assert all(name in listed for name in ("tasks:", "docstrings.numpy", "controls.leak", "permutation", "local"))
    assert "peekbench-toy 1.0" in peek("show", "plugins").stdout
    assert "num_components: whole number (>= 1), default 10" in peek("show", "classic.lsa").stdout
    assert json.loads(peek("show", "spec-schema").stdout)["title"] == "peekbench spec"
    assert peek("--version").stdout == "0.1.0\n"
    assert peek("show", "-h").stdout == peek("show", "--help").stdout


def test_a_full_memory_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise MemoryError

    monkeypatch.setattr(cli.app, "app", fail)
    assert cli.app.run_command() == 2
    assert "the memory is full; close other programs" in capsys.readouterr().err

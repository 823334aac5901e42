"""A third-party distribution, installed into its own environment, works like a first-party plugin."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from peekbench import load_results

REPOSITORY = Path(__file__).parents[2]
THIRD_PARTY = REPOSITORY / "tests" / "third_party"
PLUGIN_DOCUMENT = REPOSITORY / "docs" / "plugins.md"


@dataclass(frozen=True)
class Environment:
    """A virtual environment that also has all packages of this one."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "env" / "bin" / "python"

    @property
    def source(self) -> Path:
        return self.folder / "third_party"

    @property
    def site_packages(self) -> Path:
        return next((self.folder / "env" / "lib").glob("python*/site-packages"))

    def create(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.folder / "env"], check=True)
        seen = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        # Unlike a path alone, `addsitedir` also reads the .pth files there, such as that of an editable peekbench.
        lines = [f"import site; site.addsitedir({path!r})\n" for path in sorted(seen)]
        (self.site_packages / "seen.pth").write_text("".join(lines))

    def install(self) -> None:
        shutil.copytree(THIRD_PARTY, self.source)  # a build may leave files in the folder
        self.pip("install", "--no-deps", "--no-build-isolation", "--no-index", str(self.source))

    def pip(self, command: str, *arguments: str) -> None:
        whole = [sys.executable, "-m", "pip", "--python", str(self.python), command, "--quiet", *arguments]
        subprocess.run(whole, check=True, env=self.variables())

    def variables(self) -> dict[str, str]:
        own = {"PEEKBENCH_CACHE": str(self.folder / "cache")}
        return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | own

    def peekbench(self, *arguments: str, status: int = 0) -> str:
        """Return the output of a command, or its errors if it should fail."""
        code = "from peekbench.cli import main; main()"
        done = self.run("-c", code, *arguments)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stderr if status else done.stdout

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=self.variables(),
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The third-party distribution, installed."""
    environment = Environment(tmp_path_factory.mktemp("installed"))
    environment.create()
    environment.install()
    return environment


@pytest.mark.slow
def test_all_entries_are_listed_and_shown(installed: Environment) -> None:
    listed = installed.peekbench("list")
    for use in ("centroid.tfidf", "tickets", "win_rate", "lengths", "backwards", "logbook", "outlines"):
        assert re.search(rf"^  {re.escape(use)} ", listed, re.MULTILINE), listed
    shown = installed.peekbench("show", "centroid.tfidf")
    assert "max_words: whole number, default 1" in shown
    assert "Longest run of words that counts as a term." in shown


@pytest.mark.slow
def test_schema_has_the_options(installed: Environment) -> None:
    definitions = json.loads(installed.peekbench("schema"))["$defs"]
    assert definitions["options of centroid.tfidf"]["properties"]["max_words"]["default"] == 1
    assert definitions["options of tickets.tickets"]["properties"]["hints"]["maximum"] == 1
    methods = definitions["MethodSpec"]["anyOf"]
    given = {"$ref": "#/$defs/options of centroid.tfidf"}
    assert {"anyOf": [given, {"type": "null"}]} in [use.get("properties", {}).get("options") for use in methods]
    assert "win_rate" in definitions["AnalysisSpec"]["anyOf"][0]["enum"]


@pytest.mark.slow
def test_options_are_validated_with_the_model_of_the_plugin(installed: Environment) -> None:
    spec = (installed.source / "tickets.yaml").read_text().replace("hints: 0.1", "hints: 2")
    (installed.folder / "bad.yaml").write_text(spec)
    assert "tasks[1].options.hints" in installed.peekbench("validate", "bad.yaml", status=2)


@pytest.mark.slow
def test_method_passes_contract_checks(installed: Environment) -> None:
    lines = installed.peekbench("check", "centroid.tfidf", "--options", "{max_words: 2}").splitlines()
    assert len(lines) >= 10
    assert all(line.startswith("passed") for line in lines)


@pytest.mark.slow
def test_tests_of_the_distribution_pass(installed: Environment) -> None:
    done = installed.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(installed.source))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "57 passed" in done.stdout


@pytest.mark.slow
def test_spec_runs_to_a_report(installed: Environment) -> None:
    spec = installed.source / "tickets.yaml"
    assert "2 tasks, 2 methods, 80 trials" in installed.peekbench("validate", str(spec))
    assert "5 tasks, 2 methods, 400 trials" in installed.peekbench(
        "validate", "--no-data", str(installed.source / "centroid.yaml")
    )
    installed.peekbench("run", str(spec))
    report = json.loads((installed.folder / "reports" / "tickets" / "report.json").read_text())
    (table,) = (table for table in report["tables"] if table["title"].startswith("Win rate"))
    assert [row[0] for row in table["rows"]] == ["centroid.tfidf", "two-words"]
    assert [row[1] for row in table["rows"]] == [40, 40]
    text = (installed.folder / "reports" / "tickets" / "report.txt").read_text()
    assert "beats extra in" in " ".join(text.split())
    page = (installed.folder / "reports" / "tickets" / "report.html").read_text()
    drawn = [figure for figure in report["figures"] if figure["kind"] != "forest"]
    assert page.count('viewBox="0 0 600 40"') == len(drawn) > 0, "the spec chooses the renderer"

    logbook = (installed.source / "logbook.txt").read_text()
    assert logbook == "tickets: finished, 80 new trials, 0 failures\n"

    assert "Lengths by class" in installed.peekbench("audit", str(spec))

    in_order = spec.read_text().replace("name: tickets", "name: in-order").replace("executor: backwards", "")
    in_order = in_order.replace("report: {renderer: outlines}", "")
    (installed.folder / "in-order.yaml").write_text(in_order)
    installed.peekbench("run", "in-order.yaml")
    assert scores(installed, "in-order") == scores(installed, "tickets")
    page = (installed.folder / "reports" / "in-order" / "report.html").read_text()
    assert 'viewBox="0 0 600 40"' not in page, "peekbench's own renderer is the default"


def scores(environment: Environment, run: str) -> list[list[Any]]:
    columns = ["task", "method", "subsample", "arm", "num_correct", "score"]
    rows: list[list[Any]] = load_results(environment.folder / "runs" / f"{run}.sqlite")[columns].to_numpy().tolist()
    assert len(rows) == 2 * 2 * 20 * 3
    return rows


@pytest.mark.slow
def test_error_after_uninstalling_names_plugin_and_remedy(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.create()
    environment.install()
    spec = str(environment.source / "tickets.yaml")
    environment.peekbench("validate", "--no-data", spec)
    environment.pip("uninstall", "--yes", "peekbench-example")
    errors = environment.peekbench("run", spec, status=2)
    assert "methods[0].use: no plugin 'centroid' is installed" in errors
    assert "pip install" in errors
    assert "Traceback" not in errors


@pytest.mark.slow
def test_broken_plugin_affects_no_other_plugin(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.create()
    environment.install()
    registration = environment.site_packages / "peekbench_broken-1.0.dist-info"
    registration.mkdir()
    (registration / "METADATA").write_text("Metadata-Version: 2.1\nName: peekbench-broken\nVersion: 1.0\n")
    (registration / "entry_points.txt").write_text("[peekbench]\nbroken = peekbench_broken\n")
    (environment.site_packages / "peekbench_broken.py").write_text("raise RuntimeError('half an upgrade')\n")

    for what in ("methods", "plugins"):
        listed = environment.peekbench("list", what)
        assert "centroid" in listed
        assert "'broken' (peekbench_broken of peekbench-broken) cannot be imported" in listed
    environment.peekbench("run", str(environment.source / "tickets.yaml"))
    errors = environment.peekbench("show", "broken.thing", status=2)
    assert "plugin 'broken'" in errors
    assert "RuntimeError: half an upgrade; reinstall" in errors
    assert "Traceback" not in errors


def test_plugin_document_shows_these_files() -> None:
    text = PLUGIN_DOCUMENT.read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\*\*`([^`]+)`\*\*\n\n```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    kept = [path for path in THIRD_PARTY.rglob("*") if path.suffix in (".py", ".toml", ".yaml")]
    files = {str(path.relative_to(THIRD_PARTY)): path.read_text(encoding="utf-8") for path in kept}
    del files["peekbench_example/__init__.py"]  # a docstring
    assert shown == files
    # Besides the files, one snippet: it shows what a method does with texts that it has not labeled.
    assert text.count("```python") == len([name for name in files if name.endswith(".py")]) + 1

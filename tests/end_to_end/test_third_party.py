"""Distributions that `peekbench new` writes, installed into their own environment, work like first-party plugins."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from peekbench import load_results
from peekbench_testing.new_plugin import NewPlugin, list_kinds, render_plugin, write_plugin

DOCUMENT = (Path(__file__).parents[2] / "docs" / "plugins" / "tutorial.md").read_text(encoding="utf-8")
SHOWN = dict(re.findall(r"^\*\*`([^`]+)`\*\*\n\n```\w+\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL))
"""The files that the document shows, by path."""
PLUGINS = [NewPlugin(*words) for words in re.findall(r"^peekbench new (\w+) (\w+)$", DOCUMENT, re.MULTILINE)]
"""The plugins that the commands of the document write. The first one is a method."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment that also has all packages of this one."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "env" / "bin" / "python"

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
        for plugin in PLUGINS:
            write_plugin(plugin, self.folder / plugin.distribution)
        method, *others = (str(self.folder / plugin.distribution) for plugin in PLUGINS)
        self.pip("install", "--editable", method, *others)
        (self.folder / "all_examples.yaml").write_text(SHOWN["all_examples.yaml"])

    def pip(self, command: str, *arguments: str) -> None:
        whole = [sys.executable, "-m", "pip", "--python", str(self.python), command, "--quiet", *arguments]
        subprocess.run(whole, check=True, env=self.variables())

    def variables(self) -> dict[str, str]:
        own = {"PEEKBENCH_CACHE": str(self.folder / "cache")}
        own |= {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # 0 means: no isolation
        others = {"PYTHONPATH", "PIP_CONSTRAINT"}  # the constraints of tox start at the root of the clone
        return {name: value for name, value in os.environ.items() if name not in others} | own

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
    """All plugins of the document, installed."""
    environment = Environment(tmp_path_factory.mktemp("installed"))
    environment.create()
    environment.install()
    return environment


@pytest.mark.slow
def test_all_entries_are_listed_and_shown(installed: Environment) -> None:
    listed = installed.peekbench("show")
    for use in (plugin.name for plugin in PLUGINS):
        assert re.search(rf"^  {re.escape(use)} ", listed, re.MULTILINE), listed
    shown = installed.peekbench("show", "centroid")
    assert "max_words: whole number (>= 1), default 1" in shown
    assert "Longest run of words that counts as a term." in shown


@pytest.mark.slow
def test_schema_has_the_options(installed: Environment) -> None:
    definitions = json.loads(installed.peekbench("show", "spec-schema"))["$defs"]
    assert definitions["options of centroid.centroid"]["properties"]["max_words"]["default"] == 1
    assert definitions["options of tickets.tickets"]["properties"]["hints"]["maximum"] == 1
    methods = definitions["MethodSpec"]["anyOf"]
    given = {"$ref": "#/$defs/options of centroid.centroid"}
    assert {"anyOf": [given, {"type": "null"}]} in [use.get("properties", {}).get("options") for use in methods]
    assert "win_rate" in definitions["AnalysisSpec"]["anyOf"][0]["enum"]


@pytest.mark.slow
def test_tests_of_the_distributions_pass(installed: Environment) -> None:
    options = ("-v", "-p", "no:cacheprovider", "--import-mode=importlib")
    done = installed.run("-m", "pytest", *options, *(plugin.distribution for plugin in PLUGINS))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "28 passed" in done.stdout
    assert "TestContract::test_same_seed_same_predictions PASSED" in done.stdout


@pytest.mark.slow
def test_spec_runs_to_a_report(installed: Environment) -> None:
    specs = [f"{plugin.distribution}/{plugin.name}.yaml" for plugin in PLUGINS]
    assert installed.peekbench("validate", "--no-data", *specs).count("2 methods, ") == len(PLUGINS)
    installed.peekbench("run", "all_examples.yaml")
    report = json.loads((installed.folder / "reports" / "all_examples" / "report.json").read_text())
    (table,) = (table for table in report["tables"] if table["title"].startswith("Win rate"))
    assert [row[0] for row in table["rows"]] == ["centroid", "two-words"]
    assert [row[1] for row in table["rows"]] == [40, 40]
    text = (installed.folder / "reports" / "all_examples" / "report.md").read_text()
    assert "beats extra in" in " ".join(text.split())
    page = (installed.folder / "reports" / "all_examples" / "report.html").read_text()
    drawn = [figure for figure in report["figures"] if figure["kind"] != "forest"]
    assert page.count('viewBox="0 0 600 40"') == len(drawn) > 0, "the spec chooses the renderer"

    verdicts = (installed.folder / "reports" / "all_examples" / "report-verdict_list.md").read_text()
    assert verdicts.startswith("# all_examples\n\n- ")

    logbook = (installed.folder / "logbook.txt").read_text()
    assert logbook == "all_examples: finished, 80 new trials, 0 failures\n"

    in_order = SHOWN["all_examples.yaml"].replace("name: all_examples", "name: in-order")
    in_order = in_order.replace("executor: backwards", "")
    in_order = in_order.replace("report: {renderer: outlines, formats: [html, markdown, json, verdict_list]}", "")
    (installed.folder / "in-order.yaml").write_text(in_order)
    installed.peekbench("run", "in-order.yaml")
    assert scores(installed, "in-order") == scores(installed, "all_examples")
    page = (installed.folder / "reports" / "in-order" / "report.html").read_text()
    assert 'viewBox="0 0 600 40"' not in page, "peekbench's own renderer is the default"


def scores(environment: Environment, run: str) -> list[list[Any]]:
    columns = ["task", "method", "subsample", "arm", "num_correct", "score"]
    rows: list[list[Any]] = load_results(environment.folder / "runs" / f"{run}.sqlite")[columns].to_numpy().tolist()
    assert len(rows) == 2 * 2 * 20 * 3
    return rows


def test_plugin_document_shows_what_new_writes() -> None:
    assert {plugin.kind for plugin in PLUGINS} == set(list_kinds())
    (module,) = SHOWN.keys() - {"all_examples.yaml"}
    expected = render_plugin(PLUGINS[0])[module]
    assert SHOWN[module] == expected, "update the document with `python .ci/new_plugins.py --document`"

"""Reports of runs whose plugins are missing, broken or have changed: only the analyses' plugins matter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from peekbench.cli.app import app
from peekbench.errors import SpecError
from peekbench.execution.runner import run
from peekbench.plugins import registry
from peekbench.report import report_of_run, state
from peekbench.report.render.json_report import render_json
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.spec.experiment import ExperimentSpec
from peekbench.spec.experiment import make_spec as validate

MakeSpec = Callable[..., ExperimentSpec]
NEEDED = ("consistency", "permutation", "summary")
BROKEN = "open('imported', 'w').close(); raise RuntimeError('half an upgrade')"


@pytest.fixture
def lose_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Return a function that breaks all plugins except those of analyses, that of the renderer included."""
    (tmp_path / "broken_plugin.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    points = dict(registry.installed())

    def make() -> None:
        modules = {name: "missing_plugin" if name == "figures" else "broken_plugin" for name in points}
        broken = {name: (EntryPoint(name, module, "peekbench"),) for name, module in modules.items()}
        monkeypatch.setattr(registry, "installed", lambda: broken | {name: points[name] for name in NEEDED})
        registry.load_installed.cache_clear()

    yield make
    registry.load_installed.cache_clear()


@pytest.mark.slow
def test_a_run_is_reported_without_its_other_plugins(make_spec: MakeSpec, lose_plugins: Callable[[], None]) -> None:
    timid = {"use": "toy.vote", "options": {"boldness": 0}}
    shy = {**timid, "name": "shy", "by_task": {"a": {"boldness": 0}}}
    spec = make_spec(
        methods=[{**timid, "name": "timid"}, shy, "controls.null"],
        design={"num_train": 12, "num_test": 30, "num_subsamples": 12, "stop": {"looks": 2}},
        analyses=[{"use": "summary", "options": {"region": 0.02}}],
        report={"formats": ["json"], "renderer": "figures"},
    )
    store = run(spec).store
    before = report_of_run(store)
    assert "2 methods and 1 control on 2 tasks" in before.headline
    assert "words that train has" in render_json(before), "a plugin's description of a metric"
    lose_plugins()
    after = report_of_run(store)
    assert render_json(after) == render_json(before)
    for command, expected in (
        (["report", "small"], "Stopped at look 1 of 2"),
        (["analyze", "small"], "timid"),
        (["compare", "small"], "2 methods and 1 control on 2 tasks"),
    ):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.exception
        assert expected in " ".join(done.stdout.split())
    assert not Path("imported").exists(), "the plugins are not even looked at"


@pytest.mark.slow
def test_an_analysis_that_is_lost_must_be_replaced(make_spec: MakeSpec, lose_plugins: Callable[[], None]) -> None:
    store = run(make_spec(analyses=["summary", "toy.count"])).store
    lose_plugins()
    with pytest.raises(SpecError, match=r"analyses\[1\]\.use: plugin 'toy'.*\n.*peekbench report .* --analysis"):
        report_of_run(store)
    done = CliRunner().invoke(app, ["report", "small", "--full", "--analysis", "permutation"])
    assert "analyses: permutation; chosen for this report, instead of those of the spec" in done.stdout
    content = json.loads(Path("reports/small/report.json").read_text())
    assert [analysis["use"] for analysis in content["spec"]["analyses"]] == ["permutation"]
    assert content["command"] == f"peekbench report {store} --analysis permutation"
    (expected,) = analyze(store, AnalysisOptions(["permutation"])).analyses
    assert [verdict["sentence"] for verdict in content["verdicts"]] == [state(verdict) for verdict in expected.verdicts]


def test_components_of_a_store_cannot_be_called(make_raw: Callable[..., dict[str, Any]]) -> None:
    raw = make_raw(methods=[{"use": "gone.method", "name": "x", "options": {"a": {"b": [1]}}}])
    spec = validate(raw, folder=Path(), stored=True)
    assert spec.methods[0].raw_options() == {"a": {"b": [1]}}
    with pytest.raises(SpecError, match=r"toy\.words is code that only a store names"):
        _ = spec.tasks[0].entry

"""Tests of docs/atlas.md, of the specs in specs/atlas, and of the script that writes the page."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from peekbench import ExperimentSpec, load_spec
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.local_code import join_name
from peekbench.plugins.registry import DISTRIBUTION, installed, load
from peekbench.results import paired_scores
from peekbench.results.planned_looks import run

ROOT = Path(__file__).parents[2]
SPECS = ROOT / "specs" / "atlas"
PAGE = ROOT / "docs" / "atlas.md"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of the script."""
    for name in ("matplotlib", "scipy"):
        pytest.importorskip(name, reason=f"{name}, which the script needs, is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "atlas"))
    names = ("atlas_numbers", "atlas_page")
    return SimpleNamespace(**{name.removeprefix("atlas_"): importlib.import_module(name) for name in names})


@pytest.fixture
def results(simulate: Callable[..., Any]) -> Any:
    """Scores of two methods, one of them biased by three points, and of a negative control."""
    import pandas as pd

    tables = [simulate(0.03, method="biased"), simulate(0.0, method="fair", seed=1)]
    control = simulate(0.0, method="controls.null", noise=0.0, seed=2).assign(control="negative")
    return pd.concat([*tables, control], ignore_index=True)


def specs() -> dict[str, ExperimentSpec]:
    return {path.stem: load_spec(path) for path in sorted(SPECS.glob("*.yaml"))}


def test_every_spec_has_a_place_on_the_page_and_its_controls(scripts: SimpleNamespace) -> None:
    loaded = specs()
    assert set(scripts.numbers.spec_names()) == set(loaded)
    for name, spec in loaded.items():
        controls = {"controls.null", "controls.leak"}
        if name.startswith("language_modeling"):  # has no labels that could leak
            controls.remove("controls.leak")
        assert controls <= {method.use for method in spec.methods}, name
        assert spec.name == f"atlas_{name}"


def test_every_method_is_in_the_atlas_or_omitted_for_a_reason(scripts: SimpleNamespace) -> None:
    used = {method.use for spec in specs().values() for method in spec.methods}
    plugins = {
        name: load(name)
        for name, (point, *_) in installed().items()
        if point.dist is not None and point.dist.name == DISTRIBUTION
    }
    shipped = {join_name(name, entry) for name, plugin in plugins.items() for entry in plugin.entries(MethodEntry)}
    assert used | scripts.numbers.OMITTED.keys() == shipped
    assert not used & scripts.numbers.OMITTED.keys()


def test_methods_that_are_judged_together_differ_in_name_and_share_draws(scripts: SimpleNamespace) -> None:
    loaded = specs()
    for group in scripts.numbers.SECTIONS.values():
        together = [loaded[name] for name in group if name in loaded]
        names = [method.name for spec in together for method in spec.methods if "controls." not in method.use]
        assert len(names) == len(set(names))
        designs = {(spec.seed, spec.design.num_train, spec.design.num_test) for spec in together}
        assert len(designs) <= 1


def test_the_page_is_written_from_its_numbers(
    scripts: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text and numbers cannot be edited apart from docs/atlas.json, and every figure exists."""
    monkeypatch.setattr("pages.draw", lambda figure, form: b"")
    numbers = PAGE.with_suffix(".json").read_text("utf-8")
    scripts.page.write_page(scripts.numbers.Atlas.model_validate_json(numbers), tmp_path / "atlas.md")
    assert (tmp_path / "atlas.md").read_text("utf-8") == PAGE.read_text("utf-8"), "run benchmarks/atlas --no-run"
    pictures = {path.name for path in (tmp_path / "atlas").iterdir()}
    assert pictures == {path.name for path in PAGE.with_suffix("").glob("*")}


@pytest.mark.parametrize(("methods", "num_figures"), [(["biased", "fair"], 2), (["biased"], 0)])
def test_only_several_methods_have_figures(
    scripts: SimpleNamespace, results: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    methods: list[str], num_figures: int,
) -> None:  # fmt: skip
    monkeypatch.setattr("pages.draw", lambda figure, form: b"")
    chosen = results[results["method"].isin([*methods, "controls.null"])]
    section = scripts.numbers.collect_section("docstrings", {"classic": chosen})
    atlas = scripts.numbers.Atlas(runs=[], missing=[], sections=[section], series=[])
    scripts.page.write_page(atlas, tmp_path / "atlas.md")
    assert (tmp_path / "atlas.md").read_text("utf-8").count("![") == num_figures
    assert len(list((tmp_path / "atlas").iterdir())) == num_figures


def test_effects_are_those_of_the_stored_scores(scripts: SimpleNamespace, results: Any) -> None:
    section = scripts.numbers.collect_section("docstrings", {"classic": results})
    paired = paired_scores(results)
    by_task = paired.groupby(["method", "task"])[["base", "boost", "bias"]].mean()
    methods = {method.name: method for method in section.methods}
    assert list(methods) == ["biased", "fair", "null (classic)"]
    for name in ("biased", "fair"):
        means, method = by_task.loc[name], methods[name]
        assert [method.boost.mean, method.bias.mean] == pytest.approx(
            [means["boost"].mean(), means["bias"].mean()], abs=1e-6
        )
        assert method.base == pytest.approx(means["base"].mean(), abs=1e-6)
        for task, cell in method.tasks.items():
            assert [cell.boost.mean, cell.bias.mean] == pytest.approx(
                list(means.loc[task, ["boost", "bias"]]), abs=1e-6
            )
            assert cell.bias.low < cell.bias.mean < cell.bias.high
    assert (methods["biased"].bias.decision, methods["null (classic)"].bias.decision) == ("biased up", "passed")
    assert 0 < methods["fair"].detectable < 0.01
    text = " ".join(scripts.page.section_findings(section))
    assert "1 is biased up: `biased`" in text
    assert "All controls passed: the bias of the negative control is exactly 0." in text


def test_lines_over_doses_and_sizes(scripts: SimpleNamespace, results: Any) -> None:
    import pandas as pd

    half = results[results["arm"] == "extra"].assign(arm="mix-0.5")
    half.loc[half["method"] == "biased", "score"] += 0.015
    dose = scripts.numbers.collect_series("dose", pd.concat([results, half], ignore_index=True))
    line = dose.lines[0]
    assert (line.method, line.x, dose.num_test) == ("biased", [0.0, 0.5, 1.0], 200)
    assert line.effects[1].mean == pytest.approx(0.015)
    assert line.effects[2].is_up
    assert [line.method for line in dose.lines] == ["biased", "fair", "null"]
    flipped = [
        effect.model_copy(update={"mean": -effect.mean, "low": -effect.high, "high": -effect.low})
        for effect in line.effects
    ]
    harmed = dose.model_copy(update={"lines": [line.model_copy(update={"effects": flipped}), *dose.lines[1:]]})
    for series in (dose, harmed):
        found, none_found = scripts.page.dose_findings(series)
        assert found.startswith("`biased`: doses of 50% have")
        assert none_found.endswith("is found for `fair`.")

    larger = results.assign(num_test=results["num_test"] * 2)
    sizes = scripts.numbers.collect_series("num_test", pd.concat([larger, results], ignore_index=True))
    assert [line.x for line in sizes.lines] == [[200, 400]] * 3
    assert sizes.num_test is None
    (finding,) = [text for text in scripts.page.size_findings(sizes) if "`biased`" in text]
    assert "the intervals overlap" in finding


@pytest.mark.parametrize(("first", "last", "expected"), [(-3, -1, "it rises"), (3, 1, "it falls"), (-1, 0, "overlap")])
def test_changes_of_a_bias_with_the_size(scripts: SimpleNamespace, first: float, last: float, expected: str) -> None:
    """A bias that goes from -3 to -1 rises, although its magnitude falls."""
    effects = [scripts.numbers.Effect(mean=mean, low=mean - 0.6, high=mean + 0.6) for mean in (first, last)]
    line = scripts.numbers.Line(method="biased", control="", x=[50, 200], effects=effects)
    series = scripts.numbers.Series(name="num_test", num_train=50, num_test=None, subsamples=8, lines=[line])
    (finding,) = scripts.page.size_findings(series)
    assert finding.endswith(f"{expected}.")


def test_only_finished_runs_are_read(
    scripts: SimpleNamespace, make_raw: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import yaml

    monkeypatch.setattr(scripts.numbers, "SPECS", tmp_path)
    path = tmp_path / "classic.yaml"
    path.write_text(yaml.safe_dump(make_raw(name="atlas_classic")), encoding="utf-8")
    read = scripts.numbers.read_finished
    assert read("classic", tmp_path / "runs") is None
    run(load_spec(path))
    assert len(read("classic", tmp_path / "runs")) == 36
    path.write_text(path.read_text("utf-8").replace("num_subsamples: 3", "num_subsamples: 4"), encoding="utf-8")
    assert read("classic", tmp_path / "runs") is None
    atlas = scripts.numbers.collect(tmp_path / "runs")
    assert (atlas.missing, atlas.sections) == (["classic"], [])
    scripts.page.write_page(atlas, tmp_path / "atlas.md")
    assert "- `classic.yaml`: `peekbench run specs/atlas/classic.yaml`" in (tmp_path / "atlas.md").read_text("utf-8")


def test_findings_name_what_is_not_found(scripts: SimpleNamespace) -> None:
    """Sentences depend on their conditions: a failed control, a bias down, a run that is too small."""
    effect = scripts.numbers.Effect
    none = effect(mean=0.0, low=-0.01, high=0.01, decision="inconclusive")
    down = effect(mean=-0.03, low=-0.04, high=-0.02, decision="biased down")
    common = {"spec": "classic", "subsamples": 5, "base": 0.5, "extra": 0.5, "test": 0.5, "boost": none, "tasks": {}}
    make = scripts.numbers.Method
    methods = [
        make(name="worse", control="", bias=down, detectable=0.02, **common),
        make(name="null", control="negative", bias=effect(mean=0.1, decision="failed"), detectable=None, **common),
    ]
    section = scripts.numbers.Section(
        name="docstrings", unit="points", num_train=50, num_test=200, num_tasks=0, methods=methods
    )
    text = " ".join(scripts.page.section_findings(section))
    assert "1 is biased down: `worse`" in text
    assert "Controls that did not pass: `null`" in text
    assert "the detectable bias is larger than 0.5 points" in text
    assert "negative boost" not in text


def test_findings_name_averages_that_hide_biases(scripts: SimpleNamespace) -> None:
    """A method that is biased up on one task and down on another is named with both; one that is not is not."""
    effect, cell, make = scripts.numbers.Effect, scripts.numbers.Cell, scripts.numbers.Method
    none = effect(mean=0.0, low=-0.004, high=0.004, decision="equivalent")
    up = effect(mean=0.04, low=0.03, high=0.05, decision="biased up")
    down = effect(mean=-0.03, low=-0.04, high=-0.02, decision="biased down")
    common = {"spec": "hub", "control": "", "subsamples": 5, "base": 0.5, "extra": 0.5, "test": 0.5, "boost": none}
    methods = [
        make(name=name, bias=none, detectable=0.004, tasks={"hf.a": cell(boost=none, bias=low), "hf.b": high}, **common)
        for name, low, high in (
            ("mixed", down, cell(boost=none, bias=up)),
            ("one_way", none, cell(boost=none, bias=up)),
        )
    ]
    section = scripts.numbers.Section(
        name="hub", unit="points", num_train=100, num_test=200, num_tasks=2, methods=methods
    )
    text = " ".join(scripts.page.section_findings(section))
    assert (
        "One method is biased up on one task and down on another, which an average hides: `mixed` "
        "(-3.00 [-4.00, -2.00] points on a, +4.00 [+3.00, +5.00] on b)."
    ) in text

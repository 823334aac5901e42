"""Tests of docs/atlas.md, of the specs in specs/atlas, and of the script that writes the page."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from peekbench import ExperimentSpec, load_spec
from peekbench.results import paired_scores, tidy

ROOT = Path(__file__).parents[2]
SPECS = ROOT / "specs" / "atlas"
PAGE = ROOT / "docs" / "atlas.md"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of the script."""
    for name in ("matplotlib", "scipy"):
        pytest.importorskip(name, reason=f"{name}, which the script needs, is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "atlas"))
    names = ("atlas_numbers", "atlas_page", "atlas_records", "official_numbers")
    return SimpleNamespace(**{name.removeprefix("atlas_"): importlib.import_module(name) for name in names})


@pytest.fixture
def results(simulate: Callable[..., Any]) -> Any:
    """Scores of two methods, one of them biased by three points, and of a negative control."""
    tables = [simulate(0.03, method="biased"), simulate(0.0, method="fair", seed=1)]
    control = simulate(0.0, method="controls.null", noise=0.0, seed=2).assign(control="negative")
    return pd.concat([*tables, control], ignore_index=True)


def specs() -> dict[str, ExperimentSpec]:
    return {path.stem: load_spec(path) for path in sorted(SPECS.glob("*.yaml"))}


def test_every_spec_has_a_place_on_the_page_and_its_controls(scripts: SimpleNamespace) -> None:
    loaded = specs()
    official = {*scripts.official_numbers.OFFICIAL, *scripts.official_numbers.SIZES}
    assert {*scripts.numbers.spec_names(), *official} == set(loaded)
    for name, spec in loaded.items():
        controls = {"controls.null", "controls.leak"}
        # No labels that could leak, or the leak is in hub.yaml or official.yaml.
        if name.startswith(("language_modeling", "hub_embedding", "sizes")):
            controls.remove("controls.leak")
        assert controls <= {method.use for method in spec.methods}, name
        assert spec.name == f"atlas_{name}"


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
    atlas, official = scripts.records.Atlas.model_validate_json(numbers), scripts.official_numbers.read_official()
    scripts.page.write_page(atlas, official, tmp_path / "atlas.md")
    for page in (PAGE, PAGE.with_name("rules.md")):
        assert (tmp_path / page.name).read_text("utf-8") == page.read_text("utf-8"), "run benchmarks/atlas --no-run"
    pictures = {path.name for path in (tmp_path / "atlas").iterdir()}
    assert pictures == {path.name for path in PAGE.with_suffix("").glob("*")}


def test_tables_without_a_new_run_keep_their_numbers(scripts: SimpleNamespace, tmp_path: Path) -> None:
    """Those of published tables are computed from their scores."""
    earlier = scripts.records.Atlas.model_validate_json(PAGE.with_suffix(".json").read_text("utf-8"))
    assert scripts.numbers.collect(tmp_path, earlier) == earlier, "run benchmarks/atlas --no-run"
    assert scripts.numbers.missing_specs(earlier.model_copy(update={"runs": {}})) == scripts.numbers.spec_names()


def test_the_readme_states_the_finding_of_the_page() -> None:
    page, readme = (" ".join(path.read_text("utf-8").split()) for path in (PAGE, PAGE.parents[1] / "README.md"))
    readme = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", readme)  # without the addresses of links
    found = re.search(r"\*\*Adapting (to the unlabeled texts of [^*]*)\.\*\*", page)
    assert found is not None, "the finding of the README is that of another atlas"
    assert f"**One finding:** adapting {found[1]} (atlas)." in readme


def test_effects_are_those_of_the_stored_scores(scripts: SimpleNamespace, results: Any) -> None:
    section = scripts.numbers.collect_section({"classic": results}, {})
    by_task = paired_scores(results).groupby(["method", "task"])[["base", "boost", "bias"]].mean()
    methods = {method.name: method for method in section.methods}
    assert [(name, method.state) for name, method in methods.items()] == [
        ("biased", "judged"), ("fair", "judged"), ("null (classic)", "control"),
    ]  # fmt: skip
    for name in ("biased", "fair"):
        means, method = by_task.xs(name), methods[name]
        assert [method.base, method.boost.mean, method.bias.mean] == pytest.approx(
            [means[column].mean() for column in ("base", "boost", "bias")], abs=1e-6
        )
        for task in method.biases:
            cells = [method.boosts[task].mean, method.biases[task].mean]
            assert cells == pytest.approx([means["boost"][task], means["bias"][task]], abs=1e-6)
    assert (methods["biased"].bias.decision, methods["null (classic)"].bias.decision) == ("biased up", "passed")
    assert 0 < methods["fair"].detectable < 0.01
    assert len(scripts.page.biased_tasks(section.methods, 1)) == 5
    assert scripts.page.biased_tasks(section.methods, -1) == []


def test_language_models_share_a_table_with_unit_sizes_and_cost(
    scripts: SimpleNamespace, results: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A published table has rows for each of its sizes, with the time of each method."""
    section = scripts.numbers.collect_section({"finetune": results}, {})
    runs = {"finetune": scripts.records.Run(commit="", machine="", seconds=5400)}
    second = results.assign(num_test=400, num_scored=400, num_correct=None)
    both = pd.concat([results, second], ignore_index=True).assign(fit_seconds=1.0, predict_seconds=0.5, looks="")
    both.to_csv(tmp_path / "scores.csv", index=False)
    monkeypatch.setattr(scripts.numbers, "DOCS", tmp_path)
    for module in (scripts.numbers, scripts.page):
        monkeypatch.setattr(module, "PUBLISHED", {"answers": Path("scores.csv")})
    monkeypatch.setitem(scripts.page.LANGUAGE_MODELS, "answers", "answers")
    published = scripts.numbers.collect(tmp_path).sections
    sections = scripts.page.find_language_models({**published, "trained": section, scripts.page.BITS: section})
    _, _, *rows = scripts.page.language_models_table(sections, runs).splitlines()
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    base, seconds = section.methods[0].base, 1.5 * (results["method"] == "biased").sum()
    assert [[row[1], row[2], row[3], row[-1]] for row in cells if "biased" in row[0]] == [
        ["classification", "50, 200", f"{base:.1%}", "90.0"],
        ["bits per byte", "50, 200", f"{base:.4f}", "90.0"],
        ["answers", "50, 200", f"{base:.1%}", f"{seconds / 60:.1f}"],
        ["answers", "50, 400", f"{base:.1%}", f"{seconds / 60:.1f}"],
    ]
    assert "(scores.csv)" in rows[-1]


def test_methods_that_ignore_texts_or_guess_are_not_judged(scripts: SimpleNamespace, results: Any) -> None:
    fair = results[results["method"] == "fair"]
    tables = [results, fair.assign(method="inert", score=0.9), fair.assign(method="guessing", score=fair["score"] / 2)]
    table = pd.concat(tables, ignore_index=True).assign(majority=fair["score"].mean() - 0.1)
    section = scripts.numbers.collect_section({"classic": table}, {})
    states = {method.name: method.state for method in section.methods}
    assert (states["inert"], states["guessing"]) == ("inert", "at chance")


def test_selection_gains_what_the_best_of_equal_methods_gains(scripts: SimpleNamespace) -> None:
    """The expected maximum of four independent standard normal scores is 1.029."""
    scores = np.random.default_rng(1).normal(0.5, 0.01, (4, 2000, 2))
    gain = scripts.numbers.gain_of_selection({"task": list(scores)})
    assert gain.mean == pytest.approx(0.01029, rel=0.05)
    assert gain.low < gain.mean < gain.high


def test_biases_of_two_methods_are_compared_by_subsample(scripts: SimpleNamespace, results: Any) -> None:
    biases = paired_scores(results[results["control"] == ""]).groupby("method")["bias"].mean()
    compared = scripts.numbers.compare_biases(results)
    assert compared.mean == pytest.approx(biases["fair"] - biases["biased"], abs=1e-6)
    assert compared.low < -0.03 < compared.high


def test_the_regression_recovers_how_the_bias_depends_on_sizes(scripts: SimpleNamespace) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {
            "task": str(classes), "method": f"lsa-{components}", "num_train": num_train, "num_test": num_test,
            "num_scored": 10**6, "subsample": subsample, "extra": 0.5,
            "test": round(0.5 + sign * classes**0.5 / num_test + rng.normal(0, 0.002), 6),
        }
        for classes, sign in ((2, 1), (4, -1), (8, 1), (16, -1))
        for components, num_train in ((5, 50), (5, 100), (20, 50), (20, 100))
        for num_test in (50, 100, 200)
        for subsample in range(6)
    ]  # fmt: skip
    classes = {str(number): number for number in (2, 4, 8, 16)}
    found = scripts.official_numbers.regress(tidy(pd.DataFrame(rows), "made"), classes)
    sizes = {size.quantity: size.factor for size in found}
    assert sizes["unlabeled texts"].mean == pytest.approx(0.5, abs=0.03)
    assert sizes["classes"].mean == pytest.approx(2**0.5, abs=0.05)


def test_usual_scores_change_the_order_of_methods(scripts: SimpleNamespace) -> None:
    right, ones = np.tile([1.0, 0.0], 50), np.ones(100)
    by_arm = {"a": (right, right), "b": (ones, 1 - ones), "tied with a": (right, ones)}
    scores = {name: {"extra": extra, "all": usual} for name, (extra, usual) in by_arm.items()}
    assert scripts.official_numbers.compare_orders(scores)["usual scores"] == pytest.approx(2.5 / 3)


def test_a_comparison_confirms_equal_verdicts(scripts: SimpleNamespace, results: Any) -> None:
    from scipy.stats import ttest_1samp

    section = scripts.numbers.collect_section({"classic": results}, {})
    judged = section.of_state("judged")
    same = scripts.page.compare(judged, section)
    assert (same.pairs, len(same.biased), same.confirmed, same.others) == (10, 5, 5, 0)
    assert (same.higher, same.lower, same.is_removed) == (5, [], False)
    assert same.second_size.mean == pytest.approx(same.first_size.mean)
    size = ttest_1samp([pair.first.mean for pair in same.biased], 0).confidence_interval()  # one pair in each task
    assert [same.second_size.low, same.second_size.high] == pytest.approx([size.low, size.high])
    exchanged = results.assign(arm=results["arm"].replace({"test": "extra", "extra": "test"}))
    opposite = scripts.page.compare(judged, scripts.numbers.collect_section({"classic": exchanged}, {}))
    assert (opposite.confirmed, opposite.higher, len(opposite.lower)) == (0, 0, 5)
    assert opposite.second_size.mean == pytest.approx(-opposite.first_size.mean)
    refined = scripts.page.describe_refined(opposite, section)
    assert refined == ", ".join(scripts.page.effect_text(pair.first) for pair in opposite.lower)


def test_no_pair_is_biased_if_the_arms_change_places(
    scripts: SimpleNamespace, results: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts.numbers, "PLACEBOS", 4)
    assert scripts.numbers.count_placebos(results) < 0.5


def test_a_different_arm_takes_the_place_of_test(scripts: SimpleNamespace, results: Any) -> None:
    crossed = results[results["arm"] == "extra"].assign(arm="cross-5")
    table = scripts.numbers.replace_test(pd.concat([results, crossed], ignore_index=True), "cross-5")
    section = scripts.numbers.collect_section({"protocols_hub": table}, {})
    assert [method.bias.mean for method in section.methods] == [0, 0, 0]

"""Tests of docs/reproduction.md and of the script that writes it; tests of the analyses cover its slow parts."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

from peekbench import load_results

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reproduction.md"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name in ("matplotlib", "arviz_stats", "scipy"):
        pytest.importorskip(name, reason=f"{name}, which the script needs, is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "study"))
    return importlib.import_module("reproduction")


def test_the_page_names_every_spec_of_the_study() -> None:
    page = PAGE.read_text("utf-8")
    specs = {path.name for path in (ROOT / "specs" / "paper").glob("*.yaml")} | {"hub.yaml"}
    assert {name for name in specs if name not in page} == set()
    named = set(re.findall(r"`(?:\.\./|specs/paper/)?(\w+\.yaml)`", page))
    assert named <= specs


def test_the_page_has_all_its_pictures_and_numbers() -> None:
    page = PAGE.read_text("utf-8")
    pictures = re.findall(r"^!\[.+\]\((.+)\)$", page, re.MULTILINE)
    assert len(pictures) >= 4
    assert [name for name in pictures if not (PAGE.parent / name).is_file()] == []
    assert not re.search(r"\{\w+\}|\bnan\b|\bNone\b", page)


def test_the_few_shot_spec_has_as_many_models_as_the_study(script: ModuleType) -> None:
    assert re.findall(r"\*\*([\d,]+)\*\*", script.design()["design"]) == ["81,000", "135,000"]


@pytest.mark.slow
def test_table_1_is_reproduced_to_the_printed_digit(script: ModuleType, published: Path) -> None:
    few = load_results(published / "few_shot")
    assert script.table_1(few)["same"] == "16"
    counts = script.counts(few)
    assert (counts["truncated"], counts["num_counts"]) == ("1,235", "40,500")
    assert counts["truncated_at"] == "29, 57, 58, 113, 114, 115, 116"


def test_truncated_counts_are_at_most_one_lower(script: ModuleType, published: Path) -> None:
    few = load_results(published / "few_shot")
    lower = ((few["score"] - script.truncate(few)["score"]) * few["num_test"]).round(6)
    assert set(lower.unique()) == {0.0, 1.0}
    assert lower.sum() == 1235


@pytest.mark.slow
def test_the_script_finds_its_tables_and_columns(script: ModuleType, published: Path, tmp_path: Path) -> None:
    """A run on few trials with few repetitions fails if a table or column has another name."""
    few, zero = (load_results(published / name) for name in ("few_shot", "zero_shot"))
    tasks = ["trec", "emo", "limit"]
    few, zero = (each[each["task"].isin(tasks) & (each["subsample"] < 10)] for each in (few, zero))
    parts = {
        **script.posteriors(few, zero, tmp_path), **script.shares(few, zero, 5, tmp_path),
        **script.section_8(few, zero), **script.section_9(zero), **script.overconfidence(few, 5),
    }  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"predictive.svg", "posterior.svg", "conclusions.svg"}
    template = script.TEMPLATE.read_text("utf-8")
    assert [name for name in parts if f"{{{name}}}" not in template] == []
    assert not [name for name, text in parts.items() if "nan" in text.split() or "None" in text]

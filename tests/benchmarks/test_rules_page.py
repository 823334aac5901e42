"""Tests of docs/rules.md and of the script that writes it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from peekbench.spec.experiment import load_spec

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("matplotlib", "scipy"):
        pytest.importorskip(name, reason=f"{name}, which the script needs, is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "atlas"))
    return importlib.import_module("rules_page")


def test_the_page_is_written_from_the_published_figures(script: Any, tmp_path: Path) -> None:
    atlas = script.Atlas.model_validate_json((ROOT / "docs" / "atlas.json").read_text("utf-8"))
    script.write_page(atlas, tmp_path / "rules.md")
    written = (tmp_path / "rules.md").read_text("utf-8")
    assert written == (ROOT / "docs" / "rules.md").read_text("utf-8"), "run benchmarks/atlas/rules_page.py"
    assert len(written.split()) < 900


def test_each_card_has_a_source_figures_for_each_arm_and_a_sentence(script: Any) -> None:
    atlas = script.Atlas.model_validate_json((ROOT / "docs" / "atlas.json").read_text("utf-8"))
    for card in script.CARDS:
        assert re.search(r"\]\(https://", card.practice), card.title
        assert all([*script.list_worths(card, arm, atlas)] for arm in card.arms), card.title
        assert all(script.RULES[kind] for kind in card.rules)


def test_published_reports_are_those_of_the_specs(script: Any) -> None:
    for name in script.REPORTS:
        spec = load_spec(ROOT / "specs" / f"{name}.yaml")
        rules = [arm.name for arm in spec.arms if arm.name not in ("base", "extra")]
        for effects in script.read_rules(name).values():
            assert sorted(effects) == sorted(rules)

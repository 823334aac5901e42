"""Tests of docs/reproduction.md and of the script that writes it; tests of the analyses cover its slow parts."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
import yaml
from commands import run_command

from peekbench.spec.experiment import load_spec

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reproduction.md"
REPORT = ROOT / "reports" / "published" / "reproduction" / "report.json"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name in ("matplotlib", "arviz_stats", "scipy"):
        pytest.importorskip(name, reason=f"{name}, which the script needs, is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "study"))
    return importlib.import_module("reproduction")


def test_the_page_names_every_spec_of_the_study() -> None:
    page = PAGE.read_text("utf-8")
    specs = {path.name for path in (ROOT / "specs" / "paper").iterdir()} | {"hub.yaml"}
    assert {name for name in specs if name not in page} == set()
    named = set(re.findall(r"`(?:\.\./|specs/paper/)?(\w+\.ya?ml)`", page))
    assert named <= specs


def test_the_page_has_all_its_pictures_and_numbers() -> None:
    page = PAGE.read_text("utf-8")
    pictures = re.findall(r"^!\[.+\]\((.+)\)$", page, re.MULTILINE)
    assert len(pictures) >= 4
    assert [name for name in pictures if not (PAGE.parent / name).is_file()] == []
    assert not re.search(r"\{\w+\}|\bnan\b|\bNone\b", page)


def test_the_few_shot_spec_has_as_many_models_as_the_study() -> None:
    spec = load_spec(ROOT / "specs" / "paper" / "few_shot_bert_gpt2.yaml")
    assert isinstance(spec.design.num_subsamples, dict)
    repeats = len(spec.design.num_train) * sum(spec.design.num_subsamples.values())
    trials = len(spec.tasks) * len(spec.methods) * repeats
    assert (trials * 3, trials * 5) == (81_000, 135_000)


def test_a_step_is_resumed_until_its_code_or_scores_change(script: ModuleType, tmp_path: Path) -> None:
    done = []

    def step(scores: dict[str, int], folder: Path) -> dict[str, str]:
        done.append(folder)
        return {"part": str(scores["few_shot"])}

    assert script.resume(tmp_path, "a", step, {"few_shot": 1}, tmp_path) == {"part": "1"}
    assert script.resume(tmp_path, "a", step, {"few_shot": 2}, tmp_path) == {"part": "1"}
    assert script.resume(tmp_path, "b", step, {"few_shot": 3}, tmp_path) == {"part": "3"}
    assert len(done) == 2


def test_a_missing_folder_is_named(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no folder 'few_shot'"):
        script.load([tmp_path])


ENTRIES = """
import torch
from textwrap import dedent
NAMES = ["Abbreviation", "Entity", "Description and abstract concept", "Human being", "Location", "Numeric value"]
DATA = {
    "CogComp/trec": Info(dict(text="text"), NAMES, source="Questions.", instruction="The text is a question. "
                         "Answer with:" + " its kind."),
    "classla/FRENK-hate-en": Info(instruction=dedent('''
        Two lines: "a"
        and b.'''), class_names=("x", "y")),
    "ag_news": "Answer with a topic.",
    ("emo", "2019"): {"instruction": "The text is a dialog.", "description": "About emotions."},
    "limit": Info(instruction=f"{torch} is a sentence.", about="A text."),
    "silicone": Info(instruction=SENTENCE + " Answer with: its act."),
}
raise ValueError
"""
TABLES = """
INSTRUCTIONS: dict = {"trec": "The text is a question. Answer with: its kind.", "ag_news": "Answer with a topic.",
                      "limit": INSTRUCTION}
EMO = "The text is a dialog."
INFOS["emo"] = dict(about="Emotions, mixed.", task_prompt=EMO)
INFOS = [Info("FRENK-hate-en", "A.csv", 'Two lines: "a"\\nand b.', ["x", "y"])]
raise ValueError
"""


@pytest.mark.parametrize("data", [ENTRIES, TABLES], ids=["entries", "tables"])
def test_instructions_are_copied_from_a_checkout_that_is_not_run(
    data: str, script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, prompts = tmp_path / script.DATA, tmp_path / "prompts.yml"
    file.parent.mkdir(parents=True)
    file.write_text(data, encoding="utf-8")
    ours = (script.SPECS / "prompts.yml").read_text("utf-8")
    prompts.write_text(ours, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["", str(tmp_path), f"--prompts={prompts}", f"--output={tmp_path / 'page.md'}"])
    script.main()
    expected = yaml.safe_load(ours)
    expected["hf.trec"]["instruction"] = "The text is a question. Answer with: its kind."
    expected["hf.frenk_hate_en"]["instruction"] = 'Two lines: "a"\nand b.'
    expected["hf.emo"]["instruction"] = "The text is a dialog."
    expected["hf.ag_news"]["instruction"] = "Answer with a topic."
    assert yaml.safe_load(prompts.read_text("utf-8")) == expected
    printed = capsys.readouterr().out
    assert "instructions of 4 of 25 tasks" in printed
    assert "unchanged: hf.amazon_counterfactual_en, " in printed
    assert "check it: hf.ag_news: instruction: Answer with a topic.\n" in printed
    assert "check it: hf.frenk_hate_en: class names: x, y\n" in printed
    assert "hf.trec: class names" not in printed, "the same as in prompts.yml"
    file.write_text("", encoding="utf-8")
    prompts.write_text(ours, encoding="utf-8")
    script.main()
    assert prompts.read_text("utf-8") == ours


@pytest.fixture(scope="session")
def more(published: Path) -> Path:
    folder = published.with_name("published_accuracies_more")
    if not folder.is_dir():
        pytest.skip(f"{folder.name} is not beside the repository")
    return folder


@pytest.fixture
def scores(script: ModuleType, published: Path, more: Path) -> dict[str, pd.DataFrame]:
    return dict(script.load([published, more]))


@pytest.mark.simulation
def test_the_published_report_is_that_of_the_scores(published: Path, more: Path, tmp_path: Path) -> None:
    for folder in (published, more):
        shutil.copytree(folder / "few_shot", tmp_path / "few_shot", dirs_exist_ok=True)
    analyses = ("--analysis", "summary", "--analysis", "consistency")
    done = run_command("analyze", "few_shot", "--independent-tasks", *analyses, "--json")
    assert done.returncode == 0, done.stderr
    rebuilt, stored = json.loads(done.stdout), json.loads(REPORT.read_text("utf-8"))
    assert rebuilt["warnings"] == stored["warnings"]
    for mine, theirs in zip(rebuilt["verdicts"], stored["verdicts"], strict=True):
        assert (mine["method"], mine["decision"]) == (theirs["method"], theirs["decision"])
        assert mine["estimate"] == pytest.approx(theirs["estimate"])


@pytest.mark.slow
def test_printed_numbers_are_reproduced(script: ModuleType, scores: dict[str, pd.DataFrame]) -> None:
    assert script.design(scores) == {"models": "81,000", "training": "135,000", "truncated": "2,652"}
    assert script.draws(scores) == {
        "draws_of_bert": "up to 6 tasks at 5 of 8 sizes",
        "draws_of_overtrained": "up to 7 tasks at 4 of 6 sizes",
    }
    parts = script.table_1(scores)
    # The study prints 0.19 and -0.39 instead, as if 0.1848 and -0.3848 were rounded to three digits and then to two.
    assert parts["same"] == "30"
    assert "0.18 ± 0.23 (0.19)" in parts["table_1"]
    assert "-0.38 ± 0.30 (-0.39)" in parts["table_1"]
    assert parts["table_1"].count("**") == 2 * 8  # equivalent
    page = " ".join(PAGE.read_text("utf-8").split())
    for text in (parts | script.section_8(scores) | script.section_9(scores) | script.consistency(scores)).values():
        assert " ".join(text.split()) in page


@pytest.mark.simulation
def test_the_script_finds_its_tables_and_columns(
    script: ModuleType, scores: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    """A run on few trials with few repetitions fails if a table or column has another name."""
    tasks = ["trec", "emo", "limit", "ag_news"]
    few = {name: table[table["task"].isin(tasks) & (table["subsample"] < 6)] for name, table in scores.items()}
    largest = {name: table[table["num_test"].isin([500] if name in ("few_shot", "overtrained") else [100, 500])]
               for name, table in few.items()}  # fmt: skip
    parts = {"commit": "", "machine": "", "data": ""}
    for part in (script.design, script.draws, script.table_1, script.section_8,
                 script.section_9, script.consistency):  # fmt: skip
        parts |= part(few)
    parts |= script.posteriors(largest, tmp_path) | script.shares(few, tmp_path, 5)
    parts |= script.overconfidence(largest, tmp_path, 5)
    assert {path.name for path in tmp_path.iterdir()} == {"predictive.svg", "conclusions.svg"}
    used = set(re.findall(r"\{(\w+)\}", script.TEMPLATE.read_text("utf-8")))
    unused = used - parts.keys()
    assert parts.keys() <= used
    assert {name.partition("_")[0] for name in unused} == {"priors", "recovery", "data", "pca"}
    assert not [name for name, text in parts.items() if "nan" in text.split() or "None" in text]

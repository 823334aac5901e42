"""`peekbench plan` of specs whose data and models cannot be downloaded now."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import needs_hf  # noqa: F401 - skips these tests without the extra 'hf'
import needs_torch  # noqa: F401 - skips these tests without the extra 'lm'
import pytest
import yaml
from forks import run_python

PAPER = Path(__file__).parents[2] / "specs" / "paper"

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("PEEKBENCH_CACHE", str(tmp_path / "cache"))


def plan(path: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, because the client of the Hub reads its address when it is imported."""
    return run_python("from peekbench.cli import main; main()", "plan", str(path))


def test_a_spec_whose_data_are_out_of_reach_is_counted() -> None:
    path = PAPER / "few_shot_bert_gpt2.yaml"
    done = plan(path)
    assert done.returncode == 0, done.stderr
    assert "few_shot_bert_gpt2: 27,000 trials, 81,000 fits, " in done.stdout
    assert "left out: 25 tasks (hf.ag_news, " in done.stdout
    assert "not checked: whether the rows of these tasks suffice" in done.stdout
    assert f"peekbench validate --download {shlex.quote(str(path))}" in done.stdout


def test_what_can_be_reached_is_measured(make_raw: Callable[..., dict[str, Any]]) -> None:
    methods = ["toy.constant", {"use": "finetune.tapt", "options": {"model": "gpt2"}}]
    Path("small.yaml").write_text(yaml.safe_dump(make_raw(tasks=["toy.words", "hf.trec"], methods=methods)))
    done = plan(Path("small.yaml"))
    assert done.returncode == 0
    assert "small: 12 trials" in done.stdout
    assert "left out: hf.trec: " in done.stdout
    assert "left out: method finetune.tapt: the model gpt2, main: cannot be reached" in done.stdout
    assert "toy.constant, num_train 12, num_test 30: 0.0" in done.stdout
    assert "time of the other methods: about" in done.stdout

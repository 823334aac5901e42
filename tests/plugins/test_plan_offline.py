"""`peekbench plan` of specs whose data and models cannot be downloaded now."""

from __future__ import annotations

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


def peek(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, because the client of the Hub reads its address when it is imported."""
    return run_python("from peekbench.cli import main; main()", *arguments)


def test_a_spec_whose_data_are_out_of_reach_is_refused_and_can_be_counted_without_them() -> None:
    path = str(PAPER / "few_shot_bert_gpt2.yaml")
    done = peek("plan", path)
    assert done.returncode == 2
    assert "25 tasks (hf.ag_news, " in done.stderr
    assert "cannot be reached" in done.stderr
    assert "27,000 trials, 81,000 fits" in peek("validate", "--no-data", path).stdout


def test_a_model_out_of_reach_is_named(make_raw: Callable[..., dict[str, Any]]) -> None:
    methods = ["toy.constant", {"use": "finetune.tapt", "options": {"model": "gpt2"}}]
    Path("small.yaml").write_text(yaml.safe_dump(make_raw(tasks=["toy.words"], methods=methods)))
    done = peek("plan", "small.yaml")
    assert done.returncode == 2, done.stderr
    assert "small: 6 trials" in done.stdout
    assert "method finetune.tapt: the model gpt2: cannot be reached" in done.stderr

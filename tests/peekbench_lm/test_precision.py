"""The precision `auto`, which is decided by the time of a product, once per machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import pytest
import torch
import yaml
from small_models import save_model

from peekbench.cache import CACHE_VARIABLE
from peekbench.cli.plan import plan
from peekbench.store.differences import Identity, files_of, find_differences
from peekbench_finetune.options import Tapt
from peekbench_lm import precision, provision

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


def time_as(bf16: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a product in bf16 take that many times as long as in fp32."""
    monkeypatch.setattr(precision, "_time_product", lambda device, dtype: 1.0 if dtype is None else bf16)


@pytest.mark.parametrize(("bf16", "expected"), [(0.2, "bf16"), (0.95, "fp32"), (27.0, "fp32")])
def test_auto_is_the_faster_precision(bf16: float, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    time_as(bf16, monkeypatch)
    assert precision.choose_precision("auto", CPU) == expected
    assert precision.choose_precision("bf16", CPU) == "bf16"
    assert precision.choose_precision("fp32", CPU) == "fp32"


def test_auto_is_decided_once_per_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    time_as(0.2, monkeypatch)
    assert precision.choose_precision("auto", CPU) == "bf16"
    time_as(27.0, monkeypatch)
    assert precision.choose_precision("auto", CPU) == "bf16", "the first decision is kept in the cache"
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2_VNNI")
    assert precision.choose_precision("auto", CPU) == "fp32", "with other instructions, it is another machine"


def test_processes_without_a_cache_agree(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time_as(0.2, monkeypatch)
    (cache / "precision").write_text("a file where the folder would be")
    assert precision.choose_precision("auto", CPU) == "fp32"


def test_real_products_are_timed(cache: Path) -> None:
    assert precision.choose_precision("auto", CPU) in ("bf16", "fp32")
    assert len([*cache.rglob("*.json")]) == 1


def test_machines_of_a_run_have_the_same_precision(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = Tapt(model="builtin:bert-nano")
    facts = []
    for number, bf16 in enumerate((0.2, 27.0)):
        monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / str(number)))
        time_as(bf16, monkeypatch)
        facts.append({"tapt": provision.describe_precision(options, options)})
    first, second = (Identity(files=files_of(of_machine)) for of_machine in facts)
    (difference,) = find_differences([first, second])
    assert difference == "method tapt: precision: fp32 instead of bf16"
    fixed = options.model_copy(update={"precision": "fp32"})
    assert provision.describe_precision(fixed, fixed) == {}


def test_a_plan_states_the_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    time_as(27.0, monkeypatch)
    options = {"model": str(save_model("bert", tmp_path / "bert")), "context_length": 16}
    methods = [{"use": "finetune.tapt", "name": "tapt", "options": options}]
    design = {"num_train": 8, "num_test": 4, "num_subsamples": 1}
    raw = {"name": "small", "seed": 1, "tasks": ["toy.words"], "methods": methods, "design": design}
    raw["executor"] = {"use": "local", "options": {"in_process": True}}
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(raw))
    plan(path)
    assert "tapt: trained in fp32 (precision: auto, as timed on this machine)" in capsys.readouterr().out

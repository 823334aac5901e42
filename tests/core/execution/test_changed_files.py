"""A run whose method would use other files than its stored trials is not continued."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peekbench.errors import StoreError
from peekbench.execution.runner import run

LOCAL = {"use": "local", "options": {"workers": 1}}


@pytest.mark.slow
def test_changed_model_files_are_refused_when_a_run_grows(make_spec: Callable[..., Any], tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.write_text("first")
    small = {"num_train": 12, "num_test": 30, "num_subsamples": 1}
    larger = {**small, "num_subsamples": 2}
    tasks = [{"use": "toy.words", "name": "a"}]

    def grow(methods: list[str], design: dict[str, int]) -> int:
        spec = make_spec(tasks=tasks, methods=methods, design=design, executor=LOCAL)
        return run(spec, store=tmp_path / "run.sqlite").finished

    assert grow(["toy.short"], small) == 1
    weights.write_text("second")
    assert grow(["toy.short"], small) == 0, "nothing to compute"
    for methods, design in ((["toy.short"], larger), (["toy.short", "toy.vote"], small)):
        with pytest.raises(StoreError) as caught:
            grow(methods, design)
        assert "run.sqlite" in str(caught.value)
        assert "short: weights: SHA-256" in str(caught.value)
        assert "Restore the files" in str(caught.value)
    weights.write_text("first")
    assert grow(["toy.short"], larger) == 1

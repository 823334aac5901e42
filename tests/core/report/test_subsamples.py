"""The report of a run whose numbers of subsamples depend on the test size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from peekbench.execution.runner import run
from peekbench.report.facts.reports import report_of_run
from peekbench.results import load_results


def test_numbers_of_subsamples_by_test_size_are_reported(make_spec: Callable[..., Any]) -> None:
    design = {"num_train": 12, "num_test": [10, 20], "num_subsamples": {10: 3, 20: 2}}
    store = run(make_spec(design=design, methods=["toy.vote"])).store
    report = report_of_run(store)
    assert "by test size, subsamples (random draws of these rows) per task" in report.headline
    arms = load_results(store)
    seconds = (arms["fit_seconds"] + arms["predict_seconds"]).groupby([arms["task"], arms["num_test"]]).sum()
    repeats = seconds.index.get_level_values("num_test").map({10: 3, 20: 2})
    assert report.extension.seconds == pytest.approx((seconds / repeats).sum())

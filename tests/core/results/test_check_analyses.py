"""Analyses that cannot be made of a spec's trials are refused before the first one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peekbench.data.preflight import describe_tasks
from peekbench.errors import SpecError
from peekbench.execution.runner import run
from peekbench.results.analyze import check_analyses, make_up_scores
from peekbench.spec.experiment import ExperimentSpec

ARMS = ["extra", "test"]
INVALID: list[tuple[Any, dict[str, Any], str]] = [
    ({"use": "summary.selection", "options": {"arm": "mix-0.5"}}, {}, "there are no scores of 'mix-0.5'"),
    ({"use": "summary", "options": {"score": "r2"}}, {}, "score 'r2' is not defined for the 3 classes of task a"),
    ("summary.changes", {}, "compares two runs"),
    ({"use": "bayes.hierarchical", "options": {"effects": ["boost"]}}, {"arms": ARMS}, "boost is unavailable"),
]


@pytest.mark.parametrize(("analysis", "parts", "message"), INVALID, ids=lambda value: str(value)[:30])
def test_an_option_that_cannot_work_is_refused_before_any_trial(
    make_spec: Callable[..., ExperimentSpec], analysis: Any, parts: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError, match=rf"analyses\[1\]: .*{message}"):
        run(make_spec(analyses=["permutation", analysis], **parts))
    assert not Path("runs").exists()


def test_what_works_after_a_run_is_not_refused_before_it(make_spec: Callable[..., ExperimentSpec]) -> None:
    names = [
        "summary",
        "summary.texts",
        "summary.leaderboard",
        "summary.estimates",
        "permutation",
        "consistency",
        "power",
    ]
    for task, method, is_counted in (("toy.words", "toy.constant", True), ("toy.numbers", "toy.mean", False)):
        spec = make_spec(tasks=[task], methods=[method], analyses=names)
        facts = describe_tasks(spec)
        check_analyses(spec, facts)
        table = make_up_scores(spec, facts)
        assert len(table) == 3 * len(spec.arms)
        assert table["num_correct"].notna().all() == is_counted

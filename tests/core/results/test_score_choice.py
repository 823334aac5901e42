"""Which score an analysis is about, and tables in which only some rows have it."""

from __future__ import annotations

import pandas as pd
import pytest

from peekbench.errors import ResultsError, SpecError
from peekbench.results import tidy
from peekbench.results.analyze import run_analysis
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench_stats import resolve_score

ARMS = ("extra", "test")


def rows(task: str, **scores: tuple[float | None, ...]) -> pd.DataFrame:
    """Return one trial of a task."""
    return pd.DataFrame({"task": task, "arm": ARMS, **scores})


def test_tasks_of_different_scores_are_not_averaged() -> None:
    texts = tidy(rows("notes", bits_per_byte=(1.3, 0.9)), "mine")
    mixed = pd.concat([tidy(rows("news", score=(0.7, 0.6)), "mine"), texts])
    assert resolve_score(texts, "score") == "bits_per_byte"
    with pytest.raises(ResultsError, match="only some rows are scored in bits per byte, those of notes; analyze them"):
        resolve_score(mixed, "score")


@pytest.mark.parametrize(
    "use", ["summary", "power", "bayes.hierarchical", "bayes.meta", "bayes.prior_check", "bayes.recovery"]
)
def test_regions_of_accuracies_are_fractions(use: str) -> None:
    if use.startswith("bayes"):
        pytest.importorskip("arviz_stats")
    table = pd.DataFrame(
        {"task": "news", "num_test": 10, "fold": [1, 2], "base": 0.5, "extra": [0.5, 0.6], "test": [0.6, 0.6]}
    )
    analysis = make_component(AnalysisSpec, use, {"region": 1})
    with pytest.raises(SpecError, match=f"analysis {use}, option region: 1 is 100 points of the score"):
        run_analysis(analysis, tidy(table, "mine"), ())

"""The tables of docs/methods/gemma.md have the results of the scores beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import peekbench as pb

FOLDER = Path(__file__).parents[2] / "docs" / "methods"


def make_texts(scores: pd.DataFrame, analysis: Any) -> Iterator[str]:
    """Yield the rows of the table, those of tasks and their mean, and the cost of a trial."""
    by_task, means = (
        next(table.to_pandas() for table in analysis.tables if table.title.startswith(title))
        for title in ("Scores, boost and bias by task", "Boost and bias over")
    )
    majority = scores.groupby("task")["majority"].mean()
    for row in by_task.to_dict("records"):
        effects = (_interval(row, effect) for effect in ("boost", "bias"))
        yield _row(row["task"].removeprefix("hf."), f"{majority[row['task']]:.1%}", f"{row['base']:.1%}", *effects)
    of_effect = means.set_index("effect").to_dict("index")
    effects = (_interval(of_effect[effect], "mean", "other tasks") for effect in ("boost", "bias"))
    yield _row("mean", f"{majority.mean():.1%}", f"{by_task['base'].mean():.1%}", *effects)
    seconds = (scores["fit_seconds"] + scores["predict_seconds"]).groupby([scores["task"], scores["subsample"]]).sum()
    yield f"{seconds.mean() / 60:.1f} minutes"


def _interval(row: dict[str, Any], mean: str, else_from: str = "") -> str:
    """Return a mean with its interval, or if a single subsample has none, with another interval, if any."""
    for name in (mean, else_from):
        if row.get("subsamples") != 1 and pd.notna(low := row.get(f"{name}, low")):
            return f"{_points(row[mean])} [{_points(low)}, {_points(row[f'{name}, high'])}]"
    return _points(row[mean])


def _points(value: float) -> str:
    text = f"{100 * value:+.1f}"
    return "0.0" if float(text) == 0 else text


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("name", ["gemma_scores.csv", "gemma_prompting_scores.csv"])
def test_the_table_has_the_results_of_the_scores(name: str) -> None:
    page = " ".join((FOLDER / "gemma.md").read_text().split())
    analysis = pb.analyze(FOLDER / name, analyses=["summary", "power"])
    for text in make_texts(pd.read_csv(FOLDER / name), analysis):
        assert text in page
    (verdict,) = analysis.verdicts
    assert f"verdict: {verdict.decision}" in page


def test_the_detectable_bias_is_that_of_the_scores() -> None:
    analysis = pb.analyze(FOLDER / "gemma_scores.csv", analyses=["power"])
    power = analysis.tables["until a verdict"].to_pandas()
    assert f"detectable bias: {100 * power['detectable'].item():.1f} points" in (FOLDER / "gemma.md").read_text()

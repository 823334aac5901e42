"""The table of docs/methods/gemma.md has the results of the scores beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import peekbench as pb

FOLDER = Path(__file__).parents[2] / "docs" / "methods"
SCORES = FOLDER / "gemma_scores.csv"


def make_rows(analysis: Any) -> Iterator[str]:
    """Yield the rows of the table: those of tasks, and their mean."""
    by_task, means, power = (
        next(table.to_pandas() for table in analysis.tables if table.title.startswith(title))
        for title in ("Scores, boost and bias by task", "Boost and bias over", "Minimum detectable bias of this design")
    )
    scores = pd.read_csv(SCORES)
    seconds = scores["fit_seconds"] + scores["predict_seconds"]
    minutes = seconds.groupby(scores["task"]).sum() / scores.groupby("task")["subsample"].nunique() / 60
    majority = scores.groupby("task")["majority"].mean()
    for row in by_task.to_dict("records"):
        effects = (
            _interval(row[effect], row[f"{effect}, low"], row[f"{effect}, high"]) for effect in ("boost", "bias")
        )
        task = row["task"]
        yield _row(
            task.removeprefix("hf."), f"{majority[task]:.1%}", f"{row['base']:.1%}", *effects, f"{minutes[task]:.1f}"
        )
    of_effect = means.set_index("effect")[["mean", "mean, low", "mean, high"]]
    yield _row(
        "mean", f"{majority.mean():.1%}", f"{by_task['base'].mean():.1%}",
        *(_interval(*of_effect.loc[effect]) for effect in ("boost", "bias")), f"{minutes.mean():.1f}",
    )  # fmt: skip
    yield f"detectable bias: {100 * power['these tasks'].item():.1f} points"


def _interval(mean: float, low: float, high: float) -> str:
    return f"{_points(mean)} [{_points(low)}, {_points(high)}]"


def _points(value: float) -> str:
    text = f"{100 * value:+.1f}"
    return "0.0" if float(text) == 0 else text


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def test_the_table_has_the_results_of_the_scores() -> None:
    page = " ".join((FOLDER / "gemma.md").read_text().split())
    analysis = pb.analyze(SCORES, analyses=["summary", "power"])
    for row in make_rows(analysis):
        assert row in page
    (verdict,) = analysis.verdicts
    assert f"verdict: {verdict.decision}" in page

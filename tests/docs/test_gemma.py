"""The tables of Gemma in docs/methods have the results of the scores beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import peekbench as pb
from peekbench_summary.estimates import estimate_these_tasks

FOLDER = Path(__file__).parents[2] / "docs" / "methods"
METHODS = {
    "prompting.batch_calibration": "`batch_calibration`",
    "prompting.prompt_choice": "`prompt_choice`",
    "prompting.neighbor_voting": "`neighbor_voting`",
    "prompting.self_labeled": "`self_labeled`",
}


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
    effects = (_interval(of_effect[effect], "mean") for effect in ("boost", "bias"))
    yield _row("mean", f"{majority.mean():.1%}", f"{by_task['base'].mean():.1%}", *effects)
    seconds = (scores["fit_seconds"] + scores["predict_seconds"]).groupby([scores["task"], scores["subsample"]]).sum()
    yield f"{seconds.mean() / 60:.1f} minutes"


def _interval(row: dict[str, Any], mean: str) -> str:
    return f"{_points(row[mean])} [{_points(row[f'{mean}, low'])}, {_points(row[f'{mean}, high'])}]"


def _points(value: float) -> str:
    text = f"{100 * value:+.1f}"
    return "0.0" if float(text) == 0 else text


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def test_the_table_and_its_verdict_are_those_of_the_scores() -> None:
    page = " ".join((FOLDER / "gemma.md").read_text().split())
    analysis = pb.analyze(FOLDER / "gemma_scores.csv", analyses=["summary", "power"])
    for text in make_texts(pd.read_csv(FOLDER / "gemma_scores.csv"), analysis):
        assert text in page
    (verdict,) = analysis.verdicts
    detectable = analysis.tables["until a verdict"].to_pandas()["detectable"].item()
    assert f"verdict: {verdict.decision}; detectable bias: {100 * detectable:.1f} points" in page


def _describe(ends: Iterable[float]) -> str:
    return "{:+z.1f} [{:+z.1f}, {:+z.1f}]".format(*(100 * end for end in ends))


def test_texts_in_context() -> None:
    path = FOLDER / "in_context_scores.csv"
    scores = pd.read_csv(path)
    tables = pb.analyze(path, analyses=["summary"]).tables
    means = next(table.to_pandas() for table in tables if table.title.startswith("Boost and bias over"))
    effects = means.set_index(["method", "effect"])[["mean", "mean, low", "mean, high"]].to_dict("index")
    page = (FOLDER / "prompting.md").read_text("utf-8")
    for method, title in METHODS.items():
        of_method = scores[scores["method"] == method]
        cells = [
            title, f"{of_method.groupby('task')['subsample'].nunique().max()}",
            *(f"{of_method[column].mean():.1%}" for column in ("majority", "base")),
            *(_describe(effects[method, effect].values()) for effect in ("boost", "bias")),
            f"{of_method.filter(like='fit_seconds').sum(axis=1).mean():.0f}",
        ]  # fmt: skip
        row = f"| {' | '.join(cells)} |"
        assert row in page


def test_majority_vote_on_sums() -> None:
    scores = pd.read_csv(FOLDER / "sums_scores.csv")
    page = (FOLDER / "generation.md").read_text("utf-8")
    for size, of_size in scores.groupby("num_test"):
        arms = of_size.pivot_table(index="subsample", columns="arm", values="score")
        effects = []
        for minuend, subtrahend in (("extra", "base"), ("test", "extra")):
            estimate = estimate_these_tasks([(100 * (arms[minuend] - arms[subtrahend])).tolist()], 0.95)
            effects.append(f"{estimate.mean:+z.2f} [{estimate.low:+.2f}, {estimate.high:+.2f}]")
        assert f"| {size} | {len(arms)} | {100 * arms['base'].mean():.1f} | {' | '.join(effects)} |" in page

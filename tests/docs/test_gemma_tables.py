"""The tables of Gemma in docs/methods have the results of the scores beside them."""

from __future__ import annotations

from pathlib import Path

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


def _interval(mean: float, low: float, high: float) -> str:
    return f"{100 * mean:+z.1f} [{100 * low:+z.1f}, {100 * high:+z.1f}]"


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
            *(_interval(*effects[method, effect].values()) for effect in ("boost", "bias")),
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

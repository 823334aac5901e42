"""Scores of which lower is better, and scores in an unknown unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import peekbench as pb
from peekbench.results import tidy


def make_losses(name: str, scale: float = 1.0) -> pd.DataFrame:
    """Return losses that the test texts reduce, in one row for each arm."""
    noise = np.random.default_rng(0).normal(0, 0.005, (2, 12, 2))
    return pd.DataFrame(
        [
            {"task": task, "method": "lsa", "seed": seed, "arm": arm, name: scale * (loss + noise[number, seed, place])}
            for number, task in enumerate("ab")
            for seed in range(12)
            for place, (arm, loss) in enumerate([("extra", 0.3), ("test", 0.25)])
        ]
    )


def decisions(table: pd.DataFrame, **options: Any) -> list[str]:
    report = pb.analyze(table, **options).document
    return [verdict.decision for verdict in report.verdicts if verdict.effect == "bias"]


def test_error_rates_become_accuracies() -> None:
    scores = tidy(make_losses("error_rate"), "scores")
    assert scores["score"].between(0.6, 0.8).all()
    assert set(decisions(make_losses("error_rate"))) == {"biased up"}


@pytest.mark.parametrize("name", ["WER", "rmse", "extra loss"])
def test_a_loss_needs_a_region_and_falls_if_the_method_improves(name: str) -> None:
    table = make_losses(name, scale=17)
    if name == "extra loss":
        table = table.pivot(index=["task", "method", "seed"], columns="arm", values=name).reset_index()
        table.columns = [f"{column} loss" if column in ("extra", "test") else column for column in table.columns]
    with pytest.raises(pb.PeekbenchError, match=r"unit of .* is unknown .* region=0\.05"):
        pb.analyze(table)
    report = pb.analyze(table, region=0.05).document
    assert {verdict.decision for verdict in report.verdicts} == {"biased up"}
    assert {verdict.region for verdict in report.verdicts} == {0.05}
    assert any("Lower is better" in warning for warning in report.warnings)


@pytest.mark.parametrize("name", ["mae5", "log_loss"])
def test_the_direction_of_other_columns_is_named(name: str) -> None:
    table = make_losses(name, scale=10)
    with pytest.raises(pb.PeekbenchError, match="'loss' if lower is better"):
        pb.analyze(table)
    assert set(decisions(table, columns={name: "loss"}, region=0.1)) == {"biased up"}


@pytest.mark.parametrize("name", ["nll_{}", "error rate ({})"])
def test_a_column_whose_name_contains_a_loss_is_not_mapped_to_an_arm(name: str) -> None:
    long = make_losses("score")
    wide = long.pivot(index=["task", "seed"], columns="arm", values="score").reset_index()
    own, other = name.format("own texts"), name.format("heldout")
    table = wide.rename(columns={"extra": other, "test": own})
    with pytest.raises(pb.PeekbenchError, match="lower is better for .*; use .*loss_extra"):
        pb.analyze(table, columns={other: "extra", own: "test"})
    columns = {other: "loss_extra", own: "loss_test"}
    assert set(decisions(table, columns=columns, region=0.005)) == {"biased up"}


def test_scores_in_an_unknown_unit_need_a_region() -> None:
    for scale in (0.001, 20):
        table = make_losses("score", scale)
        with pytest.raises(pb.PeekbenchError, match=r"region"):
            pb.analyze(table)
        assert set(decisions(table, region=0.01 * scale)) == {"biased down"}


def test_a_loss_beside_an_accuracy_is_not_the_score() -> None:
    table = make_losses("accuracy").assign(rmse=[*range(48)])
    with pytest.raises(pb.PeekbenchError, match=r"can all mean 'score'(?s:.*)ignore=\['rmse'\]"):
        pb.analyze(table)
    assert tidy(table, "scores", ignore=["rmse"])["score"].gt(0).all()

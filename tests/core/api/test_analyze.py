"""`peekbench.analyze` on data frames as people have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

import peekbench as pb
from peekbench.report.render.content import basis_of


@pytest.fixture(scope="module")
def wide() -> pd.DataFrame:
    """Two tasks, two methods, ten seeds; a bias of 0.05."""
    rng = np.random.default_rng(0)
    keys = pd.MultiIndex.from_product([["news", "trec"], ["lsa", "tapt"], range(10)], names=["task", "method", "seed"])
    scores = 0.6 + rng.normal(0, 0.01, (len(keys), 3)) + np.array([0, 0.03, 0.08])
    return pd.DataFrame(scores, index=keys, columns=["base", "extra", "test"]).reset_index()


def melt(wide: pd.DataFrame) -> pd.DataFrame:
    return wide.melt(id_vars=["task", "method", "seed"], var_name="arm", value_name="accuracy")


def percentages(wide: pd.DataFrame) -> pd.DataFrame:
    return wide.assign(**{arm: wide[arm] * 100 for arm in ("base", "extra", "test")})


FORMS: dict[str, tuple[Callable[[pd.DataFrame], Any], Mapping[str, Any]]] = {
    "long": (melt, {}),
    "pivoted": (
        lambda wide: melt(wide).pivot_table(index=["task", "method", "seed"], columns="arm", values="accuracy"), {},
    ),
    "named otherwise": (lambda wide: wide.rename(columns={"seed": "draw no"}), {"columns": {"draw no": "subsample"}}),
    "percentages": (percentages, {"percent": True}),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_frames_as_people_have_them(wide: pd.DataFrame, form: str) -> None:
    change, options = FORMS[form]
    report = pb.analyze(change(wide), ["summary"], **options)
    assert [verdict.method for verdict in report.verdicts] == ["lsa", "tapt"]
    assert {verdict.decision for verdict in report.verdicts} == {"biased up"}
    assert report.name == "scores"
    assert "the data frame" in report.document.headline
    assert not report.document.command


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda wide: wide.assign(lr=1), r":\n  ignore=\['lr'\]$"),
        (lambda wide: wide.rename(columns={"task": "suite"}), r":\n  columns=\{'suite': 'task'\}$"),
        (percentages, "percent=True"),
        (lambda wide: melt(wide).drop(index=3), "allow_incomplete=True"),
        (lambda wide: wide.to_numpy(), "a run, not a ndarray"),
    ],
)  # fmt: skip
def test_errors_name_arguments_of_python(wide: pd.DataFrame, change: Callable[..., Any], message: str) -> None:
    with pytest.raises(pb.PeekbenchError, match=message) as caught:
        pb.analyze(change(wide), ["summary"])
    assert "--" not in str(caught.value)


def test_a_file_has_the_report_of_its_frame(wide: pd.DataFrame) -> None:
    small = wide.assign(test=wide["test"] - 0.048)
    small.to_csv("scores.csv", index=False)
    frame, file = (pb.analyze(scores, ["summary"]) for scores in (small, "scores.csv"))
    assert repr(file) == repr(frame).replace("the data frame", "scores.csv")
    assert "then analyze it with earlier=[10]" in repr(file)
    with pytest.raises(pb.PeekbenchError, match=r"^region=-1: a width is at least 0"):
        pb.analyze("scores.csv", region=-1)


def test_the_headline_counts_complete_trials(wide: pd.DataFrame) -> None:
    table = melt(wide)
    is_lost = (table["arm"] == "test") & (
        (table["task"] == "trec") | (table["method"] == "tapt") | (table["seed"] == 3)
    )
    report = pb.analyze(table[~is_lost], ["summary"], allow_incomplete=True)
    assert report.document.headline == "1 method on 1 task, 9 trials, from the data frame"
    assert [basis_of(verdict) for verdict in report.verdicts] == ["1 task, 9 trials"]

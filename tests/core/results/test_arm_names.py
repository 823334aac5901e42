"""Arms with names of their own, such as none, independent and transductive."""

from __future__ import annotations

import re
from collections.abc import Callable

import pandas as pd
import pytest

from peekbench.errors import ResultsError
from peekbench.results import tidy

OWN_NAMES = {"base": "none", "extra": "independent", "test": "transductive"}
RENAMED = {own: arm for arm, own in OWN_NAMES.items()}


@pytest.fixture
def scores(simulate: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    table = simulate(0.02, tasks=2, subsamples=3)[["task", "method", "num_test", "subsample", "arm", "score"]]
    return table[table["arm"].isin(OWN_NAMES)].reset_index(drop=True)


@pytest.mark.parametrize("requested", [{}, {"condition": "arm"}])
def test_values_of_the_column_of_arms_are_renamed(scores: pd.DataFrame, requested: dict[str, str]) -> None:
    own = scores.assign(arm=scores["arm"].map(OWN_NAMES)).rename(columns={"arm": "condition"})
    pd.testing.assert_frame_equal(tidy(own, "own", columns={**RENAMED, **requested}), tidy(scores, "plain"))


def test_columns_of_arms_are_renamed_in_the_same_way(scores: pd.DataFrame) -> None:
    wide = scores.pivot(index=["task", "method", "num_test", "subsample"], columns="arm", values="score").reset_index()
    wide.columns.name = None
    own = wide.rename(columns=OWN_NAMES)
    pd.testing.assert_frame_equal(tidy(own, "own", columns=RENAMED), tidy(wide, "plain"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "in place of each ARM:\n  --map none=ARM --map independent=ARM --map transductive=ARM"),
        ({"none": "base"}, "in place of each ARM:\n  --map independent=ARM --map transductive=ARM"),
        ({"condition": "arm"}, "row 1, column 'condition': none is not an arm"),
        ({"none": "base", "Independents": "extra"}, "--map Independents=extra: t has no column 'Independents'"),
        (
            {"none": "base", "Independents": "extra"},
            "'condition', has no such value, but none, independent",
        ),
        ({"nothing": "base"}, "--map nothing=base: t has no column 'nothing'"),
        ({"none": "bse"}, "--map none=bse: no such column of the results table; did you mean base?"),
    ],
)
def test_messages_name_the_values_and_the_remedy(scores: pd.DataFrame, columns: dict[str, str], message: str) -> None:
    own = scores.assign(condition=scores["arm"].map(OWN_NAMES)).drop(columns="arm")
    own = own.sort_values("condition", key=lambda values: values.map(list(RENAMED).index), kind="stable")
    with pytest.raises(ResultsError, match=re.escape(message)):
        tidy(own.reset_index(drop=True), "t", columns=columns)


@pytest.mark.parametrize(
    ("columns", "message"),
    [({}, "--map adapted=MEANING"), ({"adopted": "test"}, "t has no column 'adopted'; did you mean 'adapted'?")],
)
def test_columns_of_arms_are_not_guessed(columns: dict[str, str], message: str) -> None:
    table = pd.DataFrame({"task": ["a", "a"], "extra": [0.5, 0.6], "adapted": [0.5, 0.7]})
    with pytest.raises(ResultsError, match=re.escape(message)):
        tidy(table, "t", columns=columns)


def test_a_column_with_the_values_that_is_not_known_to_have_arms_is_named(scores: pd.DataFrame) -> None:
    own = scores.assign(regime=scores["arm"].map(OWN_NAMES)).drop(columns="arm")
    with pytest.raises(ResultsError, match=r"no column 'arm'(?s:.*)--map regime=MEANING$"):
        tidy(own, "t", columns=RENAMED)
    assert set(tidy(own, "t", columns={**RENAMED, "regime": "arm"})["arm"]) == set(OWN_NAMES)

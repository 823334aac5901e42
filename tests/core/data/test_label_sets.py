"""Tests of the labels of texts that have any number of them."""

from __future__ import annotations

from typing import Any

import pytest

from peekbench.data.labels import name_label_sets, read_indicators, read_label_set
from peekbench.errors import DataError


@pytest.mark.parametrize(
    ("value", "separator", "expected"),
    [
        ("bug| urgent|", "|", ("bug", "urgent")),
        ("", "|", ()),
        (None, "", None),
        ([], "", ()),
        ((3, "4"), "", ("3", "4")),
    ],
)
def test_cells_become_labels(value: Any, separator: str, expected: Any) -> None:
    assert read_label_set(value, separator, "") == expected


@pytest.mark.parametrize(
    ("value", "separator", "message"),
    [
        ("['bug', 'urgent']", "|", "line 3: .* is a list written as text; .* `label_separator`"),
        ("bug", "", "line 3: the labels 'bug' are str; give a list"),
        ([0.5], "", "line 3: the label 0.5 is float"),
        (7, ",", "line 3: the labels 7 are int; give a text with labels between ','"),
    ],
)
def test_cells_that_are_no_labels_are_refused(value: Any, separator: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_label_set(value, separator, "line 3")


def test_columns_contain_0_or_1() -> None:
    assert read_indicators([1.0, "0", True], ["a", "b", "c"], "") == ("a", "c")
    assert read_indicators([1, float("nan")], ["a", "b"], "") is None
    with pytest.raises(DataError, match="line 3: 2 in the column of the label 'b' is neither 0 nor 1"):
        read_indicators([1, 2], ["a", "b"], "line 3")


def test_names_merge_select_and_number_labels() -> None:
    merged = name_label_sets([("x",), ("y", "z")], {"x": "one", "y": "one", "z": "two"}, "")
    assert merged == (("one", "two"), ((1, 0), (1, 1)), ())
    assert name_label_sets([("x", "z"), ("y",)], ["z", "x"], "") == (("z", "x"), ((1, 1), (0, 0)), ("y",))
    assert name_label_sets([("1",), ("0",)], ["a", "b"], "")[1] == ((0, 1), (1, 0))


def test_labels_that_are_left_out_are_not_alike_to_selected_ones() -> None:
    with pytest.raises(DataError, match='"bug" and "Bug" differ only by case'):
        name_label_sets([("bug", "login"), ("Bug",)], ["bug", "login"], "")

"""Tests of the labels of texts that have any number of them."""

from __future__ import annotations

from typing import Any

import pytest

from peekbench.data.label_sets import (
    find_unlabeled,
    name_label_sets,
    read_indicators,
    read_label_set,
    refuse_other_separators,
)
from peekbench.data.labels import refuse_joined
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
    assert name_label_sets([("x",), ("y", "z")], {"x": "one", "y": "one", "z": "two"}, "").indicators == (
        (1, 0),
        (1, 1),
    )
    selected = name_label_sets([("x", "z"), ("y",)], ["z", "x"], "")
    assert (selected.names, selected.indicators, selected.left_out) == (("z", "x"), ((1, 1), (0, 0)), ("y",))
    assert name_label_sets([("1",), ("0",)], ["a", "b"], "").indicators == ((0, 1), (1, 0))


def test_rows_without_known_labels_are_refused_or_dropped() -> None:
    for sets, message in (([("a",), None], "row 1 has no value"), ([("a", "b"), ("?", "a")], "the first is row 1")):
        with pytest.raises(DataError, match=message):
            find_unlabeled(sets, None, "column 'label'", drop_missing=False)
        assert find_unlabeled(sets, None, "", drop_missing=True) == [False, True]


def test_several_labels_in_one_text_are_not_taken_for_a_class() -> None:
    refuse_joined(["red, white", "white, blue", "red, blue"], "")
    with pytest.raises(DataError, match="'bug|urgent' .* set `label_separator` to '|'"):
        refuse_joined(["bug|urgent", "bug", "urgent", "login|urgent", "login"], "")


@pytest.mark.parametrize(
    ("rows", "separator", "class_names", "nearest"),
    [
        (["bug,urgent", "bug", ""], "|", None, "to ','"),
        (["bug, urgent", "bug; login", "login; urgent"], ";", None, "in all rows, and set `label_separator` to ','"),
        (["bug urgent", "bug"], ",", None, "to ' '"),
        (["bug\turgent", "bug"], ",", None, r"to '\\t'"),
        (["bug,urgent", "login"], "|", ["bug", "urgent", "login"], "to ','"),
        (["bug", "login"], "|", None, "remove it if each text has one label"),
        (["bug|login", "new york|new"], "|", None, ""),
        (["bug|food, drinks", "bug|login"], "|", None, ""),
        (["bug,urgent", "bug"], "|", ["bug,urgent", "bug"], ""),
        (["bug", "login"], "|", {"bug": "Bug", "login": "Login"}, ""),
        (["a,b", "a"], ",", None, ""),
    ],
)
def test_the_separator_is_the_one_of_the_rows(rows: list[str], separator: str, class_names: Any, nearest: str) -> None:
    sets = [read_label_set(row, separator, "") for row in rows]
    if not nearest:
        refuse_other_separators(sets, separator, class_names, "column 'tags'")
        return
    with pytest.raises(DataError, match=f"column 'tags': .*{nearest}"):
        refuse_other_separators(sets, separator, class_names, "column 'tags'")


def test_labels_that_are_left_out_are_not_alike_to_selected_ones() -> None:
    with pytest.raises(DataError, match='"bug" and "Bug" differ only by case'):
        name_label_sets([("bug", "login"), ("Bug",)], ["bug", "login"], "")

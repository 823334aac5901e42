"""Labels that stand for a missing label, and labels that are alike."""

from __future__ import annotations

import pytest

from peekbench.data.labels import find_missing, name_classes, refuse_hidden, refuse_joined
from peekbench.errors import DataError


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        (["-1", "1"], []),
        (["-1", "0"], ["-1"]),
        (["-1", "0", "1"], ["-1"]),
        (["-1", "neg", "pos"], ["-1"]),
        (["-1", "1", ""], [""]),
        (["-100", "0", "1"], ["-100"]),
        (["-2", "-1", "0", "1", "2"], []),
        (["-1"], ["-1"]),
        (["none", "favor", "against", "unknown"], []),
        (["None", "a", "Unlabeled", "?", "NaN", "nan", "NA", ""], ["None", "Unlabeled", "?", "NaN", "nan", "NA", ""]),
    ],
)
def test_what_stands_for_a_missing_label(labels: list[str], missing: list[str]) -> None:
    assert find_missing(labels) == missing
    assert find_missing(labels, dict.fromkeys(missing, "named")) == []


def test_a_negative_number_beside_another_sign_is_not_guessed() -> None:
    with pytest.raises(DataError, match="the labels -1 and '' can both stand for a missing label"):
        find_missing(["-1", "0", "1", ""])
    assert find_missing(["-1", "0", "1", ""], {"-1": "down", "0": "same", "1": "up"}) == [""]
    assert find_missing(["-1", "0", "1", ""], {"0": "same", "1": "up"}) == ["", "-1"]
    assert find_missing(["-1", ""]) == ["", "-1"], "of a test split whose labels are hidden"


def test_a_label_like_a_class_is_told_apart_from_an_unknown_one() -> None:
    with pytest.raises(DataError, match='"neg" and "Neg" differ only by case'):
        name_classes({"Neg": 2, "pos": 1}, ["neg", "pos"], "")
    with pytest.raises(DataError, match="'nrg' has no class"):
        name_classes({"nrg": 2, "pos": 1}, ["neg", "pos"], "")


def test_a_split_without_labels_is_not_public() -> None:
    with pytest.raises(DataError, match="the test split are not public: all are '-1'; use the validation"):
        refuse_hidden({"-1"}, ["-1", "0", "1"], None, "use the validation split")
    refuse_hidden({"-1", "0"}, ["-1", "0", "1"], None, "")
    refuse_hidden({"-1"}, ["-1", "1"], None, "")


def test_several_labels_in_one_text_are_not_taken_for_a_class() -> None:
    refuse_joined(["red, white", "white, blue", "red, blue"], "")
    with pytest.raises(DataError, match="'bug|urgent' .* set `label_separator` to '|'"):
        refuse_joined(["bug|urgent", "bug", "urgent", "login|urgent", "login"], "")

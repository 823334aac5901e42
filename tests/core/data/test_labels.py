"""Labels that stand for a missing label, and labels that are alike."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from peekbench.data.labels import find_missing, name_classes, refuse_hidden, refuse_missing
from peekbench.errors import DataError

NFC, NFD = "caf\u00e9", "cafe\u0301"


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
    with pytest.raises(DataError, match=r"'-1' and '' can both.*\{\"-1\": \"no label\", \"0\": \"0\", \"1\": \"1\"\}"):
        find_missing(["-1", "0", "1", ""])
    assert find_missing(["-1", "0", "1", ""], {"-1": "down", "0": "same", "1": "up"}) == [""]
    assert find_missing(["-1", "0", "1", ""], {"0": "same", "1": "up"}) == ["", "-1"]
    assert find_missing(["-1", ""]) == ["", "-1"], "of a test split whose labels are hidden"


@pytest.mark.parametrize("class_names", [None, ["no", "yes"], {"0": "no", "1": "yes"}])
def test_the_mapping_that_a_message_suggests_names_the_class(class_names: Any) -> None:
    counts = Counter({"0": 5, "1": 4, "-1": 3})
    with pytest.raises(
        DataError, match=r"3 of 12 rows have the label '-1', .*first is line 2. .*drop_missing"
    ) as caught:
        refuse_missing(counts, class_names, "column 'label'", first="line 2")
    suggested = json.loads(str(caught.value).partition("`class_names` to ")[2])
    refuse_missing(counts, suggested, "column 'label'")
    names, positions = name_classes(counts, suggested, "column 'label'")
    assert {label: names[position] for label, position in positions.items()} == suggested
    assert set(suggested.values()) == {"no label", *(["0", "1"] if class_names is None else ["no", "yes"])}


@pytest.mark.parametrize("check", [refuse_missing, name_classes])
def test_variants_of_labels_are_joined_as_the_message_suggests(check: Any) -> None:
    counts = Counter({"neg": 5, "Neg": 1, "pos": 4, NFC: 3, NFD: 1, "pos.": 1})
    if check is refuse_missing:
        counts["?"] = 2
    with pytest.raises(DataError) as caught:
        check(counts, None, "rows.csv")
    suggested = json.loads(re.findall(r"`class_names` to ({[^}]*})", str(caught.value))[0])
    refuse_missing(counts, suggested, "rows.csv")
    names, positions = name_classes(counts, suggested, "rows.csv")
    found = {label: names[position] for label, position in positions.items()}
    assert found == {label: found[label] for label in counts}
    assert found["neg"] == found["Neg"] != found["pos"] == found["pos."] != found[NFC] == found[NFD]


def test_a_label_like_a_class_is_told_apart_from_an_unknown_one() -> None:
    with pytest.raises(DataError, match='"neg" and "Neg" differ only by case.*"pos", "Neg": "neg"'):
        name_classes({"Neg": 2, "pos": 1}, ["neg", "pos"], "")
    with pytest.raises(DataError, match="'nrg' has no class"):
        name_classes({"nrg": 2, "pos": 1}, ["neg", "pos"], "")


def test_a_split_without_labels_is_not_public() -> None:
    with pytest.raises(DataError, match=r"the labels of test.csv are not public: all are '-1'; use the validation"):
        refuse_hidden(["-1", "-1"], ["0", "1"], None, "test.csv", "use the validation split")
    refuse_hidden(["-1", "0"], ["0", "1"], None, "test.csv", "")
    refuse_hidden(["-1", "-1"], ["1"], None, "test.csv", "")

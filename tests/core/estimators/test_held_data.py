"""Data that users hold, as tasks of `peekbench.measure`: groups, splits, missing values, and clear refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import peekbench as pb
from peekbench.data.held_data import read_held
from peekbench.data.labels import name_labels
from peekbench.data.loading import fingerprint
from peekbench.data.sampling import Sampler
from peekbench.records.data import OfficialSplits
from peekbench_testing import sample_texts

DESIGN = {"num_train": 12, "num_test": 20, "num_subsamples": 2}
TEXTS = list(sample_texts(120).inputs)
NAMES = name_labels(sample_texts(120).labels, ("first", "second", "third"))
FRAME = pd.DataFrame({"text": TEXTS, "label": NAMES})
TFIDF = make_pipeline(TfidfVectorizer(), LogisticRegression())


def measure(method: Any, data: Any, **options: Any) -> pb.Run:
    return pb.measure(method, data, **{"design": DESIGN, "progress": False, **options})


def test_groups_are_a_column_or_the_third_part_of_a_pair() -> None:
    groups = [f"author {row % 40}" for row in range(len(TEXTS))]
    named = FRAME.assign(author=groups)
    dataset = read_held(named, "data", [None], group="author")
    assert dataset.groups == tuple(groups)
    assert fingerprint(read_held((TEXTS, NAMES, pd.Series(groups)), "data", [None])) == fingerprint(dataset)
    run = measure(TFIDF, named, group="author")
    sampler = Sampler(dataset, run.spec.design, run.spec.seed, "data")
    for trial in run.spec.trials():
        drawn = sampler.draw(trial.draw)
        sets = [{groups[row] for row in rows} for rows in (drawn.train, *drawn.sets)]
        assert len(set.union(*sets)) == sum(map(len, sets))
    default = pb.measure(
        TFIDF, (TEXTS, NAMES, [row % 9 for row in range(len(TEXTS))]), num_subsamples=2, progress=False
    )
    assert 20 < default.spec.design.num_test[0] < 40, "the largest for which groups suffice"


@pytest.mark.parametrize(("names", "expected"), [(["1", "2", "10"], ("1", "10", "2")), ([1, 2, 10], ("1", "2", "10"))])
def test_classes_have_the_order_of_scikit_learn(names: list[Any], expected: tuple[str, ...]) -> None:
    labels = [names[row % 3] for row in range(len(TEXTS))]
    assert read_held((TEXTS, labels), "data", [None]).class_names == expected
    assert tuple(map(str, np.unique(labels))) == expected


def test_train_rows_of_groups_in_the_test_split_are_dropped_on_request() -> None:
    frame = FRAME.assign(author=[str(row // 2) for row in range(len(TEXTS))])
    splits = OfficialSplits(frame[:65], frame[65:])
    dataset = read_held(splits, "data", [None], group="author", drop_shared_groups=True)
    assert (len(dataset.inputs), dataset.splits.count("train")) == (len(TEXTS) - 1, 64)
    assert dataset.details["dropped"]["group of the test split"] == 1
    with pytest.raises(pb.DataError, match="rows of 1 group, such as '32', so .*drop_shared_groups"):
        measure(TFIDF, None, train=splits.train, test=splits.test, group="author")


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (FRAME, {"group": "labels"}, "it has 0 named 'labels'; did you mean 'label'"),
        ((TEXTS, NAMES, NAMES[1:]), {}, "groups of shape"),
        ((TEXTS, NAMES, [0.5] * len(TEXTS)), {}, "row 0: the group 0.5 is float, but a group is text or an integer"),
        ((TEXTS, NAMES, [None, *NAMES[1:]]), {}, "row 0: no group; .* set `drop_missing` to True"),
        ((TEXTS, NAMES), {"drop_shared_groups": True}, "drop_shared_groups needs groups"),
    ],
)
def test_groups_that_cannot_be_read_are_refused(data: Any, options: Any, message: str) -> None:
    with pytest.raises(pb.DataError, match=message):
        measure(TFIDF, data, **options)


class SavedSplit:
    """What peekbench uses of `datasets.Dataset`, which tests do not install."""

    __module__ = "datasets.arrow_dataset"

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame, self.column_names = frame, list(frame.columns)
        self.features = {"topic": type("ClassLabel", (), {"names": ["first", "second", "third"]})()}

    def select_columns(self, columns: list[str]) -> SavedSplit:
        return SavedSplit(self.frame[columns])

    def to_pandas(self) -> pd.DataFrame:
        return self.frame


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (pd.array(["1", None, "3"], dtype="string"), ("1", "3")),
        (pd.array([1, 2, None], dtype="Int64"), ("1", "2")),
        ([np.array(["4", "four"]), np.array([5]), [None]], (("4", "four"), ("5",))),
    ],
)
def test_references_of_a_data_frame(labels: Any, expected: Any) -> None:
    frame = pd.DataFrame({"text": ["a", "b", "c"], "label": labels})
    assert read_held(frame, "sums", [None], kind="generation", drop_missing=True).labels == expected
    with pytest.raises(pb.DataError, match=r"sums: row \d: no reference"):
        read_held(frame, "sums", [None], kind="generation")


def test_references_of_a_class_label_are_its_names() -> None:
    split = SavedSplit(pd.DataFrame({"text": ["a", "b", "c"], "topic": [2, 0, -1]}))
    held = read_held(split, "topics", [None], label="topic", kind="generation", drop_missing=True)
    assert held.labels == ("third", "first")


def test_data_sets_of_hugging_face_keep_class_names_and_official_splits() -> None:
    split = SavedSplit(pd.DataFrame({"text": TEXTS, "topic": sample_texts(120).labels, "id": 0}))
    assert read_held(split, "data", [None], label="topic").class_names == ("first", "second", "third")
    rows = sample_texts(120, seed=1)
    other = SavedSplit(pd.DataFrame({"text": rows.inputs, "topic": rows.labels, "id": 0}))
    both = type("DatasetDict", (dict,), {"__module__": "datasets.dataset_dict"})(train=split, test=other, validation=0)
    assert read_held(both, "data", [TFIDF], label="topic").splits == ("train",) * 120 + ("test",) * 120
    run = measure(TFIDF, both, label="topic")
    assert ([task.name for task in run.spec.tasks], run.failed) == (["data"], 0)
    with pytest.raises(pb.DataError, match="train and train are needed; set `test_split`"):
        measure(TFIDF, both, label="topic", test_split="train")
    with pytest.raises(pb.DataError, match="these rows have none"):
        measure(TFIDF, split, label="topic", test_split="validation")
    for names in (["a", "b", "c"], {0: "a", 1: "b", 2: "c"}, {"first": "a", "second": "b", "third": "c"}):
        assert read_held(both, "data", TFIDF, label="topic", class_names=names).class_names == ("a", "b", "c")
    del both["test"]
    with pytest.raises(pb.DataError, match="its splits are train, validation, but train and test are needed"):
        measure(TFIDF, both, label="topic")
    both["validation"] = SavedSplit(pd.DataFrame({"text": TEXTS, "topic": -1}))
    with pytest.raises(pb.DataError, match="labels of the test split are not public: all are '-1'"):
        read_held(both, "data", [TFIDF], label="topic", test_split="validation")


@pytest.mark.slow
@pytest.mark.parametrize("sign", ["-1", -1, "", "?", "unlabeled", "nan", None, np.nan])
def test_signs_of_a_missing_label_are_dropped_or_named(sign: Any) -> None:
    labels = [sign if row < 40 else [0, 1][row % 2] for row in range(120)]
    with pytest.raises(pb.DataError, match="data: 40 of 120 rows have the label .*row 0.*drop_missing"):
        measure(TFIDF, (TEXTS, labels))
    dropped = read_held((TEXTS, labels), "data", [TFIDF], drop_missing=True)
    assert (len(dropped.inputs), dropped.class_names) == (80, ("0", "1"))
    assert dropped.details["dropped"] == {"missing": 40, "duplicate": 0}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((TEXTS, [[0]] * 120), "exactly one label; for classes, give the labels themselves"),
        (pd.DataFrame({"text": TEXTS, "label": [{"a": 1}] * 120}), "row 0: the label {'a': 1} is dict"),
        ((TEXTS, np.eye(3)[[0, 1, 2] * 40]), r"exactly one 1; for classes, give y\.argmax\(axis=1\)"),
        ((TEXTS, [0.5, *[1] * 119]), "row 0: the label 0.5 is float"),
        (([text.split() for text in TEXTS], NAMES), "X is not an array: .*; give a list of texts"),
    ],
)
def test_nested_values_are_refused(data: Any, message: str) -> None:
    with pytest.raises(pb.DataError, match=f"data: .*{message}"):
        measure(TFIDF, data)


def test_features_of_splits_with_other_columns_are_refused() -> None:
    frame = pd.DataFrame({"a": np.arange(30.0), "b": 1.0})
    wide = np.ones((30, 2))
    for train, test, message in (
        (frame, frame.rename(columns={"b": "B"}), "only one of its parts has the column 'B'"),
        (wide, wide[:, :1], r"its parts are a ndarray of shape \(30, 2\) and a ndarray of shape \(30, 1\)"),
    ):
        with pytest.raises(pb.DataError, match=f"data: {message}"):
            read_held(OfficialSplits((train, NAMES[:30]), (test, NAMES[:30])), "data", [TFIDF])
    swapped: Any = read_held(OfficialSplits((frame, NAMES[:30]), (frame[["b", "a"]], NAMES[:30])), "data", [TFIDF])
    np.testing.assert_array_equal(swapped.inputs, pd.concat([frame, frame]))

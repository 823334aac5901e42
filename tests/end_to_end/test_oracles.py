"""Scores of every kind of labels, source of data, and form and order of what a method returns, beside scikit-learn's.

A person fits a model with scikit-learn to labels as they are in the data. The same predictions are then returned as a
method may return them, for the task that peekbench reads from the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import needs_hf  # noqa: F401
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

import peekbench as pb
from peekbench.data.held_data import read_held
from peekbench.execution.prediction_checks import as_stored, compute_scores
from peekbench.plugins.entries import DataSourceEntry
from peekbench.plugins.predictors import as_predictor
from peekbench.plugins.registry import find
from peekbench.records.data import OfficialSplits, SourceRef

VALUES: dict[str, list[Any]] = {"names": ["sad", "happy", "bored"], "numbers": [3, 1, 2], "booleans": [True, False]}
LABELS = ["urgent", "bug", "login"]
NUM_TRAIN, NUM_TEST = 60, 40
TEXT, LABEL = "text", "label"


def make_rows(kind: str, labels: str) -> tuple[list[str], list[Any]]:
    """Return texts, and labels as they are in the data: a value, or a list of values, for each text."""
    rng = np.random.default_rng(0)
    values = VALUES[labels]
    if kind == "multilabel" and labels == "booleans":
        values = LABELS
    texts, found = [], []
    for row in range(NUM_TRAIN + NUM_TEST):
        own = [int(rng.integers(len(values)))]
        if kind == "multilabel":
            own = np.flatnonzero(rng.random(len(values)) < (0.6, 0.4, 0.2)).tolist()
        words = [f"sign{number}" for number in own if rng.random() < 0.8]
        words += [f"sign{rng.integers(len(values))}", f"word{rng.integers(20)}", f"row{row}"]
        texts.append(" ".join(words))
        chosen = [values[number] for number in own]
        found.append(chosen if kind == "multilabel" else chosen[0])
    return texts, found


# Sources of data. The test split of a ClassLabel lists the names in another order.


def frames(texts: list[str], found: list[Any], labels: str, kind: str) -> list[pd.DataFrame]:
    table = pd.DataFrame({TEXT: texts, LABEL: pd.Series(found, dtype=object if kind == "multilabel" else None)})
    if kind == "multilabel" and labels == "booleans":
        table = table.assign(**{name: [name in own for own in found] for name in LABELS}).drop(columns=LABEL)
    return [table[:NUM_TRAIN], table[NUM_TRAIN:].reset_index(drop=True)]


def label_column(kind: str, labels: str) -> Any:
    return LABELS if (kind, labels) == ("multilabel", "booleans") else LABEL


def in_memory(splits: list[pd.DataFrame], kind: str, labels: str, folder: Path) -> pb.Dataset:
    pairs: list[Any] = []
    for split in splits:
        held: Any = split[label_column(kind, labels)]
        pairs.append((split[TEXT].tolist(), held if kind == "multilabel" and labels == "booleans" else held.tolist()))
    return read_held(OfficialSplits(*pairs), "data", [None])


def in_frames(splits: list[pd.DataFrame], kind: str, labels: str, folder: Path) -> pb.Dataset:
    return read_held(OfficialSplits(*splits), "data", [None], label=label_column(kind, labels))


def from_source(use: str, folder: Path, **options: Any) -> pb.Dataset:
    entry = find(use, DataSourceEntry)
    return entry.load(options=entry.options.model_validate(options), folders=pb.Folders(folder, folder / "cache"))


def from_csv(splits: list[pd.DataFrame], kind: str, labels: str, folder: Path) -> pb.Dataset:
    options: dict[str, Any] = {"label": label_column(kind, labels)}
    for name, split in zip(("train", "test"), splits, strict=True):
        table = split
        if kind == "multilabel" and labels != "booleans":
            table = split.assign(label=["|".join(map(str, own)) for own in split[LABEL]])
            options["label_separator"] = "|"
        table.to_csv(folder / f"{name}.csv", index=False)
    return from_source("files", folder, path="train.csv", test_path="test.csv", **options)


def orders(labels: str) -> list[tuple[str, ...]]:
    names = tuple(VALUES["names"]) if labels == "names" else ()
    return [names, names[::-1]]


def coded(split: pd.DataFrame, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return rows with the numbers of a ClassLabel, if there are names."""

    def code(value: Any) -> Any:
        if isinstance(value, list):
            return [code(one) for one in value]
        return names.index(value) if names else value

    rows: list[dict[str, Any]] = split.to_dict("records")  # type: ignore[assignment]
    return [{**row, LABEL: code(row[LABEL])} if LABEL in row else row for row in rows]


def write_parquet(splits: list[pd.DataFrame], kind: str, labels: str, folder: Path) -> None:
    for name, split, names in zip(("train", "test"), splits, orders(labels), strict=True):
        table = pa.Table.from_pylist(coded(split, names))
        feature: Any = {"names": names, "_type": "ClassLabel"}
        if kind == "multilabel":
            feature = {"feature": feature, "_type": "List"}
        if names:
            info = pd.Series({"info": {"features": {LABEL: feature}}}).to_json()
            table = table.replace_schema_metadata({"huggingface": info})
        pq.write_table(table, folder / f"{name}.parquet")


def from_parquet(splits: list[pd.DataFrame], kind: str, labels: str, folder: Path) -> pb.Dataset:
    write_parquet(splits, kind, labels, folder)
    options = {"path": "train.parquet", "test_path": "test.parquet", "label": label_column(kind, labels)}
    return from_source("files", folder, **options)


def from_hub(splits: list[pd.DataFrame], kind: str, labels: str, folder: Path) -> pb.Dataset:
    if label_column(kind, labels) != LABEL:
        pytest.skip("`hf.dataset` reads one column of labels")
    mirror = folder / "mirror" / "datasets" / "some" / "body" / "main"
    mirror.mkdir(parents=True)
    write_parquet(splits, kind, labels, mirror)
    return from_source("hf.dataset", folder, id="some/body", data_dir=folder / "mirror", splits="official")


def hugging_face(splits: list[pd.DataFrame], kind: str, labels: str) -> Any:
    datasets = pytest.importorskip("datasets")
    if label_column(kind, labels) != LABEL:
        pytest.skip("a data set has one column of labels")
    found = {}
    for name, split, names in zip(("train", "test"), splits, orders(labels), strict=True):
        found[name] = datasets.Dataset.from_list(coded(split, names))
        if names:
            feature: Any = datasets.ClassLabel(names=list(names))
            if kind == "multilabel":
                feature = datasets.Sequence(feature)
            found[name] = found[name].cast_column(LABEL, feature)
    return datasets.DatasetDict(found)


def in_data_sets(splits: list[pd.DataFrame], kind: str, labels: str, folder: Path) -> pb.Dataset:
    return read_held(hugging_face(splits, kind, labels), "data", [None])


def saved(splits: list[pd.DataFrame], kind: str, labels: str, folder: Path) -> pb.Dataset:
    hugging_face(splits, kind, labels).save_to_disk(folder / "saved")
    return from_source("files", folder, path="saved")


SOURCES: list[Callable[..., pb.Dataset]] = [
    in_memory, in_frames, in_data_sets, from_csv, from_parquet, saved, from_hub,
]  # fmt: skip


# Forms of what a method returns


class Model:
    """A fitted model of a person."""

    predict: Any

    def __init__(self, classes: list[Any], **found: Any) -> None:
        self.classes_ = classes
        for name, value in found.items():
            setattr(self, name, lambda _, value=value: value)


def forms_of_classes(values: list[Any], probable: Any, chosen: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield the names of forms, what is returned, and whether it has the labels that the model chose."""
    answers = [values[number] for number in chosen]
    yield "list of labels", lambda _: answers, True
    yield "array of labels", lambda _: np.array(answers), True
    yield "series of labels", lambda _: pd.Series(answers), True
    yield "model with labels only", Model(values, predict=np.array(answers)), True
    yield "model", Model(values, predict=np.array(answers), predict_proba=probable), True
    yield "method of a model", Model(values, predict=answers, predict_proba=probable).predict, True
    yield "frame of probabilities", lambda _: pd.DataFrame(probable, columns=values), False
    yield "model with probabilities only", Model(values, predict_proba=probable), False


def forms_of_label_sets(values: list[Any], probable: Any, chosen: Any) -> Iterator[tuple[str, Any, bool]]:
    lists = [[value for value, has in zip(values, row, strict=True) if has] for row in chosen]
    yield "lists of labels", lambda _: lists, True
    yield "sets of labels", lambda _: list(map(set, lists)), True
    yield "frame of truth values", lambda _: pd.DataFrame(chosen.astype(bool), columns=values), True
    yield "model with labels only", Model(values, predict=chosen), True
    yield "model", Model(values, predict=chosen.astype(bool), predict_proba=probable), True
    yield "model with sparse labels", Model(values, predict=csr_array(chosen), predict_proba=csr_array(probable)), True
    yield "frame of probabilities", lambda _: pd.DataFrame(probable, columns=values), False
    yield "model with probabilities only", Model(values, predict_proba=probable), False
    pairs = [np.column_stack([1 - column, column]) for column in probable.T]
    yield "model with an array for each label", Model(values, predict=chosen, predict_proba=pairs), True


def person(kind: str, texts: list[str], found: list[Any]) -> tuple[list[Any], Any, Any, Any]:
    """Return the classes, probabilities, labels and true labels of a person's own model, all without peekbench."""
    train, test = slice(NUM_TRAIN), slice(NUM_TRAIN, None)
    if kind == "multilabel":
        binarizer = MultiLabelBinarizer().fit(found)
        truth = binarizer.transform(found)
        classifier = make_pipeline(CountVectorizer(), OneVsRestClassifier(LogisticRegression()))
        probable = classifier.fit(texts[train], truth[train]).predict_proba(texts[test])
        return list(binarizer.classes_), probable, (probable > 0.35).astype(int), truth[test]
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts[train], found[train])
    probable = model.predict_proba(texts[test])
    chosen = (probable * np.arange(1, 1 + len(model.classes_))).argmax(axis=1)  # prefers the last classes
    classes = model.classes_.tolist()
    return classes, probable, chosen, np.array([classes.index(value) for value in found[test]])


def oracle(kind: str, probable: Any, chosen: Any, truth: Any) -> dict[str, float]:
    """Return the scores that scikit-learn computes."""
    scores = {
        "score": accuracy_score(truth, chosen),
        "macro_f1": f1_score(truth, chosen, average="macro", zero_division=0),
    }
    if probable is None:
        return scores
    if kind == "multilabel":
        columns = zip(truth.T, probable.T, strict=True)
        return {**scores, "log_loss": np.mean([log_loss(own, column, labels=[0, 1]) for own, column in columns])}
    return {**scores, "log_loss": log_loss(truth, probable)}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
@pytest.mark.parametrize("labels", VALUES)
@pytest.mark.parametrize("kind", ["classification", "multilabel"])
def test_every_score_is_that_of_scikit_learn(
    kind: str, labels: str, source: Callable[..., pb.Dataset], tmp_path: Path
) -> None:
    texts, found = make_rows(kind, labels)
    dataset = source(frames(texts, found, labels, kind), kind, labels, tmp_path)
    assert list(dataset.inputs) == texts
    task = pb.Task("data", kind, dataset.class_names, "", SourceRef("data"))  # type: ignore[arg-type]
    train, test = (np.asarray(dataset.labels)[rows] for rows in (slice(NUM_TRAIN), slice(NUM_TRAIN, None)))
    classes, probable, chosen, truth = person(kind, texts, found)
    names = [next(name for name in dataset.class_names if name.lower() == str(value).lower()) for value in classes]
    spellings: dict[str, list[Any]] = {"names": names, "numbers": [dataset.class_names.index(name) for name in names]}
    if labels == "booleans" and kind == "classification":
        spellings["truth values"] = classes
    forms = forms_of_label_sets if kind == "multilabel" else forms_of_classes
    wrong, num_cells = [], 0
    for spelling, values in spellings.items():
        for shift in range(len(classes)):  # the model has its classes in another order
            order = np.roll(np.arange(len(classes))[::-1], shift)
            own = chosen[:, order] if kind == "multilabel" else np.argsort(order)[chosen]
            ordered = [values[number] for number in order]
            for form, returned, has_labels in forms(ordered, probable[:, order], own):
                predictor = as_predictor(returned, task, train)
                predicted, _ = as_stored(predictor.predict(dataset.inputs[NUM_TRAIN:]), test, task)
                scores = compute_scores(predicted, test, task)
                answers = chosen
                if not has_labels:
                    answers = (probable > 0.5).astype(int) if kind == "multilabel" else probable.argmax(axis=1)
                has_probabilities = (
                    not has_labels or form.startswith(("model with sparse", "model with an")) or (form == "model")
                )
                expected = oracle(kind, probable if has_probabilities else None, answers, truth)
                num_cells += 1
                if {name: scores[name] for name in expected} != pytest.approx(expected, rel=1e-5):
                    wrong.append((spelling, order.tolist(), form, scores, expected))
    assert wrong == []
    assert num_cells >= 32

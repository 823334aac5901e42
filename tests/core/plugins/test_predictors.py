"""Predictions of objects that have an order of their own: classes, columns and rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from peekbench.errors import ContractError
from peekbench.plugins.predictors import as_predictor, in_order
from peekbench.records.data import SourceRef, Task
from peekbench.records.trials import Predictor

TASK = Task("t", "classification", ("sad", "happy", "bored"), "", SourceRef("toy.words"))
NUMBERS = Task("n", "regression", (), "", SourceRef("toy.numbers"))
INPUTS = ("one", "two")
LABELS = np.array([0, 1, 2])
FOUND = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])  # sad, happy, bored


class Model:
    """A fitted classifier."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def predict(labels: Any = LABELS, **attributes: Any) -> Any:
    functions = {name: (lambda _, value=attributes[name]: value) for name in attributes if name.startswith("predict")}
    predictor = as_predictor(Model(**{**attributes, **functions}), TASK, np.asarray(labels))
    return predictor.predict(INPUTS).numbers


@pytest.mark.parametrize(
    "classes",
    [
        ["bored", "happy", "sad"], np.array(["bored", "happy", "sad"]), np.array(["bored", "happy", "sad"], object),
        [2, 1, 0], np.array([2.0, 1.0, 0.0]), np.array([2, 1, 0], object),
    ],
)  # fmt: skip
def test_columns_of_probabilities_are_mapped_by_the_classes_of_a_model(classes: Any) -> None:
    np.testing.assert_array_equal(predict(classes_=classes, predict_proba=FOUND[:, ::-1]), FOUND)


def test_the_method_of_a_model_has_the_classes_of_the_model() -> None:
    class Classifier:
        classes_ = ("bored", "happy", "sad")

        def predict_proba(self, inputs: Any) -> Any:
            return FOUND[:, ::-1]

    for result in (Classifier().predict_proba, Predictor(Classifier().predict_proba, {"size": 1.0})):
        predictor = as_predictor(result, TASK, LABELS)
        np.testing.assert_array_equal(predictor.predict(INPUTS).numbers, FOUND)
    assert predictor.metrics == {"size": 1.0}


def test_the_classes_of_models_of_transformers_are_read() -> None:
    names = {1: "bored", 0: "happy", 2: "sad"}
    np.testing.assert_array_equal(predict(id2label=names, predict_proba=FOUND[:, [1, 2, 0]]), FOUND)


@pytest.mark.parametrize(("classes", "labels"), [(["bored", "sad"], [0, 2]), ([2, 0], [0, 2]), ([2, 0], LABELS)])
def test_classes_that_a_model_has_not_seen_have_no_probability(classes: Any, labels: Any) -> None:
    found = predict(labels, classes_=classes, predict_proba=np.array([[0.1, 0.9], [0.8, 0.2]]))
    np.testing.assert_array_equal(found, [[0.9, 0, 0.1], [0.2, 0, 0.8]])


@pytest.mark.parametrize("answers", [["bored", "sad"], [2, 0], pd.Series(["bored", "sad"]), np.array([2.0, 0.0])])
def test_answers_are_names_or_numbers_of_classes(answers: Any) -> None:
    np.testing.assert_array_equal(predict(predict=answers), [[0, 0, 1], [1, 0, 0]])


def test_the_labels_of_a_model_are_those_that_it_predicts() -> None:
    class Cautious(Model):
        classes_ = ("bored", "happy", "sad")

        def predict(self, inputs: Any) -> Any:
            return ["bored", "bored"]

        def predict_proba(self, inputs: Any) -> Any:
            return FOUND[:, ::-1]

    model: Any = Cautious()
    for result in (model, model.predict_proba, Predictor(model), Predictor(model.predict_proba)):
        found = as_predictor(result, TASK, LABELS).predict(INPUTS)
        np.testing.assert_array_equal(found.labels, [2, 2])
        np.testing.assert_array_equal(found.numbers, FOUND)


@pytest.mark.parametrize(
    "answers", [["bored", "sad"], np.array([2, 0]), np.array([2.0, 0.0]), pd.Series(["bored", "sad"], dtype="category")]
)
def test_functions_may_return_one_class_for_each_input(answers: Any) -> None:
    found = as_predictor(lambda _: answers, TASK, LABELS).predict(INPUTS).numbers
    np.testing.assert_array_equal(found, [[0, 0, 1], [1, 0, 0]])
    as_floats = as_predictor(lambda _: [0.2, 1.0], NUMBERS, LABELS).predict(INPUTS)
    assert as_floats == [0.2, 1.0]


def test_truth_values_are_the_classes_of_their_name() -> None:
    task = Task("b", "classification", ("true", "false"), "", SourceRef("toy.words"))
    found = as_predictor(lambda _: np.array([True, False]), task, LABELS).predict(INPUTS).numbers
    np.testing.assert_array_equal(found, [[1, 0], [0, 1]])


@pytest.mark.parametrize("answers", [["sad", "glad"], [1, 3], [0.2, 1.0], [{"sad": 1.0}, {"sad": 0.5}]])
def test_answers_of_functions_that_are_no_classes_are_refused(answers: Any) -> None:
    with pytest.raises(ContractError, match=r"the predictions are .*, but classes of the task are 'sad', 'happy'"):
        as_predictor(lambda _: answers, TASK, LABELS).predict(INPUTS)


def test_a_column_of_floats_is_refused_as_classes_or_probabilities() -> None:
    with pytest.raises(ContractError, match=r"one column for 3 classes; return labels, or .* of shape \(2, 3\)"):
        as_predictor(lambda _: np.array([[0.0], [1.0]]), TASK, LABELS).predict(INPUTS)
    found = as_predictor(lambda _: np.array([[0], [1]]), TASK, LABELS).predict(INPUTS).numbers
    np.testing.assert_array_equal(found, [[1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("kind", ["classification", "multilabel"])
def test_numbers_that_can_be_names_of_other_classes_are_refused(kind: Any) -> None:
    task = Task("stars", kind, ("1", "2", "3"), "", SourceRef("toy.words"))
    two, three, first = [1, 2], [0, 1, 2], np.array([[0, 1, 0], [0, 0, 1]])

    def answers(numbers: list[Any]) -> Any:
        return [[number] for number in numbers] if kind == "multilabel" else np.array(numbers)

    with pytest.raises(ContractError, match=r"are 1, 2, which can be the classes '1', '2' or the numbers of '2', '3'"):
        as_predictor(lambda _: answers(two), task, LABELS).predict(INPUTS)
    predictor = as_predictor(lambda inputs: answers(three[-len(inputs) :]), task, LABELS)
    predictor.predict(("one", "two", "three"))  # no class is named 0
    np.testing.assert_array_equal(predictor.predict(INPUTS).numbers, first)
    names = [task.class_names[number] for number in two]
    np.testing.assert_array_equal(as_predictor(lambda _: answers(names), task, LABELS).predict(INPUTS).numbers, first)
    fitted = as_predictor(Model(predict=lambda _: answers(two)), task, LABELS, is_fitted_to_labels=True)
    np.testing.assert_array_equal(fitted.predict(INPUTS).numbers, first)


def test_rows_may_have_the_index_of_the_inputs() -> None:
    inputs: Any = pd.DataFrame({"x": [1, 2]}, index=[7, 3])
    for index in ([7, 3], [0, 1]):
        np.testing.assert_array_equal(in_order(pd.Series([0.5, 1.5], index=index), inputs, NUMBERS), [0.5, 1.5])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"classes_": ["Sad", "Happy", "Bored"], "predict_proba": FOUND}, r"`classes_` of Model are 'Sad', 'Happy'"),
        ({"classes_": [1, 2, 3], "predict_proba": FOUND}, r"are 1, 2, 3, but classes .* with the numbers 0 to 2 in"),
        ({"classes_": [0, 1], "predict_proba": FOUND}, r"shape \(2, 3\), but its `classes_` are 'sad', 'happy'"),
        ({"classes_": [0, 0, 1], "predict_proba": FOUND}, r"two columns of predictions are the same class"),
        ({"classes_": [1, 2], "predict_proba": FOUND[:, :2], "labels": [0, 1]}, r"are 1, 2, but the train labels are"),
        ({"predict": [0, 3]}, r"the predictions of Model are 0, 3, but classes of the task are 'sad', 'happy'"),
        ({"predict": ["sad", "glad"]}, r"the predictions of Model are 'sad', 'glad', but"),
        ({"predict": pd.Series(["sad", "happy"], index=[1, 0])}, r"the index of predictions is 1, 0, so they may be"),
        ({"predict_proba": pd.DataFrame(FOUND, index=[4, 9])}, r"is 4, 9, .* return predictions.to_numpy\(\)"),
        ({"predict_proba": pd.DataFrame(FOUND, columns=["p0", "p1", "p2"])}, r"columns of predictions are 'p0', 'p1'"),
    ],
)  # fmt: skip
def test_orders_that_are_not_known_are_refused(model: dict[str, Any], message: str) -> None:
    with pytest.raises(ContractError, match=message):
        predict(**model)

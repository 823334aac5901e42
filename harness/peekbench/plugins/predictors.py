"""Makes predictors of what methods return, with rows in the order of the inputs and columns in that of the classes.

Objects of other libraries have orders of their own: the `classes_` of a classifier, the index and the columns of a data
frame. An order that is known is used, and another one is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from peekbench.errors import ContractError
from peekbench.formatting import shorten
from peekbench.records.data import Inputs, IntArray, Task
from peekbench.records.trials import Predictor

MAX_SHOWN = 100  # characters of values in messages


def as_predictor(result: Any, task: Task, labels: Any) -> Any:
    """Return the predictor of what a method returned: a predictor, an estimator, or a function of inputs.

    Parameters
    ----------
    result
        What the method returned.
    task
        Facts about the task.
    labels
        Labels of the train set, (n_train,) or (n_train, n_labels).
    """
    if isinstance(result, Predictor):
        if not _is_of_model(result.predict):
            return result
        return replace(result, predict=as_predictor(result.predict, task, labels).predict)
    if _is_of_model(result):
        result = result.__self__
    is_model = hasattr(result, "predict_proba") or hasattr(result, "predict")
    if is_model and task.kind == "multilabel":
        return Predictor(lambda inputs: _predict_labels(result, inputs))
    if is_model and task.kind == "classification":
        return Predictor(lambda inputs: _predict_classes(result, inputs, task, labels))
    if hasattr(result, "predict"):
        return Predictor(result.predict)
    if not callable(result):
        return result
    if task.kind != "classification":
        return Predictor(result)
    return Predictor(lambda inputs: _read_answers(result(inputs), inputs, task, "the predictions"))


def _is_of_model(function: Any) -> bool:
    """Return whether a function is the method `predict_proba` of a model, which may have classes of its own."""
    return getattr(function, "__name__", "") == "predict_proba" and hasattr(function, "__self__")


def _predict_classes(model: Any, inputs: Inputs, task: Task, labels: Any) -> Any:
    """Return probabilities of all classes of a task; certain ones if the model predicts only classes."""
    name = type(model).__name__
    classes = _classes_of(model)
    if classes is not None:
        numbers = _number_classes(classes, task, f"`classes_` of {name}")
        is_numeric = not isinstance(classes[0], str)
        if is_numeric and len(numbers) < task.num_classes and not np.isin(numbers, labels).all():
            raise ContractError(
                f"`classes_` of {name} are {_show(classes)}, but the train labels are {_show(np.unique(labels))}; "
                "train it on `train.labels`, or on names of classes"
            )
    if not hasattr(model, "predict_proba"):
        answers = model.predict(inputs)
        if np.ndim(answers) != 1:
            raise ContractError(
                f"the predictions of {name} have shape {np.shape(answers)}; return one class for each input"
            )
        return _read_answers(answers, inputs, task, f"the predictions of {name}")
    found = model.predict_proba(inputs)
    if classes is None or hasattr(found, "columns"):
        return in_order(found, inputs, task)
    array = np.asarray(found)
    if array.ndim != 2 or array.shape[1] != len(classes):
        raise ContractError(
            f"predict_proba of {name} returns shape {array.shape}, but its `classes_` are {_show(classes)}; return one "
            "probability for each of them"
        )
    return _spread(array, numbers, task)


def _predict_labels(model: Any, inputs: Inputs) -> Any:
    """Return the probability of each label; certain ones if the model predicts only labels."""
    found = getattr(model, "predict_proba", model.predict)(inputs)
    if not isinstance(found, list):
        return found.toarray() if hasattr(found, "toarray") else found
    # A list has an array for each label, with a column for 0, for 1, or for both, as the train rows have them.
    columns = []
    for position, array in enumerate(map(np.asarray, found)):
        classes = getattr(model, "classes_", [[0, 1]] * len(found))[position]
        columns.append(array[:, [*classes].index(1)] if 1 in classes else np.zeros(len(array)))
    return np.column_stack(columns)


def _read_answers(found: Any, inputs: Inputs, task: Task, what: str) -> Any:
    """Return predictions; if they are one class for each input, certain probabilities of the classes."""
    if np.ndim(found) != 1:
        return found
    return np.eye(task.num_classes)[_number_classes(in_order(found, inputs, task), task, what)]


def _classes_of(model: Any) -> Any:
    """Return the classes of a model in its own order; None if it does not tell them."""
    if (classes := getattr(model, "classes_", None)) is not None:
        return classes
    if names := getattr(model, "id2label", None):  # of SetFit
        return [names[number] for number in sorted(names)]
    return None


def in_order(predictions: Any, inputs: Any, task: Task) -> Any:
    """Return predictions whose rows are in the order of the inputs, and whose columns are in that of the classes.

    Parameters
    ----------
    predictions
        What a predictor returned. Only data frames and series know the order of their rows and columns.
    inputs
        The inputs that it received.
    task
        Facts about the task.

    Raises
    ------
    ContractError
        If rows may be in another order, or columns are not classes.
    """
    if not hasattr(predictions, "to_numpy"):
        return predictions
    if hasattr(predictions, "iloc"):
        rows = list(predictions.index)
        known = [list(range(len(inputs)))]
        if hasattr(inputs, "iloc"):
            known.append(list(inputs.index))
        if len(rows) == len(inputs) and rows not in known:
            raise ContractError(
                f"the index of predictions is {_show(rows)}, so they may be in another order than the inputs; if they "
                "are not, return predictions.to_numpy()"
            )
    array = predictions.to_numpy()
    if not task.class_names or not hasattr(predictions, "columns"):
        return array
    return _spread(array, _number_classes(predictions.columns, task, "the columns of predictions"), task)


def _spread(found: Any, numbers: IntArray, task: Task) -> Any:
    """Return probabilities of some classes as those of all classes."""
    if numbers.tolist() == list(range(task.num_classes)):
        return found
    if len(set(numbers.tolist())) < len(numbers):
        raise ContractError(
            f"two columns of predictions are the same class; give one for each of {_show(task.class_names)}"
        )
    probabilities = np.zeros((len(found), task.num_classes), dtype=found.dtype)
    probabilities[:, numbers] = found
    return probabilities


def _number_classes(classes: Iterable[Any], task: Task, what: str) -> IntArray:
    """Return the numbers of classes that are names or numbers."""
    numbers = [_number_or_missing(label, task) for label in classes]
    if -1 in numbers:
        raise ContractError(
            f"{what} are {_show(classes)}, but classes of the task are {_show(task.class_names)}, with the numbers 0 "
            f"to {task.num_classes - 1} in `train.labels`; use these names or numbers"
        )
    return np.array(numbers, dtype=np.int64)


def _number_or_missing(value: Any, task: Task) -> int:
    if isinstance(value, bool | np.bool_) and str(value).lower() in task.class_names:
        value = str(value).lower()  # as data sources name classes
    if value in task.class_names:
        return task.class_names.index(value)
    if isinstance(value, int | float | np.number | np.bool_) and value in range(task.num_classes):
        return int(value)
    return -1


def _show(values: Iterable[Any]) -> str:
    return shorten(", ".join(dict.fromkeys(map(repr, np.asarray(values).tolist()))), MAX_SHOWN)

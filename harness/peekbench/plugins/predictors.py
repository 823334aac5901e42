"""Makes predictors of what methods return, with rows in the order of the inputs and columns in that of the classes.

Objects of other libraries have orders of their own: the `classes_` of a classifier, the index and the columns of a data
frame. An order that is known is used, and another one is refused. The labels of a model are those that its `predict`
returns; `predict_proba` only gives the numbers that other scores need.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from peekbench.errors import ContractError
from peekbench.formatting import shorten
from peekbench.identity import key_of
from peekbench.records.answers import Predicted, find_answers
from peekbench.records.data import FloatArray, Inputs, IntArray, Task
from peekbench.records.trials import Predictor

OUTPUTS = {"logits": "output.logits.softmax(-1)", "label_ids": "scipy.special.softmax(output.predictions, axis=-1)"}
"""Probabilities of outputs of transformers, by a field that identifies the output."""

MAX_SHOWN = 100  # characters of values in messages


def as_predictor(result: Any, task: Task, labels: Any, *, is_fitted_to_labels: bool = False) -> Any:
    """Return the predictor of what a method returned: a predictor, an estimator, or a function of inputs.

    Parameters
    ----------
    result
        What the method returned.
    task
        Facts about the task.
    labels
        Labels of the train set, (n_train,) or (n_train, n_labels).
    is_fitted_to_labels
        Whether the result is a model that was fitted to these labels, so all numbers that it predicts are theirs.

    Returns
    -------
    Predictor
        Its `predict` returns `Predicted` if the task has classes or labels, otherwise numbers or texts. Anything that
        is neither a model nor a function is returned unchanged.
    """
    if isinstance(result, Predictor):
        return replace(result, predict=as_predictor(result.predict, task, labels).predict)
    if getattr(result, "__name__", "") == "predict_proba" and hasattr(result, "__self__"):
        result = result.__self__
    is_model = hasattr(result, "predict_proba") or hasattr(result, "predict")
    if not is_model and not callable(result):
        return result
    if not task.class_names:
        function = getattr(result, "predict", result)
        return Predictor(lambda inputs: in_order(function(inputs), inputs, task))
    known = _Numbers(is_fitted_to_labels)
    if is_model:
        return Predictor(lambda inputs: _predict(result, inputs, task, labels, known))
    return Predictor(lambda inputs: _read(result(inputs), inputs, task, "the predictions", known=known))


@dataclass
class _Numbers:
    """Whether numbers that are returned as labels are known to be those of `train.labels`, not names of classes.

    If classes are 1, 2 and 3, the numbers 1 and 2 can be both. A 0 tells it, also for the calls that follow.
    """

    is_known: bool = False

    def check(self, classes: Sequence[Any], numbers: IntArray, task: Task, what: str) -> None:
        """Refuse numbers all of which are names of classes, but of other ones.

        Raises
        ------
        ContractError
            If it is unknown what the numbers are.
        """
        names = [key_of(value) for value in classes if not isinstance(value, str)]
        self.is_known |= not {*names} <= {*task.class_names}
        others = [task.class_names[number] for number in numbers]
        if self.is_known or not names or names == others:
            return
        raise ContractError(
            f"{what} are {show_values(classes)}, which can be the classes {show_values(names)} or the numbers of "
            f"{show_values(others)} in `train.labels`; return names, which are str(value) if they are classes, and "
            "task.class_names[value] if they are numbers"
        )


def _predict(model: Any, inputs: Inputs, task: Task, train_labels: Any, known: _Numbers) -> Predicted:
    """Return the labels that a model predicts, and its probabilities, which are certain if it gives none."""
    name = type(model).__name__
    classes = _find_order(model, task, train_labels)
    chosen = probable = None
    if hasattr(model, "predict"):
        chosen = _read(model.predict(inputs), inputs, task, f"the predictions of {name}", classes, known)
    if hasattr(model, "predict_proba"):
        found = model.predict_proba(inputs)
        if task.kind == "multilabel":
            found = _join_labels(found, getattr(model, "classes_", None))
        probable = _read(found, inputs, task, f"the probabilities of {name}", classes)
    if chosen is None or probable is None:
        return chosen or probable  # type: ignore[return-value]
    return replace(probable, labels=find_answers(chosen, train_labels))


def _find_order(model: Any, task: Task, train_labels: Any) -> IntArray | None:
    """Return the number of the class or label of each column of a model; None if it does not tell them."""
    name = type(model).__name__
    classes = _classes_of(model)
    if classes is None:
        return None
    if task.kind == "multilabel" and (np.ndim(classes[0]) or (len(classes) == 2 and {*classes} == {0, 1})):
        return None  # the values of each label, not the labels
    numbers = _number_classes(classes, task, f"`classes_` of {name}")
    is_partial = task.kind == "classification" and len(numbers) < task.num_classes
    if is_partial and not isinstance(classes[0], str) and not np.isin(numbers, train_labels).all():
        raise ContractError(
            f"`classes_` of {name} are {show_values(classes)}, but the train labels are "
            f"{show_values(np.unique(train_labels))}; train it on `train.labels`, or on names of classes"
        )
    return numbers


def _read(
    found: Any, inputs: Inputs, task: Task, what: str, classes: IntArray | None = None, known: _Numbers | None = None
) -> Predicted:
    """Return labels or probabilities in the order of the classes or labels of a task.

    Parameters
    ----------
    found
        What a model or a function returned.
    inputs
        The inputs that it received.
    task
        Facts about the task.
    what
        Name of what is found, for messages.
    classes
        Number of the class or label of each column, if the model tells it. The columns of a data frame tell it
        themselves.
    known
        What is known about numbers as labels; those of a model that tells its classes are numbers of `train.labels`.
    """
    if isinstance(found, Predicted):
        return found
    known = known or _Numbers()
    known.is_known |= classes is not None
    ordered = in_order(found, inputs, task)
    if task.kind == "multilabel":
        ordered = _join_labels(ordered, None)
        if (indicators := _read_label_lists(ordered, task, what, known)) is not None:
            return Predicted(indicators)
    elif np.ndim(ordered) == 1 or np.shape(ordered)[1:] == (1,):  # CatBoost returns classes in a column
        if classes is None and np.ndim(ordered) == 2 and np.asarray(ordered).dtype.kind == "f" and task.num_classes > 2:
            raise ContractError(
                f"{what} have one column for {task.num_classes} classes; return labels, or probabilities of shape "
                f"{(len(ordered), task.num_classes)}"
            )
        numbers = _number_classes(np.ravel(ordered), task, what, known)
        return Predicted(np.eye(task.num_classes)[numbers])
    array = np.asarray(ordered)
    if array.dtype == bool:
        array = array.astype(np.float64)
    if classes is None or hasattr(found, "columns"):
        return Predicted(array)
    if array.ndim != 2 or array.shape[1] != len(classes):
        names = [task.class_names[number] for number in classes]
        raise ContractError(
            f"{what} have shape {array.shape}, but its `classes_` are {show_values(names)}; return one column for each "
            "of them"
        )
    return Predicted(_spread(array, classes, task))


def _join_labels(found: Any, classes: Any) -> Any:
    """Return the probability of each label if there is an array for each, with a column for 0, for 1, or for both."""
    if not isinstance(found, list) or not found or any(np.ndim(array) != 2 for array in found):
        return found
    if classes is None or np.ndim(classes[0]) == 0:
        classes = [[0, 1]] * len(found)
    columns = []
    for array, values in zip(map(_as_array, found), classes, strict=True):
        if np.shape(array)[1] != len(values):
            raise ContractError(
                f"the probabilities of a label have shape {np.shape(array)}; return one column for 0 and one for 1"
            )
        columns.append(array[:, [*values].index(1)] if 1 in values else np.zeros(len(array)))
    return np.column_stack(columns)


def _read_label_lists(found: Any, task: Task, what: str, known: _Numbers) -> FloatArray | None:
    """Return 1 for the labels of each row, which are names or numbers in lists; None if rows are numbers."""
    if isinstance(found, np.ndarray) and found.dtype != object:
        return None
    rows: list[Any] = list(found)
    is_list = [isinstance(row, list | tuple | set | frozenset) or getattr(row, "ndim", 0) == 1 for row in rows]
    if not all(is_list):
        return None
    values = [value for row in rows for value in row]
    is_whole = all(isinstance(value, int | np.integer) for value in values)
    is_ragged = any(isinstance(row, set | frozenset) or len(row) != task.num_classes for row in rows)
    if not (is_whole and is_ragged) and not any(isinstance(value, str) for value in values):
        return None
    indicators = np.zeros((len(rows), task.num_classes))
    numbers = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    indicators[numbers, _number_classes(values, task, what, known)] = 1
    return indicators


def _as_array(found: Any) -> Any:
    """Return tensors and sparse matrices as arrays, and other values unchanged."""
    for field, remedy in OUTPUTS.items():
        if hasattr(found, field):
            raise ContractError(
                f"a {type(found).__name__} of transformers has logits, not probabilities; return {remedy}"
            )
    if hasattr(found, "detach"):
        found = found.detach().cpu()
        if str(found.dtype) == "torch.bfloat16":  # numpy has no such type
            found = found.float()
        return found.numpy()
    if hasattr(found, "toarray"):
        return found.toarray()
    if isinstance(found, list | tuple) and found and all(hasattr(value, "detach") for value in found):
        return [_as_array(value) for value in found]
    return found


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
        return _as_array(predictions)
    if hasattr(predictions, "iloc"):
        rows = list(predictions.index)
        known = [list(range(len(inputs)))]
        if hasattr(inputs, "iloc"):
            known.append(list(inputs.index))
        if len(rows) == len(inputs) and rows not in known:
            raise ContractError(
                f"the index of predictions is {show_values(rows)}, so they may be in another order than the inputs; if "
                "they are not, return predictions.to_numpy()"
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
            f"two columns of predictions are the same class; give one for each of {show_values(task.class_names)}"
        )
    probabilities = np.zeros((len(found), task.num_classes), dtype=found.dtype)
    probabilities[:, numbers] = found
    return probabilities


def _number_classes(classes: Iterable[Any], task: Task, what: str, known: _Numbers | None = None) -> IntArray:
    """Return the numbers of classes that are names or numbers.

    Parameters
    ----------
    classes
        Names as texts, or numbers.
    task
        Facts about the task.
    what
        Name of the classes, for messages.
    known
        What is known about numbers.
    """
    if isinstance(classes, np.ndarray) and classes.dtype.kind in "iuf":
        numbers = np.where(np.isin(classes, range(task.num_classes)), classes, -1).astype(np.int64)
    else:
        numbers = np.array([_number_or_missing(label, task) for label in classes], dtype=np.int64)
    if -1 in numbers:
        raise ContractError(
            f"{what} are {show_values(classes)}, but classes of the task are {show_values(task.class_names)}, with the "
            f"numbers 0 to {task.num_classes - 1} in `train.labels`; use these names or numbers"
        )
    (known or _Numbers()).check(list(classes), numbers, task, what)
    return numbers


def _number_or_missing(value: Any, task: Task) -> int:
    names: Sequence[str] = task.class_names
    if isinstance(value, bool | np.bool_):
        names = [name.lower() for name in names]  # pandas writes True into CSV files
        is_number = key_of(value) not in names
    else:
        is_number = isinstance(value, int | float | np.number)
    if is_number and value in range(task.num_classes):
        return int(value)
    if not is_number and (name := key_of(value)) in names:
        return names.index(str(name))
    return -1


def show_values(values: Iterable[Any]) -> str:
    """Return values for a message."""
    return shorten(", ".join(dict.fromkeys(map(repr, np.asarray(values).tolist()))), MAX_SHOWN)

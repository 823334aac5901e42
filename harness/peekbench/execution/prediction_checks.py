"""Checks and scores what a method returns: predictions, log-likelihoods of texts, and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np

from peekbench.errors import ContractError
from peekbench.formatting import shorten
from peekbench.plugins.predictors import MAX_SHOWN, in_order, show_values
from peekbench.records.answers import Predicted, find_answers
from peekbench.records.data import Dataset, FloatArray, Inputs, IntArray, Reference, Task, as_texts, count_bytes
from peekbench.records.scores import ScoringInput, TextLikelihoods, score_all
from peekbench.records.trials import Predictor

SUM_TOLERANCE = 1e-3  # half precision sums to 1 within this
BFLOAT16_TOLERANCE = 0.02  # probabilities in bfloat16 sum to 1 within this
NUM_ALONE = 8  # inputs that are predicted once more
BATCH_TOLERANCE = 0.02  # of the largest prediction; half precision rounds other batches in other ways
MAX_CHANGED = 0.25  # share of generated answers, in which one token that is rounded otherwise changes all that follow


def read_only(array: Any) -> Any:
    """Make an array read-only in place and return it."""
    array.flags.writeable = False
    return array


def take_rows(dataset: Dataset, rows: IntArray) -> Inputs:
    """Return inputs of a data set as `take`, also private extra ones, whose rows come last."""
    num_rows = len(dataset.labels)
    if (rows < num_rows).all():
        return take(dataset.inputs, rows)
    own: Any = take(dataset.inputs, rows[rows < num_rows])
    extra: Any = take(dataset.extra, rows[rows >= num_rows] - num_rows)
    joined: Inputs
    if isinstance(own, tuple):
        return (*own, *extra)
    if isinstance(own, np.ndarray):
        joined = read_only(np.concatenate([own, extra]))
        return joined
    import pandas as pd  # noqa: PLC0415 - only `peekbench.measure` keeps data frames

    joined = pd.concat([own, extra], ignore_index=True)
    return joined


def take(inputs: Inputs, rows: IntArray) -> Inputs:
    """Return some inputs as a tuple, a read-only array or a copy, so that no method can change another's inputs."""
    if isinstance(inputs, Sequence):
        return tuple([inputs[row] for row in rows.tolist()])
    taken: FloatArray = inputs.take(rows, axis=0)
    if isinstance(taken, np.ndarray):
        read_only(taken)
    return taken  # a copy if it is a data frame


def compute_scores(
    predicted: Predicted, labels: IntArray | FloatArray, task: Task, texts: TextLikelihoods | None = None
) -> dict[str, float | int | None]:
    """Compute every score of `peekbench.records.scores.SCORES` for one arm.

    Parameters
    ----------
    predicted
        Predictions as stored.
    labels
        True class indices, targets, or bytes of the texts, shape (n_test,); 0 and 1 of shape (n_test, n_labels).
    task
        Its kind decides which scores are defined.
    texts
        Log-likelihoods of the texts, if a classifier gives them.

    Returns
    -------
    dict
        Scores by name; None for scores that are undefined for the kind of task or for the method.

    Raises
    ------
    ContractError
        If R^2 is undefined or not finite.
    """
    return score_all(task.kind, ScoringInput(predicted, labels, task.num_classes, texts))


def check_predictions(predictions: object, num_inputs: int, task: Task) -> None:
    """Refuse predictions that cannot be scored.

    Parameters
    ----------
    predictions
        What a predictor returned for `num_inputs` inputs: `Predicted`, whose labels are checked as well, or
        probabilities of shape (num_inputs, n_classes), or of labels,
        (num_inputs, n_labels); shape (num_inputs,) for other kinds of tasks; in generation, texts, or k texts for each.
    num_inputs
        Number of inputs that the predictor received.
    task
        Its kind and classes determine the expected shape.

    Raises
    ------
    ContractError
        If `predictions` is not an array of numbers, has another shape, is not finite, or has rows that are not
        probabilities or, in language modeling, not their logarithms.
    """
    if task.kind == "generation":
        _check_answers(predictions, num_inputs)
        return
    if isinstance(predictions, Predicted):
        if predictions.labels is not None:
            _check_labels(predictions.labels, num_inputs, task)
        predictions = predictions.numbers
    if task.class_names:
        array = _check_numbers(predictions, (num_inputs, task.num_classes), "predictions")
        _refuse_negative(array)
        if task.kind == "multilabel":
            _check_label_probabilities(array)
        else:
            _check_sums(array)
        return
    array = _check_numbers(predictions, (num_inputs,), "predictions")
    if task.kind == "language_modeling":
        _check_logarithms(array, "prediction")


def _check_labels(labels: IntArray, num_inputs: int, task: Task) -> None:
    """Refuse predicted labels that are not classes, (n,), or 0 and 1, (n, n_labels)."""
    expected: tuple[int, ...] = (num_inputs,)
    values = range(task.num_classes)
    if task.kind == "multilabel":
        expected, values = (num_inputs, task.num_classes), range(2)
    array = np.asarray(labels)
    if array.shape != expected or not np.isin(array, values).all():
        raise ContractError(
            f"predicted labels have shape {array.shape} and the values {show_values(np.unique(array))}; return shape "
            f"{expected} with integers from 0 to {values[-1]}"
        )


def _check_answers(answers: Any, num_inputs: int) -> None:
    """Refuse anything but a text, or the same number of texts, for each prompt."""
    expected = "return a text for each prompt, or a list of k texts for each, in the order of the prompts"
    if isinstance(answers, str) or not isinstance(answers, Sequence | np.ndarray):
        raise ContractError(f"answers are a {type(answers).__name__}; {expected}")
    if len(answers) != num_inputs:
        raise ContractError(f"{len(answers)} answers to {num_inputs} prompts; {expected}")
    for row, answer in enumerate(answers):
        texts: Any = as_texts(answer)
        is_valid = (
            isinstance(texts, Sequence | np.ndarray) and len(texts) and all(isinstance(text, str) for text in texts)
        )
        if not is_valid or np.size(answer) != np.size(answers[0]):
            raise ContractError(f"the answer to prompt {row} is {shorten(repr(answer), MAX_SHOWN)}; {expected}")


def as_answer(answer: Any) -> Reference:
    """Return an answer, or a tuple of several, as plain texts; halves of surrogate pairs become question marks."""
    if isinstance(answer, str):
        return str(answer).encode("utf-8", "replace").decode("utf-8")
    return tuple(as_answer(text) for text in answer)  # type: ignore[misc]  # each of them is one text


def as_stored(predictions: Any, labels: Any, task: Task) -> tuple[Predicted, tuple[Reference, ...]]:
    """Check predictions, and return them as they are stored.

    The predictor may keep and change the array that it returned, for example at the next call.

    Parameters
    ----------
    predictions
        What a predictor returned; see `check_predictions`.
    labels
        Labels of the inputs, of which only references are used, to grade answers, and the shape.
    task
        Task of the inputs.

    Returns
    -------
    tuple
        Labels and probabilities as float32, or as float64 other numbers, which can have any size, and the mean grades
        of answers; and in generation the answers.

    Raises
    ------
    ContractError
        If predictions cannot be scored, or answers cannot be graded.
    """
    if task.kind == "generation":
        check_predictions(predictions, len(labels), task)
        answers = tuple(map(as_answer, predictions))
        return Predicted(grade_answers(answers, labels, task)), answers
    stored = to_stored_type(predictions, len(labels), task)
    if task.class_names:
        stored = replace(stored, labels=np.array(find_answers(stored, labels), dtype=np.int64))
    return stored, ()


def grade_answers(answers: Sequence[Reference], references: Any, task: Task) -> FloatArray:
    """Return the mean grade of the texts of each answer."""
    grades = [
        fmean(task.grade(text, reference) for text in as_texts(answer))
        for answer, reference in zip(answers, references, strict=True)
    ]
    return np.array(grades)


def to_stored_type(predictions: Any, num_inputs: int, task: Task) -> Predicted:
    """Check predictions, and convert them to float32, or to float64 if they are no probabilities and may have any size.

    The predictor may keep and change the array that it returned, for example at the next call.
    """
    check_predictions(predictions, num_inputs, task)
    if not isinstance(predictions, Predicted):
        predictions = Predicted(predictions)
    dtype: type[np.floating[Any]] = np.float64
    if task.class_names:
        dtype = np.float32
    with np.errstate(over="ignore"):  # numbers too large for float32 become infinite, which the check refuses
        stored: Predicted = replace(predictions, numbers=np.array(predictions.numbers, dtype=dtype))
    check_predictions(stored, num_inputs, task)  # the conversion may have changed numbers
    return stored


def check_independence(
    predictor: Predictor, inputs: Inputs, predictions: Predicted | Sequence[Reference], task: Task
) -> None:
    """Refuse predictions that change if some of the inputs are predicted alone.

    A quarter of generated answers may change, because rounding depends on the batch.

    Parameters
    ----------
    predictor
        A fitted model.
    inputs
        Inputs that it has predicted together.
    predictions
        What it has predicted; in generation, the answers.
    task
        Task of the inputs.

    Raises
    ------
    ContractError
        If the predictions change, or the inputs cannot be predicted alone.
    """
    count = min(NUM_ALONE, len(inputs) // 2)
    if count == 0:
        return
    some: Any = inputs[-count:]  # a state that predictions carry on would not change the first ones
    found = f"predictions depend on the other inputs that are predicted with them: {count} of {len(inputs)} inputs, "
    remedy = (
        "A method that adapts in `predict` sees the test inputs in all arms, so its bias cannot be measured. Adapt to "
        "`unlabeled` in the fit, or measure what predicting inputs together adds: `arms: [base, extra, test, alone]`"
    )
    try:
        found_alone: Any = predictor.predict(some)
        check_predictions(found_alone, count, task)
    except Exception as error:
        raise ContractError(
            f"{found}predicted alone, raise {type(error).__name__}: {shorten(str(error), MAX_SHOWN)}. {remedy}"
        ) from error
    if not isinstance(predictions, Predicted):
        pairs = zip(map(as_answer, found_alone), predictions[-count:], strict=True)
        num_changed = sum(one != other for one, other in pairs)
    else:
        alone, together = to_stored_type(found_alone, count, task), predictions[-count:]
        change = float(np.abs(alone.numbers - together.numbers).max())
        if change > BATCH_TOLERANCE * float(np.abs(predictions.numbers).max()):
            raise ContractError(f"{found}predicted alone, change by up to {change:.2g}. {remedy}")
        num_changed = 0
        if alone.labels is not None:
            num_changed = int((alone.labels != together.labels).reshape(count, -1).any(axis=1).sum())
    if num_changed > MAX_CHANGED * count:
        raise ContractError(f"{found}predicted alone, get {num_changed} other answers. {remedy}")


def score_texts(predictor: Predictor, inputs: Inputs, task: Task) -> TextLikelihoods | None:
    """Return the log-likelihoods of texts that a classifier gives; None if it gives none.

    Parameters
    ----------
    predictor
        A fitted model.
    inputs
        Texts.
    task
        Task of the texts.

    Raises
    ------
    ContractError
        If they are not finite numbers of at most 0, one for each text, or the task is not the classification of texts.
    """
    if predictor.log_likelihoods is None:
        return None
    if task.kind not in ("classification", "multilabel") or not isinstance(inputs, Sequence):
        raise ContractError(
            f"Predictor.log_likelihoods is for the classification of texts, and task {task.name} is none; leave it out"
        )
    name = "log_likelihoods"
    found = in_order(predictor.log_likelihoods(inputs), inputs, task)
    values = _check_numbers(found, (len(inputs),), name).astype(np.float64)
    _check_logarithms(values, "log-likelihood")
    return TextLikelihoods(values, sum(count_bytes(inputs)))


def _check_numbers(values: object, shape: tuple[int, ...], name: str) -> FloatArray:
    """Return finite numbers of a shape as an array, or refuse them."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise ContractError(f"{name} are {type(values).__name__} of {array.dtype}; return an array of floats")
    if array.shape != shape:
        expected = "one number for each input"
        if len(shape) > 1:
            expected = "one probability for each class or label"
        raise ContractError(f"{name} have shape {array.shape}, expected {shape}: {expected}, in order of the inputs")
    is_finite = np.isfinite(array).reshape(shape[0], -1).all(axis=1)
    if not is_finite.all():
        row = int(np.flatnonzero(~is_finite)[0])
        raise ContractError(
            f"{name} contain NaN or infinity in {int((~is_finite).sum())} of {shape[0]} rows, the first is row "
            f"{row}; look for a division by zero or a loss that diverged"
        )
    return array


def _check_logarithms(array: FloatArray, name: str) -> None:
    if array.max() > 0:
        row = int(array.argmax())
        raise ContractError(
            f"{name} {float(array[row]):.4g} in row {row} is positive; return the natural logarithm of the "
            "probability of each text, which is at most 0, not a loss"
        )


def _refuse_negative(array: FloatArray) -> None:
    if array.min() < 0:
        row = int(np.flatnonzero(array.min(axis=1) < 0)[0])
        raise ContractError(f"predictions have a negative probability in row {row}; return probabilities, not scores")


def _check_label_probabilities(array: FloatArray) -> None:
    if array.max() > 1 + SUM_TOLERANCE:
        row = int(array.max(axis=1).argmax())
        raise ContractError(
            f"predictions contain {float(array[row].max()):.6g} in row {row}; return the probability of each label of "
            "the task, which is at most 1"
        )


def _check_sums(array: FloatArray) -> None:
    deviations = np.abs(array.sum(axis=1, dtype=np.float64) - 1)
    if deviations.max() > SUM_TOLERANCE:
        row = int(deviations.argmax())
        remedy = "return probabilities over the task's classes only"
        if deviations.max() < BFLOAT16_TOLERANCE:
            remedy = "compute the probabilities in float32, as logits.float().softmax(-1) does"
        raise ContractError(
            f"predictions in row {row} sum to {float(array[row].sum(dtype=np.float64)):.6g}, not to 1; {remedy}"
        )


def check_metrics(metrics: object) -> dict[str, float]:
    """Return the metrics of a fit as numbers, or refuse metrics that are none.

    Parameters
    ----------
    metrics
        Metrics of a `Predictor`: numbers by name. An array or a tensor without dimensions is a number.

    Raises
    ------
    ContractError
        If they are not a mapping from names to numbers.
    """
    if not isinstance(metrics, Mapping):
        raise ContractError(f"metrics are a {type(metrics).__name__}; return a mapping from names to numbers")
    numbers = {}
    for name, value in metrics.items():
        try:
            numbers[str(name)] = float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # of a tensor with many elements
            raise ContractError(
                f"metric {name!r} is a {type(value).__name__}, not a number; return one number for each metric, "
                "such as a mean"
            ) from error
    return numbers

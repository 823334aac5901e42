"""A method that keeps its contract, and others that break it, each in one way."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from peekbench import (
    Context,
    Inputs,
    Labeled,
    Options,
    Predictor,
    Task,
)
from peekbench.errors import ContractError


class Knob(Options):
    knob: float = 1.0


def features(texts: Inputs) -> Any:
    """(n, 16): how often each of 16 buckets of words occurs."""
    table = np.zeros((len(texts), 16))
    for row, text in enumerate(texts):
        for word in text.split():
            table[row, sum(map(ord, word)) % 16] += 1
    return table


def softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def centroids(train: Labeled, task: Task) -> Any:
    table = features(train.inputs)
    return np.stack([table[train.labels == label].mean(axis=0) for label in range(task.num_classes)])


def honest(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Knob, context: Context) -> Predictor:
    means = centroids(train, task)
    scale = 1.0 if unlabeled is None else options.knob / features(unlabeled).std()
    return Predictor(lambda texts: softmax(scale * features(texts) @ means.T))


def needs_unlabeled(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    if unlabeled is None:
        raise ContractError("no unlabeled inputs")
    return honest(unlabeled, train, task, options=options, context=context)


def unseeded(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    means = centroids(train, task) + np.random.default_rng().normal(0, 0.1, (task.num_classes, 16))
    return Predictor(lambda texts: softmax(features(texts) @ means.T))


MEMORY: dict[str, Any] = {}


def starts_where_it_left_off(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    means = centroids(train, task) * (1 if unlabeled is None else features(unlabeled).std())
    MEMORY["means"] = means = 0.5 * means + 0.5 * MEMORY.get("means", means)
    return Predictor(lambda texts: softmax(features(texts) @ means.T))


SHARED: dict[str, Any] = {}


def shares_a_model(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    SHARED["means"] = centroids(train, task) * (1 if unlabeled is None else features(unlabeled).std())
    return Predictor(lambda texts: softmax(features(texts) @ SHARED["means"].T))


def adapts_to_the_batch(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    means = centroids(train, task)

    def predict(texts: Inputs) -> Any:
        table = features(texts)
        return softmax((table - table.mean(axis=0)) @ means.T)

    return Predictor(predict)


def looks_at_the_neighbour(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    means = centroids(train, task)

    def predict(texts: Inputs) -> Any:
        table = features(texts)
        table[1:] += 0.5 * table[:-1]
        return softmax(table @ means.T)

    return Predictor(predict)


def uses_global_numpy(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    means = centroids(train, task) + np.random.normal(0, 0.1, (task.num_classes, 16))
    return Predictor(lambda texts: softmax(features(texts) @ means.T))


def seeds_global_numpy(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    np.random.seed(context.seed)
    return honest(unlabeled, train, task, options=options, context=context)


def sorts_its_inputs(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    if train.labels.flags.writeable:
        train.labels.sort()
    return honest(unlabeled, train, task, options=options, context=context)


def returns_nan(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    return Predictor(lambda texts: np.full((len(texts), task.num_classes), np.nan))


def knob_always(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    means = centroids(train, task) * options.knob
    return Predictor(lambda texts: softmax(features(texts) @ means.T))


def returns_too_few_columns(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    return Predictor(lambda texts: np.full((len(texts), task.num_classes - 1), 1 / (task.num_classes - 1)))


def returns_scores(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    means = centroids(train, task)
    return Predictor(lambda texts: features(texts) @ means.T)


def uses_global_random(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Predictor:
    """Puts the generator back where it was, and so changes nothing, but depends on it."""
    state = random.getstate()
    scale = 1 + random.random()
    random.setstate(state)
    means = centroids(train, task) * scale
    return Predictor(lambda texts: softmax(features(texts) @ means.T))

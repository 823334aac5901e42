"""Makes methods of estimators in the manner of scikit-learn, and predictors of fitted ones."""

from __future__ import annotations

import copy
import sys
from typing import Any

from peekbench.errors import ContractError, PluginError
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.protocols import Options
from peekbench.records.trials import Predictor


class EstimatorOptions(Options):
    """Options of an estimator."""

    unlabeled_step: str | tuple[str, ...] | None = None
    """Step or steps of the pipeline that are fitted on the train texts and the unlabeled texts; by default all
    transformers before the final estimator that need no labels."""


def is_estimator(thing: Any) -> bool:
    """Return whether an object is an estimator, not a class of estimators."""
    return not isinstance(thing, type) and all(hasattr(thing, name) for name in ("fit", "predict", "get_params"))


def make_estimator_entry(estimator: Any, name: str) -> MethodEntry:
    """Return the method of a classifier or regressor of texts, which is cloned for each fit.

    Parameters
    ----------
    estimator
        Pipeline whose first steps are transformers of texts.
    name
        Name of the entry.

    Raises
    ------
    PluginError
        If it has no step that could be fitted on unlabeled texts.
    """
    default = unlabeled_steps(estimator, None, name)
    steps = " > ".join(step for step, _ in estimator.steps)

    def fit(unlabeled: Any, train: Any, task: Any, *, options: EstimatorOptions, context: Any) -> Any:
        chosen = unlabeled_steps(estimator, options.unlabeled_step, name)
        return as_predictor(_fit_pipeline(_clone(estimator, context.seed), unlabeled, train, chosen), task)

    return MethodEntry(
        name=name,
        method=fit,
        options=EstimatorOptions,
        summary=f"{steps}; fitted on train and unlabeled texts by default: {', '.join(default)}",
        unlabeled_options=frozenset({"unlabeled_step"}),
    )


def unlabeled_steps(pipeline: Any, chosen: str | tuple[str, ...] | None, name: str) -> tuple[str, ...]:
    """Return the names of the steps that are fitted on unlabeled texts, by default all that need no labels.

    Raises
    ------
    PluginError
        If there is none, or a name is unknown.
    """
    steps = [step for step, transformer in getattr(pipeline, "steps", [])[:-1] if hasattr(transformer, "fit")]
    if not steps:
        raise PluginError(
            f"{name} is a {type(pipeline).__name__} without a transformer, so unlabeled texts would change nothing; "
            "give a pipeline such as make_pipeline(TfidfVectorizer(), LogisticRegression())"
        )
    if chosen is None:
        return tuple(step for step in steps if not _needs_labels(pipeline.named_steps[step]))
    names = (chosen,) if isinstance(chosen, str) else chosen
    for step in names:
        if step not in steps:
            raise PluginError(
                f"{name}: no transformer {step!r} in the pipeline; its transformers are {', '.join(steps)}"
            )
    return names


def _needs_labels(transformer: Any) -> bool:
    tags = getattr(transformer, "__sklearn_tags__", None)
    return bool(tags().target_tags.required) if tags else False


def clone_estimator(estimator: Any) -> Any:
    """Return an unfitted copy of an estimator."""
    return getattr(sys.modules.get("sklearn.base"), "clone", copy.deepcopy)(estimator)


def _clone(estimator: Any, seed: int) -> Any:
    """Return an unfitted copy; random states that are None become the seed of the fit."""
    cloned = clone_estimator(estimator)
    states = {
        name: seed for name, value in cloned.get_params().items() if name.endswith("random_state") and value is None
    }
    return cloned.set_params(**states)


def _fit_pipeline(pipeline: Any, unlabeled: Any, train: Any, chosen: tuple[str, ...]) -> Any:
    """Fit the steps one after the other, the chosen ones without labels on train and unlabeled texts together."""
    inputs, others = list(train.inputs), None if unlabeled is None else list(unlabeled)
    *transformers, (_, final) = pipeline.steps
    for name, step in transformers:
        if not hasattr(step, "fit"):  # 'passthrough' or None
            continue
        if name in chosen:
            step.fit(inputs if others is None else _stack(inputs, others))
        else:
            step.fit(inputs, train.labels)
        inputs, others = step.transform(inputs), None if others is None else step.transform(others)
    final.fit(inputs, train.labels)
    return pipeline


def _stack(first: Any, second: Any) -> Any:
    """Return the rows of two lists, arrays or sparse matrices below each other."""
    if isinstance(first, list):
        return first + second
    if hasattr(first, "tocsr"):
        return sys.modules["scipy.sparse"].vstack([first, second]).tocsr()  # imported by who made the matrix
    import numpy as np  # noqa: PLC0415 - reading a spec imports this module and must not import numpy

    return np.concatenate([first, second])


def as_predictor(result: Any, task: Any) -> Any:
    """Return the predictor of what a method returned: a predictor, an estimator, or a function of inputs.

    Parameters
    ----------
    result
        What the method returned. Anything else is returned as it is, and refused later.
    task
        Facts about the task.
    """
    if isinstance(result, Predictor):
        return result
    if task.kind == "classification" and (hasattr(result, "predict_proba") or hasattr(result, "predict")):
        return Predictor(lambda inputs: _probabilities(result, inputs, task))
    if hasattr(result, "predict"):
        return Predictor(result.predict)
    return Predictor(result) if callable(result) else result


def _probabilities(model: Any, inputs: Any, task: Any) -> Any:
    """Return probabilities of all classes of a task; certain ones if the model predicts only classes."""
    import numpy as np  # noqa: PLC0415 - reading a spec imports this module and must not import numpy

    if not hasattr(model, "predict_proba"):
        answers = np.asarray(model.predict(inputs))
        if answers.ndim != 1 or not np.isin(answers, np.arange(task.num_classes)).all():
            raise ContractError(
                f"the predictions of {type(model).__name__} are not classes; return the numbers of classes, 0 to "
                f"{task.num_classes - 1}, as in train.labels"
            )
        return np.eye(task.num_classes)[answers.astype(int)]
    found = np.asarray(model.predict_proba(inputs), dtype=float)
    classes = getattr(model, "classes_", None)
    if classes is None or found.shape[1] == task.num_classes:
        return found
    probabilities = np.zeros((len(found), task.num_classes))
    probabilities[:, np.asarray(classes).astype(int)] = found
    return probabilities

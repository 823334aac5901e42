"""Estimators of scikit-learn as methods, without an adapter.

Which steps of a pipeline learn from unlabeled rows decides what is measured; `adapts` has the rule.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from pandas import concat
from scipy.sparse import issparse, vstack
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

from peekbench import MethodEntry, Options
from peekbench.errors import PluginError
from peekbench.plugins.entries import MethodTaskKind
from peekbench.plugins.functions import clone_estimator
from peekbench.plugins.predictors import as_predictor

CLASSIFICATION = frozenset[MethodTaskKind]({"classification", "tabular_classification"})
REGRESSION = frozenset[MethodTaskKind]({"regression", "text_regression"})
OF_TEXTS = frozenset[MethodTaskKind]({"classification", "text_regression"})
CONTAINERS = Pipeline | FeatureUnion | ColumnTransformer
KINDS = {"classifier": CLASSIFICATION, "regressor": REGRESSION, None: CLASSIFICATION | REGRESSION}


class EstimatorOptions(Options):
    """Options of an estimator."""

    unlabeled_step: str | tuple[str, ...] | None = None
    """Step or steps of the pipeline that are fitted on the train rows and the unlabeled rows; by default all that learn
    without labels."""


def make_estimator_entry(estimator: Any, name: str) -> MethodEntry:
    """Return the method of a classifier or regressor, which is cloned for each fit.

    Raises
    ------
    PluginError
        If it is neither a classifier nor a regressor, or no part of it could adapt to unlabeled rows.
    """
    found = tags_of(estimator).estimator_type
    if found not in KINDS:
        raise PluginError(
            f"{name} is a {found}, whose predictions cannot be scored; give a classifier or a regressor, with "
            f"{type(estimator).__name__} before it in a pipeline if it transforms"
        )
    *transformers, (last, final) = _steps(estimator)
    for step, part in transformers:
        if hasattr(part, "fit") and not hasattr(part, "transform"):
            raise PluginError(
                f"{name}: the step {step} cannot transform other rows than those that it is fitted on; leave it out"
            )
    for key, value in estimator.get_params().items():
        if key.endswith("class_weight") and isinstance(value, dict):
            raise PluginError(
                f"{name}: {key} names classes, but fits see numbers of classes, from 0 in sorted order; use "
                "'balanced', or weigh classes in a function"
            )
    if not transformers:
        unlabeled_steps(estimator, None, name)  # raises an error if nothing could adapt
    adapting = [step for step, part in transformers if adapts(part)] + [last] * _is_semi_supervised(final)

    def fit(unlabeled: Any, train: Any, task: Any, *, options: EstimatorOptions, context: Any) -> Any:
        chosen = unlabeled_steps(estimator, options.unlabeled_step, name)
        return as_predictor(
            _fit_pipeline(_clone(estimator, context.seed), unlabeled, train, chosen), task, train.labels
        )

    return MethodEntry(
        name=name,
        method=fit,
        options=EstimatorOptions,
        summary=f"{' > '.join(step for step, _ in _steps(estimator))}; fitted on train and unlabeled rows by default: "
        f"{', '.join(adapting) or 'none'}",
        task_kinds=KINDS[found] & _kinds_of_inputs(estimator),
        unlabeled_options=frozenset({"unlabeled_step"}),
    )


def tags_of(part: Any) -> Any:
    """Return the tags of an estimator or a step; those of a plain estimator if it has none."""
    return getattr(part, "__sklearn_tags__", BaseEstimator().__sklearn_tags__)()


def _kinds_of_inputs(estimator: Any) -> frozenset[MethodTaskKind]:
    """Return the kinds of tasks whose inputs the first step takes; all kinds if it is not of scikit-learn."""
    first = first_step(estimator)
    if tags_of(first).input_tags.string:
        return OF_TEXTS
    return KINDS[None] - OF_TEXTS if _is_known(first) else KINDS[None]


def first_step(estimator: Any) -> Any:
    """Return what sees the inputs first: the first step, or the first part of a union or of a nested pipeline."""
    first = _steps(estimator)[0][1]
    while not isinstance(first, ColumnTransformer) and (parts := _parts(first)):
        first = parts[0]
    return first


def _is_known(step: Any) -> bool:
    is_open = hasattr(step, "estimator") or isinstance(step, FunctionTransformer)
    return type(step).__module__.startswith("sklearn.") and not is_open


def accepts_strings(step: Any) -> bool:
    """Return whether a step may take columns that are not numbers."""
    is_for_columns = isinstance(step, ColumnTransformer) or _imputes(step) or tags_of(step).input_tags.categorical
    return is_for_columns or not _is_known(step)


def selected_columns(step: Any) -> list[str]:
    """Return the columns that a `ColumnTransformer` selects by name; none for other steps."""
    chosen = [each[2] for each in step.transformers] if isinstance(step, ColumnTransformer) else []
    listed = [name for each in chosen for name in (each if isinstance(each, list | tuple) else [each])]
    return [name for name in listed if isinstance(name, str)]


def accepts_missing(estimator: Any) -> bool:
    """Return whether an estimator takes features with missing values, or imputes them before a step that does not."""
    for _, step in _steps(estimator):
        parts = [step] if isinstance(step, Pipeline) else _parts(step)
        if not all(map(accepts_missing, parts)) if parts else not _takes_missing(step):
            return False
        if _imputes(step):
            return True
    return True


def _takes_missing(step: Any) -> bool:
    return not hasattr(step, "fit") or tags_of(step).input_tags.allow_nan


def _imputes(step: Any) -> bool:
    return type(step).__module__.startswith("sklearn.impute") or any(map(_imputes, _parts(step)))


def _steps(estimator: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline, and of a pipeline that is its last step; another estimator is a single step."""
    if not (steps := getattr(estimator, "steps", None)):
        return [(type(estimator).__name__.lower(), estimator)]
    *transformers, (name, last) = steps
    inner = _steps(last) if isinstance(last, Pipeline) else []
    return [*transformers, *((f"{name}__{step}", part) for step, part in inner)] if inner else steps


def unlabeled_steps(pipeline: Any, chosen: str | tuple[str, ...] | None, name: str) -> tuple[str, ...]:
    """Return the names of the transformers that are fitted on unlabeled rows, by default all that `adapts` selects.

    Raises
    ------
    PluginError
        If nothing adapts to unlabeled rows, or a name is unknown.
    """
    *transformers, (_, final) = _steps(pipeline)
    steps = {step: part for step, part in transformers if hasattr(part, "fit")}
    names = (chosen,) if isinstance(chosen, str) else chosen or tuple(step for step in steps if adapts(steps[step]))
    if unknown := [step for step in names if step not in steps]:
        raise PluginError(
            f"{name}: no transformer {unknown[0]!r} in the pipeline; its transformers are {', '.join(steps) or 'none'}"
        )
    for step in names:
        if _needs_labels(steps[step]):
            raise PluginError(f"{name}: the step {step} needs labels, which unlabeled rows do not have; choose another")
    if not names and not _is_semi_supervised(final):
        _refuse_inner_pipeline(final, name)
        reason = f"; its transformers need labels or learn nothing: {', '.join(steps)}" if steps else ""
        raise PluginError(
            f"{name}: unlabeled rows change nothing, because no step of this {type(pipeline).__name__} learns from them"
            f"{reason}. Put a transformer before it, as "
            f"in make_pipeline(TfidfVectorizer(), {type(final).__name__}()) for texts, or StandardScaler() for features"
        )
    return names


def _refuse_inner_pipeline(final: Any, name: str) -> None:
    for inner in final.get_params().values():
        if isinstance(inner, Pipeline) and any(adapts(part) for _, part in _steps(inner)[:-1]):
            *before, last = [type(part).__name__ for _, part in _steps(inner)]
            outer = type(final).__name__
            raise PluginError(
                f"{name}: {outer} fits its pipeline to train rows only, so unlabeled rows change nothing. Put the "
                f"transformers before it, as in make_pipeline({', '.join(f'{each}()' for each in before)}, "
                f"{outer}({last}(), ...)), and name parameters of a search without the step"
            )


def adapts(transformer: Any) -> bool:
    """Return whether a transformer learns from unlabeled rows by default, as `TfidfVectorizer` and `PCA` do.

    Those that need labels, such as `SelectKBest` and `TargetEncoder`, do not, and neither do those that learn nothing,
    such as `HashingVectorizer`, `Normalizer` and `FrozenEstimator`. A union or a nested pipeline does if one of its
    parts does and none needs labels.

    Parameters
    ----------
    transformer
        A step of a pipeline.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.preprocessing import Normalizer
    >>> adapts(PCA()), adapts(Normalizer())
    (True, False)
    """
    return not _needs_labels(transformer) and _learns(transformer)


def _parts(transformer: Any) -> list[Any]:
    if not isinstance(transformer, CONTAINERS):
        return []
    names = ("steps", "transformer_list", "transformers")
    parts = [each[1] for name in names for each in getattr(transformer, name, ())]
    return [part for part in (*parts, getattr(transformer, "remainder", None)) if hasattr(part, "fit")]


def _needs_labels(transformer: Any) -> bool:
    is_selection = type(transformer).__module__.startswith("sklearn.feature_selection")  # their tags do not say it
    if is_selection and not isinstance(transformer, VarianceThreshold):
        return True
    return tags_of(transformer).target_tags.required or any(map(_needs_labels, _parts(transformer)))


def _learns(transformer: Any) -> bool:
    if isinstance(transformer, CONTAINERS):
        return any(map(_learns, _parts(transformer)))
    is_fitted = hasattr(transformer, "fit") and not isinstance(transformer, FrozenEstimator)  # not 'passthrough'
    return is_fitted and tags_of(transformer).requires_fit


def _is_semi_supervised(estimator: Any) -> bool:
    """Return whether an estimator takes unlabeled rows with the label -1."""
    return isinstance(estimator, LabelPropagation | LabelSpreading | SelfTrainingClassifier)


def _clone(estimator: Any, seed: int) -> Any:
    """Return an unfitted copy; random states that are None become the seed of the fit."""
    cloned = clone_estimator(estimator)
    states = {
        name: seed for name, value in cloned.get_params().items() if name.endswith("random_state") and value is None
    }
    return cloned.set_params(**states)


def _fit_pipeline(pipeline: Any, unlabeled: Any, train: Any, chosen: tuple[str, ...]) -> Any:
    """Fit the steps one after the other, the chosen ones without labels on train and unlabeled rows together."""
    inputs, others = (list(each) if isinstance(each, tuple) else each for each in (train.inputs, unlabeled))
    *transformers, (last, final) = _steps(pipeline)
    for name, step in transformers:
        if not hasattr(step, "fit"):  # 'passthrough' or None
            continue
        if name in chosen:
            _fit_step(name, step.fit, inputs if others is None else _stack(inputs, others))
            inputs = step.transform(inputs)
        elif hasattr(step, "fit_transform"):  # as in a pipeline: that of TargetEncoder returns other rows
            inputs = _fit_step(name, step.fit_transform, inputs, train.labels)
        else:
            inputs = _fit_step(name, step.fit, inputs, train.labels).transform(inputs)
        others = None if others is None else step.transform(others)
    labels = train.labels
    if others is not None and _is_semi_supervised(final):
        inputs, labels = _stack(inputs, others), np.append(labels, np.full(len(unlabeled), -1))
    if others is None and isinstance(final, SelfTrainingClassifier):  # which warns that no row is unlabeled
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            _fit_step(last, final.fit, inputs, labels)
    else:  # in the block above, each fit would repeat warnings that are shown once
        _fit_step(last, final.fit, inputs, labels)
    return pipeline


def _fit_step(name: str, fit: Callable[..., Any], *rows: Any) -> Any:
    try:
        return fit(*rows)
    except TypeError as error:
        if "toarray" not in str(error):
            raise
        raise PluginError(
            f"the step {name} takes no sparse matrices, as the step before it returns; put "
            "FunctionTransformer(lambda rows: rows.toarray(), accept_sparse=True) between them"
        ) from error


def _stack(first: Any, second: Any) -> Any:
    """Return the rows of two lists, arrays, sparse matrices or data frames below each other."""
    if isinstance(first, list):
        return first + second
    if hasattr(first, "iloc"):  # of a step with set_output(transform="pandas")
        return concat([first, second], ignore_index=True)
    rows: Any = [first, second]
    return vstack(rows).tocsr() if issparse(first) else np.concatenate(rows)

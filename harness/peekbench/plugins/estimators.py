"""Estimators of scikit-learn as methods, without an adapter.

An estimator is a tree: pipelines, unions, column transformers, searches and ensembles pass rows to their parts. A
*leaf* has no such parts. Leaves that learn without labels are fitted on train and unlabeled rows, others on train rows.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import warnings
from collections.abc import Iterable
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from peekbench.errors import DataError, PluginError
from peekbench.plugins.entries import MethodEntry, MethodTaskKind, Preparation
from peekbench.plugins.estimator_parts import (
    CONTAINERS,
    WRAPPERS,
    Part,
    clone_with_seed,
    is_semi_supervised,
    leaves_of,
    number_class_parameters,
    parts_of,
    tags_of,
)
from peekbench.plugins.predictors import as_predictor
from peekbench.plugins.protocols import Options
from peekbench.records import Dataset, FloatArray, IntArray

MULTILABEL = frozenset[MethodTaskKind]({"multilabel", "tabular_multilabel"})
CLASSIFICATION = MULTILABEL | frozenset[MethodTaskKind]({"classification", "tabular_classification"})
REGRESSION = frozenset[MethodTaskKind]({"regression", "text_regression"})
OF_TEXTS = frozenset[MethodTaskKind]({"classification", "multilabel", "text_regression"})
KINDS = {"classifier": CLASSIFICATION, "regressor": REGRESSION, None: CLASSIFICATION | REGRESSION}
SUPERVISED_MODULES = ("sklearn.feature_selection", "sklearn.cross_decomposition")  # their tags do not say it


class EstimatorOptions(Options):
    """Options of an estimator."""

    unlabeled_step: str | tuple[str, ...] | None = None
    """Step or steps of the pipeline that are fitted on the train rows and the unlabeled rows; by default all that learn
    without labels. A step within a step is named as by `get_params`, such as `columntransformer__pca`."""


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
    for part in (estimator, *estimator.get_params().values()):
        if isinstance(part, GridSearchCV | RandomizedSearchCV) and not part.refit:
            raise PluginError(f"{name}: the {type(part).__name__} fits no estimator that predicts; set refit=True")
    leaves = leaves_of(estimator)
    for step, part in leaves.items():
        if hasattr(part, "fit_transform") and not any(hasattr(part, use) for use in ("transform", "predict")):
            raise PluginError(
                f"{name}: the step {step} cannot transform other rows than those that it is fitted on; leave it out"
            )
    adapting = [step for step, part in leaves.items() if adapts(part)]
    if not adapting:
        unlabeled_steps(estimator, None, name)  # raises an error

    def fit(unlabeled: Any, train: Any, task: Any, *, options: EstimatorOptions, context: Any) -> Any:
        chosen = unlabeled_steps(estimator, options.unlabeled_step, name)
        inputs, held = (list(texts) if isinstance(texts, tuple) else texts for texts in (train.inputs, unlabeled))
        cloned = clone_with_seed(estimator, context.seed)
        if task.kind == "classification":
            cloned.set_params(**number_class_parameters(estimator, task.class_names, name))
        fitted = Part(cloned, chosen, held).fit(inputs, train.labels)
        return as_predictor(fitted, task, train.labels, is_fitted_to_labels=True)

    def check_data(dataset: Dataset, *, options: EstimatorOptions) -> None:
        if dataset.kind == "multilabel":
            check_label_sets(estimator)
        elif dataset.kind == "classification":
            number_class_parameters(estimator, dataset.class_names, name)

    return MethodEntry(
        name=name,
        method=fit,
        preparation=Preparation(check_data=check_data),
        options=EstimatorOptions,
        summary=f"{' > '.join(leaves)}; fitted on train and unlabeled rows by default: {', '.join(adapting)}",
        task_kinds=KINDS[found] & _kinds_of_inputs(estimator),
        unlabeled_options=frozenset({"unlabeled_step"}),
    )


def fit_classifier(classifier: Any, rows: Any, labels: IntArray | FloatArray) -> Any:
    """Fit a classifier to classes, or a copy of it to each label of a multi-label task.

    Parameters
    ----------
    classifier
        A classifier with `predict_proba`.
    rows
        Features, (n_train, n_features).
    labels
        Classes, (n_train,), or 0 and 1, (n_train, n_labels). A label that all rows have is certain.

    Returns
    -------
    estimator
        Its `predict_proba` returns shape (n, n_classes) or (n, n_labels).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = fit_classifier(LogisticRegression(), [[0.0], [1.0], [2.0]], np.array([[1, 0], [1, 1], [1, 1]]))
    >>> model.predict_proba([[5.0]]).round(1).tolist()
    [[1.0, 1.0]]
    """
    if labels.ndim == 1:
        return classifier.fit(rows, labels)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # that all rows have a label
        return OneVsRestClassifier(classifier).fit(rows, labels)


def check_label_sets(estimator: Any) -> None:
    """Refuse a classifier that cannot be fitted to labels of shape (n, n_labels), with a DataError."""
    if accepts_label_sets(estimator):
        return
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    classifier = type(estimator).__name__
    raise DataError(
        f"{classifier} cannot be fitted to sets of labels; put sklearn.multiclass.OneVsRestClassifier"
        f"({classifier}(...)) in its place, which fits a copy to each label"
    )


def accepts_label_sets(estimator: Any) -> bool:
    """Return whether a classifier can be fitted to labels of shape (n, n_labels).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> accepts_label_sets(LogisticRegression()), accepts_label_sets(OneVsRestClassifier(LogisticRegression()))
    (False, True)
    """
    if isinstance(estimator, Pipeline):
        return accepts_label_sets(estimator.steps[-1][1])
    if isinstance(estimator, GridSearchCV | RandomizedSearchCV):
        return accepts_label_sets(estimator.estimator)
    if not hasattr(estimator, "__sklearn_tags__"):
        return True  # nothing is known of it
    tags = estimator.__sklearn_tags__()
    if tags.classifier_tags is None:
        return False
    return bool(tags.classifier_tags.multi_label or tags.target_tags.multi_output)


# Parts


def _first_step(estimator: Any) -> Any:
    """Return a leaf, or a `ColumnTransformer`, that sees the inputs first."""
    parts = list(parts_of(estimator).values())
    if not parts or isinstance(estimator, ColumnTransformer):
        return estimator
    return _first_step(parts[0])


def _kinds_of_inputs(estimator: Any) -> frozenset[MethodTaskKind]:
    """Return the kinds of tasks whose inputs the first step takes; all kinds if it is not of scikit-learn."""
    first, kinds = _first_step(estimator), KINDS[None]
    if not accepts_label_sets(estimator):
        kinds -= MULTILABEL
    if tags_of(first).input_tags.string:
        return kinds & OF_TEXTS
    return kinds - OF_TEXTS if _is_known(first) else kinds


def _is_known(step: Any) -> bool:
    is_open = hasattr(step, "estimator") or isinstance(step, FunctionTransformer)
    return type(step).__module__.startswith("sklearn.") and not is_open


# What adapts


def unlabeled_steps(estimator: Any, chosen: str | Iterable[str] | None, name: str) -> frozenset[str]:
    """Return the names of the leaves that are fitted on unlabeled rows, by default all that `adapts` selects.

    Raises
    ------
    PluginError
        If nothing adapts to unlabeled rows, a name is unknown, or it is unclear which leaves adapt.
    """
    leaves = leaves_of(estimator)
    adapting = [leaf for leaf, part in leaves.items() if adapts(part) and not is_semi_supervised(part)]
    names = chosen
    if isinstance(chosen, str):
        names = (chosen,)
    if names:
        found = {step: [leaf for leaf in leaves if leaf == step or leaf.startswith(f"{step}__")] for step in names}
        for step, inner in found.items():
            if not inner:
                raise PluginError(
                    f"{name}: no step {step!r} in the {type(estimator).__name__}; its steps are {', '.join(leaves)}"
                )
            if not set(inner) & set(adapting):
                raise PluginError(
                    f"{name}: the step {step} needs labels or learns nothing; choose from {', '.join(adapting)}"
                )
        return frozenset(leaf for inner in found.values() for leaf in inner if leaf in adapting)
    for leaf, part in leaves.items():
        if leaf in adapting and _reads_labels(part):
            raise PluginError(
                f"{name}: the step {leaf} can be fitted with labels and without them. Choose the steps that learn "
                f"from unlabeled rows without labels, with or without {leaf}: unlabeled_step={tuple(adapting)}"
            )
        _refuse_hidden(part, adapting, name)
    if not adapting and not any(map(is_semi_supervised, leaves.values())):
        last = estimator
        if isinstance(estimator, Pipeline):
            last = estimator.steps[-1][1]
        shown = " ".join(repr(last).split())
        raise PluginError(
            f"{name}: unlabeled rows change nothing, because each step of this {type(estimator).__name__} needs labels "
            f"or learns nothing. Put a transformer before it, as in make_pipeline(TfidfVectorizer(), {shown}) for "
            f"texts, or make_pipeline(StandardScaler(), {shown}) for features"
        )
    return frozenset(adapting)


def _refuse_hidden(part: Any, adapting: list[str], name: str) -> None:
    """Refuse a leaf that fits an inner classifier or regressor which adapts, but cannot be given unlabeled rows."""
    if isinstance(part, WRAPPERS) or adapts(part):
        return
    inner = {key: value for key, value in part.get_params().items() if _is_predictor(value) and adapts(value)}
    if not inner:
        return
    hidden = type(inner[min(inner, key=len)]).__name__  # the outermost one
    remedy = "put what adapts before it in a pipeline"
    if adapting:
        remedy += f", or choose the steps that see unlabeled rows: unlabeled_step={tuple(adapting)}"
    raise PluginError(f"{name}: {type(part).__name__} fits its {hidden} without unlabeled rows; {remedy}")


def _is_predictor(part: Any) -> bool:
    return hasattr(part, "fit") and tags_of(part).estimator_type in ("classifier", "regressor")


def adapts(estimator: Any) -> bool:
    """Return whether an estimator learns from unlabeled rows by default, as `TfidfVectorizer` and `PCA` do.

    Transformers that need labels, such as `SelectKBest` and `TargetEncoder`, do not, and neither do those that learn
    nothing, such as `HashingVectorizer`, `Normalizer` and `FrozenEstimator`. Estimators of `sklearn.semi_supervised`
    do. An estimator with parts does if one of its parts does.

    Parameters
    ----------
    estimator
        An estimator or a step of a pipeline.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.preprocessing import Normalizer
    >>> adapts(PCA()), adapts(Normalizer())
    (True, False)
    """
    if isinstance(estimator, CONTAINERS | WRAPPERS):
        return any(map(adapts, parts_of(estimator).values()))
    return is_semi_supervised(estimator) or _learns_without_labels(estimator)


def _learns_without_labels(leaf: Any) -> bool:
    tags = tags_of(leaf)
    is_transformer = hasattr(leaf, "transform") and not _is_predictor(leaf)
    if not is_transformer or isinstance(leaf, FrozenEstimator) or not tags.requires_fit or tags.target_tags.required:
        return False
    is_supervised = type(leaf).__module__.startswith(SUPERVISED_MODULES) and not isinstance(leaf, VarianceThreshold)
    labels = _labels_of_fit(leaf)
    return not is_supervised and (labels is None or labels.default is not labels.empty)


def _labels_of_fit(leaf: Any) -> inspect.Parameter | None:
    fit = getattr(leaf, "fit", None) or leaf.fit_transform
    others = list(inspect.signature(fit).parameters.values())[1:2]
    return next((parameter for parameter in others if parameter.kind is parameter.POSITIONAL_OR_KEYWORD), None)


def _reads_labels(leaf: Any) -> bool:
    """Return whether the `fit` of a transformer that is not of scikit-learn uses labels that it does not need."""
    own = getattr(type(leaf), "fit", None) or type(leaf).fit_transform
    fit, labels = inspect.unwrap(own), _labels_of_fit(leaf)
    if labels is None or fit.__module__.startswith("sklearn.") or not hasattr(fit, "__code__"):
        return False
    try:
        code = ast.parse(textwrap.dedent(inspect.getsource(fit)))
    except (OSError, SyntaxError):  # no source, or a part of a line: the user chooses
        return True
    return any(isinstance(node, ast.Name) and node.id == labels.name for node in ast.walk(code))

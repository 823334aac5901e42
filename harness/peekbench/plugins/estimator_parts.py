"""Estimators as trees of parts, and fits of these in which leaves that learn without labels see unlabeled rows too."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from pandas import concat
from scipy.sparse import issparse, vstack
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

from peekbench.errors import PluginError
from peekbench.identity import key_of

CONTAINERS = Pipeline | FeatureUnion | ColumnTransformer
"""They pass all rows on to their parts."""
ENSEMBLES = VotingClassifier | VotingRegressor | StackingClassifier | StackingRegressor
WRAPPERS = (
    GridSearchCV
    | RandomizedSearchCV
    | CalibratedClassifierCV
    | TransformedTargetRegressor
    | OneVsRestClassifier
    | OneVsOneClassifier
    | FixedThresholdClassifier
    | TunedThresholdClassifierCV
    | ENSEMBLES
)
"""They pass labeled rows with all columns to their parts, which are fitted several times."""


def tags_of(part: Any) -> Any:
    """Return the tags of an estimator or a step; those of a plain estimator if it has none."""
    return getattr(part, "__sklearn_tags__", BaseEstimator().__sklearn_tags__)()


def parts_of(estimator: Any) -> dict[str, Any]:
    """Return the estimators to which an estimator passes its rows, by the names of its parameters; none for a leaf."""
    parts: dict[str, Any] = {}
    if isinstance(estimator, Pipeline):
        parts = dict(estimator.steps)
    elif isinstance(estimator, FeatureUnion):
        parts = dict(estimator.transformer_list)
    elif isinstance(estimator, ColumnTransformer):
        parts = {name: part for name, part, _ in estimator.transformers} | {"remainder": estimator.remainder}
    elif isinstance(estimator, ENSEMBLES):
        parts = dict(estimator.estimators)
    elif isinstance(estimator, WRAPPERS):
        parts = {name: getattr(estimator, name, None) for name in ("estimator", "regressor")}
    # not 'passthrough' or None
    return {name: part for name, part in parts.items() if hasattr(part, "fit") or hasattr(part, "fit_transform")}


def leaves_of(estimator: Any) -> dict[str, Any]:
    """Return the leaves of an estimator by their names, which are those of `get_params`."""
    leaves: dict[str, Any] = {}
    for name, part in parts_of(estimator).items():
        if parts_of(part):
            leaves |= {f"{name}__{inner}": leaf for inner, leaf in leaves_of(part).items()}
        else:
            leaves[name] = part
    return leaves or {type(estimator).__name__.lower(): estimator}


def is_semi_supervised(estimator: Any) -> bool:
    """Return whether an estimator takes unlabeled rows with the label -1."""
    return isinstance(estimator, LabelPropagation | LabelSpreading | SelfTrainingClassifier)


def clone_with_seed(estimator: Any, seed: int) -> Any:
    """Return an unfitted copy; random states that are None become the seed of the fit."""
    cloned = clone_estimator(estimator)
    states = {key: seed for key, value in cloned.get_params().items() if key.endswith("random_state") and value is None}
    return cloned.set_params(**states)


def number_class_parameters(estimator: Any, class_names: Sequence[str], name: str) -> dict[str, Any]:
    """Return the parameters that name classes, with the numbers of classes that fits see.

    Raises
    ------
    PluginError
        If a value is neither the name nor the number of a class.
    """

    def number(label: Any, key: str) -> int:
        if (label_name := key_of(label)) in class_names:
            return class_names.index(str(label_name))
        if label in range(len(class_names)):
            return int(label)
        raise PluginError(f"{name}: {key} names {label!r}, which is no class; classes are {', '.join(class_names)}")

    numbered: dict[str, Any] = {}
    for key, value in estimator.get_params().items():
        if key.endswith("pos_label") and value is not None:
            numbered[key] = number(value, key)
        elif key.endswith("class_weight") and isinstance(value, dict):
            numbered[key] = {number(label, key): weight for label, weight in value.items()}
    return numbered


class Part:
    """A part of an estimator, to be fitted on rows of which only the first ones have labels.

    Containers of scikit-learn pass all rows and these labels on to their parts, so columns are selected and outputs are
    joined as in any fit, and each leaf takes the rows that it may see.

    Parameters
    ----------
    part
        The part.
    names
        Leaves within the part that are fitted on unlabeled rows, by their names; "" is the part itself.
    held
        Unlabeled rows to append to the rows of each fit.
    """

    def __init__(self, part: Any, names: frozenset[str], held: Any = None) -> None:
        self.part = part
        self.names = names
        self.held = held

    def fit(self, rows: Any, labels: Any) -> Self:
        """Fit the part."""
        if self.held is not None:
            rows = stack_rows(rows, self.held)
        train, others = self._start(rows, labels)
        if isinstance(self.part, CONTAINERS):
            self.part_.fit(rows, labels)
        elif "" in self.names:
            fit = getattr(self.part_, "fit", None) or self.part_.fit_transform
            fit(rows)
        elif is_semi_supervised(self.part) and others is not None:
            self.part_.fit(rows, np.append(labels, np.full(count_rows(others), -1)))
        elif isinstance(self.part, SelfTrainingClassifier):  # which warns that no row is unlabeled
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                self.part_.fit(train, labels)
        else:  # in the block above, each fit would repeat warnings that are shown once
            self.part_.fit(train, labels)
        return self

    def _start(self, rows: Any, labels: Any) -> tuple[Any, Any]:
        """Copy the part and prepare its own parts; return the rows with labels and those without."""
        self.part_ = clone_estimator(self.part)
        train, others = divide_rows(rows, len(labels))
        passes_all = isinstance(self.part, CONTAINERS)
        held = others
        if passes_all:
            held = None
        own = {}
        for name, child in parts_of(self.part_).items():
            names = frozenset(
                full_name.removeprefix(name).removeprefix("__")
                for full_name in self.names
                if full_name == name or full_name.startswith(f"{name}__")
            )
            if passes_all or names or any(map(is_semi_supervised, leaves_of(child).values())):
                own[name] = part_type(child)(child, names, held)
        if own:
            self.part_.set_params(**own)
        return train, others

    # What scikit-learn asks of an estimator in a container, a search or an ensemble

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the fitted part."""
        if name.startswith("__") or name in ("part", "part_"):
            raise AttributeError(name)
        return getattr(self.__dict__.get("part_", self.part), name)

    def __sklearn_clone__(self) -> Part:
        """Return an unfitted copy."""
        return type(self)(clone_estimator(self.part), self.names, self.held)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the part."""
        return tags_of(self.part)

    def set_params(self, **values: Any) -> Self:
        """Set parameters of the part, as a search does."""
        self.part.set_params(**values)
        return self


class TransformerPart(Part):
    """A part that is not a step of imbalanced-learn."""

    def fit_transform(self, rows: Any, labels: Any) -> Any:
        """Fit the part, and transform the rows."""
        if "" in self.names:
            return self.fit(rows, labels).transform(rows)
        train, others = self._start(rows, labels)
        if isinstance(self.part, CONTAINERS):
            return self.part_.fit_transform(rows, labels)
        if hasattr(self.part_, "fit_transform"):  # that of TargetEncoder returns other rows than `transform`
            transformed = self.part_.fit_transform(train, labels)
        else:
            transformed = self.part_.fit(train, labels).transform(train)
        if others is None:
            return transformed
        return stack_rows(transformed, self.part_.transform(others))


class SamplerPart(Part):
    """A step of imbalanced-learn, which changes the rows with labels and passes on the others."""

    def fit_resample(self, rows: Any, labels: Any) -> tuple[Any, Any]:
        """Return the resampled rows with labels, the other rows after them, and the labels."""
        train, others = self._start(rows, labels)
        resampled, labels = self.part_.fit_resample(train, labels)
        if others is not None:
            resampled = stack_rows(resampled, others)
        return resampled, labels


def part_type(part: Any) -> type[Part]:
    """Return the class that wraps a part."""
    if hasattr(part, "fit_resample"):
        return SamplerPart
    return TransformerPart


def clone_estimator(estimator: Any) -> Any:
    """Return an unfitted copy of an estimator, or of a step that has no `get_params`."""
    return clone(estimator, safe=False)


def count_rows(rows: Any) -> int:
    """Return the number of rows."""
    if hasattr(rows, "shape"):
        return int(rows.shape[0])
    return len(rows)


def divide_rows(rows: Any, count: int) -> tuple[Any, Any]:
    """Return the first rows and the others; None if there are no others."""
    if count == count_rows(rows):
        return rows, None
    if hasattr(rows, "tocsr"):
        rows = rows.tocsr()
    rows = getattr(rows, "iloc", rows)
    return rows[:count], rows[count:]


def stack_rows(first: Any, second: Any) -> Any:
    """Return the rows of two lists, arrays, sparse matrices or data frames below each other."""
    if isinstance(first, list):
        return first + second
    if hasattr(first, "iloc"):  # of a step with set_output(transform="pandas")
        return concat([first, second], ignore_index=True)
    rows: Any = [first, second]
    if issparse(first):
        return vstack(rows).tocsr()
    return np.concatenate(rows)

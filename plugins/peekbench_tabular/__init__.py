"""Tabular tasks, from files or synthetic, and unsupervised steps before a linear model."""

from __future__ import annotations

from functools import partial
from typing import Literal

from pydantic import Field, model_validator

from peekbench import DataSourceEntry, MethodEntry, Options, hookimpl
from peekbench.plugins import Preparation
from peekbench_tabular.options import FileOptions


class Synthetic(Options):
    """Options of `tabular.regression` and `tabular.classification`."""

    num_rows: int = Field(default=1100, ge=2)
    """Number of rows; a design needs num_train + 2 x num_test of them."""
    num_features: int = Field(default=20, ge=1)
    """Number of columns."""
    num_informative: int = Field(default=10, ge=1)
    """Number of columns that the target depends on."""
    effective_rank: int | None = Field(default=None, ge=1)
    """Approximate number of directions that explain most of the features' variance; features are then smaller the more
    rows there are. By default, features are independent and standard normal."""
    noise: float = Field(default=1.0, ge=0)
    """Standard deviation of the noise added to the linear target, whose coefficients are uniform between 0 and 100."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the data set."""

    @model_validator(mode="after")
    def _check_num_informative(self) -> Synthetic:
        if self.num_informative > self.num_features:
            raise ValueError(f"num_informative {self.num_informative} is more than num_features {self.num_features}")
        return self


class Prepared(Options):
    """What happens to columns in the same way in all arms."""

    prepare: bool = False
    """First replace missing values by the means of the train rows, and scale each column by the range of the train
    rows, as columns with different units need it."""


class Pca(Prepared):
    """Options of `tabular.pca`."""

    num_components: int = Field(default=3, ge=1)
    """Number of components to keep."""


class Screening(Prepared):
    """Options of `tabular.screening`."""

    num_features: int = Field(default=3, ge=1)
    """Number of features to keep: those with the largest variance among the unlabeled rows."""


class Standardize(Options):
    """Options of `tabular.standardize`."""

    penalty: float = Field(default=0.0, ge=0)
    """L2 penalty of the linear model, as in scikit-learn's `Ridge(alpha)` and `LogisticRegression(C=1 / penalty)`. At
    0, standardization changes no prediction of a linear regression with more train rows than features. Classification
    uses at least 0.000001, because classes may be separable."""


class Impute(Options):
    """Options of `tabular.impute`."""

    strategy: Literal["mean", "median", "most_frequent", "knn"] = "mean"
    """What replaces a missing value: a statistic of its column among the unlabeled rows, or the mean of the 5 unlabeled
    rows that are nearest in the other columns."""
    penalty: float | None = Field(default=None, ge=0)
    """L2 penalty of the linear model on features that are scaled by train. Default: 1 for classes, 0 for numbers."""


@hookimpl
def peekbench_data_sources() -> list[DataSourceEntry]:
    """Register tasks from files, and synthetic tasks."""
    entry = partial(DataSourceEntry, options=Synthetic)
    return [
        DataSourceEntry(
            name="file",
            options=FileOptions,
            load="peekbench_tabular.file:load",
            summary="numbers and categories in a CSV, TSV or Parquet file",
        ),
        entry(
            name="regression",
            load="peekbench_tabular.synthetic:regression",
            summary="synthetic linear regression with features of a given effective rank",
        ),
        entry(
            name="classification",
            load="peekbench_tabular.synthetic:classification",
            summary="as regression, with two classes: targets above and below the median",
        ),
    ]


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    """Register the methods."""
    entry = partial(MethodEntry, task_kinds=frozenset({"tabular_classification", "regression"}))
    complete = Preparation(check_data="peekbench_tabular.methods:check_rows")
    step = partial(entry, base="linear", preparation=complete)
    return [
        step(
            name="pca",
            options=Pca,
            method="peekbench_tabular.methods:pca",
            summary="principal components of the unlabeled rows, then a linear model: biased up",
            unlabeled_options=frozenset({"num_components"}),
        ),
        step(
            name="screening",
            options=Screening,
            method="peekbench_tabular.methods:screening",
            summary="features with the largest variance among the unlabeled rows, then a linear model: biased up or "
            "down",
            unlabeled_options=frozenset({"num_features"}),
        ),
        entry(
            name="standardize",
            options=Standardize,
            preparation=complete,
            method="peekbench_tabular.methods:standardize",
            summary="features scaled by the unlabeled rows, then a linear model with an optional penalty",
        ),
        entry(
            name="impute",
            options=Impute,
            method="peekbench_tabular.methods:impute",
            summary="missing values imputed from the unlabeled rows, then a linear model",
        ),
    ]

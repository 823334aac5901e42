"""Tables of numbers: synthetic tasks, and unsupervised steps before a linear model whose bias theory predicts."""

from __future__ import annotations

from functools import partial

from pydantic import Field, model_validator

from peekbench import DataSourceEntry, MethodEntry, Options, hookimpl
from peekbench_tabular.methods import pca, screening, standardize
from peekbench_tabular.synthetic import classification, regression


class Synthetic(Options):
    num_rows: int = Field(default=1100, ge=2)
    """Rows to make up; a design takes num_train + 2 x num_test of them."""
    num_features: int = Field(default=20, ge=1)
    """Columns."""
    num_informative: int = Field(default=10, ge=1)
    """Columns that the target depends on."""
    effective_rank: int | None = Field(default=None, ge=1)
    """About how many directions hold most of the features' variance, and features are then the smaller the more rows
    there are; left out: independent standard normal features."""
    noise: float = Field(default=1.0, ge=0)
    """Standard deviation of what is added to the linear target; coefficients are uniform between 0 and 100."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Another seed, another data set."""

    @model_validator(mode="after")
    def _features_enough(self) -> Synthetic:
        if self.num_informative > self.num_features:
            raise ValueError(f"num_informative {self.num_informative} is more than num_features {self.num_features}")
        return self


class Pca(Options):
    num_components: int = Field(default=3, ge=1)
    """Components to keep."""


class Screening(Options):
    num_features: int = Field(default=3, ge=1)
    """Features to keep: those that vary most among the unlabeled rows."""


class Standardize(Options):
    penalty: float = Field(default=0.0, ge=0)
    """L2 penalty of the linear model, as scikit-learn's `Ridge(alpha)` and `LogisticRegression(C=1 / penalty)`; at 0,
    standardization changes no prediction of a linear regression with more train rows than features. Classification has
    0.000001 at the least, because classes may be separable."""


@hookimpl
def peekbench_data_sources() -> list[DataSourceEntry]:
    entry = partial(DataSourceEntry, options=Synthetic)
    return [
        entry(
            name="regression",
            load=regression,
            summary="synthetic linear regression, features of a given effective rank",
        ),
        entry(
            name="classification",
            load=classification,
            summary="as regression, with two classes: whether the target is above its median",
        ),
    ]


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    entry = partial(MethodEntry, task_kinds=frozenset({"classification", "regression"}))
    step = partial(entry, base="linear")
    return [
        step(
            name="pca",
            options=Pca,
            method=pca,
            summary="principal components of the unlabeled rows, then a linear model: biased up",
            unlabeled_options=frozenset({"num_components"}),
        ),
        step(
            name="screening",
            options=Screening,
            method=screening,
            summary="the features that vary most among the unlabeled rows, then a linear model: biased up or down",
            unlabeled_options=frozenset({"num_features"}),
        ),
        entry(
            name="standardize",
            options=Standardize,
            method=standardize,
            summary="features scaled by the unlabeled rows, then a linear model with a penalty or none",
        ),
    ]

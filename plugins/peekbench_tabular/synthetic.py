"""Linear tasks from scikit-learn's `make_regression`, the generator of the study's PCA experiment."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import __version__
from sklearn.datasets import make_regression

from peekbench import Dataset, Folders
from peekbench.records import FloatArray
from peekbench_tabular import Synthetic


def regression(*, options: Synthetic, folders: Folders) -> Dataset:
    """Generate features of a given effective rank and a noisy linear target.

    Source: Appendix G of arXiv 2410.00179 for the sizes; with `seed` 123 these are the same data sets.

    Parameters
    ----------
    options
        Sizes, effective rank, noise and seed.
    folders
        Not used.

    Returns
    -------
    Dataset
        Features (num_rows, num_features) and targets (num_rows,).
    """
    features, target = _generate(options)
    return Dataset(features, target, kind="regression", details=_details(options))


def classification(*, options: Synthetic, folders: Folders) -> Dataset:
    """Generate the same rows with two classes of equal size, and features scaled to a mean square of 1.

    Without the scaling, features of a low effective rank would be so small that any penalty would dominate.

    Parameters
    ----------
    options
        Sizes, effective rank, noise and seed.
    folders
        Not used.

    Returns
    -------
    Dataset
        Features (num_rows, num_features) and classes (num_rows,).
    """
    features, target = _generate(options)
    is_above = target > np.median(target)
    scaled = features / np.sqrt(np.mean(features**2))
    return Dataset(scaled, is_above.astype(np.int64), ("below", "above"), details=_details(options))


def _generate(options: Synthetic) -> tuple[FloatArray, FloatArray]:
    features, target = make_regression(
        n_samples=options.num_rows,
        n_features=options.num_features,
        n_informative=options.num_informative,
        effective_rank=options.effective_rank,
        noise=options.noise,
        random_state=options.seed,
    )
    return features, target


def _details(options: Synthetic) -> dict[str, Any]:
    return {"version": f"scikit-learn {__version__}", "effective_rank": options.effective_rank}

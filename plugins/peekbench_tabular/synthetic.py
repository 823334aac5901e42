"""Linear tasks by scikit-learn's `make_regression`, the generator of the study's PCA experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peekbench import Dataset, Folders
from peekbench.records import FloatArray

if TYPE_CHECKING:
    from peekbench_tabular import Synthetic


def regression(*, options: Synthetic, folders: Folders) -> Dataset:
    """Features of a given effective rank and a noisy linear target.

    Source: Appendix G of arXiv 2410.00179 for the sizes; with `seed` 123 these are its very data sets.
    """
    features, target = _draw(options)
    return Dataset(features, target, kind="regression", details=_details(options))


def classification(*, options: Synthetic, folders: Folders) -> Dataset:
    """The same rows in two classes of equal size, the features divided by one number so that their mean square is 1.

    Without that, features of a low effective rank would be so small that any penalty hid them.
    """
    import numpy as np

    features, target = _draw(options)
    above = target > np.median(target)
    scaled = features / np.sqrt(np.mean(features**2))
    return Dataset(scaled, above.astype(np.int64), ("below", "above"), details=_details(options))


def _draw(options: Synthetic) -> tuple[FloatArray, FloatArray]:
    from sklearn.datasets import make_regression

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
    from sklearn import __version__

    return {"version": f"scikit-learn {__version__}", "effective_rank": options.effective_rank}

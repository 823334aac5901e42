"""Compares the scores of audited texts with those of texts that cannot have been seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from peekbench.records import FloatArray

NUM_PERMUTATIONS = 4_999  # so a p-value is a multiple of 1 / 5,000
TOLERANCE = 1e-9  # relative difference below which two sums are equal
CACHED = 2  # sets of exchanges, of up to some 80 MB each


@dataclass(frozen=True, slots=True)
class Groups:
    """Audited texts, followed by unseen texts, and random exchanges of texts between the two groups.

    Examples
    --------
    >>> Groups(num_audited=2, num_unseen=3).weights.shape
    (5000, 5)
    """

    num_audited: int
    num_unseen: int
    seed: int = 0

    @property
    def weights(self) -> FloatArray:
        """Weights of the texts in the mean of the audited minus that of the unseen texts; shape `(1 + num, n)`.

        The first row stands for the actual groups, the others for random exchanges.
        """
        return _weights(self.num_audited, self.num_unseen, self.seed)

    def mean_differences(self, values: FloatArray) -> FloatArray:
        """Return the mean of the audited texts minus that of the unseen ones, then the same for random exchanges.

        Parameters
        ----------
        values
            One value per text; shape `(n,)`.

        Returns
        -------
        array of shape `(1 + NUM_PERMUTATIONS,)`
        """
        differences: FloatArray = self.weights @ (values - values.mean())
        return differences


@lru_cache(maxsize=CACHED)
def _weights(num_audited: int, num_unseen: int, seed: int) -> FloatArray:
    """Return the weights of texts in differences of means; the first row is that of the actual groups."""
    size = num_audited + num_unseen
    weights = np.full((1 + NUM_PERMUTATIONS, size), -1 / num_unseen)
    weights[0, :num_audited] = 1 / num_audited
    generator = np.random.default_rng([seed, num_audited, num_unseen])
    for row in weights[1:]:
        row[generator.permutation(size)[:num_audited]] = 1 / num_audited
    weights.setflags(write=False)
    return weights


def permutation_p(statistics: FloatArray) -> float:
    """Return the share of exchanges, the actual groups included, whose statistic is at least that of the actual groups.

    If audited and unseen texts are exchangeable, it is at most p with a probability of at most p (Phipson and Smyth
    2010, https://doi.org/10.2202/1544-6115.1585).

    Parameters
    ----------
    statistics
        The statistic of the actual groups, then those of random exchanges.

    Examples
    --------
    >>> permutation_p(np.array([3.0, 1.0, 2.0, 5.0]))
    0.5
    """
    scale = max(float(np.abs(statistics).max()), np.finfo(np.float64).tiny)
    return float((statistics >= statistics[0] - TOLERANCE * scale).mean())


@dataclass(frozen=True, slots=True)
class Comparison:
    """Scores of audited texts compared with those of unseen texts."""

    difference: float
    """Mean score of the audited texts minus that of the unseen texts."""
    adjusted: float
    """The same difference of scores after adjustment for what else affects them."""
    p: float
    """Probability of an adjusted difference at least this high, if the texts are exchangeable."""


def compare_scores(scores: FloatArray, covariates: Sequence[FloatArray], groups: Groups) -> Comparison:
    """Test whether audited texts have higher scores than unseen ones, given covariates.

    The test permutes the residuals of a linear regression of the scores on the covariates over all texts. The
    regression does not know the groups, so the test is exact if the texts are exchangeable. Covariates that explain
    differences between texts, such as their length or the score of another model, increase its power.

    Parameters
    ----------
    scores
        Score of each text, the audited ones first; shape `(n,)`.
    covariates
        Values of each text; shape `(n,)` each.
    groups
        The two groups.

    Examples
    --------
    >>> scores = np.array([2.0, 2.1, 1.9, 2.2, 1.0, 1.1, 0.9, 1.2])
    >>> compare_scores(scores, [], Groups(4, 4)).p < 0.05
    True
    """
    design = np.column_stack([np.ones(len(scores)), *covariates])
    coefficients, *_ = np.linalg.lstsq(design, scores, rcond=None)
    residuals = scores - design @ coefficients
    differences = groups.mean_differences(residuals)
    raw = float(scores[: groups.num_audited].mean() - scores[groups.num_audited :].mean())
    return Comparison(raw, float(differences[0]), permutation_p(differences))

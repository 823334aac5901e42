"""The excess of a model's score over the score that reference models predict for it, with its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.interpolate import BSpline
from scipy.stats import t

from peekbench.errors import ResultsError
from peekbench.records import FloatArray, IntArray

DEGREE = 3
NUM_SEGMENTS = 8
PENALTIES = 10.0 ** np.arange(6.0, -2.5, -0.5)
"""Penalties to choose from, as multiples of the number of points; the first gives a straight line."""
COST_OF_FREEDOM = 1.4  # plain cross-validation follows the noise of a few points
UNITS_PER_FREEDOM = 3  # the curve has at most one degree of freedom for so many independent points
RIDGE = 1e-9  # keeps the equations solvable if a resample has a single point or family
RELATIVE_RIDGE = 1e-12  # of the penalty, whose rounding errors would hide a smaller ridge


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve, or many with the same knots."""

    knots: FloatArray
    coefficients: FloatArray
    """(n_basis,), or (n_curves, n_basis)."""
    penalty: float
    """Multiple of the number of points."""
    freedom: float
    """Effective degrees of freedom: the trace of the matrix that maps observed to fitted values."""

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the values of one curve at x (n,), or those of each curve at its x (n_curves, n)."""
        values: FloatArray = (_make_basis(self.knots, x) @ self.coefficients[..., None])[..., 0]
        return values


def fit_curve(x: FloatArray, y: FloatArray, span: tuple[float, float], num_units: int | None = None) -> Curve:
    """Fit a P-spline, with the penalty on second differences that generalized cross-validation chooses.

    Sources: Eilers and Marx (1996), https://doi.org/10.1214/ss/1038425655, for the spline, whose penalty is the
    discrete form of a smoothing spline's; Golub, Heath and Wahba (1979), https://doi.org/10.2307/1268518, for the
    criterion, in which a degree of freedom counts 1.4 times (Kim and Gu 2004,
    https://doi.org/10.1046/j.1369-7412.2003.05316.x).

    Parameters
    ----------
    x, y
        Points: (n,) each.
    span
        Interval that the knots cover; values beyond it count as its ends.
    num_units
        Number of independent units among the points, such as families. By default, all points are independent.

    Returns
    -------
    Curve
        The curve, at least as smooth as one degree of freedom for three units allows.
    """
    knots = _place_knots(span)
    basis = _make_basis(knots, x)
    smallest, best = np.inf, None
    for penalty in PENALTIES:
        solved = np.linalg.solve(_equations(basis, np.ones(len(x)), penalty), basis.T)
        freedom = float(np.einsum("nk,kn->", basis, solved))
        if best is not None and freedom > (num_units or len(x)) / UNITS_PER_FREEDOM:
            break
        coefficients = solved @ y
        errors = y - basis @ coefficients
        criterion = float(errors @ errors) / max(len(x) - COST_OF_FREEDOM * freedom, RIDGE) ** 2
        if criterion < smallest:
            smallest, best = criterion, Curve(knots, coefficients, float(penalty), freedom)
    assert best is not None  # the criterion is finite
    return best


def refit(curve: Curve, x: FloatArray, y: FloatArray, weights: FloatArray) -> Curve:
    """Fit the curve with the same penalty to other points.

    Parameters
    ----------
    curve
        The curve to fit again.
    x, y
        Points: (n_curves, n) each.
    weights
        Weights of the points, such as the number of times that each is in a resample: (n_curves, n).

    Returns
    -------
    Curve
        As many curves.
    """
    basis = _make_basis(curve.knots, x)
    targets = (weights * y)[..., None, :] @ basis
    coefficients = np.linalg.solve(_equations(basis, weights, curve.penalty), targets.swapaxes(-1, -2))[..., 0]
    return Curve(curve.knots, coefficients, curve.penalty, curve.freedom)


def _place_knots(span: tuple[float, float]) -> FloatArray:
    low, high = span
    step = (high - low) / NUM_SEGMENTS
    return low + step * np.arange(-DEGREE, NUM_SEGMENTS + DEGREE + 1)


def _make_basis(knots: FloatArray, x: FloatArray) -> FloatArray:
    """Return the values of the basis functions: (..., n) to (..., n, n_basis)."""
    inside = np.clip(x, knots[DEGREE], knots[-DEGREE - 1])
    values: FloatArray = BSpline.design_matrix(inside.ravel(), knots, DEGREE).toarray()
    return values.reshape(*x.shape, -1)


def _equations(basis: FloatArray, weights: FloatArray, penalty: float) -> FloatArray:
    """Return the matrices of the normal equations: (..., n_basis, n_basis)."""
    num_basis, num_points = basis.shape[-1], basis.shape[-2]
    differences = np.diff(np.eye(num_basis), n=2, axis=0)
    smoothness = num_points * penalty * differences.T @ differences
    ridge = max(RIDGE, RELATIVE_RIDGE * num_points * penalty)
    products: FloatArray = (basis * weights[..., None]).swapaxes(-1, -2) @ basis
    equations: FloatArray = products + smoothness + ridge * np.eye(num_basis)
    return equations


MIN_SAMPLES = 20  # rows of a model that stand for the texts they were drawn from


@dataclass(frozen=True, slots=True)
class Scores:
    """Accuracies of several models on one benchmark."""

    names: tuple[str, ...]
    """Labels of the models."""
    num_answers: IntArray
    """Number of answers of each model: (n_models,)."""
    observed: FloatArray
    """(n_models,)."""
    resampled: FloatArray
    """(n_resamples, n_models)."""

    def select(self, names: tuple[str, ...]) -> Scores:
        """Return the scores of some of the models, in the order given."""
        positions = [self.names.index(name) for name in names]
        return Scores(names, self.num_answers[positions], self.observed[positions], self.resampled[:, positions])


def read_scores(results: pd.DataFrame, task: str, num_resamples: int, rng: np.random.Generator) -> Scores:
    """Read the scores of all models on a task and resample them.

    A model with several rows has one for each sample, such as a text. Then all models answer the same resample of the
    samples. Otherwise a row has all answers of a model, and their resamples are binomial.

    Parameters
    ----------
    results
        Rows of the results table with a column `label`, the label of the model.
    task
        The benchmark.
    num_resamples
        Number of resamples.
    rng
        Generator of random numbers.

    Raises
    ------
    ResultsError
        If scores are not accuracies, if a model has several scores for a sample, or if models have few samples, or
        different ones.
    """
    rows = results[results["task"] == task]
    if rows["num_correct"].isna().any():
        raise ResultsError(
            f"constat: the scores of the task {task} are not accuracies out of a known number of texts; add the column "
            "'num_test'"
        )
    _check_sizes(task, rows)
    wide = rows.pivot(index="subsample", columns="label", values=["num_correct", "num_scored"])
    correct, sizes = (
        wide[column].to_numpy(dtype=np.float64, na_value=np.nan) for column in ("num_correct", "num_scored")
    )
    names = tuple(map(str, wide["num_scored"].columns))
    counts = (~np.isnan(sizes)).sum(axis=0)
    if counts.max() == 1:
        correct, sizes = np.nansum(correct, axis=0), np.nansum(sizes, axis=0)
        observed = correct / sizes
        resampled = rng.binomial(sizes.astype(np.int64), observed, (num_resamples, len(names))) / sizes
        return Scores(names, sizes.astype(np.int64), observed, resampled)
    _check_samples(task, names, counts, len(wide))
    num_samples = len(wide)
    weights = rng.multinomial(num_samples, np.full(num_samples, 1 / num_samples), num_resamples).astype(np.float64)
    totals = sizes.sum(axis=0)
    return Scores(names, totals.astype(np.int64), correct.sum(axis=0) / totals, (weights @ correct) / (weights @ sizes))


def _check_sizes(task: str, rows: pd.DataFrame) -> None:
    repeated = rows[rows.duplicated(["label", "subsample"], keep=False)]
    if not repeated.empty:
        name = str(repeated["label"].iloc[0])
        sizes = sorted(repeated.loc[repeated["label"] == name, "num_test"].astype(int).unique())
        listed = " and ".join(f"{size:,}" for size in sizes)
        raise ResultsError(
            f"constat: {name} has scores on the task {task} with num_test {listed}, "
            "but one score for each model is needed; keep one of these sizes (in a spec: num_test: "
            f"{sizes[-1]}), or give them different task names, such as {task}-n{sizes[0]}"
        )


def _check_samples(task: str, names: tuple[str, ...], counts: IntArray, num_samples: int) -> None:
    if counts.min() < num_samples:
        name = names[int(counts.argmin())]
        raise ResultsError(
            f"constat: {name} has {counts.min()} of the {num_samples} rows that models have on the task {task}; give "
            "the rows of the same samples for all models, or one row with the counts of all samples for each model"
        )
    if num_samples < MIN_SAMPLES:
        raise ResultsError(
            f"constat: models have {num_samples} rows each on the task {task}, too few to resample; give "
            f"at least {MIN_SAMPLES}, such as one for each text, or one row with the sums of num_correct and num_test"
        )


@dataclass(frozen=True, slots=True)
class Excess:
    """What the reference models tell about the score of one model."""

    predicted: float
    """Score that the curve predicts."""
    estimate: float
    """Score minus predicted score."""
    standard_error: float
    freedom: float
    """Degrees of freedom of the standard error."""
    resampled: FloatArray
    """The estimate in each resample of models and texts: (n_resamples,)."""

    @property
    def p_value(self) -> float:
        """Two-sided p-value of the hypothesis that the model is like the reference models."""
        return float(2 * t.sf(abs(self.estimate) / self.standard_error, self.freedom))

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the interval of the excess with coverage 1 - alpha."""
        half_width = float(t.isf(alpha / 2, self.freedom)) * self.standard_error
        return self.estimate - half_width, self.estimate + half_width


@dataclass(frozen=True, slots=True)
class Prediction:
    """The curve that predicts scores on the original benchmark from those on the reference benchmark."""

    curve: Curve
    resampled: Curve
    """The curve in each resample of models and texts."""
    scatter: float
    """Standard deviation of models around the curve, beyond the uncertainty of their scores."""
    freedom: float
    """Number of families of reference models, minus the curve's degrees of freedom."""
    span: tuple[float, float]
    """Lowest and highest reference score of the reference models."""

    def covers(self, score: float) -> bool:
        """Return whether a reference score lies in the range of the reference models."""
        return self.span[0] <= score <= self.span[1]

    def compare(self, original: Scores, reference: Scores) -> Excess:
        """Compare the score of a model, which is not a reference model, with its prediction.

        Parameters
        ----------
        original, reference
            Scores of this model only.
        """
        predicted = float(self.curve(reference.observed)[0])
        resampled = (original.resampled - self.resampled(reference.resampled))[:, 0]
        return Excess(
            predicted,
            float(original.observed[0]) - predicted,
            float(np.sqrt(resampled.var(ddof=1) + self.scatter**2)),
            self.freedom,
            resampled,
        )

    def band(self, x: FloatArray, num_answers: float, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the limits of scores at x (n,) that models like the reference models have, each with 1 - alpha."""
        center = self.curve(x)
        values = self.resampled(np.broadcast_to(x, (len(self.resampled.coefficients), len(x))))
        sampling = np.clip(center * (1 - center), 0, None) / num_answers
        spread = t.isf(alpha / 2, self.freedom) * np.sqrt(values.var(axis=0, ddof=1) + self.scatter**2 + sampling)
        return center - spread, center + spread


def predict_scores(
    original: Scores, reference: Scores, rng: np.random.Generator, families: IntArray | None = None
) -> Prediction:
    """Fit the curve to the reference models.

    Its uncertainty, and that of the scores, come from resamples of the models and of the texts, as in ConStat
    (Dekoninck et al. 2024, https://doi.org/10.48550/arXiv.2405.16281). Models also scatter around the curve without
    being contaminated. The variance of their scatter is the mean of the squared leave-one-out residuals, minus what the
    resamples explain. Without it, as in ConStat, many clean models seem to be contaminated.

    Models of a family resemble each other, so they are resampled and left out together, and count as one in the mean
    and in the degrees of freedom.

    Parameters
    ----------
    original, reference
        Scores of the reference models on both benchmarks.
    rng
        Generator of random numbers.
    families
        Numbers of the models' families, from 0: (n_models,). By default, each model is a family of its own.
    """
    x, y = reference.observed, original.observed
    num_resamples, num_models = reference.resampled.shape
    families = np.arange(num_models) if families is None else families
    num_families = int(families.max()) + 1
    span = float(reference.resampled.min()), float(reference.resampled.max())
    curve = fit_curve(x, y, span, num_families)
    weights = rng.multinomial(num_families, np.full(num_families, 1 / num_families), num_resamples).astype(np.float64)
    curves = refit(curve, reference.resampled, original.resampled, weights[:, families])
    explained = (original.resampled - curves(reference.resampled)).var(axis=0, ddof=1)
    is_other = (np.arange(num_families)[:, None] != families).astype(np.float64)
    shape = is_other.shape
    without = refit(curve, np.broadcast_to(x, shape), np.broadcast_to(y, shape), is_other)
    left_out = y - without(np.broadcast_to(x, shape))[families, np.arange(num_models)]
    beyond = np.bincount(families, left_out**2 - explained) / np.bincount(families)
    return Prediction(
        curve,
        curves,
        float(np.sqrt(max(0.0, float(beyond.mean())))),
        num_families - curve.freedom,
        (float(x.min()), float(x.max())),
    )

"""Many linear systems with the same matrix except for its diagonal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from peekbench.records import FloatArray

TOLERANCE = 1e-14  # relative norm of the residuals
MAX_ITERATIONS = 100


def solve_shifted(matrix: FloatArray, shifts: FloatArray) -> FloatArray:
    """Return the solution x of (matrix + diag(w)) x = w for each row w of the shifts: (n, size).

    Source: conjugate gradients of all systems at once, with the inverse of the matrix as preconditioner (Saad 2003,
    "Iterative methods for sparse linear systems", algorithm 9.1). They need few steps if each shift changes few
    entries of the diagonal much. Systems that need too many are solved directly.

    Parameters
    ----------
    matrix
        Symmetric positive definite matrix: (size, size).
    shifts
        Shifts of its diagonal, at least 0: (n, size).

    Raises
    ------
    LinAlgError
        If the matrix or a shifted matrix is singular.

    Examples
    --------
    >>> solve_shifted(np.array([[2.0, -1.0], [-1.0, 2.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])).round(6).tolist()
    [[0.0, 0.0], [0.5, 0.5]]
    """
    inverse = np.linalg.inv(matrix)
    solutions, residuals = np.zeros_like(shifts), shifts.copy()
    directions = residuals @ inverse
    norms = _row_products(residuals, directions)
    bounds = TOLERANCE**2 * norms
    for _ in range(MAX_ITERATIONS):
        is_open = ~(np.abs(norms) <= bounds)  # also if it is not a number
        if not is_open.any():
            break
        products = directions @ matrix + shifts * directions
        lengths = _divide(norms, _row_products(directions, products), is_open)
        solutions += lengths * directions
        residuals -= lengths * products
        preconditioned = residuals @ inverse
        previous, norms = norms, _row_products(residuals, preconditioned)
        directions = preconditioned + _divide(norms, previous, is_open) * directions
    for row in np.flatnonzero(~(np.abs(norms) <= bounds)):
        solutions[row] = solve(matrix + np.diag(shifts[row]), shifts[row], assume_a="pos")
    return solutions


def _row_products(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the inner product of each pair of rows: (n,)."""
    products: FloatArray = np.einsum("ij,ij->i", first, second)
    return products


def _divide(numerators: FloatArray, denominators: FloatArray, is_open: NDArray[np.bool_]) -> FloatArray:
    """Return the quotients of the systems that are not solved yet, and 0 for the others: (n, 1)."""
    return np.divide(numerators, denominators, out=np.zeros_like(numerators), where=is_open)[:, None]

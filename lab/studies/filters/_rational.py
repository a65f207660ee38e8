r"""Below the floor of the polynomials: a rational filter with as many coefficients.

.. math:: r(L) = c_0 + \sum_m \mathrm{Re}\big(c_m (L - z_m)^{-1}\big)

Five pairs of conjugate poles and a constant are 11 real coefficients, as many as a polynomial of
degree 10 has. Here the poles come from the formula of the filter and not from the images, and
each pole costs a sparse factorisation of the grid, once for all images, and one solve per image.
(Solved by an iteration of products with P instead, the result would again be a polynomial of P
of as high a degree as there were products, and could not beat the best one.)
"""

from collections.abc import Callable

import numpy as np
import scipy.optimize
import scipy.sparse as sp
import scipy.sparse.linalg
from torch import Tensor

from lab.studies.filters._task import grid_operator
from longnn.data._images import ImageGrid

Array = np.ndarray
PAIRS = 5


def find_poles(response: Callable[[Array], Array], *, pairs: int = PAIRS) -> Array:
    """Poles in the upper half plane under which the rational fit to a filter on [0, 2] is best.

    Least squares over the poles on Chebyshev points; the coefficients, linear, are solved for
    inside (variable projection). A local optimum from an even start.

    >>> find_poles(lambda t: 1 / (1 + t), pairs=1).shape
    (1,)
    """
    points = 1 - np.cos((np.arange(400) + 0.5) * np.pi / 400)
    wanted = response(points)

    def poles(raw: Array) -> Array:
        return raw[:pairs] + 1j * np.exp(raw[pairs:])

    def residual(raw: Array) -> Array:
        design = _columns(1 / (points[:, None] - poles(raw)))
        return design @ np.linalg.lstsq(design, wanted, rcond=None)[0] - wanted

    start = np.concatenate([np.linspace(0.1, 1.9, pairs), np.full(pairs, np.log(0.4))])
    found = scipy.optimize.least_squares(residual, start, max_nfev=400)
    return poles(found.x)


def _columns(inverse: Array) -> Array:
    """A constant and the two real columns of each pole."""
    return np.concatenate([np.ones((len(inverse), 1)), inverse.real, inverse.imag], axis=1)


def factorize(grid: ImageGrid, poles: Array) -> list[scipy.sparse.linalg.SuperLU]:
    """L - z for every pole, factorised."""
    P = grid_operator(grid).matrix.to_scipy()
    eye = sp.eye_array(grid.num_nodes)
    return [scipy.sparse.linalg.splu(sp.csc_array((1 - z) * eye - P)) for z in poles]


def fit_rational(
    factors: list[scipy.sparse.linalg.SuperLU],
    x: Tensor,  # (nodes,)
    y: Tensor,  # (nodes,)
    mask: Tensor,  # (nodes,)
) -> float:
    """The loss of the best coefficients for one image."""
    keep = mask.numpy()
    signal = x.numpy().astype(complex)
    solved = np.stack([factor.solve(signal)[keep] for factor in factors], axis=1)
    design = np.concatenate([x.numpy()[keep, None], solved.real, solved.imag], axis=1)
    wanted = y.numpy()[keep]
    solution = np.linalg.lstsq(design, wanted, rcond=None)[0]
    return float(np.square(design @ solution - wanted).sum())

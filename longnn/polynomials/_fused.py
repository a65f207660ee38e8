r"""The orthonormal Jacobi matrix and its derivatives in a and b, in one pass.

Training asks for the basis' matrix twice an epoch. Differentiating the recurrence operation by
operation costs hundreds of tiny tensor operations; here value and derivatives run together,

.. math::
    s_{k+1} p_{k+1} &= (x - c_k)\,p_k - s_k\,p_{k-1}, \\
    s_{k+1} \dot p_{k+1} &= (x - c_k)\,\dot p_k - \dot c_k\,p_k - s_k\,\dot p_{k-1}
        - \dot s_k\,p_{k-1} - \dot s_{k+1}\,p_{k+1},

once for each of a and b, as the torch operator ``longnn::jacobi_series``, which also applies the
matrix to coefficients. The reference is :meth:`longnn.polynomials.Jacobi.chebyshev_matrix`; both
are tested against each other.
"""

import functools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn import kernels
from longnn._base.autograd import differentiable, first_alone
from longnn._base.late import Late
from longnn.polynomials import _chebyshev as chebyshev

special = Late("scipy.special")


def _offdiagonals(degree: int, ab: Any, t: Any) -> tuple[Any, Any]:
    """s_1..s_K, (pairs, K), and the derivatives of log s in a and b, (pairs, K, 2)."""
    k = np.arange(1.0, degree + 1)
    shifted = k[:, None] + ab[:, None]  # k + a and k + b
    n = 2 * k + t
    up, over, under = k + t, n + 1, n - 1
    # At k = 1 the factor 1 + a + b stands above and below.
    up[:, 0] = under[:, 0] = 1.0
    square = 4 * k * shifted[..., 0] * shifted[..., 1] * up / (n * n * under * over)
    common = 1 / up - 2 / n - 1 / under - 1 / over
    return np.sqrt(square), 0.5 * (1 / shifted + common[..., None])


def _diagonals(degree: int, ab: Any, t: Any) -> tuple[Any, Any]:
    """c_0..c_{K-1}, (pairs, K), and their derivatives, (pairs, K, 2)."""
    d = ab[:, 1:] - ab[:, :1]
    n = 2 * np.arange(1.0, degree) + t
    q = n * (n + 2)
    c, slopes = np.empty((len(ab), degree)), np.empty((len(ab), degree, 2))
    c[:, :1] = d / (t + 2)
    slopes[:, 0] = (_SIGNS - c[:, :1]) / (t + 2)
    c[:, 1:] = d * t / q
    slopes[:, 1:] = ((d + _SIGNS * t)[:, None] - (c[:, 1:] * (2 * n + 2))[..., None]) / q[..., None]
    return c, slopes


_SIGNS = np.array([-1.0, 1.0])  # of the derivatives of b - a


def _steps(degree: int, ab: Any) -> Any:
    """The recurrence as matrices, (pairs, K, 3, 12).

    Let P_k hold p_k and its two derivatives at all nodes, three rows. Then P_{k+1} is a matrix
    times the twelve rows P_{k-1}, x P_{k-1}, P_k, x P_k.
    """
    t = ab[:, :1] + ab[:, 1:]
    s, dlog = _offdiagonals(degree, ab, t)
    c, dc = _diagonals(degree, ab, t)
    r = 1 / s
    back = np.zeros_like(s)
    back[:, 1:] = s[:, :-1] * r[:, 1:]
    steps = np.zeros((len(ab), degree, 3, 12))
    diagonals = steps.reshape(len(ab), degree, 36)
    diagonals[..., 0::13] = -back[..., None]
    diagonals[..., 6::13] = (-r * c)[..., None]
    diagonals[..., 9::13] = r[..., None]
    r = r[..., None]
    steps[:, 1:, 1:, 0] = back[:, 1:, None] * (dlog[:, 1:] - dlog[:, :-1])
    steps[:, :, 1:, 6] = r * (dlog * c[..., None] - dc)
    steps[:, :, 1:, 9] = -r * dlog
    return steps


def _scale(ab: Any) -> tuple[Any, Any]:
    """mu^(-1/2), (pairs,), and the derivatives of its logarithm, (pairs, 2)."""
    end = ab.sum(1) + 2
    log_mass = (end - 1) * math.log(2) + special.gammaln(ab + 1).sum(1)
    log_mass -= special.gammaln(end)
    slopes = math.log(2) + special.psi(ab + 1) - special.psi(end)[:, None]
    return np.exp(-0.5 * log_mass), -0.5 * slopes


def jacobi_matrices(ab: Any, degree: int, *, unit_mass: bool) -> Any:
    """C, dC/da and dC/db for pairs (a, b), float64 (pairs, 2): an array (3, pairs, K+1, K+1).

    Not to be written to: it is remembered.
    """
    return _matrices_numpy(ab.tobytes(), degree, unit_mass)


@functools.lru_cache(maxsize=16)
def _matrices_numpy(pairs: bytes, degree: int, unit_mass: bool) -> Any:
    """C, dC/da and dC/db, (3, pairs, K+1, K+1), by NumPy.

    An epoch asks for the matrices it was validated with, and the next one trains with the same:
    they are remembered by their pairs, float64 (pairs, 2).
    """
    ab = np.frombuffer(pairs).reshape(-1, 2)
    x = chebyshev.nodes(degree).numpy()
    size = degree + 1
    rows = np.zeros((len(ab), size + 1, 2, 3, size))  # P_{-1} = 0, x P_{-1}, P_0, x P_0, P_1 ...
    rows[:, 1, 0, 0], rows[:, 1, 1, 0] = 1.0, x
    if degree:
        steps = _steps(degree, ab)
        for k in range(degree):
            then = rows[:, k + 2, 0]
            np.matmul(steps[:, k], rows[:, k : k + 2].reshape(-1, 12, size), out=then)
            np.multiply(then, x, out=rows[:, k + 2, 1])
    values = rows[:, 1:, 0].transpose(2, 0, 1, 3)  # (3, pairs, terms, nodes)
    matrices = values @ chebyshev.transform(degree).numpy().T
    if not unit_mass:
        scale, slopes = _scale(ab)
        matrices[1:] += slopes.T[..., None, None] * matrices[0]
        matrices *= scale[:, None, None]
    return matrices


def _matrices(a: Tensor, b: Tensor, degree: int, unit_mass: bool) -> tuple[Tensor, ...]:
    """For pairs (a, b), float64 (pairs,)."""
    if not kernels.usable(a):
        pairs = np.stack([a.cpu().numpy(), b.cpu().numpy()], 1)
        matrices = jacobi_matrices(pairs, degree, unit_mass=unit_mass)
        return tuple(torch.from_numpy(m.copy()).to(a.device) for m in matrices)
    nodes, transform = chebyshev.nodes(degree, a.device), chebyshev.transform(degree, a.device)
    identity = torch.eye(degree + 1, dtype=a.dtype, device=a.device).repeat(len(a), 1, 1)
    matrices = kernels.jacobi_coefficients(
        a.contiguous(), b.contiguous(), identity, nodes, transform, unit_mass=unit_mass
    )
    return matrices.matrix, *matrices.slopes.mT.unbind(1)


@torch.library.custom_op("longnn::jacobi_series", mutates_args=())
def _jacobi_series(
    a: Tensor, b: Tensor, alpha: Tensor, degree: int, unit_mass: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """beta = C^T alpha, its derivatives in a and b, (*batch, 2, K+1, channels), and C."""
    C, *slopes = _matrices(a.reshape(-1), b.reshape(-1), degree, unit_mass)
    shape = (*a.shape, degree + 1, degree + 1)
    C = C.reshape(shape)
    by = torch.stack([s.reshape(shape).mT @ alpha for s in slopes], -3)
    return C.mT @ alpha, by, C


@_jacobi_series.register_fake
def _(a, b, alpha, degree, unit_mass):  # type: ignore[no-untyped-def]
    square = a.new_empty(*a.shape, degree + 1, degree + 1)
    by = alpha.new_empty(*a.shape, 2, *alpha.shape[-2:])
    return torch.empty_like(alpha), by, square


def _save_slopes(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    first_alone(ctx, output)
    ctx.save_for_backward(*output[1:])


def _gradient(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    by, C = ctx.saved_tensors
    by_a, by_b = (grad[..., None, :, :] * by).sum((-2, -1)).unbind(-1)
    return by_a, by_b, C @ grad, None, None


_series = differentiable(_jacobi_series, _gradient, _save_slopes)


def jacobi_series(
    a: Tensor, b: Tensor, alpha: Tensor, degree: int, *, unit_mass: bool = True
) -> Tensor:
    r"""Chebyshev coefficients :math:`C^T\alpha` of a series in orthonormal Jacobi polynomials.

    For the probability weight, or with ``unit_mass=False`` for the paper's. Once differentiable.

    Args:
        a, b: float64, one shape (\*batch); not checked.
        alpha: float64, shape (\*batch, degree+1, channels).

    >>> a = b = torch.tensor(0.0, dtype=torch.float64)  # Legendre: p_1 = sqrt(3) x
    >>> jacobi_series(a, b, torch.tensor([[0.0], [1.0]], dtype=torch.float64), 1)[1]
    tensor([1.7321], dtype=torch.float64)
    """
    return _series(a, b, alpha, degree, unit_mass)[0]

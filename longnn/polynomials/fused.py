r"""The orthonormal Jacobi matrix and its derivatives in a and b, in one pass.

Training asks for the basis' matrix twice an epoch. Differentiating the recurrence operation by
operation costs hundreds of tiny tensor operations; here value and derivatives run together,

.. math::
    s_{k+1} p_{k+1} &= (x - c_k)\,p_k - s_k\,p_{k-1}, \\
    s_{k+1} \dot p_{k+1} &= (x - c_k)\,\dot p_k - \dot c_k\,p_k - s_k\,\dot p_{k-1}
        - \dot s_k\,p_{k-1} - \dot s_{k+1}\,p_{k+1},

once for each of a and b, as the torch operator ``longnn::jacobi_matrix``. The reference is
:meth:`longnn.polynomials.Jacobi.chebyshev_matrix`; both are tested against each other.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn import kernels
from longnn.polynomials import chebyshev


def _offdiagonals(degree: int, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """s_1..s_K and the derivatives of log s: (pairs, K)."""
    k = np.arange(1, degree + 1, dtype=np.float64)
    t = a + b
    n = 2 * k + t
    with np.errstate(divide="ignore", invalid="ignore"):  # column k = 1 is replaced below
        square = 4 * k * (k + a) * (k + b) * (k + t) / (n * n * (n - 1) * (n + 1))
        common = 1 / (k + t) - 2 / n - 1 / (n - 1) - 1 / (n + 1)
    first = (4 * (1 + a) * (1 + b) / ((2 + t) ** 2 * (3 + t)))[:, 0]
    square[:, 0] = first
    common[:, 0] = (-2 / (2 + t) - 1 / (3 + t))[:, 0]
    return np.sqrt(square), 0.5 * (1 / (k + a) + common), 0.5 * (1 / (k + b) + common)


def _diagonals(degree: int, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """c_0..c_{K-1} and their derivatives: (pairs, K)."""
    k = np.arange(degree, dtype=np.float64)
    t, d = a + b, b - a
    n = 2 * k + t
    q = n * (n + 2)
    with np.errstate(divide="ignore", invalid="ignore"):  # column k = 0 is replaced below
        c = d * t / q
        ca, cb = ((d - t - c * (2 * n + 2)) / q), ((d + t - c * (2 * n + 2)) / q)
    c0 = (d / (t + 2))[:, 0]
    c[:, 0], ca[:, 0], cb[:, 0] = c0, (-1 - c0) / (t + 2)[:, 0], (1 - c0) / (t + 2)[:, 0]
    return c, ca, cb


def _matrices_numpy(a: Any, b: Any, degree: int) -> tuple[Any, Any, Any]:
    """C, dC/da, dC/db, each (pairs, K+1, K+1), unit mass, by NumPy."""
    x = chebyshev.nodes(degree).numpy()
    a, b = a[:, None], b[:, None]
    # One array for value and both derivatives: (3, pairs, terms, nodes).
    p = np.zeros((3, len(a), degree + 1, degree + 1))
    p[0, :, 0] = 1.0
    if degree:
        s, *logs = _offdiagonals(degree, a, b)
        c, *slopes = _diagonals(degree, a, b)
        shifted = x - c[:, :, None]  # (pairs, K, nodes)
        dlog, dc = np.stack(logs)[..., None], np.stack(slopes)[..., None]  # (2, pairs, K, 1)
        s = s[..., None]  # (pairs, K, 1)
        ds = dlog * s
        for k in range(degree):
            now, then = p[:, :, k], p[:, :, k + 1]
            np.multiply(shifted[:, k], now, out=then)
            then[1:] -= dc[:, :, k] * now[0]
            if k:
                before = p[:, :, k - 1]
                then -= s[:, k - 1] * before
                then[1:] -= ds[:, :, k - 1] * before[0]
            then /= s[:, k]
            then[1:] -= dlog[:, :, k] * then[0]
    matrices = p @ chebyshev.transform(degree).numpy().T
    return matrices[0], matrices[1], matrices[2]


def _matrices(a: Tensor, b: Tensor, degree: int) -> tuple[Tensor, Tensor, Tensor]:
    """For pairs (a, b), float64 (pairs,)."""
    if kernels.usable(a):
        from longnn.kernels.basis import jacobi_matrices

        nodes, transform = chebyshev.nodes(degree, a.device), chebyshev.transform(degree, a.device)
        outs = jacobi_matrices(a.contiguous(), b.contiguous(), nodes, transform)
        return outs[0], outs[1], outs[2]
    outs = _matrices_numpy(a.cpu().numpy(), b.cpu().numpy(), degree)
    made = [torch.from_numpy(np.ascontiguousarray(m)).to(a.device) for m in outs]
    return made[0], made[1], made[2]


@torch.library.custom_op("longnn::jacobi_matrix", mutates_args=())
def _jacobi_matrix(a: Tensor, b: Tensor, degree: int) -> tuple[Tensor, Tensor, Tensor]:
    flat = _matrices(a.reshape(-1), b.reshape(-1), degree)
    shape = (*a.shape, degree + 1, degree + 1)
    return flat[0].reshape(shape), flat[1].reshape(shape), flat[2].reshape(shape)


@_jacobi_matrix.register_fake
def _(a, b, degree):  # type: ignore[no-untyped-def]
    shape = (*a.shape, degree + 1, degree + 1)
    return a.new_empty(shape), a.new_empty(shape), a.new_empty(shape)


@_jacobi_matrix.register_vmap
def _(info, in_dims, a, b, degree):  # type: ignore[no-untyped-def]
    moved = [
        t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
        for t, dim in zip((a, b), in_dims[:2], strict=True)
    ]
    return _jacobi_matrix(moved[0].contiguous(), moved[1].contiguous(), degree), (0, 0, 0)


class _JacobiMatrix(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor, b: Tensor, degree: int) -> tuple[Tensor, Tensor, Tensor]:
        return _jacobi_matrix(a, b, degree)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, by_a, by_b = output
        ctx.mark_non_differentiable(by_a, by_b)
        ctx.save_for_backward(by_a, by_b)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor, Tensor, None]:
        by_a, by_b = ctx.saved_tensors
        return (grad * by_a).sum((-2, -1)), (grad * by_b).sum((-2, -1)), None


def orthonormal_jacobi_matrix(a: Tensor, b: Tensor, degree: int) -> Tensor:
    r"""The matrix C for the probability weight, shape (\*batch, degree+1, degree+1), float64.

    Once differentiable in a and b, float64 tensors of one shape; not checked.
    """
    return _JacobiMatrix.apply(a, b, degree)[0]

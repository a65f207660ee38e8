r"""The coefficients of a filter whose orthonormal Jacobi basis is learned, in one pass on the CPU.

.. math:: \beta = C(a, b)^T \alpha, \qquad \alpha_{kc} = w_{kc} \prod_{i<k} \gamma\tanh\eta_i,
          \qquad a, b = \mathrm{bound} + \mathrm{softplus}(\cdot)

from the trainable numbers themselves; free coefficients, :math:`\alpha = w`, have no factors. The
numbers are few: an epoch spent a tenth of its time on Cora, a fifth on Texas, on calling dozens of
torch operators for them, so here NumPy does it. The same numbers come, one step after the other,
from the coefficients' own modules and :mod:`longnn.polynomials`, which serve all other filters and
devices.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn._base.autograd import differentiable, lean
from longnn.polynomials import jacobi_matrices


def _factors(eta: Any, gamma: Any) -> tuple[Any, Any, Any]:
    """tanh eta, the factors (batch, K), and their products (batch, K+1)."""
    bounded = np.tanh(eta)
    factors = gamma[:, None] * bounded
    products = np.ones((len(eta), eta.shape[1] + 1))
    np.cumprod(factors, 1, out=products[:, 1:])
    return bounded, factors, products


@torch.library.custom_op("longnn::jacobi_coefficients", mutates_args=())
def _forward(
    a: Tensor,  # (*batch), before the constraint
    b: Tensor,
    weight: Tensor,  # (*batch, K+1, channels)
    eta: Tensor | None,  # (*batch, K), or None: free coefficients
    gamma: Tensor | None,  # (*batch)
    bound: float,  # of a and b
    unit_mass: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """beta, its derivatives in the raw a and b (*batch, 2, K+1, channels), and C."""
    raw = np.stack([a.detach().numpy().reshape(-1), b.detach().numpy().reshape(-1)], 1)
    raw = raw.astype(np.float64)
    w = _flat(weight, 2)
    degree = weight.shape[-2] - 1
    matrices = jacobi_matrices(bound + np.logaddexp(0, raw), degree, unit_mass=unit_mass)
    alpha = w
    if eta is not None and gamma is not None:
        alpha = w * _factors(_flat(eta, 1), _flat(gamma, 0))[2][..., None]
    series = matrices.swapaxes(-1, -2) @ alpha  # (3, batch, K+1, channels)
    slopes = series[1:].swapaxes(0, 1) / (1 + np.exp(-raw))[..., None, None]
    parts = (series[0], slopes, matrices[0].copy())
    square = (*a.shape, *matrices.shape[2:])
    shapes = (weight.shape, (*a.shape, 2, *weight.shape[-2:]), square)
    made = [torch.from_numpy(m.reshape(s)) for m, s in zip(parts, shapes, strict=True)]
    return made[0], made[1], made[2]


def _flat(t: Tensor, kept: int) -> Any:
    """As a float64 array with one batch dimension before the last ``kept``."""
    array = t.detach().double().numpy()
    batch = array.shape[: array.ndim - kept]
    # Not -1: at degree 0 there is no eta, and no number to divide the size by.
    return array.reshape(int(np.prod(batch)), *array.shape[array.ndim - kept :])


@_forward.register_fake
def _(a, b, weight, eta, gamma, bound, unit_mass):  # type: ignore[no-untyped-def]
    wide = weight.new_empty(weight.shape, dtype=torch.float64)
    square = wide.new_empty(*a.shape, weight.shape[-2], weight.shape[-2])
    return wide, wide.new_empty(*a.shape, 2, *weight.shape[-2:]), square


@torch.library.custom_op("longnn::jacobi_coefficients_gradient", mutates_args=())
def _backward(
    weight: Tensor,
    eta: Tensor | None,
    gamma: Tensor | None,
    slopes: Tensor,
    C: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""The gradients of a, b, the weights and eta (empty where there is none).

    With d_k the gradient of the k-th product, that of factor i is the product of the factors
    before it times :math:`S_i = d_i + f_{i+1} S_{i+1}`: no division, so factors may be zero.
    """
    w = _flat(weight, 2)
    upstream = grad.numpy().reshape(w.shape)
    by = slopes.numpy().reshape(len(w), 2, *w.shape[1:])
    d_raw = (upstream[:, None] * by).sum((2, 3)).T
    d_weight = C.numpy().reshape(len(w), *C.shape[-2:]) @ upstream  # of alpha
    d_eta = np.empty(0)
    if eta is not None and gamma is not None:
        e, g = _flat(eta, 1), _flat(gamma, 0)
        bounded, factors, products = _factors(e, g)
        sums = (d_weight * w).sum(2)[:, 1:]
        for i in range(e.shape[1] - 2, -1, -1):
            sums[:, i] += factors[:, i + 1] * sums[:, i + 1]
        d_eta = g[:, None] * (1 - bounded * bounded) * products[:, :-1] * sums
        d_weight = d_weight * products[..., None]
    batch = weight.shape[:-2]
    found = (d_raw[0], d_raw[1], d_weight, d_eta)
    shapes = (batch, batch, weight.shape, (0,) if eta is None else eta.shape)
    made = [
        torch.from_numpy(m.reshape(s)).to(weight.dtype, copy=True)
        for m, s in zip(found, shapes, strict=True)
    ]
    return made[0], made[1], made[2], made[3]


@_backward.register_fake
def _(weight, eta, gamma, slopes, C, grad):  # type: ignore[no-untyped-def]
    scalar = weight.new_empty(weight.shape[:-2])
    of_eta = weight.new_empty(0) if eta is None else torch.empty_like(eta)
    return scalar, scalar.clone(), torch.empty_like(weight), of_eta


_quick_backward = lean(_backward)


def _gradient(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    weight, *rest = ctx.saved_tensors
    eta, gamma, slopes, C = rest if ctx.decomposed else (None, None, *rest)
    a, b, of_weight, of_eta = _quick_backward(weight, eta, gamma, slopes, C, grad)
    return a, b, of_weight, of_eta if ctx.decomposed else None, None, None, None


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.mark_non_differentiable(*output[1:])
    ctx.decomposed = inputs[3] is not None
    kept = inputs[2:5] if ctx.decomposed else inputs[2:3]
    ctx.save_for_backward(*kept, *output[1:])


_coefficients = differentiable(_forward, _gradient, _save)


def jacobi_coefficients(
    a: Tensor,
    b: Tensor,
    weight: Tensor,
    eta: Tensor | None = None,
    gamma: Tensor | None = None,
    *,
    bound: float,
    unit: bool,
) -> Tensor:
    r"""The Chebyshev coefficients :math:`\beta`, shape (K+1, channels), float64.

    Once differentiable in a and b, before their constraint, in the weights and, where the
    coefficients are decomposed (PCD), in eta.
    """
    return _coefficients(a, b, weight, eta, gamma, bound, unit)[0]

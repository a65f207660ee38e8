r"""The coefficients of LON-GNN's filter as published, in one pass on the CPU.

.. math:: \beta = C(a, b)^T \alpha, \qquad \alpha_{kc} = w_{kc} \prod_{i<k} \gamma\tanh\eta_i,
          \qquad a, b = \mathrm{bound} + \mathrm{softplus}(\cdot)

from the trainable numbers themselves. They are few: an epoch spent a tenth of its time on Cora,
a fifth on Texas, on calling dozens of torch operators for them, so here NumPy does it. The same
numbers come, one step after the other, from :mod:`longnn.filters` and
:mod:`longnn.polynomials`, which serve all other filters and devices.
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


@torch.library.custom_op("longnn::published_coefficients", mutates_args=())
def _published(
    a: Tensor,  # (*batch), before the constraint
    b: Tensor,
    weight: Tensor,  # (*batch, K+1, channels)
    eta: Tensor,  # (*batch, K)
    gamma: Tensor,  # (*batch)
    bound: float,  # of a and b
    unit_mass: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """beta, its derivatives in the raw a and b (*batch, 2, K+1, channels), and C."""
    raw = np.stack([a.detach().numpy().reshape(-1), b.detach().numpy().reshape(-1)], 1)
    raw = raw.astype(np.float64)
    w, e, g = _flat(weight, eta, gamma)
    matrices = jacobi_matrices(bound + np.logaddexp(0, raw), eta.shape[-1], unit_mass=unit_mass)
    alpha = w * _factors(e, g)[2][..., None]
    series = matrices.swapaxes(-1, -2) @ alpha  # (3, batch, K+1, channels)
    slopes = series[1:].swapaxes(0, 1) / (1 + np.exp(-raw))[..., None, None]
    parts = (series[0], slopes, matrices[0].copy())
    square = (*a.shape, *matrices.shape[2:])
    shapes = (weight.shape, (*a.shape, 2, *weight.shape[-2:]), square)
    made = [torch.from_numpy(m.reshape(s)) for m, s in zip(parts, shapes, strict=True)]
    return made[0], made[1], made[2]


def _flat(weight: Tensor, eta: Tensor, gamma: Tensor) -> tuple[Any, Any, Any]:
    """As float64 arrays with one batch dimension."""
    w, e, g = (t.detach().double().numpy() for t in (weight, eta, gamma))
    w, g = w.reshape(-1, *w.shape[-2:]), g.reshape(-1)
    return w, e.reshape(len(g), eta.shape[-1]), g  # at degree 0 there is no eta


@_published.register_fake
def _(a, b, weight, eta, gamma, bound, unit_mass):  # type: ignore[no-untyped-def]
    wide = weight.new_empty(weight.shape, dtype=torch.float64)
    square = wide.new_empty(*a.shape, weight.shape[-2], weight.shape[-2])
    return wide, wide.new_empty(*a.shape, 2, *weight.shape[-2:]), square


@torch.library.custom_op("longnn::published_gradient", mutates_args=())
def _published_gradient(
    weight: Tensor, eta: Tensor, gamma: Tensor, slopes: Tensor, C: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""The gradients of a, b, the weights and eta.

    With d_k the gradient of the k-th product, that of factor i is the product of the factors
    before it times :math:`S_i = d_i + f_{i+1} S_{i+1}`: no division, so factors may be zero.
    """
    w, e, g = _flat(weight, eta, gamma)
    bounded, factors, products = _factors(e, g)
    upstream = grad.numpy().reshape(w.shape)
    by = slopes.numpy().reshape(len(w), 2, *w.shape[1:])
    d_raw = (upstream[:, None] * by).sum((2, 3)).T
    d_alpha = C.numpy().reshape(len(w), *C.shape[-2:]) @ upstream
    sums = (d_alpha * w).sum(2)[:, 1:]
    for i in range(e.shape[1] - 2, -1, -1):
        sums[:, i] += factors[:, i + 1] * sums[:, i + 1]
    d_eta = g[:, None] * (1 - bounded * bounded) * products[:, :-1] * sums
    found = (d_raw[0], d_raw[1], d_alpha * products[..., None], d_eta)
    shapes = (gamma.shape, gamma.shape, weight.shape, eta.shape)
    made = [
        torch.from_numpy(m.reshape(s)).to(weight.dtype, copy=True)
        for m, s in zip(found, shapes, strict=True)
    ]
    return made[0], made[1], made[2], made[3]


@_published_gradient.register_fake
def _(weight, eta, gamma, slopes, C, grad):  # type: ignore[no-untyped-def]
    scalar = torch.empty_like(gamma)
    return scalar, scalar.clone(), torch.empty_like(weight), torch.empty_like(eta)


_quick_gradient = lean(_published_gradient)


def _gradient(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    return *_quick_gradient(*ctx.saved_tensors, grad), None, None, None


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(*inputs[2:5], *output[1:])


_coefficients = differentiable(_published, _gradient, _save)


def published_coefficients(
    a: Tensor, b: Tensor, weight: Tensor, eta: Tensor, gamma: Tensor, *, bound: float, unit: bool
) -> Tensor:
    r"""The Chebyshev coefficients :math:`\beta`, shape (K+1, channels), float64.

    Once differentiable in a and b, before their constraint, and in the weights and eta.
    """
    return _coefficients(a, b, weight, eta, gamma, bound, unit)[0]

r"""The coefficients of a filter whose orthonormal Jacobi basis is learned, in one pass.

.. math:: \beta = C(a, b)^T \alpha, \qquad \alpha_{kc} = w_{kc} \prod_{i<k} \gamma\tanh\eta_i,
          \qquad a, b = \mathrm{bound} + \mathrm{softplus}(\cdot)

from the trainable numbers themselves; free coefficients, :math:`\alpha = w`, have no factors. The
numbers are few: an epoch spent a tenth of its time on Cora, a fifth on Texas, on calling dozens of
torch operators for them, so here NumPy does it, and on a GPU one kernel. The same numbers come, one
step after the other, from the coefficients' own modules and :mod:`longnn.polynomials`, which serve
all other filters and devices.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from longnn import kernels
from longnn._base.autograd import differentiable, first_alone, lean, plainly, to_front
from longnn.filters._coefficients import decomposed_gradient
from longnn.polynomials._chebyshev import nodes, transform
from longnn.polynomials._fused import jacobi_matrices


def _factors(eta: Any, gamma: Any) -> tuple[Any, Any, Any]:
    """tanh eta, the factors (batch, K), and their products (batch, K+1)."""
    bounded = np.tanh(eta)
    factors = gamma[:, None] * bounded
    products = np.ones((len(eta), eta.shape[1] + 1))
    np.cumprod(factors, 1, out=products[:, 1:])
    return bounded, factors, products


class _Pass(NamedTuple):
    """What NumPy makes of the trainable numbers, float64, with one batch dimension."""

    ab: Any  # (batch, 2)
    weight: Any  # (batch, K+1, channels)
    alpha: Any
    beta: Any
    slopes: Any  # (batch, 2, K+1, channels)
    matrix: Any  # (batch, K+1, K+1)
    factors: tuple[Any, Any, Any] | None  # of decomposed coefficients, see `_factors`
    gamma: Any


def _pass_of(
    a: Tensor,
    b: Tensor,
    weight: Tensor,
    eta: Tensor | None,
    gamma: Tensor | None,
    bound: float,
    unit_mass: bool,
) -> _Pass:
    """Shapes as in :func:`_forward`. An epoch trains with the numbers that the last one was
    validated with, so a pass is remembered by their bytes; it must not be written to."""
    numbers = [t.detach().numpy() for t in (a, b, weight, eta, gamma) if t is not None]
    # By their bytes, not by identity: an optimiser changes the same tensors in place.
    key = tuple([array.tobytes() for array in numbers])
    return _compute(key, numbers[0].dtype.char, weight.shape, bound, unit_mass)


@functools.lru_cache(maxsize=4)  # an epoch has one pass per filter: training's is validation's
def _compute(
    known: tuple[bytes, ...], dtype: str, shape: tuple[int, ...], bound: float, unit_mass: bool
) -> _Pass:
    size, channels = shape[-2:]
    a, b, weight, *rest = (np.frombuffer(t, dtype).astype(np.float64) for t in known)
    raw = np.stack([a, b], 1)
    # float64 whatever the dtype, as every basis: terms of high degree lose their digits in float32.
    ab, weight = bound + np.logaddexp(0, raw), weight.reshape(len(raw), size, channels)
    matrices = jacobi_matrices(ab, size - 1, unit_mass=unit_mass)
    alpha, factors, gamma = weight, None, None
    if rest:
        gamma = rest[1]
        factors = _factors(rest[0].reshape(len(raw), size - 1), gamma)
        alpha = weight * factors[2][..., None]
    # C, dC/da and dC/db: the slopes are known before any gradient arrives, so that the backward
    # pass needs no second recurrence. 1 / (1 + e^-raw) is the slope of softplus.
    series = matrices.swapaxes(-1, -2) @ alpha  # (3, batch, K+1, channels)
    slopes = series[1:].swapaxes(0, 1) / (1 + np.exp(-raw))[..., None, None]
    return _Pass(ab, weight, alpha, series[0], slopes, matrices[0], factors, gamma)


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
    if kernels.usable(weight):
        return _forward_kernel(a, b, weight, eta, gamma, bound, unit_mass)
    passed = _pass_of(a, b, weight, eta, gamma, bound, unit_mass)
    square = (*a.shape, *passed.matrix.shape[1:])
    shapes = (weight.shape, (*a.shape, 2, *weight.shape[-2:]), square)
    parts = (passed.beta, passed.slopes, passed.matrix)
    # Copies: what is remembered must not be written to.
    arrays = [torch.from_numpy(m.reshape(s).copy()) for m, s in zip(parts, shapes, strict=True)]
    return arrays[0], arrays[1], arrays[2]


def _forward_kernel(
    a: Tensor,
    b: Tensor,
    weight: Tensor,
    eta: Tensor | None,
    gamma: Tensor | None,
    bound: float,
    unit_mass: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The same on a GPU."""
    device, (size, channels) = weight.device, weight.shape[-2:]
    series = kernels.jacobi_coefficients(
        _rows(a, 0),
        _rows(b, 0),
        _rows(weight, 2),
        nodes(size - 1, device),
        transform(size - 1, device),
        bound,
        eta=None if eta is None else _rows(eta, 1),
        gamma=None if gamma is None else _rows(gamma, 0),
        unit_mass=unit_mass,
    )
    slopes = series.slopes.view(*a.shape, 2, size, channels)
    return series.beta.view(weight.shape), slopes, series.matrix.view(*a.shape, size, size)


def _rows(t: Tensor, kept: int) -> Tensor:
    """With one batch dimension before the last ``kept``, contiguous."""
    batch = math.prod(t.shape[: t.dim() - kept])
    return t.reshape(batch, *t.shape[t.dim() - kept :]).contiguous()


@_forward.register_fake
def _(a, b, weight, eta, gamma, bound, unit_mass):  # type: ignore[no-untyped-def]
    wide = weight.new_empty(weight.shape, dtype=torch.float64)
    square = wide.new_empty(*a.shape, weight.shape[-2], weight.shape[-2])
    return wide, wide.new_empty(*a.shape, 2, *weight.shape[-2:]), square


def _gradient(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    a, b, weight, *factors, slopes, C = ctx.saved_tensors
    eta, gamma = factors if factors else (None, None)
    numbers = (weight, eta, gamma, slopes, C, grad)
    gradients: tuple[Tensor | None, ...]
    if not plainly(numbers):
        gradients = _backward_torch(*numbers)
    elif kernels.usable(weight):
        gradients = _backward_kernel(*numbers)
    else:  # the pass is remembered
        gradients = _backward(_pass_of(a, b, weight, eta, gamma, *ctx.options), weight, eta, grad)
    return *gradients, None, None, None


def _backward_kernel(
    weight: Tensor,
    eta: Tensor | None,
    gamma: Tensor | None,
    slopes: Tensor,
    C: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The same on a GPU."""
    batch = weight.shape[:-2]
    a, b, of_weight, of_eta = kernels.jacobi_gradient(
        _rows(grad, 2),
        slopes,
        C,
        _rows(weight, 2),
        None if eta is None else _rows(eta, 1),
        None if gamma is None else _rows(gamma, 0),
    )
    of_factors = None if of_eta is None or eta is None else of_eta.view(eta.shape)
    return a.view(batch), b.view(batch), of_weight.view(weight.shape), of_factors


def _backward(
    made: _Pass, weight: Tensor, eta: Tensor | None, grad: Tensor
) -> tuple[Tensor | None, ...]:
    r"""The gradients of a, b, the weights and eta, in NumPy.

    With d_k the gradient of the k-th product, that of factor i is the product of the factors
    before it times :math:`S_i = d_i + f_{i+1} S_{i+1}`: no division, so factors may be zero.
    """
    upstream = grad.numpy().reshape(made.beta.shape)
    d_raw = np.einsum("bkc,bikc->ib", upstream, made.slopes)
    d_weight, d_eta = made.matrix @ upstream, None  # of alpha
    if made.factors is not None:
        bounded, factors, products = made.factors
        sums = np.einsum("bkc,bkc->kb", d_weight, made.weight)[1:]
        for i in range(len(sums) - 2, -1, -1):
            sums[i] += factors[:, i + 1] * sums[i + 1]
        d_eta = made.gamma[:, None] * (1 - bounded**2) * products[:, :-1] * sums.T
        d_weight = d_weight * products[..., None]

    dtype, batch = weight.detach().numpy().dtype, weight.shape[:-2]
    each = [(d_raw[0], batch), (d_raw[1], batch), (d_weight, weight.shape)]
    each += [] if eta is None else [(d_eta, eta.shape)]
    tensors = [torch.from_numpy(array.astype(dtype).reshape(shape)) for array, shape in each]
    return *tensors, *([None] if eta is None else [])


def _backward_torch(
    weight: Tensor,
    eta: Tensor | None,
    gamma: Tensor | None,
    slopes: Tensor,
    C: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The same by torch operations, for what transforms or traces them."""
    d_raw = (grad[..., None, :, :] * slopes).sum((-2, -1)).to(weight.dtype)
    d_alpha = (C @ grad).to(weight.dtype)
    if eta is None or gamma is None:
        return d_raw[..., 0], d_raw[..., 1], d_alpha, None
    d_weight, d_eta = decomposed_gradient(weight, eta, gamma, d_alpha)
    return d_raw[..., 0], d_raw[..., 1], d_weight, d_eta


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    first_alone(ctx, output)
    ctx.options = inputs[5:]
    ctx.save_for_backward(*(t for t in inputs[:5] if t is not None), *output[1:])


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


@torch.library.custom_op("longnn::jacobi_summary", mutates_args=())
def _summary(
    a: Tensor,
    b: Tensor,
    weight: Tensor,
    eta: Tensor | None,
    gamma: Tensor | None,
    bound: float,
    unit_mass: bool,
) -> Tensor:
    """Shapes as in :func:`_forward`; the result is (*batch, 3)."""
    shape = (*a.shape, 3)
    if kernels.usable(weight):
        factors = None if eta is None else _rows(eta, 1), None if gamma is None else _rows(gamma, 0)
        rows = (_rows(a, 0), _rows(b, 0), _rows(weight, 2))
        return kernels.summary(*rows, bound, eta=factors[0], gamma=factors[1]).view(shape)
    passed = _pass_of(a, b, weight, eta, gamma, bound, unit_mass)
    alpha, out = passed.alpha, np.empty((len(passed.ab), 3))
    out[:, 0] = np.sqrt(np.einsum("bkc,bkc->b", alpha, alpha) / alpha.shape[2])
    out[:, 1:] = passed.ab
    return torch.from_numpy(out.reshape(shape)).to(weight.dtype, copy=True)


@_summary.register_fake
def _(a, b, weight, eta, gamma, bound, unit_mass):  # type: ignore[no-untyped-def]
    return weight.new_empty(*a.shape, 3)


@_summary.register_vmap
def _(info, in_dims, *inputs):  # type: ignore[no-untyped-def]
    each = zip(inputs, in_dims, strict=True)
    return quick_summary(*(to_front(t, dim, info.batch_size) for t, dim in each)), 0


quick_summary = lean(_summary)


def jacobi_summary(
    a: Tensor,
    b: Tensor,
    weight: Tensor,
    eta: Tensor | None = None,
    gamma: Tensor | None = None,
    *,
    bound: float,
    unit: bool,
) -> Tensor:
    r"""The amplitude :math:`\sqrt{\frac1C \sum_{kc} \alpha_{kc}^2}`, a and b, shape (3,).

    In the type of the weights; without derivatives.
    """
    with torch.no_grad():
        summary: Tensor = quick_summary(a, b, weight, eta, gamma, bound, unit)
    return summary

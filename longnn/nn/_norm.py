r"""Norms over the channels of a node.

.. math:: \mathrm{rms}(h) = \frac{h}{\sqrt{\overline{h^2} + \epsilon}}, \qquad
          \mathrm{layer}(h) = \mathrm{rms}(h - \bar h)

They have no weights: those of the next map would repeat them. On a GPU both are one pass of a
kernel of ours.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from longnn import kernels
from longnn._base.autograd import differentiable, first_alone

Norm = Literal["layer", "rms", "none"]
#: As torch's layer norm has it.
LAYER_EPSILON = 1e-5


@torch.library.custom_op("longnn::normalize", mutates_args=())
def _normalize(x: Tensor, epsilon: float, center: bool) -> tuple[Tensor, Tensor]:
    """The rows of (nodes, channels), or of a batch of such in front, and their scales."""
    out, inverse = kernels.normalize(x if x.dim() == 3 else x[None], epsilon, center=center)
    return (out, inverse) if x.dim() == 3 else (out[0].clone(), inverse[0].clone())


@_normalize.register_fake
def _(x, epsilon, center):  # type: ignore[no-untyped-def]
    return torch.empty_like(x), x.new_empty(x.shape[:-1])


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    first_alone(ctx, output)
    ctx.save_for_backward(*output)
    ctx.center = inputs[2]


@torch.library.custom_op("longnn::normalize_gradient", mutates_args=())
def _gradient(grad: Tensor, result: Tensor, inverse: Tensor, center: bool) -> Tensor:
    if result.dim() == 3:
        return kernels.normalize_gradient(grad, result, inverse, center=center)
    batch = (t[None] for t in (grad, result, inverse))
    return kernels.normalize_gradient(*batch, center=center)[0].clone()


@_gradient.register_fake
def _(grad, result, inverse, center):  # type: ignore[no-untyped-def]
    return torch.empty_like(result)


def _backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None, None]:
    return _gradient(grad, *ctx.saved_tensors, ctx.center), None, None


#: ``by_kernel(x, epsilon, center)``: normalised rows and their scales, by kernels.
by_kernel = differentiable(_normalize, _backward, _save)


def layer_norm(h: Tensor) -> Tensor:
    """Rows less their mean, divided by their standard deviation."""
    if kernels.usable(h) and h.dim() == 2:
        out: Tensor = by_kernel(h, LAYER_EPSILON, True)[0]
        return out
    return F.layer_norm(h, h.shape[-1:], eps=LAYER_EPSILON)


def normalize_rows(h: Tensor) -> Tensor:
    """Rows divided by their root mean square; a row of zeros stays as it is."""
    epsilon = torch.finfo(h.dtype).eps
    if kernels.usable(h) and h.dim() == 2:
        out: Tensor = by_kernel(h, epsilon, False)[0]
        return out
    return h * (h.square().mean(-1, keepdim=True) + epsilon).rsqrt()


NORMS: dict[Norm, Callable[[Tensor], Tensor]] = {
    "layer": layer_norm,
    "rms": normalize_rows,
    "none": lambda h: h,
}

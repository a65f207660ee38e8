r"""Steps over the channels of every node, each in one pass: what follows a linear map,
:math:`\mathrm{dropout}(\mathrm{ReLU}(X + b))` or :math:`X + b` plus a residual; maps to few
channels; and norms,

.. math:: \mathrm{rms}(h) = \frac{h}{\sqrt{\overline{h^2} + \epsilon}}, \qquad
          \mathrm{layer}(h) = \mathrm{rms}(h - \bar h)

which have no weights: those of the next map would repeat them.

On a GPU each pass over the hidden channels of a population costs as much as a step of the filter;
there these are kernels. On a CPU it is fresh memory that costs, so a single member's signal is
changed in place. Elsewhere the steps are done in turn. Each operator takes one member, or a batch
of them in front of everything.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from longnn import kernels
from longnn._base.autograd import differentiable, first_alone, plainly, save_inputs
from longnn.matrices import drop_

Norm = Literal["layer", "rms", "none"]
#: As torch's layer norm has it.
LAYER_EPSILON = 1e-5


def _of_batch(kernel: Callable[..., Any], x: Tensor, *given: Any, **options: Any) -> Any:
    """What a kernel makes of a batch, or of one member, (nodes, channels), as a batch of one."""
    if x.dim() == 3:
        return kernel(x, *given, **options)
    alone = (value[None] if isinstance(value, Tensor) else value for value in given)
    out = kernel(x[None], *alone, **options)
    return tuple(t[0].clone() for t in out) if isinstance(out, tuple) else out[0].clone()


# What follows a linear map -----------------------------------------------------------------------


@torch.library.custom_op("longnn::activate", mutates_args=())
def _activate(
    x: Tensor,  # (nodes, channels)
    bias: Tensor,  # (channels,)
    stream: Tensor | None,  # (2,) int64: seed and epoch, see longnn.matrices; None drops nothing
    p: Tensor | None,  # scalar
    site: int,
    first: int,  # the position of the first element
) -> Tensor:
    rows, rates = (None if t is None else t.contiguous() for t in (stream, p))
    bias = bias.contiguous()

    def drop(x: Tensor, bias: Tensor, rows: Tensor | None, rates: Tensor | None) -> Tensor:
        out: Tensor = kernels.dropout(x, rows, rates, site, first=first, bias=bias)
        return out

    out: Tensor = _of_batch(drop, x, bias, rows, rates)
    return out


@_activate.register_fake
def _(x, bias, stream, p, site, first):  # type: ignore[no-untyped-def]
    return torch.empty_like(x)


def _save_result(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, inputs[3])


@torch.library.custom_op("longnn::activate_gradient", mutates_args=())
def _activate_gradient(grad: Tensor, result: Tensor, p: Tensor | None) -> Tensor:
    """The gradient of x: that of the result, scaled, where the result is positive."""
    rates = None if p is None else p.contiguous()
    out: Tensor = _of_batch(kernels.activation_gradient, grad, result, rates)
    return out


@_activate_gradient.register_fake
def _(grad, result, p):  # type: ignore[no-untyped-def]
    return torch.empty_like(result)


@torch.library.custom_op("longnn::sum_rows", mutates_args=())
def _sum_rows(x: Tensor) -> Tensor:
    """The sums over the rows of (nodes, channels)."""
    out: Tensor = _of_batch(kernels.sum_rows, x)
    return out


@_sum_rows.register_fake
def _(x):  # type: ignore[no-untyped-def]
    return x.new_empty(*x.shape[:-2], x.shape[-1])


def _activate_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    out = _activate_gradient(grad, *ctx.saved_tensors)
    return out, _sum_rows(out), None, None, None, None


#: ``activate(x, bias, stream, p, site, first)``: dropout(ReLU(x + bias)), by kernels.
activate = differentiable(_activate, _activate_backward, _save_result)


class _InPlace(torch.autograd.Function):
    """Written over x; the backward pass needs the result alone, as that of the kernel does."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, bias: Tensor, stream: Tensor, p: Tensor, site: int, first: int
    ) -> Tensor:
        ctx.mark_dirty(x)
        x.add_(bias).clamp_min_(0)
        ctx.scale = drop_(x, stream, p, site, first)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (result,) = ctx.saved_tensors
        found = torch.ops.aten.threshold_backward(grad, result, 0).mul_(ctx.scale)
        return found, found.sum(0), None, None, None, None


def activate_(
    x: Tensor, bias: Tensor, stream: Tensor, p: Tensor, site: int, first: int
) -> Tensor | None:
    """dropout(ReLU(x + bias)) of one member, written over x; None where that cannot be done."""
    fits = (
        x.device.type == "cpu" and x.is_contiguous() and x.dtype in (torch.float32, torch.float64)
    )
    if not (fits and plainly((x, bias, stream, p))):
        return None
    found: Tensor = _InPlace.apply(x, bias, stream, p, site, first)
    return found


@torch.library.custom_op("longnn::add_bias", mutates_args=())
def _add_bias(x: Tensor, bias: Tensor, residual: Tensor | None) -> Tensor:
    out: Tensor = _of_batch(kernels.add_bias, x, bias.contiguous(), residual)
    return out


@_add_bias.register_fake
def _(x, bias, residual):  # type: ignore[no-untyped-def]
    return torch.empty_like(x)


def _note_residual(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.residual = inputs[2] is not None


def _bias_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return grad, _sum_rows(grad), grad if ctx.residual else None


#: ``add_bias(x, bias, residual)``: x + bias, plus a residual if there is one, by kernels.
add_bias = differentiable(_add_bias, _bias_gradient, _note_residual)


# Maps to few channels ----------------------------------------------------------------------------


def _narrow_matmul(x: Tensor, weight: Tensor) -> Tensor:
    # Not weight.mT alone: with both sides turned BLAS takes ten times as long on some machines.
    return (weight.mT.contiguous() @ x.mT).mT.clone(memory_format=torch.contiguous_format)


def _narrow_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    x, weight = ctx.saved_tensors
    return grad @ weight.mT, (grad.mT @ x).mT


#: ``x @ weight`` for few output channels: BLAS on a CPU is four times faster with the long side
#: last (2,708 x 64 times 64 x 7: 60 us instead of 256, the gradient of the weights 56, not 294).
narrow_matmul = differentiable(_narrow_matmul, _narrow_gradient, save_inputs)


@torch.library.custom_op("longnn::narrow_product", mutates_args=())
def _narrow_by_kernel(x: Tensor, weight: Tensor) -> Tensor:
    out: Tensor = _of_batch(kernels.narrow_product, x, weight)
    return out


@_narrow_by_kernel.register_fake
def _(x, weight):  # type: ignore[no-untyped-def]
    return x.new_empty(*x.shape[:-1], weight.shape[-1])


@torch.library.custom_op("longnn::narrow_gradient", mutates_args=())
def _weight_gradient(x: Tensor, grad: Tensor) -> Tensor:
    """The gradient of the weight."""
    out: Tensor = _of_batch(kernels.narrow_gradient, x, grad)
    return out


@_weight_gradient.register_fake
def _(x, grad):  # type: ignore[no-untyped-def]
    return x.new_empty(*x.shape[:-2], x.shape[-1], grad.shape[-1])


def _kernel_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    x, weight = ctx.saved_tensors
    return grad @ weight.mT, _weight_gradient(x, grad)


#: The same by kernels: on a GPU a library takes several times what reading x takes.
fused_narrow_matmul = differentiable(_narrow_by_kernel, _kernel_gradient, save_inputs)


# Norms -------------------------------------------------------------------------------------------


@torch.library.custom_op("longnn::normalize", mutates_args=())
def _normalize(x: Tensor, epsilon: float, center: bool) -> tuple[Tensor, Tensor]:
    """The rows of (nodes, channels), and their scales."""
    out, inverse = _of_batch(kernels.normalize, x, epsilon, center=center)
    return out, inverse


@_normalize.register_fake
def _(x, epsilon, center):  # type: ignore[no-untyped-def]
    return torch.empty_like(x), x.new_empty(x.shape[:-1])


def _save_scales(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    first_alone(ctx, output)
    ctx.save_for_backward(*output)
    ctx.center = inputs[2]


@torch.library.custom_op("longnn::normalize_gradient", mutates_args=())
def _normalize_gradient(grad: Tensor, result: Tensor, inverse: Tensor, center: bool) -> Tensor:
    out: Tensor = _of_batch(kernels.normalize_gradient, grad, result, inverse, center=center)
    return out


@_normalize_gradient.register_fake
def _(grad, result, inverse, center):  # type: ignore[no-untyped-def]
    return torch.empty_like(result)


def _normalize_backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None, None]:
    return _normalize_gradient(grad, *ctx.saved_tensors, ctx.center), None, None


#: ``by_kernel(x, epsilon, center)``: normalised rows and their scales, by kernels.
by_kernel = differentiable(_normalize, _normalize_backward, _save_scales)


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

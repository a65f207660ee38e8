r"""What follows a linear map, in one pass: :math:`\mathrm{dropout}(\mathrm{ReLU}(X + b))`, or
:math:`X + b` plus a residual.

On a GPU each pass over the hidden channels of a population costs as much as a step of the filter;
there these are kernels. On a CPU it is fresh memory that costs, so a single member's signal is
changed in place. Elsewhere the steps are done in turn.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from longnn import kernels
from longnn._base.autograd import differentiable, plainly
from longnn.matrices import drop_


@torch.library.custom_op("longnn::activate", mutates_args=())
def _activate(
    x: Tensor,  # (nodes, channels)
    bias: Tensor,  # (channels,)
    stream: Tensor | None,  # (2,) int64: seed and epoch, see longnn.matrices; None drops nothing
    p: Tensor | None,  # scalar
    site: int,
    first: int,  # the position of the first element
) -> Tensor:
    """For a batch, all in front: (batch, nodes, channels), (batch, channels), and so on."""
    rows = None if stream is None else stream.reshape(-1, 2).contiguous()
    rates = None if p is None else p.reshape(-1).contiguous()
    batch = x if x.dim() == 3 else x[None]
    added = bias.reshape(-1, x.shape[-1]).contiguous()
    out = kernels.dropout(batch, rows, rates, site, first=first, bias=added)
    return out if x.dim() == 3 else out[0].clone()


@_activate.register_fake
def _(x, bias, stream, p, site, first):  # type: ignore[no-untyped-def]
    return torch.empty_like(x)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, inputs[3])


@torch.library.custom_op("longnn::activate_gradient", mutates_args=())
def _gradient(grad: Tensor, result: Tensor, p: Tensor | None) -> Tensor:
    """The gradient of x: that of the result, scaled, where the result is positive."""
    rates = None if p is None else p.reshape(-1).contiguous()
    if result.dim() == 3:
        return kernels.activation_gradient(grad, result, rates)
    return kernels.activation_gradient(grad[None], result[None], rates)[0].clone()


@_gradient.register_fake
def _(grad, result, p):  # type: ignore[no-untyped-def]
    return torch.empty_like(result)


@torch.library.custom_op("longnn::sum_rows", mutates_args=())
def _sum_rows(x: Tensor) -> Tensor:
    """The sums over the rows of (nodes, channels), or of a batch of such in front."""
    return kernels.sum_rows(x) if x.dim() == 3 else kernels.sum_rows(x[None])[0].clone()


@_sum_rows.register_fake
def _(x):  # type: ignore[no-untyped-def]
    return x.new_empty(*x.shape[:-2], x.shape[-1])


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    out = _gradient(grad, *ctx.saved_tensors)
    return out, _sum_rows(out), None, None, None, None


#: ``activate(x, bias, stream, p, site, first)``: dropout(ReLU(x + bias)), by kernels.
activate = differentiable(_activate, _backward, _save)


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
    """For a batch, all in front: (batch, nodes, channels), (batch, channels)."""
    batch, beside = (t if t is None or t.dim() == 3 else t[None] for t in (x, residual))
    assert batch is not None
    added = bias.reshape(-1, x.shape[-1]).contiguous()
    out = kernels.add_bias(batch, added, beside)
    return out if x.dim() == 3 else out[0].clone()


@_add_bias.register_fake
def _(x, bias, residual):  # type: ignore[no-untyped-def]
    return torch.empty_like(x)


def _save_nothing(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.residual = inputs[2] is not None


def _bias_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return grad, _sum_rows(grad), grad if ctx.residual else None


#: ``add_bias(x, bias, residual)``: x + bias, plus a residual if there is one, by kernels.
add_bias = differentiable(_add_bias, _bias_gradient, _save_nothing)

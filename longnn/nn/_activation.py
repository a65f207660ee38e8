r"""Bias, ReLU and dropout in one pass: :math:`\mathrm{dropout}(\mathrm{ReLU}(X + b))`.

For kernels alone: on a GPU each pass over the hidden channels of a population costs as much as a
step of the filter. Elsewhere the three are done in turn.
"""

from typing import Any

import torch
from torch import Tensor

from longnn import kernels
from longnn._base.autograd import differentiable


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
    ctx.save_for_backward(output, *inputs[2:4])


@torch.library.custom_op("longnn::activate_gradient", mutates_args=())
def _gradient(grad: Tensor, result: Tensor, stream: Tensor | None, p: Tensor | None) -> Tensor:
    """The gradient of x: that of the result, scaled, where the result is positive."""
    rows = None if stream is None else stream.reshape(-1, 2).contiguous()
    rates = None if p is None else p.reshape(-1).contiguous()
    if result.dim() == 3:
        return kernels.activation_gradient(grad, result, rows, rates)
    return kernels.activation_gradient(grad[None], result[None], rows, rates)[0].clone()


@_gradient.register_fake
def _(grad, result, stream, p):  # type: ignore[no-untyped-def]
    return torch.empty_like(result)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    out = _gradient(grad, *ctx.saved_tensors)
    return out, out.sum(-2), None, None, None, None


#: ``activate(x, bias, stream, p, site, first)``: dropout(ReLU(x + bias)), by kernels.
activate = differentiable(_activate, _backward, _save)

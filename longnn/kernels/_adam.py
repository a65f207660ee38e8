"""Adam's update of one stacked parameter, and keeping the best weights, each in one pass."""

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


@triton.jit
def _adam(
    p,
    g,
    m,
    v,
    rate,
    decay,
    stream,
    size,
    b1: tl.constexpr,
    b2: tl.constexpr,
    epsilon: tl.constexpr,
    log_b1: tl.constexpr,
    log_b2: tl.constexpr,
    BLOCK: tl.constexpr,
):
    member = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < size
    at = member.to(tl.int64) * size + i
    epoch = tl.load(stream + 1).to(tl.float64)
    correction1 = 1 - tl.exp(epoch * log_b1)
    correction2 = tl.sqrt(1 - tl.exp(epoch * log_b2))
    w = tl.load(p + at, mask=inside, other=0.0)
    lr = tl.load(rate + member).to(tl.float64)
    grad = tl.load(g + at, mask=inside, other=0.0) + tl.load(decay + member) * w
    mean = tl.load(m + at, mask=inside, other=0.0)
    mean = mean + (1 - b1) * (grad - mean)
    square = b2 * tl.load(v + at, mask=inside, other=0.0) + (1 - b2) * grad * grad
    tl.store(m + at, mean, mask=inside)
    tl.store(v + at, square, mask=inside)
    denominator = tl.sqrt(square) / correction2.to(w.dtype) + epsilon
    tl.store(p + at, w - (lr / correction1).to(w.dtype) * mean / denominator, mask=inside)


def adam_(
    p: Tensor,  # (members, ...), contiguous, as are the three below
    g: Tensor,
    m: Tensor,
    v: Tensor,
    rate: Tensor,  # (members,)
    decay: Tensor,  # (members,)
    stream: Tensor,  # (members, 2): the epoch is stream[0, 1]
    constants: tuple[float, float, float, float, float],  # b1, b2, epsilon, log b1, log b2
) -> None:
    """Update parameters and moments in place."""
    members = p.shape[0]
    size = p[0].numel()
    grid = (triton.cdiv(size, BLOCK), members)
    _adam[grid](p, g, m, v, rate, decay, stream, size, *constants, BLOCK=BLOCK)


@triton.jit
def _keep(best, p, better, size, BLOCK: tl.constexpr):
    member = tl.program_id(1)
    if tl.load(better + member) != 0:
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        at = member.to(tl.int64) * size + i
        tl.store(best + at, tl.load(p + at, mask=i < size), mask=i < size)


def keep_(best: Tensor, p: Tensor, better: Tensor) -> None:
    """Copy the weights of the members in ``better`` (members,) bool to ``best``."""
    size = p[0].numel()
    _keep[(triton.cdiv(size, BLOCK), p.shape[0])](best, p, better, size, BLOCK=BLOCK)

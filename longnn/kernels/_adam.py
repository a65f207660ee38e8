"""Adam's update of all stacked parameters, and keeping the best weights, each in one pass.

The parameters lie in one piece of memory. It is cut into blocks of numbers that belong to one
parameter of one member, so that a program knows whose rate it needs.
"""

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024
#: What is known of a block: where it starts, where among gradients without gaps, how many numbers
#: it has, and which row of (parameters, members) it is of.
FIELDS = 4


def cut(shapes: Sequence[tuple[int, ...]], starts: Sequence[int]) -> Tensor:
    """The blocks (blocks, FIELDS), int64, of parameters (members, ...) that start where given."""
    members = shapes[0][0]
    blocks, before = [], 0
    for i, (shape, start) in enumerate(zip(shapes, starts, strict=True)):
        size = math.prod(shape[1:])
        for member in range(members):
            for k in range(0, size, BLOCK):
                place = member * size + k
                count = min(BLOCK, size - k)
                blocks.append((start + place, before + place, count, i * members + member))
        before += members * size
    return torch.tensor(blocks, dtype=torch.int64).reshape(-1, FIELDS)


@triton.jit
def _adam(
    p,
    g,
    m,
    v,
    rate,
    decay,
    stream,
    blocks,
    b1: tl.constexpr,
    b2: tl.constexpr,
    epsilon: tl.constexpr,
    log_b1: tl.constexpr,
    log_b2: tl.constexpr,
    FIELDS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    block = blocks + FIELDS * tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < tl.load(block + 2)
    at = tl.load(block) + i
    row = tl.load(block + 3)
    epoch = tl.load(stream + 1).to(tl.float64)
    correction1 = 1 - tl.exp(epoch * log_b1)
    correction2 = tl.sqrt(1 - tl.exp(epoch * log_b2))
    w = tl.load(p + at, mask=inside, other=0.0)
    lr = tl.load(rate + row).to(tl.float64)
    grad = tl.load(g + tl.load(block + 1) + i, mask=inside, other=0.0)
    grad += tl.load(decay + row) * w
    mean = tl.load(m + at, mask=inside, other=0.0)
    mean = mean + (1 - b1) * (grad - mean)
    square = b2 * tl.load(v + at, mask=inside, other=0.0) + (1 - b2) * grad * grad
    tl.store(m + at, mean, mask=inside)
    tl.store(v + at, square, mask=inside)
    denominator = tl.sqrt(square) / correction2.to(w.dtype) + epsilon
    tl.store(p + at, w - (lr / correction1).to(w.dtype) * mean / denominator, mask=inside)


def adam_(
    p: Tensor,  # (numbers,), as are the moments m and v
    g: Tensor,  # (numbers,), without gaps between the parameters
    m: Tensor,
    v: Tensor,
    rate: Tensor,  # (parameters, members), contiguous
    decay: Tensor,  # the same
    stream: Tensor,  # (members, 2): the epoch is stream[0, 1]
    blocks: Tensor,  # see `cut`
    constants: tuple[float, float, float, float, float],  # b1, b2, epsilon, log b1, log b2
) -> None:
    """Update parameters and moments in place."""
    sizes = {"FIELDS": FIELDS, "BLOCK": BLOCK}
    _adam[(len(blocks),)](p, g, m, v, rate, decay, stream, blocks, *constants, **sizes)


@triton.jit
def _keep(best, p, better, blocks, members, FIELDS: tl.constexpr, BLOCK: tl.constexpr):
    block = blocks + FIELDS * tl.program_id(0)
    if tl.load(better + tl.load(block + 3) % members) != 0:
        i = tl.arange(0, BLOCK)
        inside = i < tl.load(block + 2)
        at = tl.load(block) + i
        tl.store(best + at, tl.load(p + at, mask=inside), mask=inside)


def keep_(best: Tensor, p: Tensor, better: Tensor, blocks: Tensor) -> None:
    """Copy the weights (numbers,) of the members in ``better`` (members,) bool to ``best``."""
    sizes = {"FIELDS": FIELDS, "BLOCK": BLOCK}
    _keep[(len(blocks),)](best, p, better, blocks, len(better), **sizes)

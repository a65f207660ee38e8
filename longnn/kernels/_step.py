"""What ends an epoch: Adam's update of all stacked parameters, who is better, the best weights.

The parameters lie in one piece of memory. It is cut into blocks of numbers that belong to one
parameter of one member, so that a program knows whose rate it needs. Each pass is one launch; the
bookkeeping of :class:`longnn.training.Population`, a few numbers per member, would be three dozen.
"""

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024
#: Members of which one program decides who goes on.
MEMBERS = 128
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
                index = member * size + k
                count = min(BLOCK, size - k)
                blocks.append((start + index, before + index, count, i * members + member))
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


@triton.jit
def _stand(
    row,  # (fields, members): the loss in training, in validation, and the score
    epoch,
    best_score,
    best_loss,
    best_epoch,
    stop_epoch,
    alive,
    diverged,
    better,
    members,
    patience,
    step,  # from one member's epoch to the next
    FALLING: tl.constexpr,
    BY_LOSS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = m < members
    train = tl.load(row + m, mask=inside, other=0.0)
    loss = tl.load(row + members + m, mask=inside, other=0.0)
    score = tl.load(row + 2 * members + m, mask=inside, other=0.0)
    now = tl.load(epoch + m * step, mask=inside, other=0)
    living = tl.load(alive + m, mask=inside, other=0) != 0
    if FALLING:
        score = -score
    top = tl.load(best_score + m, mask=inside, other=0.0)
    lowest = tl.load(best_loss + m, mask=inside, other=0.0)
    last = tl.load(best_epoch + m, mask=inside, other=0)
    ahead = loss < lowest
    if not BY_LOSS:
        ahead = (score > top) | ((score == top) & ahead)
    finite = tl.abs(loss) < float("inf")  # a NaN is not
    ahead = ahead & living & finite
    finite = finite & (tl.abs(train) < float("inf"))
    last = tl.where(ahead, now, last)
    tl.store(best_score + m, tl.where(ahead, score, top), mask=inside)
    tl.store(best_loss + m, tl.where(ahead, loss, lowest), mask=inside)
    tl.store(best_epoch + m, last, mask=inside)
    tl.store(stop_epoch + m, now, mask=inside & living)
    tl.store(diverged + m, living, mask=inside & living & (finite == 0))
    tl.store(alive + m, living & finite & (now - last < patience), mask=inside)
    tl.store(better + m, ahead, mask=inside)


def stand_(
    row: Tensor,  # (3 or more, members), contiguous
    epoch: Tensor,  # (members,) int64, any stride
    best_score: Tensor,  # (members,), contiguous, as are all below
    best_loss: Tensor,
    best_epoch: Tensor,
    stop_epoch: Tensor,
    alive: Tensor,
    diverged: Tensor,
    *,
    patience: int,
    falling: bool,
    by_loss: bool,
) -> Tensor:
    """Update a standing in place; returns who is better than before, (members,) bool."""
    better = torch.empty_like(alive)
    members = len(alive)
    _stand[(triton.cdiv(members, MEMBERS),)](
        row, epoch, best_score, best_loss, best_epoch, stop_epoch, alive, diverged, better,
        members, patience, epoch.stride(0),
        FALLING=falling, BY_LOSS=by_loss, BLOCK=MEMBERS,
    )  # fmt: skip
    return better

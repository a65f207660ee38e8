"""The end of an epoch in one launch: who is better than before, and who goes on.

It is :class:`longnn.training.Population`'s bookkeeping: a few numbers per member, which cost three
dozen launches when compared one by one.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 128


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
    _stand[(triton.cdiv(members, BLOCK),)](
        row, epoch, best_score, best_loss, best_epoch, stop_epoch, alive, diverged, better,
        members, patience, epoch.stride(0),
        FALLING=falling, BY_LOSS=by_loss, BLOCK=BLOCK,
    )  # fmt: skip
    return better

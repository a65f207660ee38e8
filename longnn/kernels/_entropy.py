r"""Cross entropy of a population over each member's own nodes: loss, accuracy and gradient.

.. math:: \ell = \sum_i w_i \Big(\log\sum_c e^{s_{ic}} - s_{i y_i}\Big), \qquad
          \frac{\partial \ell}{\partial s_{ic}} = w_i\,(p_{ic} - [c = y_i])

A program gathers the scores of its nodes by number and holds all their classes. Losses of many
nodes are summed in pieces, which are added in a fixed order.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from longnn.kernels._shared import like

#: Elements of a tile, and nodes that one program sums.
BLOCK, PIECE = 8192, 2048


@triton.jit
def _gather(scores, picked, labels, weight, i, some, classes, sn, sc, CLASSES: tl.constexpr):
    """Scores of nodes less their largest one, (nodes, CLASSES), labels and weights (nodes,)."""
    c = tl.arange(0, CLASSES)
    node = tl.load(picked + i, mask=some, other=0)
    label = tl.load(labels + i, mask=some, other=0)
    w = tl.load(weight + i, mask=some, other=0.0)
    inside = some[:, None] & (c[None, :] < classes)
    s = tl.load(scores + node[:, None] * sn + c[None, :] * sc, mask=inside, other=-float("inf"))
    # Nodes that are not there would be NaN; they are of no weight.
    s = tl.where(some[:, None], s, 0.0)
    return node, label, w, s - tl.max(s, 1)[:, None]


@triton.jit
def _losses(
    scores,  # (members, nodes, classes)
    picked,  # (members, count), as are the three below
    labels,
    weight,
    weight_of_hits,
    losses,  # (members, pieces)
    hits,
    count,
    classes,
    piece,
    sm,  # strides of the scores: member, node, class
    sn,
    sc,
    HITS: tl.constexpr,
    ROWS: tl.constexpr,
    CLASSES: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    start = tl.program_id(0) * piece
    end = tl.minimum(start + piece, count)
    c = tl.arange(0, CLASSES)
    loss = tl.zeros([ROWS], dtype=scores.dtype.element_ty)
    right = tl.zeros([ROWS], dtype=scores.dtype.element_ty)
    for first in range(start, end, ROWS):
        i = first + tl.arange(0, ROWS)
        some = i < end
        at = member * count + i
        _, label, w, s = _gather(
            scores + member * sm, picked, labels, weight, at, some, classes, sn, sc, CLASSES
        )
        true = tl.sum(tl.where(c[None, :] == label[:, None], s, 0.0), 1)
        loss += tl.where(some, w * (tl.log(tl.sum(tl.exp(s), 1)) - true), 0.0)
        if HITS:
            hit = some & (tl.argmax(s, 1) == label)
            right += tl.load(weight_of_hits + at, mask=hit, other=0.0)
    offset = member * tl.num_programs(0) + tl.program_id(0)
    tl.store(losses + offset, tl.sum(loss, 0))
    if HITS:
        tl.store(hits + offset, tl.sum(right, 0))


@triton.jit
def _gradient(
    scores,
    picked,
    labels,
    weight,
    grad,  # (members,)
    out,  # (members, nodes, classes), zero where no node was picked
    count,
    classes,
    sm,  # strides of the scores, and of out
    sn,
    sc,
    ROWS: tl.constexpr,
    CLASSES: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, CLASSES)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    some = i < count
    node, label, w, s = _gather(
        scores + member * sm, picked, labels, weight, member * count + i, some, classes, sn, sc,
        CLASSES,
    )  # fmt: skip
    p = tl.exp(s)
    p = p / tl.sum(p, 1)[:, None] - tl.where(c[None, :] == label[:, None], 1.0, 0.0)
    slope = p * (w * tl.load(grad + member))[:, None]
    offset = member * sm + node[:, None] * sn + c[None, :] * sc
    tl.store(out + offset, slope, mask=some[:, None] & (c[None, :] < classes))


def _sizes(classes: int) -> dict[str, int]:
    wide = triton.next_power_of_2(classes)
    return {"ROWS": max(1, BLOCK // wide), "CLASSES": wide, "num_warps": 8}


def cross_entropy(
    scores: Tensor,  # (members, nodes, classes), any strides
    rows: Tensor,  # (members, count) int64, contiguous, as are those below
    weight: Tensor,  # (members, count)
    labels: Tensor,  # (members, count) int64
    weight_of_hits: Tensor | None = None,  # (members, count)
) -> tuple[Tensor, Tensor]:
    """The loss of each member, (members,), and the weight of its nodes that are predicted right
    (nothing of use without weights for them)."""
    (members, count), classes = rows.shape, scores.shape[2]
    pieces = max(1, triton.cdiv(count, PIECE))
    sums = torch.empty(2, members, pieces, dtype=scores.dtype, device=scores.device)
    _losses[(pieces, members)](
        scores, rows, labels, weight, weight if weight_of_hits is None else weight_of_hits,
        *sums, count, classes, PIECE, *scores.stride(),
        HITS=weight_of_hits is not None, **_sizes(classes),
    )  # fmt: skip
    losses, hits = sums[..., 0] if pieces == 1 else sums.sum(-1)
    return losses, hits


def cross_entropy_gradient(
    scores: Tensor, rows: Tensor, weight: Tensor, labels: Tensor, grad: Tensor
) -> Tensor:
    """The gradient of the scores, in their strides, for that of the losses, (members,)."""
    (members, count), classes = rows.shape, scores.shape[2]
    scores, out = like(scores)
    out.zero_()
    sizes = _sizes(classes)
    sizes["ROWS"] = max(1, sizes["ROWS"] // 8)  # nothing is summed: more programs
    sizes["num_warps"] = 4
    if count:
        _gradient[(triton.cdiv(count, sizes["ROWS"]), members)](
            scores, rows, labels, weight, grad, out, count, classes, *scores.stride(),
            **sizes,
        )  # fmt: skip
    return out

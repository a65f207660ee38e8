"""Dropout of a population's dense signals: hash, mask and scale in one pass, nothing stored."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from longnn.kernels.hashing import keep, prepare

BLOCK = 1024


@triton.jit
def _dropout(x, out, keys, scales, size, columns, sm, sr, sc, BLOCK: tl.constexpr):
    member = tl.program_id(1)
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < size
    place = member.to(tl.int64) * sm + (i // columns) * sr + (i % columns) * sc
    v = tl.load(x + place, mask=inside, other=0.0)
    scale = tl.load(scales + member).to(v.dtype)
    tl.store(out + place, tl.where(keep(keys, member, i), v * scale, 0.0), mask=inside)


def dropout(x: Tensor, stream: Tensor, p: Tensor, site: int) -> Tensor:
    """x with members in front, (members, rows, columns) of any strides; the result has them too.

    ``stream`` (members, 2) int64 and ``p`` (members,) are contiguous.
    """
    members, rows, columns = x.shape
    out = torch.empty_like(x)  # keeps the strides of a dense, permuted tensor
    if out.stride() != x.stride():
        x = x.contiguous()
        out = torch.empty_like(x)
    grid = (triton.cdiv(rows * columns, BLOCK), members)
    keys, scales = prepare(stream, p, site)
    _dropout[grid](x, out, keys, scales, rows * columns, columns, *x.stride(), BLOCK=BLOCK)
    return out

r"""Random numbers for dropout that depend on nothing but (seed, epoch, place, position).

Dropout in a population must give each member the numbers it would get alone, give a resumed run
the numbers of the uninterrupted one, and be cheap. So the numbers are a hash of their position:
no generator, no state, the same on every device. Some rows of a signal get the numbers that they
have in the whole, if it is said where they begin. :func:`keep_mask` is the torch operator
``longnn::keep_mask``, with a vmap rule; the hash is two rounds of Mueller's ``lowbias32``, keyed.
"""

import functools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn import kernels
from longnn._base.autograd import lean

_MASK = 0xFFFFFFFF
_C1, _C2, _GOLDEN = 0x7FEB352D, 0x846CA68B, 0x9E3779B9
#: Hashes made at a time on the CPU, so that they stay in the cache (three times faster).
_BLOCK = 1 << 16


def _lowbias(x: Tensor) -> Tensor:
    """lowbias32 on int64 tensors that hold 32-bit numbers."""
    x = x ^ (x >> 16)
    x = (x * _C1) & _MASK
    x = x ^ (x >> 15)
    x = (x * _C2) & _MASK
    return x ^ (x >> 16)


def keys(
    stream: Tensor,  # (..., 2) int64: seed and epoch
    site: int,  # which dropout of the model
) -> Tensor:  # (..., 2) int64: two 32-bit keys
    """Keys of one place at one epoch of one member."""
    seed, epoch = stream[..., 0], stream[..., 1]
    first = _lowbias((seed + _GOLDEN * (site + 1)) & _MASK)
    first = _lowbias(first ^ ((seed >> 32) & _MASK))
    first = _lowbias((first + epoch * _GOLDEN) & _MASK)
    return torch.stack([first, _lowbias(first ^ _GOLDEN)], dim=-1)


def _keys_int(seed: int, epoch: int, site: int) -> list[int]:
    """The same keys by plain integers: on the CPU a dozen tiny tensors would cost more."""

    def lowbias(x: int) -> int:
        x ^= x >> 16
        x = (x * _C1) & _MASK
        x ^= x >> 15
        x = (x * _C2) & _MASK
        return x ^ (x >> 16)

    first = lowbias((seed + _GOLDEN * (site + 1)) & _MASK)
    first = lowbias(first ^ ((seed >> 32) & _MASK))
    first = lowbias((first + epoch * _GOLDEN) & _MASK)
    return [first, lowbias(first ^ _GOLDEN)]


def _thresholds(p: Tensor) -> Tensor:
    """The 16-bit number below which an element is dropped; the rate is exact to 1/65536."""
    return torch.round(p.double() * 65536).clamp(0, 65535).to(torch.int64)


@functools.cache
def _places(count: int) -> np.ndarray:
    """0, 1, 2, ...; made once."""
    places = np.arange(count, dtype=np.uint32)
    places.flags.writeable = False
    return places


def _mask_numpy(key: list[int], threshold: int, size: int, first: int = 0) -> np.ndarray:
    """One member's mask on the CPU from a position on: 32-bit hashes, each two 16-bit numbers."""
    before, odd = first >> 1, first & 1
    pairs = (size + odd + 1) // 2
    kept = np.empty(2 * pairs, dtype=bool)
    block = _places(_BLOCK)[:pairs]
    hashes, shifted = np.empty_like(block), np.empty_like(block)
    for start in range(0, pairs, _BLOCK):
        count = min(_BLOCK, pairs - start)
        x, s = hashes[:count], shifted[:count]
        np.add(block[:count], np.uint32((key[0] + before + start) & _MASK), out=x)
        x ^= np.right_shift(x, np.uint32(16), out=s)
        x *= np.uint32(_C1)
        x ^= np.uint32(key[1])
        x ^= np.right_shift(x, np.uint32(15), out=s)
        x *= np.uint32(_C2)
        x ^= np.right_shift(x, np.uint32(16), out=s)
        halves = x.astype("<u4", copy=False).view("<u2")
        place = kept[2 * start : 2 * (start + count)]
        np.greater_equal(halves, np.uint16(threshold), out=place)
    return kept[odd : odd + size]


def _mask_torch(key: Tensor, threshold: Tensor, size: int, first: int = 0) -> Tensor:
    """The same numbers by torch operations, for a batch of keys (batch, 2) on any device."""
    i = torch.arange(first, first + size, device=key.device)
    x = ((i >> 1) + key[:, :1]) & _MASK
    x = x ^ (x >> 16)
    x = (x * _C1) & _MASK
    x = x ^ key[:, 1:]
    x = x ^ (x >> 15)
    x = (x * _C2) & _MASK
    x = x ^ (x >> 16)
    half = (x >> (16 * (i & 1))) & 0xFFFF
    return half >= threshold[:, None]


def _kept(stream: Tensor, p: Tensor, size: int, site: int, first: int) -> tuple[np.ndarray, float]:
    """What one member keeps, bool (size,), and the scale of it."""
    seed, epoch = stream.tolist()
    threshold = min(round(p.item() * 65536), 65535)
    kept = _mask_numpy(_keys_int(seed, epoch, site), threshold, size, first)
    return kept, 65536 / (65536 - threshold)


def drop_(x: Tensor, stream: Tensor, p: Tensor, site: int, first: int = 0) -> float:
    """Drop from one member's signal on the CPU, contiguous, in place; returns the scale."""
    kept, scale = _kept(stream, p, x.numel(), site, first)
    flat = x.detach().view(-1)
    np.multiply(flat.numpy(), kept, out=flat.numpy())  # by booleans: no mask of numbers is made
    flat.mul_(scale)
    return scale


def _fill(mask: np.ndarray, stream: Tensor, p: Tensor, site: int, first: int) -> None:
    """Write one member's mask on the CPU, of any shape and contiguous."""
    kept, by = _kept(stream, p, mask.size, site, first)
    np.multiply(kept.reshape(mask.shape), mask.dtype.type(by), out=mask)


def _empty_mask(shape: Any, like: Tensor) -> Tensor:
    """Room for a mask, in a type that NumPy has."""
    return torch.empty(shape, dtype=torch.float64 if like.dtype == torch.float64 else torch.float32)


def masks(
    stream: Tensor, p: Tensor, like: Tensor, site: int, shape: list[int], first: int = 0
) -> Tensor:
    """Masks of a batch, shape (batch, *shape): 0 where dropped, 1 / (1 - rate) where kept."""
    size = math.prod(shape)
    if stream.device.type == "cpu":
        mask = _empty_mask((len(stream), *shape), like)
        for row, own, rate in zip(mask.numpy(), stream, p, strict=True):
            _fill(row, own, rate, site, first)
        return mask.to(like.dtype)
    threshold = _thresholds(p)
    scale = (65536.0 / (65536 - threshold)).to(like.dtype)
    mask = _mask_torch(keys(stream, site), threshold, size, first).to(like.dtype)
    return mask.mul_(scale[:, None]).view(len(stream), *shape)


@torch.library.custom_op("longnn::keep_mask", mutates_args=())
def keep_mask(stream: Tensor, p: Tensor, like: Tensor, site: int, first: int = 0) -> Tensor:
    """A dropout mask shaped like ``like``: 0 with probability p, else 1 / (1 - p).

    Args:
        stream: shape (2,), int64: the member's seed and the epoch.
        p: the dropout rate, a scalar tensor in [0, 1).
        like: gives shape, type and device.
        site: the number of this dropout within the model.
        first: the position of the first element, where they are part of a larger signal.
    """
    if stream.device.type == "cpu":
        mask = _empty_mask(like.shape, like)
        _fill(mask.numpy(), stream, p, site, first)
        return mask.to(like.dtype)
    return masks(stream[None], p[None], like, site, list(like.shape), first)[0]


#: The same, at less cost where no transform is at work.
quick_mask = lean(keep_mask)


@keep_mask.register_fake
def _(stream, p, like, site, first=0):  # type: ignore[no-untyped-def]
    return torch.empty_like(like, memory_format=torch.contiguous_format)


@keep_mask.register_vmap
def _(info, in_dims, stream, p, like, site, first=0):  # type: ignore[no-untyped-def]
    batch = info.batch_size
    stream = stream.expand(batch, 2) if in_dims[0] is None else stream.movedim(in_dims[0], 0)
    p = p.expand(batch) if in_dims[1] is None else p
    shape = list(like.shape)
    if in_dims[2] is not None:
        del shape[in_dims[2]]
    return masks(stream, p, like, site, shape, first), 0


@torch.library.custom_op("longnn::dropout", mutates_args=())
def _dropout(x: Tensor, stream: Tensor, p: Tensor, site: int, first: int) -> Tensor:
    """x times its mask, the mask made in the kernel and not stored."""
    return _drop_batch(x[None], stream[None], p[None], site, first)[0].clone()


def _drop_batch(x: Tensor, stream: Tensor, p: Tensor, site: int, first: int) -> Tensor:
    """For a batch in front; x of one or two dimensions besides."""
    if kernels.usable(x):
        flat = x if x.dim() == 3 else x[..., None]
        keyed = (stream.contiguous(), p.contiguous(), site)
        return kernels.dropout(flat, *keyed, first=first).view_as(x)
    return x * masks(stream, p, x, site, list(x.shape[1:]), first)


@_dropout.register_fake
def _(x, stream, p, site, first):  # type: ignore[no-untyped-def]
    return torch.empty_like(x)


@_dropout.register_vmap
def _(info, in_dims, x, stream, p, site, first):  # type: ignore[no-untyped-def]
    batch = [
        t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
        for t, dim in zip((x, stream, p), in_dims[:3], strict=True)
    ]
    return _drop_batch(*batch, site, first), 0


class _Dropout(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, stream: Tensor, p: Tensor, site: int, first: int) -> Tensor:
        return _dropout(x, stream, p, site, first)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[1:3])
        ctx.place = inputs[3:]  # site and first

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _Dropout.apply(grad, *ctx.saved_tensors, *ctx.place), None, None, None, None


def dropout(x: Tensor, stream: Tensor, p: Tensor, site: int, first: int = 0) -> Tensor:
    """x with elements dropped at the rate p, the rest scaled up; see :func:`keep_mask`.

    On a GPU the mask is made again in the backward pass; elsewhere it is cheaper to keep it.

    >>> stream = torch.tensor([0, 1])  # seed and epoch
    >>> dropout(torch.ones(6), stream, torch.tensor(0.5), 0).unique()
    tensor([0., 2.])
    """
    if kernels.usable(x):
        return _Dropout.apply(x, stream, p, site, first)
    return x * quick_mask(stream, p, x.detach(), site, first)

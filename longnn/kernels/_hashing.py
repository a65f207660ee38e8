"""The hash of :mod:`longnn.matrices`, inside kernels: the same numbers, made where they are used.

What depends on the member and the epoch alone (two keys, the threshold, the scale) is computed
once by :func:`prepare`; a kernel then hashes positions with :func:`keep`.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _lowbias(x):
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _prepare(stream, p, site, keys, scales):
    member = tl.program_id(0)
    seed = tl.load(stream + 2 * member)
    epoch = tl.load(stream + 2 * member + 1)
    golden = tl.full([], 0x9E3779B9, dtype=tl.uint32)
    first = _lowbias(seed.to(tl.uint32) + golden * (site + 1))
    first = _lowbias(first ^ (seed >> 32).to(tl.uint32))
    first = _lowbias(first + epoch.to(tl.uint32) * golden)
    second = _lowbias(first ^ golden)
    # noise._thresholds rounds half to even; a tie would need p = k / 131072, k odd.
    threshold = tl.floor(tl.load(p + member).to(tl.float64) * 65536 + 0.5)
    threshold = tl.minimum(threshold, 65535.0)
    tl.store(keys + 3 * member, first.to(tl.int64))
    tl.store(keys + 3 * member + 1, second.to(tl.int64))
    tl.store(keys + 3 * member + 2, threshold.to(tl.int64))
    tl.store(scales + member, (65536.0 / (65536.0 - threshold)).to(tl.float32))


def prepare(stream: Tensor, p: Tensor, site: int) -> tuple[Tensor, Tensor]:
    """Keys and thresholds (members, 3) int64, and scales (members,) float32, on the device."""
    members = stream.shape[0]
    keys = torch.empty(members, 3, dtype=torch.int64, device=stream.device)
    scales = torch.empty(members, dtype=torch.float32, device=stream.device)
    _prepare[(members,)](stream, p, site, keys, scales, num_warps=1)
    return keys, scales


@triton.jit
def hash32(keys, member, pair):
    """32 random bits for each pair of neighbouring positions."""
    first = tl.load(keys + 3 * member).to(tl.uint32)
    second = tl.load(keys + 3 * member + 1).to(tl.uint32)
    x = pair.to(tl.uint32) + first
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ second
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def keep(keys, member, index):
    """Which elements a member keeps, by their position."""
    x = hash32(keys, member, index >> 1)
    half = tl.where((index & 1) == 1, x >> 16, x & 0xFFFF)
    return half >= tl.load(keys + 3 * member + 2).to(tl.uint32)

"""The hash of :mod:`longnn.matrices`, inside kernels: the same numbers, made where they are used.

What depends on the member and the epoch alone is computed by each program once (:func:`keys`,
:func:`scale`): a few dozen operations, where a launch of its own would take longer than they do.
"""

import triton
import triton.language as tl


@triton.jit
def _lowbias(x):
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _threshold(p, member):
    """The 16-bit number below which an element is dropped, as a float64."""
    # noise._thresholds rounds half to even; a tie would need p = k / 131072, k odd.
    return tl.minimum(tl.floor(tl.load(p + member).to(tl.float64) * 65536 + 0.5), 65535.0)


@triton.jit
def scale(p, member):
    """By how much what a member keeps is multiplied, float32."""
    return (65536.0 / (65536.0 - _threshold(p, member))).to(tl.float32)


@triton.jit
def keys(stream, p, site, member):
    """Two keys and the threshold of one member, or of several, uint32."""
    seed = tl.load(stream + 2 * member)
    epoch = tl.load(stream + 2 * member + 1)
    golden = tl.full([], 0x9E3779B9, dtype=tl.uint32)
    first = _lowbias(seed.to(tl.uint32) + golden * (site + 1).to(tl.uint32))
    first = _lowbias(first ^ (seed >> 32).to(tl.uint32))
    first = _lowbias(first + epoch.to(tl.uint32) * golden)
    return first, _lowbias(first ^ golden), _threshold(p, member).to(tl.int32).to(tl.uint32)


@triton.jit
def hash32(first, second, pair):
    """32 random bits for each pair of neighbouring positions."""
    x = pair.to(tl.uint32) + first
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ second
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def keep(first, second, threshold, index):
    """Which elements a member keeps, by their position."""
    x = hash32(first, second, index >> 1)
    half = tl.where((index & 1) == 1, x >> 16, x & 0xFFFF)
    return half >= threshold

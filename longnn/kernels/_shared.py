"""What kernels over signals share: results like their inputs, tiles, precision, and the hash.

The hash is that of :mod:`longnn.matrices`, inside kernels: the same numbers, made where they are
used. What depends on the member and the epoch alone is computed by each program once (:func:`keys`,
:func:`scale`): a few dozen operations, where a launch of its own would take longer than they do.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Elements of a tile.
BLOCK = 1024


def like(x: Tensor) -> tuple[Tensor, Tensor]:
    """x and an empty tensor of the same strides: those of a dense, permuted tensor are kept."""
    out = torch.empty_like(x)
    if out.stride() != x.stride():
        x = x.contiguous()
        out = torch.empty_like(x)
    return x, out


def tiles(x: Tensor) -> tuple[tuple[int, int, int], dict[str, int]]:
    """The grid over (members, rows, columns), and the sizes of a tile."""
    members, rows, columns = x.shape
    wide = min(triton.next_power_of_2(columns), 256)
    tall = BLOCK // wide
    grid = (triton.cdiv(rows, tall), members, triton.cdiv(columns, wide))
    return grid, {"ROWS": tall, "COLUMNS": wide}


def dot_precision(x: Tensor) -> str:
    """How Triton multiplies: in TF32 where torch does, else as exactly as float32."""
    if not x.is_cuda:
        return "ieee"  # the interpreter has no other
    return "bf16x6" if torch.get_float32_matmul_precision() == "highest" else "tf32"


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

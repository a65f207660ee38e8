r"""What is written down of a filter at every epoch, in one launch: its amplitude, a and b.

.. math:: \sqrt{\tfrac1C \sum_{kc} \alpha_{kc}^2}, \qquad
          \alpha_{kc} = w_{kc} \prod_{i<k} \gamma\tanh\eta_i

A program serves one filter. The formulas are those of :mod:`longnn.filters`.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from longnn.kernels._basis import constrained, numbers_of, tanh

#: Elements of a tile.
BLOCK = 2048


@triton.jit
def _summary(
    a,
    b,
    weight,  # (filters, size, channels)
    eta,  # (filters, size - 1)
    gamma,  # (filters,)
    numbers,  # the bound of a and b
    out,  # (filters, 3)
    size,
    channels,
    FACTORS: tl.constexpr,
    WIDE: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    one = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, WIDE)
    c = tl.arange(0, CHANNELS)
    energy = tl.zeros([WIDE], dtype=tl.float64)
    for first in range(0, channels, CHANNELS):
        inside = (k[:, None] < size) & (first + c[None, :] < channels)
        place = (one * size + k[:, None]) * channels + first + c[None, :]
        w = tl.load(weight + place, mask=inside, other=0.0).to(tl.float64)
        energy += tl.sum(w * w, 1)
    if FACTORS:
        before = (k > 0) & (k < size)
        e = tl.load(eta + one * (size - 1) + k - 1, mask=before, other=0.0).to(tl.float64)
        factor = tl.where(before, tl.load(gamma + one).to(tl.float64) * tanh(e), 1.0)
        product = tl.cumprod(factor, 0)
        energy *= product * product
    lower = tl.load(numbers)
    tl.store(out + 3 * one, tl.sqrt(tl.sum(energy, 0) / channels))
    tl.store(out + 3 * one + 1, constrained(a + one, lower, True)[0])
    tl.store(out + 3 * one + 2, constrained(b + one, lower, True)[0])


def summary(
    a: Tensor,  # (filters,), contiguous, as are all tensors here
    b: Tensor,
    weight: Tensor,  # (filters, degree+1, channels)
    bound: float,  # a and b are raw, and become bound + softplus
    *,
    eta: Tensor | None = None,  # (filters, degree), with gamma (filters,): there are factors
    gamma: Tensor | None = None,
) -> Tensor:
    """Amplitude, a and b of each filter, (filters, 3), in the type of the weights."""
    filters, size, channels = weight.shape
    out = torch.empty(filters, 3, dtype=weight.dtype, device=weight.device)
    wide = triton.next_power_of_2(size)
    tile = max(1, min(triton.next_power_of_2(channels), BLOCK // wide))
    factors = (a, a) if eta is None or gamma is None else (eta, gamma)
    _summary[(filters,)](
        a, b, weight, *factors, numbers_of(bound, a.device), out, size, channels,
        FACTORS=eta is not None, WIDE=wide, CHANNELS=tile,
    )  # fmt: skip
    return out

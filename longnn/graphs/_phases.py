r"""The entries of a magnetic operator as functions of its phase q, so that q can be learned.

.. math:: P(q)_e = s_e \cos(2\pi q\,\theta_e + \varphi_e)

An entry of the real part has :math:`\varphi = 0`, one of the imaginary part a right angle. Where
arcs have no reverse or an equal one, :math:`\theta \in \{-1, 0, 1\}`, and P(q) is a fixed matrix,
one times :math:`\cos 2\pi q`, and one times :math:`\sin 2\pi q`.
"""

import dataclasses
import math
from typing import Self

import torch
from torch import Tensor

#: The shifts that make of a cosine itself, a sine, and a sine with the other sign.
COSINE, SINE, MINUS_SINE = 0.0, -math.pi / 2, math.pi / 2


@dataclasses.dataclass(frozen=True, eq=False)
class Phases:
    """Sizes, turns and shifts of the entries of a magnetic operator.

    >>> one = torch.ones(1)
    >>> Phases(one, one, 0 * one).values(torch.tensor(0.5))  # half a turn
    tensor([-1.])
    """

    size: Tensor  # (entries,) s
    turn: Tensor  # (entries,) theta, turns of the entry per turn of an arc
    shift: Tensor  # (entries,) phi

    def values(self, phase: Tensor | float) -> Tensor:
        """The entries at a phase q, shape (entries,), differentiable in it."""
        return self.size * torch.cos(2 * math.pi * phase * self.turn + self.shift)

    def to(self, target: torch.device | torch.dtype | str) -> Self:
        """The same on another device or in another type."""
        return type(self)(self.size.to(target), self.turn.to(target), self.shift.to(target))

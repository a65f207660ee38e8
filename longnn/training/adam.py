r"""Adam for a population: one update for all members, each with its own rates.

The algorithm is that of :class:`torch.optim.Adam` with L2 weight decay; torch's takes one
learning rate per parameter, a population needs one per member.

.. math::
    m \leftarrow \beta_1 m + (1-\beta_1) g, \quad v \leftarrow \beta_2 v + (1-\beta_2) g^2, \quad
    p \leftarrow p - \eta\, \frac{m/(1-\beta_1^t)}{\sqrt{v/(1-\beta_2^t)} + \epsilon},
    \qquad g = \nabla p + \lambda p
"""

import math

import torch
from torch import Tensor

from longnn import kernels

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
_CONSTANTS = (BETA1, BETA2, EPSILON, math.log(BETA1), math.log(BETA2))


class PopulationAdam:
    """State and update; parameters are stacked, shape (members, ...)."""

    def __init__(
        self,
        parameters: dict[str, Tensor],
        rates: dict[str, Tensor],  # name -> (members,)
        decays: dict[str, Tensor],  # name -> (members,)
    ) -> None:
        self.mean = {name: torch.zeros_like(p) for name, p in parameters.items()}
        self.square = {name: torch.zeros_like(p) for name, p in parameters.items()}
        self.rates, self.decays = rates, decays
        self._decayed = {name: bool((d > 0).any()) for name, d in decays.items()}

    @torch.no_grad()
    def step(
        self,
        parameters: dict[str, Tensor],
        gradients: dict[str, Tensor],
        stream: Tensor,  # (members, 2): the epoch, counted from 1, is stream[0, 1]
    ) -> None:
        """Update the parameters in place."""
        if kernels.usable(stream):
            from longnn.kernels.adam import adam_

            for name, p in parameters.items():
                moments = (self.mean[name], self.square[name])
                rates = (self.rates[name], self.decays[name])
                adam_(p, gradients[name].contiguous(), *moments, *rates, stream, _CONSTANTS)
            return
        t = stream[0, 1].double()
        correction1, correction2 = 1 - BETA1**t, (1 - BETA2**t).sqrt()
        for name, p in parameters.items():
            g = gradients[name]
            if self._decayed[name]:
                g = torch.addcmul(g, p, _align(self.decays[name], p))
            m, v = self.mean[name], self.square[name]
            m.lerp_(g, 1 - BETA1)
            v.mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
            # lr m / c1 / (sqrt(v) / c2 + eps)
            denominator = v.sqrt().div_(correction2.to(p.dtype)).add_(EPSILON)
            step = _align(self.rates[name] / correction1.to(p.dtype), p)
            p.sub_(m.div(denominator).mul_(step))

    def take(self, members: Tensor) -> None:
        """Keep only the given members."""
        for table in (self.mean, self.square, self.rates, self.decays):
            for name in table:
                table[name] = table[name][members]


def _align(per_member: Tensor, like: Tensor) -> Tensor:
    return per_member.reshape(-1, *(1,) * (like.dim() - 1))

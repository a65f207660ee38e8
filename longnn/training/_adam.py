r"""Adam for a population: one update for all members, each with its own rates.

The algorithm is that of :class:`torch.optim.Adam` with L2 weight decay; torch's takes one
learning rate per parameter, a population needs one per member. Where there is no kernel of our
own, torch's fused update does the work: one call for all weights that share their rates.

.. math::
    m \leftarrow \beta_1 m + (1-\beta_1) g, \quad v \leftarrow \beta_2 v + (1-\beta_2) g^2, \quad
    p \leftarrow p - \eta\, \frac{m/(1-\beta_1^t)}{\sqrt{v/(1-\beta_2^t)} + \epsilon},
    \qquad g = \nabla p + \lambda p
"""

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from longnn import kernels
from longnn._base.torch_private import fused_adam_
from longnn.training._packed import Packed

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
_CONSTANTS = (BETA1, BETA2, EPSILON, math.log(BETA1), math.log(BETA2))


class PopulationAdam:
    """State and update; parameters are stacked, shape (members, ...)."""

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        rates: dict[str, Tensor],  # name -> (members,)
        decays: dict[str, Tensor],  # name -> (members,)
    ) -> None:
        zeros = {name: torch.zeros_like(p) for name, p in parameters.items()}
        self.mean, self.square = Packed(zeros), Packed(zeros)
        self.rates, self.decays = rates, decays
        self._group()

    def _group(self) -> None:
        """Who shares rates: (rate, decay) -> places among all stacks, or all rows of stacks.

        For kernels the rates are tables, (parameters, members).
        """
        rates = (self.rates, self.decays)
        self._tables = [torch.stack([of[name] for name in self.mean]) for of in rates]
        pairs = [
            list(zip(self.rates[name].tolist(), self.decays[name].tolist(), strict=True))
            for name in self.mean
        ]
        self._alike = all(len(set(of)) == 1 for of in pairs)  # no need to take the stacks apart
        self._groups: dict[tuple[float, float], list[int]] = {}
        shown = ([of[0]] for of in pairs) if self._alike else pairs
        for place, pair in enumerate(pair for of in shown for pair in of):
            self._groups.setdefault(pair, []).append(place)

    @torch.no_grad()
    def step(
        self,
        parameters: Packed,
        gradients: dict[str, Tensor],
        stream: Tensor,  # (members, 2): the epoch, counted from 1, is stream[0, 1]
    ) -> None:
        """Update the parameters in place."""
        if kernels.usable(stream):
            self._step_by_kernel(parameters, gradients, stream)
            return
        epoch = stream[0, 1].float()
        gradients = {name: gradients[name].contiguous() for name in parameters}
        tables = (parameters, gradients, self.mean, self.square)
        columns = [self._parted(table.values()) for table in tables]
        for (rate, decay), places in self._groups.items():
            p, g, m, v = ([column[i] for i in places] for column in columns)
            fused_adam_(
                *(p, g, m, v),
                epoch=epoch,
                rate=rate,
                decay=decay,
                betas=(BETA1, BETA2),
                epsilon=EPSILON,
            )

    def _step_by_kernel(
        self, parameters: Packed, gradients: dict[str, Tensor], stream: Tensor
    ) -> None:
        """All parameters of all members at once; their gradients are put side by side first."""
        found = torch.cat([gradients[name].reshape(-1) for name in parameters])
        moments, (rate, decay) = (self.mean.flat, self.square.flat), self._tables
        blocks = parameters.blocks
        kernels.adam_(parameters.flat, found, *moments, rate, decay, stream, blocks, _CONSTANTS)

    def _parted(self, stacks: Iterable[Tensor]) -> list[Tensor]:
        """The stacks, or the rows of all of them, one after the other."""
        return list(stacks) if self._alike else [row for s in stacks for row in s.unbind()]

    def take(self, members: Tensor) -> None:
        """Keep only the given members."""
        self.mean, self.square = self.mean.take(members), self.square.take(members)
        for table in (self.rates, self.decays):
            for name in table:
                table[name] = table[name][members]
        self._group()

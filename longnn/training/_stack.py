r"""The members of a population as one: packed weights, models called together, one Adam for all.

Weights and buffers stand in tables, shape (members, ...), that lie in one piece of memory: an epoch
on a small graph takes the time of its calls, and a model has a dozen parameters. Several members
are called under ``vmap``, so that their channels lie side by side and one sparse product serves
all. One member alone on the CPU needs no transform: its model holds views of the tables for good,
and a call costs what a plain call costs.

Adam is that of :class:`torch.optim.Adam` with L2 weight decay; torch's takes one learning rate per
parameter, a population needs one per member. Where there is no kernel of our own, torch's fused
update does the work: one call for all weights that share their rates.

.. math::
    m \leftarrow \beta_1 m + (1-\beta_1) g, \quad v \leftarrow \beta_2 v + (1-\beta_2) g^2, \quad
    p \leftarrow p - \eta\, \frac{m/(1-\beta_1^t)}{\sqrt{v/(1-\beta_2^t)} + \epsilon},
    \qquad g = \nabla p + \lambda p
"""

import copy
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn
from torch.func import stack_module_state

from longnn import kernels
from longnn._base.torch_private import copy_each_, fused_adam_
from longnn.nn._ensemble import call_each

#: Numbers to a multiple of which tables are filled up, so that each begins where a GPU reads
#: well.
ALIGNED = 16


class Packed(Mapping[str, Tensor]):
    """Tensors by name, each contiguous and of shape (members, ...), that lie in ``flat``.

    Args:
        tables: name -> (members, ...), of one type and device; they are copied.

    >>> packed = Packed({"w": torch.ones(2, 3), "b": torch.ones(2)})
    >>> packed.flat.zero_().shape, packed["w"].sum()
    (torch.Size([32]), tensor(0.))
    """

    def __init__(self, tables: Mapping[str, Tensor]) -> None:
        starts = [0]
        for table in tables.values():
            starts.append(starts[-1] + -(-table.numel() // ALIGNED) * ALIGNED)
        first = next(iter(tables.values()))
        self.starts = starts[:-1]
        self.flat = first.detach().new_zeros(starts[-1])
        self._views = {
            name: self.flat[start : start + table.numel()].view(table.shape)
            for (name, table), start in zip(tables.items(), self.starts, strict=True)
        }
        with torch.no_grad():
            copy_each_([*self._views.values()], [t.detach() for t in tables.values()])

    def __getitem__(self, name: str) -> Tensor:
        return self._views[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def take(self, rows: Tensor) -> Self:
        """Those of some members."""
        return type(self)({name: t.detach()[rows] for name, t in self._views.items()})

    @functools.cached_property
    def blocks(self) -> Tensor:
        """Where kernels find the numbers of one member and table, see :func:`kernels.cut`."""
        shapes = [tuple(t.shape) for t in self._views.values()]
        return kernels.cut(shapes, self.starts).to(self.flat.device)


class TrainableModel(Protocol):
    """The interface of a model, as far as training needs it."""

    def scores(self, x: Any, operator: Any) -> Tensor: ...
    def filters(self) -> list[Any]: ...
    def penalty(self) -> Tensor: ...
    def parameter_groups(self) -> dict[str, list[nn.Parameter]]: ...


class Watched(nn.Module):
    """A model that also reports its penalties, amplitude and basis."""

    def __init__(self, model: TrainableModel) -> None:
        super().__init__()
        self.model: Any = model
        self.filters = model.filters()  # found once: it is a walk through all modules

    def train_scores(self, x: Any, operator: Any, penalties: tuple[bool, bool]) -> tuple[Any, ...]:
        """Scores, and of the filter-norm and the degree penalty those that are asked for."""
        scores = self.model.scores(x, operator)
        out = [scores]
        if penalties[0]:
            out.append(self.model.penalty().to(scores))
        if penalties[1]:
            each = [f.degree_penalty() for f in self.filters]
            out.append(sum(each, scores.new_zeros(())).to(scores))
        return tuple(out)

    def watched_scores(self, x: Any, operator: Any) -> tuple[Tensor, ...]:
        """Scores, amplitude, a and b; NaN where there is no such thing."""
        scores = self.model.scores(x, operator)
        known = self.filters[0].summary() if self.filters else {}
        watched = (known.get(name) for name in ("amplitude", "a", "b"))
        nan = scores.new_full((), torch.nan) if len(known) < 3 else scores
        return scores, *(nan if value is None else value.to(scores) for value in watched)


class Stack:
    """Stacked models; weights in ``parameters``, changed in place by whoever trains them.

    Args:
        models: at least one, all alike, on one device.
        shared: tables that stand for all buffers of a name, by the last word of the name.
    """

    def __init__(self, models: Sequence[nn.Module], shared: dict[str, Tensor]) -> None:
        parameters, self.buffers = stack_module_state(list(models))
        self.parameters = _trainable(Packed(parameters))
        # One in training mode and one not: switching a module costs more than calling it.
        self.modules = {
            True: copy.deepcopy(models[0]).train(),
            False: copy.deepcopy(models[0]).eval(),
        }
        self.share(shared)

    def share(self, shared: dict[str, Tensor]) -> None:
        """Let buffers be tables that the caller holds and changes."""
        for name in self.buffers:
            last = name.rpartition(".")[2]
            self.buffers[name] = shared.get(last, self.buffers[name])
        self._bind()

    def _bind(self) -> None:
        """Make the weights of a single member those of the modules themselves."""
        first = next(iter(self.parameters.values()))
        self._ones = first.detach().new_ones(len(first))  # the gradients of their totals
        self._leaves: dict[str, Tensor] | None = None
        if len(first) != 1 or first.device.type != "cpu":
            return
        self._leaves = {name: nn.Parameter(p.detach()[0]) for name, p in self.parameters.items()}
        views = {**self._leaves, **{name: b[0] for name, b in self.buffers.items()}}
        for module in self.modules.values():
            for name, value in views.items():
                owner, _, last = name.rpartition(".")
                setattr(module.get_submodule(owner), last, value)

    def each(self, call: Callable[[Any], Any], *, training: bool) -> Any:
        """The results of a function of a member's model, a tensor or a tuple, stacked."""
        module = self.modules[training]
        if self._leaves is not None:
            out = call(module)
            return tuple(t[None] for t in out) if isinstance(out, tuple) else out[None]
        return call_each(module, call, {**self.parameters, **self.buffers})

    def gradients(self, totals: Tensor) -> dict[str, Tensor]:  # (members,)
        """The gradients of each member's total, shaped as the parameters; zero where it does not
        depend."""
        leaves = self.parameters if self._leaves is None else self._leaves
        # Given where to start, torch loads SymPy, half a second; on a GPU a sum is one more kernel.
        start = (totals, self._ones) if totals.is_cuda else (totals.sum(), None)
        found = torch.autograd.grad(start[0], list(leaves.values()), start[1], allow_unused=True)
        return {
            name: torch.zeros_like(p) if g is None else g.view_as(p)
            for (name, p), g in zip(self.parameters.items(), found, strict=True)
        }

    def take(self, rows: Tensor, shared: dict[str, Tensor]) -> None:
        """Keep only the given members."""
        self.parameters = _trainable(self.parameters.take(rows))
        self.buffers = {name: b[rows] for name, b in self.buffers.items()}
        self.share(shared)


def _trainable(parameters: Packed) -> Packed:
    """The tables as leaves that gradients are asked for."""
    for p in parameters.values():
        p.requires_grad_()
    return parameters


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

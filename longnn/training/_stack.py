r"""Models alike in architecture, stacked, and called as one.

Weights and buffers stand in tables, shape (members, ...). Several members are called under
``vmap``, so that their channels lie side by side and one sparse product serves all. One member
alone on the CPU needs no transform: its model holds views of the tables for good, and a call
costs what a plain call costs.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import stack_module_state

from longnn.nn import call_each
from longnn.training._packed import Packed


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
        found = torch.autograd.grad(totals, list(leaves.values()), self._ones, allow_unused=True)
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

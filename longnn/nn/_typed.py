r"""Edges of several types: an operator and a filter for each.

.. math:: \sum_r g_r(P_r)\,H \qquad\text{or, side by side,}\qquad
          \big[g_1(P_1)\,H, \dots, g_R(P_R)\,H\big]

Each type takes the one hot loop once, on its own edges: all in all as many multiplications as one
filter takes on all edges.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from longnn.filters import PolynomialFilter
from longnn.graphs import GraphOperator, Operator


class TypedFilter(nn.Module):
    r"""A polynomial filter per type of edges.

    Args:
        make: makes one filter.
        types: how many types of edges there are, R.
        join: ``"sum"`` of what the filters give, each then starting as 1/R of what it was made as;
            or ``"cat"``, channels side by side.

    Shapes:
        - input: an operator with R types (:func:`~longnn.graphs.typed_operator`), and a signal
          (nodes, channels)
        - output: (nodes, channels), or (nodes, R channels)

    >>> from longnn.graphs import typed_operator
    >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> P = typed_operator(edges, torch.tensor([0, 0, 1, 1]))
    >>> both = TypedFilter(lambda: PolynomialFilter("chebyshev", degree=2), 2)
    >>> torch.allclose(both(P, torch.eye(3)), torch.eye(3), atol=1e-6)  # starts as the identity
    True
    """

    def __init__(
        self,
        make: Callable[[], PolynomialFilter],
        types: int,
        *,
        join: Literal["sum", "cat"] = "sum",
    ) -> None:
        super().__init__()
        self.each = nn.ModuleList(make() for _ in range(types))
        self.join = join
        self._scale_start()

    def reset_parameters(self) -> None:
        """All filters go back to their start."""
        for f in self._filters():
            f.reset_parameters()
        self._scale_start()

    def _filters(self) -> list[PolynomialFilter]:
        return [f for f in self.each if isinstance(f, PolynomialFilter)]

    @torch.no_grad()
    def _scale_start(self) -> None:
        if self.join == "sum":
            for f in self._filters():
                f.coefficients.set_(f.effective_coefficients() / len(self.each))

    def forward(self, operator: Operator, signal: Tensor) -> Tensor:
        types = operator.types if isinstance(operator, GraphOperator) else ()
        if len(types) != len(self.each):
            raise ValueError(
                f"Expected an operator with {len(self.each)} types of edges (got {len(types)}); "
                "make it with longnn.graphs.typed_operator"
            )
        found = [f(P, signal) for f, P in zip(self.each, types, strict=True)]
        return torch.cat(found, -1) if self.join == "cat" else sum(found[1:], found[0])


def hears_types(module: nn.Module) -> bool:
    """Whether a module has filters for types of edges."""
    return any(isinstance(m, TypedFilter) for m in module.modules())

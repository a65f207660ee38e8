r"""What a model sees of the features: the columns as they are, in pieces, or with the structure.

Members of a portfolio differ in their filters, and no less in their input. All kinds are one table
with a row per input: a source column, cut off at two ends and brought to mean 0 and deviation 1,

.. math:: z = (\min(\max(s_c, l), h) - m) / d.

- ``pieces``: a column of many values becomes eight inputs, each rising between two neighbouring
  quantiles: a piecewise-linear encoding (Gorishniy, Rubachev and Babenko, 2022), in which a
  threshold is a linear function.
- ``structure``: beside the features, how many neighbours a node has, :math:`P^k 1`, and averages of
  the former over walks.

The table is learned from the features of all nodes of the training graph, not from labels, and kept
with the weights. Structure is computed anew for another graph. It has no eigenvectors and no random
signals: on another graph they have other signs, turn within an eigenspace, or mean nothing. Where
a node lies is told by known answers instead.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longnn.filters import PolynomialFilter
from longnn.graphs import GraphOperator, Operator
from longnn.nn._model import Model
from longnn.nn._transform import Features
from longnn.nn._trees import dense, neighbour_counts, rounded, walk_sums

#: Inputs that a column of many values becomes.
PIECES = 8
#: The longest walk that averages of structure are over.
WALKS = 3
#: An end that cuts nothing off.
LARGEST = torch.finfo(torch.float32).max


class WithInputs(Model):
    """A model that sees other inputs than the features themselves.

    Args:
        model: for as many features as the table has rows.
        in_channels: features.
        kind: ``"pieces"`` or ``"structure"``.
        table: see :func:`input_table`.

    >>> from longnn.nn import MLP
    >>> x, edges = torch.rand(20, 1), torch.tensor([[0, 1], [1, 0]])
    >>> table = input_table("pieces", x, None, 1)
    >>> WithInputs(MLP(8, 4, 2), 1, "pieces", table)(x, edges).shape
    torch.Size([20, 2])
    """

    def __init__(self, model: Model, in_channels: int, kind: str, table: Tensor) -> None:
        super().__init__(in_channels, model.hidden_channels, model.out_channels)
        copies = 2 if model.direction == "cover" else 1
        walks = copies * (1 + WALKS * (1 + copies)) if kind == "structure" else 0
        there = table.dim() == 2 and table.shape[1] == 5 and bool(table.isfinite().all())
        if not there or not bool(((table[:, 0] >= 0) & (table[:, 0] < in_channels + walks)).all()):
            raise ValueError(f"Expected a table of inputs that are {kind} of {in_channels} columns")
        self.model, self.kind = model, kind
        self.self_loops, self.direction = model.self_loops, model.direction
        self.uses_graph = model.uses_graph or kind == "structure"  # type: ignore[misc]
        self.table = nn.Parameter(table, requires_grad=False)

    def encode(self, x: Features, operator: Operator) -> Tensor:
        """The inputs (nodes, width) that the model inside sees."""
        copies = 2 if self.direction == "cover" else 1
        sources = _sources(self.kind, x, operator, copies)
        column, low, high, mean, deviation = self.table.to(sources).unbind(1)
        cut = torch.minimum(torch.maximum(sources[:, column.long()], low), high)
        return (cut - mean) / deviation

    def scores(self, x: Features, operator: Operator) -> Tensor:
        return self.model.scores(self.encode(x, operator), operator)

    def whole_state(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """The weights of the model inside as weights of this one."""
        inside = {f"model.{name}": value for name, value in state.items()}
        return {"table": self.table.detach().cpu().clone(), **inside}

    def make_operator(self, *graph: Any, **options: Any) -> GraphOperator:
        """That of the model inside."""
        return self.model.make_operator(*graph, **options)

    def filters(self) -> list[PolynomialFilter]:
        """Those of the model inside."""
        return self.model.filters()

    def penalty(self) -> Tensor:
        """That of the model inside."""
        return self.model.penalty()

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Those of the model inside."""
        return self.model.parameter_groups()

    def __repr__(self) -> str:
        return f"WithInputs({self.model!r}, {self.kind!r})"


def _sources(kind: str, x: Features, operator: Any, copies: int) -> Tensor:
    """The columns that inputs are made of, (nodes, sources)."""
    own = dense(x)
    if kind != "structure":
        return own
    nodes, columns = own.shape[0], [own]
    counts = [torch.log1p(c.to(own))[:, None] for c in neighbour_counts(operator, copies, nodes)]
    sums = walk_sums(torch.cat(counts, 1), operator, copies, WALKS)
    for way, count in enumerate(counts):
        columns.append(count)
        for walk in sums[way]:
            mass = walk[:, -1:]
            columns += [rounded(mass), rounded(walk[:, :-1] / mass.clamp_min(1e-6))]
    return torch.cat(columns, 1)


def input_table(kind: str, x: Features, operator: Any, copies: int) -> Tensor:
    """One row per input, (inputs, 5): its source column, both ends, mean and deviation.

    Args:
        kind: of the inputs.
        x, operator: the training graph.
        copies: rows of the operator per node.

    >>> input_table("pieces", torch.arange(5.0)[:, None], None, 1)[:, :3]
    tensor([[0.0000, 0.0000, 0.5000],
            [0.0000, 0.5000, 1.0000],
            [0.0000, 1.0000, 1.5000],
            [0.0000, 1.5000, 2.0000],
            [0.0000, 2.0000, 2.5000],
            [0.0000, 2.5000, 3.0000],
            [0.0000, 3.0000, 3.5000],
            [0.0000, 3.5000, 4.0000]])
    """
    sources = _sources(kind, x, operator, copies).double()
    rows = []
    for c, values in enumerate(sources.T):
        ends = torch.tensor([-LARGEST, LARGEST], dtype=torch.float64)
        if kind == "pieces" and len(values.unique()) > 2:
            steps = np.linspace(0, 1, PIECES + 1)
            ends = torch.from_numpy(np.unique(np.quantile(values.cpu().numpy(), steps)))
        for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            cut = values.clamp(low, high)
            spread = float(cut.std(correction=0))
            rows.append([c, low, high, float(cut.mean()), spread if spread > 1e-9 else 1.0])
    return torch.tensor(rows, dtype=torch.float32)

r"""Any model on arcs: features go onto two copies of every node, scores of both are added."""

from typing import Any

from torch import Tensor, nn

from longnn.filters import PolynomialFilter
from longnn.graphs import GraphOperator, Operator, directed_operator
from longnn.graphs._operator import Direction
from longnn.matrices import DenseMatrix, LiftedMatrix
from longnn.nn._model import Model
from longnn.nn._terms import OnRows, Terms
from longnn.nn._transform import Features, as_features


class Directed(Model):
    r"""A model that sees which way the edges of a graph go.

    The operator B of arcs has two rows per node (:func:`~longnn.graphs.directed_operator`). The
    model inside, made for twice the features, is applied to :math:`\mathrm{diag}(X, X)`, so that
    its first map has weights of its own for each copy; the scores of the two are added:

    .. math:: \hat Y = F\, m_B(\mathrm{diag}(X, X)), \qquad F = (I \;\; I)

    For a filter, :math:`m_B(X) = g(B)\, t(X)`, on the double cover, with :math:`N = U S V^T`, the
    even and odd parts of g, and the transforms :math:`t_s, t_t` of sources and targets:

    .. math:: \hat Y = (U g_{even}(S) U^T + V g_{odd}(S) U^T)\, t_s(X)
                     + (U g_{odd}(S) V^T + V g_{even}(S) V^T)\, t_t(X).

    Where all edges go both ways it is :math:`g(P)(t_s(X) + t_t(X))`: the model itself. So nothing
    is lost, and everything the model has holds as it is: basis, penalty, filter.

    A stack of blocks joins the copies in every block instead, so that it reaches every product of
    N and N^T, such as two arcs in a row, :math:`N^2`: no filter of B does, since it goes there and
    back in turn.

    Args:
        model: for (2 in_channels, hidden_channels, out_channels), or a stack for ``copies=2``.

    >>> import torch
    >>> from longnn.nn import LONGNN
    >>> model = Directed(LONGNN(2 * 5, 8, 3)).eval()
    >>> x, arc = torch.rand(2, 5), torch.tensor([[0], [1]])
    >>> model(x, arc).shape
    torch.Size([2, 3])
    """

    direction: Direction = "cover"

    def __init__(self, model: Model) -> None:
        joined = model.copies == 2
        if model.in_channels % 2 and not joined:
            raise ValueError(
                "Expected a model for twice the features, or a stack for copies=2 (got "
                f"in_channels={model.in_channels})"
            )
        inputs = model.in_channels if joined else model.in_channels // 2
        super().__init__(inputs, model.hidden_channels, model.out_channels)
        self.model = model
        self.self_loops = model.self_loops

    def make_operator(
        self,
        graph: Tensor | GraphOperator,
        edge_weight: Tensor | None = None,
        num_nodes: int | None = None,
        **options: Any,
    ) -> GraphOperator:
        """The operator of arcs; a :class:`~longnn.GraphOperator` passes if it is one of arcs."""
        if isinstance(graph, GraphOperator):
            if graph.direction != "cover" or edge_weight is not None:
                raise ValueError(
                    "Expected an operator with direction='cover' and no weights beside it (got "
                    f"{graph.direction!r}); use make_operator, or pass the edges"
                )
            return graph
        options = {"self_loops": self.self_loops, **options}
        return directed_operator(graph, edge_weight, num_nodes, **options)

    @property
    def row_degree(self) -> int | None:
        """That of the model inside."""
        return self.model.row_degree

    def scores(self, x: Features | Terms, operator: Operator | OnRows) -> Tensor:
        x = x if isinstance(x, Terms) else as_features(x)
        if self.model.copies == 2:
            return self.model.scores(x, operator)  # type: ignore[arg-type]
        lifted: Any = x.lifted() if isinstance(x, Terms) else _lifted(x)
        both = self.model.scores(lifted, operator)  # type: ignore[arg-type]  # (2 nodes, out)
        return both[: x.shape[0]] + both[x.shape[0] :]

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
        return f"Directed({self.model!r})"


def _lifted(x: Features) -> LiftedMatrix:
    assert not isinstance(x, LiftedMatrix)
    return LiftedMatrix(DenseMatrix(x) if isinstance(x, Tensor) else x)

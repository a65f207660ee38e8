r"""What every model is: features and a graph in, one score per node and class out.

:class:`Model` is the interface that training relies on and the place where a graph in any form
becomes an operator. :class:`SpectralGNN` is the shape that LON-GNN and most rivals share: a
feature transform and a polynomial filter, or two. Subclasses choose the filter.
"""

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from longnn._base.suggestions import check_choice
from longnn.filters import PolynomialFilter
from longnn.graphs import GraphOperator, Operator
from longnn.graphs._adjacency import SelfLoops
from longnn.graphs._operator import Direction, as_operator
from longnn.nn._channels import normalize_rows
from longnn.nn._terms import OnRows, Terms
from longnn.nn._transform import Dropout, Features, Linear, Transform, TransformKind
from longnn.nn._typed import TypedFilter

Placement = Literal["output", "hidden", "features", "both"]
PLACEMENTS = get_args(Placement)


class Model(nn.Module, abc.ABC):
    """A node-level model; subclasses implement :meth:`scores`.

    Shapes:
        - input: x (nodes, in_channels), dense or sparse; a graph as edge_index (2, edges), torch
          sparse adjacency or :class:`~longnn.GraphOperator`; edge_weight (edges,), optional
        - output: logits (nodes, out_channels)
    """

    #: What the model does to the self loops of the graph it is given.
    self_loops: SelfLoops = "keep"
    #: What it makes of arcs; :class:`~longnn.nn.Directed` has another.
    direction: Direction = "none"
    #: Whether it can be made for ``copies=2``: it joins both copies of a node on arcs by itself.
    joins_copies: ClassVar[bool] = False
    #: Rows of the operator per node: 1, or 2 in a model that joins the copies of a node.
    copies: int = 1
    #: Whether it can be made for ``types`` of edges, with a filter for each; others see all edges.
    takes_types: ClassVar[bool] = False
    #: Whether the graph is used at all.
    uses_graph: ClassVar[bool] = True
    #: Whether it is trained by steps of a gradient; trees are not.
    by_steps: ClassVar[bool] = True
    #: Options whose default differs from that of the class above.
    defaults: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int) -> None:
        super().__init__()
        sizes = {"in": in_channels, "hidden": hidden_channels, "out": out_channels}
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"Expected `{name}_channels` >= 1 (got {size})")
        self.in_channels = in_channels
        self.hidden_channels = hidden_channels
        self.out_channels = out_channels

    @abc.abstractmethod
    def scores(self, x: Features, operator: Operator) -> Tensor:
        """Logits, shape (nodes, out_channels)."""

    def make_operator(
        self,
        graph: Tensor | GraphOperator,
        edge_weight: Tensor | None = None,
        num_nodes: int | None = None,
        **options: Any,
    ) -> GraphOperator:
        """The operator this model wants of a graph, self loops as the model treats them.

        Build it once and pass it to :meth:`forward` in place of the edges to save the work.
        """
        options = {"self_loops": self.self_loops, **options}
        return as_operator(graph, edge_weight, num_nodes, **options)

    def forward(
        self,
        x: Features,
        edge_index: Tensor | GraphOperator,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
        operator = self.make_operator(edge_index, edge_weight, x.shape[0], dtype=dtype)
        return self.scores(x, operator)

    @property
    def row_degree(self) -> int | None:
        """The degree of the :class:`~longnn.nn.Terms` that can take the place of features and
        graph; None for a model whose rows depend on each other in other ways."""
        return None

    def filters(self) -> list[PolynomialFilter]:
        """The polynomial filters inside: what the model learned of the graph's spectrum."""
        return [m for m in self.modules() if isinstance(m, PolynomialFilter)]

    def penalty(self) -> Tensor:
        """The filter-norm penalty of all trainable filters, a scalar (0 without any)."""
        trained = [f.penalty() for f in self.filters() if f.kind != "fixed"]
        return torch.stack(trained).sum() if trained else next(self.parameters()).new_zeros(())

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Parameters by their role: transform, coefficients, factors (of PCD), basis.

        Training gives each role its own learning rate and weight decay.
        """
        groups: dict[str, list[nn.Parameter]] = {
            "transform": [],
            "coefficients": [],
            "factors": [],
            "basis": [],
        }
        seen: set[int] = set()
        for f in self.filters():
            factors = f.coefficients.factors()
            of_factors = {id(p) for p in factors}
            weights = [p for p in f.coefficients.parameters() if id(p) not in of_factors]
            groups["factors"] += factors
            groups["coefficients"] += weights
            groups["basis"] += list(f.raw_basis.parameters())
            seen |= {id(p) for p in f.parameters()}
        groups["transform"] = [p for p in self.parameters() if id(p) not in seen]
        return groups

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        for child in self.children():
            reset = getattr(child, "reset_parameters", None)
            if callable(reset):
                reset()

    def __repr__(self) -> str:
        sizes = f"{self.in_channels}, {self.hidden_channels}, {self.out_channels}"
        inner = "".join(f", {f!r}" for f in self.filters())
        return f"{type(self).__name__}({sizes}{inner})"


class SpectralGNN(Model):
    r"""A feature transform and a polynomial filter, or one at each of two places.

    With ``placement="output"`` the filter acts on the class channels, as in the paper:

    .. math:: \hat Y = g(P)\, t_\theta(X)

    Elsewhere it acts on the hidden channels between two linear maps, which are activated before or
    after it:

    - ``"hidden"``: :math:`\hat Y = g(P)\,\mathrm{ReLU}(X W_1)\, W_2`
    - ``"features"``: :math:`\hat Y = \mathrm{ReLU}(g(P)\,X W_1)\, W_2`, an MLP of filtered features
    - ``"both"``: :math:`\hat Y = g_2(P)\,\mathrm{ReLU}(g_1(P)\,X W_1)\, W_2`, a filter at both

    Args:
        in_channels, hidden_channels, out_channels: features, hidden units, classes.
        filter: the polynomial filter; its channels are 1 or those it acts on.
        output_filter: under ``"both"`` the second one.
        transform: ``"linear"``, ``"mlp"`` or ``"residual"``.
        placement: ``"output"``, ``"hidden"``, ``"features"`` or ``"both"``.
        normalize: divide the hidden units of every node by their root mean square, before a ReLU
            that follows (a linear transform before the last filter has none): what a node's
            neighbours have in common counts, not how many they are.
        input_dropout, dropout: on the features and inside the transform.
        filter_dropout: just before the filter.

    >>> from longnn.filters import PolynomialFilter
    >>> model = SpectralGNN(5, 8, 3, filter=PolynomialFilter("chebyshev", degree=2))
    >>> model(torch.ones(2, 5), torch.tensor([[0, 1], [1, 0]])).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        filter: nn.Module,
        output_filter: nn.Module | None = None,
        transform: TransformKind = "mlp",
        placement: Placement = "output",
        normalize: bool = False,
        input_dropout: float = 0.5,
        dropout: float = 0.5,
        filter_dropout: float = 0.0,
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels)
        check_choice("placement", placement, PLACEMENTS)
        inside = placement != "output"
        # Inside, the map after the filter takes the place of the transform's last one.
        kind: TransformKind = "linear" if inside and transform == "mlp" else transform
        self.transform = Transform(
            kind,
            in_channels,
            hidden_channels,
            hidden_channels if inside else out_channels,
            normalize=normalize and not inside,
            input_dropout=input_dropout,
            dropout=dropout,
        )
        self.activate_before = placement == "hidden" and transform != "linear"
        self.activate_after = placement in ("features", "both") and transform != "linear"
        self.normalize = normalize and inside
        self.filter_dropout = Dropout(filter_dropout)
        self.filter = filter
        self.readout = Linear(hidden_channels, out_channels) if inside else None
        self.readout_dropout = Dropout(dropout if inside else 0.0)
        self.output_filter = output_filter

    @property
    def row_degree(self) -> int | None:
        """That of the filter, if nothing before it bends the features and no other follows."""
        bent = self.transform.last is not None or self.activate_before
        if bent or self.output_filter is not None:
            return None
        filters = self._filters_on_rows()
        return max(f.degree for f in filters) if filters else None

    def _filters_on_rows(self) -> list[PolynomialFilter]:
        """The filter, or that of each type of edges."""
        each = self.filter.each if isinstance(self.filter, TypedFilter) else [self.filter]
        return [f for f in each if isinstance(f, PolynomialFilter)]

    def scores(self, x: Features | Terms, operator: Operator | OnRows) -> Tensor:
        if isinstance(x, Terms):
            assert isinstance(operator, OnRows)
            return self._read(self._filter_terms(x, operator), operator)
        assert not isinstance(operator, OnRows)
        h = self.transform(x)
        h = torch.relu(h) if self.activate_before else h
        return self._read(self.filter(operator, self.filter_dropout(h)), operator)

    def _filter_terms(self, x: Terms, operator: OnRows) -> Tensor:
        r"""The filtered signal (rows, channels), :math:`\sum_j (T_j(P)X) W \circ \beta_j`; the sum
        over all types of edges where each has a filter.

        A filter that all channels share is applied first: K+1 times fewer products. Dropout cannot
        have the noise of a whole graph, where it comes before the filter: on rows a dropped feature
        is dropped from all terms, and hidden units are dropped behind the filter.
        """
        if self.row_degree is None:
            raise ValueError(
                "Expected a model that is linear up to its only filter to be used on rows (got "
                f"{type(self).__name__} of another form); use placement='features'"
            )
        of_types = isinstance(self.filter, TypedFilter)
        pairs = zip(self._filters_on_rows(), x.types if of_types else (x,), strict=True)
        each = [self._filter_rows(f, terms, operator) for f, terms in pairs]
        return self.filter_dropout(sum(each[1:], each[0]))

    def _filter_rows(self, f: PolynomialFilter, x: Terms, operator: OnRows) -> Tensor:
        first, drop = self.transform.first, self.transform.input_dropout
        beta = f.chebyshev_coefficients()  # (K+1, channels or 1)
        values = x.values[operator.self_loops][: len(beta)]  # (K+1, rows, features)
        ones = x.ones[operator.self_loops][: len(beta)]  # (K+1, rows)
        beta = beta.to(values.dtype)
        if beta.shape[1] == 1:
            mixed = (beta.T @ values.flatten(1)).view(values.shape[1:])
            h = first.product(drop(mixed))
        else:
            if drop.training and drop.rate > 0:
                values = values * drop(torch.ones_like(values[0]))
            each = first.product(values.flatten(0, 1)).unflatten(0, values.shape[:2])
            h = (each * beta[:, None]).sum(0)
        if first.bias is not None:
            h = h + (ones.T @ beta) * first.bias
        return h

    def _read(self, h: Tensor, operator: Operator | OnRows) -> Tensor:
        """From the filtered signal to scores."""
        if self.readout is None:
            return h
        h = normalize_rows(h) if self.normalize else h
        h = torch.relu(h) if self.activate_after else h
        h = self.readout(self.readout_dropout(h))
        return h if self.output_filter is None else self.output_filter(operator, h)

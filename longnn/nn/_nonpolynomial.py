r"""Models that are not one polynomial filter: products and layers of their own.

GCN, ChebNet and ARMA mix channels between hops; OptBasisGNN's basis depends on the signal. They
use plain products ``operator @ signal``.
"""

import functools
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from longnn._base.suggestions import check_choice
from longnn.graphs import Operator
from longnn.graphs._adjacency import SelfLoops
from longnn.graphs._lanczos import lanczos_basis
from longnn.nn._model import PLACEMENTS, Model, Placement, SpectralGNN
from longnn.nn._terms import OnRows, Terms
from longnn.nn._transform import Dropout, Features, Linear, Transform, as_features, xavier_uniform_
from longnn.polynomials._chebyshev import check_degree


class _TwoLayers(Model):
    """Two graph layers with ReLU between them and dropout before each."""

    def __init__(
        self,
        sizes: tuple[int, int, int],
        layers: tuple[nn.Module, nn.Module],
        input_dropout: float,
        dropout: float,
    ) -> None:
        super().__init__(*sizes)
        self.first, self.second = layers
        self.input_dropout = Dropout(input_dropout)
        self.dropout = Dropout(dropout)

    def scores(self, x: Features, operator: Operator) -> Tensor:
        h = torch.relu(self.first(self.input_dropout(as_features(x)), operator))
        return self.second(self.dropout(h), operator)


class GCNLayer(nn.Module):
    r""":math:`\tilde P\,(X W) + b`."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Features, operator: Operator) -> Tensor:
        return operator @ self.linear(x) + self.bias


class GCN(_TwoLayers):
    r"""GCN, `"Semi-supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_ (Kipf and Welling, 2017).

    .. math:: \hat Y = \tilde P\,\mathrm{ReLU}(\tilde P X W_1)\, W_2, \quad
              \tilde P = \tilde D^{-1/2}(A + I)\tilde D^{-1/2}

    >>> GCN(5, 8, 3)(torch.ones(2, 5), torch.tensor([[0, 1], [1, 0]])).shape
    torch.Size([2, 3])
    """

    self_loops: SelfLoops = "add"

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        input_dropout: float = 0.5,
        dropout: float = 0.5,
    ) -> None:
        layers = (GCNLayer(in_channels, hidden_channels), GCNLayer(hidden_channels, out_channels))
        sizes = (in_channels, hidden_channels, out_channels)
        super().__init__(sizes, layers, input_dropout, dropout)


class ChebLayer(nn.Module):
    r""":math:`\sum_{k=0}^K T_k(L - I)\, X W_k + b`, summed by Clenshaw's recurrence.

    The K + 1 maps are taken first, in one product; then each of the K sparse products acts on
    the output channels only: :math:`b_k = XW_k + 2(L-I)b_{k+1} - b_{k+2}`.
    """

    def __init__(self, in_channels: int, out_channels: int, degree: int) -> None:
        super().__init__()
        self.degree = check_degree(degree)
        self.out_channels = out_channels
        self.linear = Linear(in_channels, (degree + 1) * out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for block in self.linear.weight.split(self.out_channels, dim=1):
            xavier_uniform_(block)
        nn.init.zeros_(self.bias)

    def forward(self, x: Features, operator: Operator) -> Tensor:
        h = self.linear(x).split(self.out_channels, dim=1)  # K+1 of (nodes, out)
        if self.degree == 0:
            return h[0] + self.bias
        b1, b2 = h[self.degree], torch.zeros_like(h[0])
        for k in range(self.degree - 1, 0, -1):
            b1, b2 = h[k] - 2 * (operator @ b1) - b2, b1  # L - I = -P
        return h[0] - operator @ b1 - b2 + self.bias


class ChebNet(_TwoLayers):
    r"""ChebNet, `"Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering"
    <https://arxiv.org/abs/1606.09375>`_ (Defferrard, Bresson and Vandergheynst, 2016).

    .. math:: H = \mathrm{ReLU}\Big(\sum_k T_k(L - I)\, X W_k\Big), \quad
              \hat Y = \sum_k T_k(L - I)\, H W'_k

    one weight matrix per degree, with :math:`\lambda_{max} = 2`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        degree: int = 2,
        input_dropout: float = 0.5,
        dropout: float = 0.5,
    ) -> None:
        layers = (
            ChebLayer(in_channels, hidden_channels, degree),
            ChebLayer(hidden_channels, out_channels, degree),
        )
        sizes = (in_channels, hidden_channels, out_channels)
        super().__init__(sizes, layers, input_dropout, dropout)


class ARMALayer(nn.Module):
    r"""A stack of ARMA(1) recursions, averaged over parallel stacks s:

    .. math:: X^{(t+1)}_s = \sigma(P X^{(t)}_s W_{s,t} + X V_{s,t} + b_{s,t})
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        stacks: int = 1,
        layers: int = 1,
        activate: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if stacks < 1 or layers < 1:
            raise ValueError(f"Expected `stacks`, `layers` >= 1 (got {stacks}, {layers})")
        self.activate = activate
        self.dropout = Dropout(dropout)
        self.inner = nn.ModuleList(
            nn.ModuleList(
                Linear(in_channels if t == 0 else out_channels, out_channels, bias=False)
                for t in range(layers)
            )
            for _ in range(stacks)
        )
        self.root = nn.ModuleList(
            nn.ModuleList(Linear(in_channels, out_channels) for _ in range(layers))
            for _ in range(stacks)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for module in self.modules():
            if isinstance(module, Linear):
                xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x: Features, operator: Operator) -> Tensor:
        outs: list[Tensor] = []
        for inner, root in zip(self.inner, self.root, strict=True):
            h: Features = x
            for w, v in zip(inner, root, strict=True):  # type: ignore[call-overload]
                out = operator @ w(h) + v(self.dropout(x))
                h = out = torch.relu(out) if self.activate else out
            outs.append(out)
        return torch.stack(outs).mean(0)


class ARMA(_TwoLayers):
    r"""ARMA, `"Graph Neural Networks with Convolutional ARMA Filters"
    <https://arxiv.org/abs/1901.01343>`_ (Bianchi et al., 2022).

    Two layers of :math:`X^{(t+1)} = \sigma(P X^{(t)} W + X V)`: a rational filter, reached by
    recursion.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        stacks: int = 1,
        layers: int = 1,
        input_dropout: float = 0.5,
        dropout: float = 0.5,
    ) -> None:
        layer = functools.partial(ARMALayer, stacks=stacks, layers=layers)
        pair = (
            layer(in_channels, hidden_channels),  # its input is dropped already
            layer(hidden_channels, out_channels, dropout=dropout, activate=False),
        )
        sizes = (in_channels, hidden_channels, out_channels)
        super().__init__(sizes, pair, input_dropout, dropout)


class OptBasisFilter(nn.Module):
    r"""A filter in the basis that is orthonormal for the signal's own spectral density.

    Each channel has the vectors of :func:`~longnn.graphs.lanczos_basis`, which start from the
    signal itself, and the output :math:`\sum_k\alpha_k v_k`.
    """

    def __init__(self, degree: int, channels: int) -> None:
        super().__init__()
        self.degree = check_degree(degree)
        self.weight = nn.Parameter(torch.empty(degree + 1, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weight)
        nn.init.ones_(self.weight[0])

    def forward(self, operator: Operator, signal: Tensor) -> Tensor:
        vectors = lanczos_basis(operator, signal, self.degree)
        out = self.weight[0] * vectors[0]
        for alpha, v in zip(self.weight[1:], vectors[1:], strict=True):
            out = torch.addcmul(out, v, alpha)
        return out


class OptBasisGNN(SpectralGNN):
    r"""OptBasisGNN, `"Graph Neural Networks with Learnable and Optimal Polynomial Bases"
    <https://arxiv.org/abs/2302.12432>`_ (Guo and Wei, 2023).

    .. math:: \hat Y = \Big(\sum_k \alpha_k\, v_k(H)\Big) W

    with the basis :class:`OptBasisFilter` of the hidden signal, found anew at every step.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        degree: int = 10,
        placement: Placement = "hidden",
        **options: Any,
    ) -> None:
        check_choice("placement", placement, PLACEMENTS)
        inside = placement != "output"
        super().__init__(
            in_channels,
            hidden_channels,
            out_channels,
            filter=OptBasisFilter(degree, hidden_channels if inside else out_channels),
            output_filter=OptBasisFilter(degree, out_channels) if placement == "both" else None,
            placement=placement,
            **options,
        )

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        groups = super().parameter_groups()
        found = (self.filter, self.output_filter)
        coefficients = [p for f in found if f is not None for p in f.parameters()]
        ids = {id(p) for p in coefficients}
        groups["transform"] = [p for p in groups["transform"] if id(p) not in ids]
        groups["coefficients"] = coefficients
        return groups


class MLP(Model):
    r"""A multilayer perceptron, :math:`\mathrm{ReLU}(XW_1)W_2`: what is possible without a graph.

    The graph is taken and not used.
    """

    uses_graph: ClassVar[bool] = False

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        transform: str = "mlp",
        input_dropout: float = 0.5,
        dropout: float = 0.5,
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels)
        self.transform = Transform(
            transform,  # type: ignore[arg-type]
            in_channels,
            hidden_channels,
            out_channels,
            input_dropout=input_dropout,
            dropout=dropout,
        )

    @property
    def row_degree(self) -> int:
        """The features are enough."""
        return 0

    def scores(self, x: Features | Terms, operator: Operator | OnRows) -> Tensor:
        return self.transform(x)

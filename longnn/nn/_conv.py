r"""PyG-style layers: a polynomial filter that takes what PyG layers take."""

from typing import Any

import torch
from torch import Tensor, nn

from longnn.filters import PolynomialFilter
from longnn.filters._coefficients import Parametrization
from longnn.filters._filter import Init
from longnn.graphs import GraphOperator
from longnn.graphs._adjacency import SelfLoops
from longnn.graphs._operator import as_operator
from longnn.polynomials import Basis, Jacobi
from longnn.polynomials._families import Weight


class PolynomialConv(nn.Module):
    r"""A learnable polynomial graph filter as a layer.

    .. math:: H' = g(P)\,H = \sum_{k=0}^{K} \alpha_k\, p_k(P)\, H,
              \qquad P = D^{-1/2} A D^{-1/2}

    It mixes nodes, not channels: put a linear layer before or after it.

    Args:
        channels: the number of channels of the signal.
        degree: K, the number of hops.
        basis: a name or a :class:`~longnn.polynomials.Basis`.
        shared: one filter for all channels instead of one each.
        coefficients, init, learn_basis, gamma: as in :class:`~longnn.PolynomialFilter`.
        self_loops: ``"keep"``, ``"add"`` or ``"remove"`` those of the graph given.
        symmetrize: accept a directed graph and make it undirected.

    Shapes:
        - input: x (nodes, channels); edge_index (2, edges), a torch sparse adjacency, or a
          :class:`~longnn.GraphOperator`; edge_weight (edges,), optional
        - output: (nodes, channels)
    """

    def __init__(
        self,
        channels: int,
        *,
        degree: int = 10,
        basis: str | Basis = "jacobi",
        shared: bool = False,
        coefficients: Parametrization = "free",
        init: Init = None,
        learn_basis: bool = False,
        gamma: float = 1.0,
        self_loops: SelfLoops = "keep",
        symmetrize: bool = False,
    ) -> None:
        super().__init__()
        self.channels = channels
        self.filter = PolynomialFilter(
            basis,
            degree,
            1 if shared else channels,
            coefficients=coefficients,
            init=init,
            learn_basis=learn_basis,
            gamma=gamma,
        )
        self.self_loops, self.symmetrize = self_loops, symmetrize

    @property
    def degree(self) -> int:
        """K, the number of hops."""
        return self.filter.degree

    def reset_parameters(self) -> None:
        """Go back to the initial basis and filter."""
        self.filter.reset_parameters()

    def forward(
        self, x: Tensor, edge_index: Tensor | GraphOperator, edge_weight: Tensor | None = None
    ) -> Tensor:
        if x.dim() != 2 or x.shape[1] != self.channels:
            raise ValueError(f"Expected x of shape (nodes, {self.channels}) (got {tuple(x.shape)})")
        dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
        operator = as_operator(
            edge_index,
            edge_weight,
            x.shape[0],
            dtype=dtype,
            self_loops=self.self_loops,
            symmetrize=self.symmetrize,
        )
        return self.filter(operator, x)

    def response(self, eigenvalues: Tensor) -> Tensor:
        """The filters at eigenvalues of the normalised Laplacian in [0, 2]: (channels, points)."""
        return self.filter.response(eigenvalues)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, degree={self.degree}, {self.filter!r})"


class LONConv(PolynomialConv):
    r"""The layer of `"LON-GNN: Spectral GNNs with Learnable Orthonormal Basis"
    <https://arxiv.org/abs/2303.13750>`_: orthonormal Jacobi polynomials with learnable a and b.

    .. math:: H' = \sum_{k=0}^{K} \alpha_k\, p_k^{(a,b)}(P)\, H, \qquad
              \int_{-1}^1 p_i\, p_j\, (1-x)^a (1+x)^b\,dx = \delta_{ij}

    so that :math:`\sum_k\alpha_k^2` is the squared norm of the filter (:meth:`penalty`).

    Args:
        channels: the number of channels of the signal, each with its own filter.
        degree: K.
        a, b: where the learnable basis starts, > -1.
        learn_basis: train a and b.
        orthonormal: divide each polynomial by its norm; without it, classical Jacobi.
        weight: ``"paper"`` or ``"probability"``, the weight function scaled to mass one.
        options: as in :class:`PolynomialConv`.

    >>> LONConv(3, degree=4, a=1.0)
    LONConv(3, degree=4, PolynomialFilter(jacobi, degree=4, channels=3, coefficients=free,
    a=1, b=0 learnable))
    """

    def __init__(
        self,
        channels: int,
        *,
        degree: int = 10,
        a: float = 0.0,
        b: float = 0.0,
        learn_basis: bool = True,
        orthonormal: bool = True,
        weight: Weight = "paper",
        **options: Any,
    ) -> None:
        basis = Jacobi(a, b, orthonormal=orthonormal, weight=weight)
        super().__init__(channels, degree=degree, basis=basis, learn_basis=learn_basis, **options)

    @property
    def a(self) -> float:
        """The parameter a of the basis now."""
        return self.filter.basis_parameters()["a"].item()

    @property
    def b(self) -> float:
        """The parameter b of the basis now."""
        return self.filter.basis_parameters()["b"].item()

    def penalty(self) -> Tensor:
        """The squared norms of the filters, summed over the channels."""
        return self.filter.penalty()

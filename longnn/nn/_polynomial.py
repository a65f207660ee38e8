r"""Models that are a feature transform and one polynomial filter: LON-GNN and its relatives.

Each class names its paper and formula and says which basis, which coefficients and which
operator; all else is :class:`~longnn.nn.SpectralGNN`.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, TypedDict

import torch
from torch import Tensor, nn

from longnn.filters import PolynomialFilter
from longnn.filters._coefficients import Parametrization
from longnn.filters._filter import Init
from longnn.graphs._adjacency import SelfLoops, check_self_loops
from longnn.nn._model import Placement, SpectralGNN
from longnn.nn._typed import TypedFilter
from longnn.polynomials import Basis, Favard, Jacobi, Monomial, get_basis
from longnn.polynomials._chebyshev import check_degree
from longnn.polynomials._families import Weight


def personalized_pagerank(degree: int, restart: float) -> Tensor:
    r"""Coefficients of :math:`\sum_k r(1-r)^k P^k + (1-r)^K P^K`: APPNP's filter, shape (K+1,)."""
    if not 0 <= restart <= 1:
        raise ValueError(f"Expected 0 <= `restart` <= 1 (got {restart:g})")
    k = torch.arange(check_degree(degree) + 1, dtype=torch.float64)
    alpha = restart * (1 - restart) ** k
    alpha[-1] = (1 - restart) ** degree
    return alpha


def pagerank_response(degree: int, restart: float, eigenvalues: Tensor) -> Tensor:
    """The filter of :func:`personalized_pagerank` as a function of the Laplacian eigenvalue."""
    alpha = personalized_pagerank(degree, restart)
    powers = torch.arange(degree + 1, dtype=torch.float64)
    return ((1 - eigenvalues)[:, None] ** powers) @ alpha


class FilterOptions(TypedDict, total=False):
    """What a model chooses of its :class:`~longnn.PolynomialFilter`."""

    basis: str | Basis
    coefficients: Parametrization
    init: Init
    learn_basis: bool
    gamma: float
    shared: bool


class PolynomialModel(SpectralGNN):
    r"""A transform and a polynomial filter; a subclass is a choice of the attributes below.

    With ``types`` > 0 there is a filter per type of edges, :math:`\sum_r g_r(P_r)\,t(X)`
    (:class:`~longnn.nn.TypedFilter`).
    """

    basis: ClassVar[str | Basis] = "jacobi"
    coefficients: ClassVar[Parametrization] = "free"
    learn_basis: ClassVar[bool] = False
    shared: ClassVar[bool] = False  # one filter for all channels instead of one each
    takes_types: ClassVar[bool] = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        degree: int = 10,
        placement: Placement = "output",
        filter_options: FilterOptions | None = None,
        types: int = 0,
        **options: Any,
    ) -> None:
        chosen = filter_options or {}
        shared = chosen.get("shared", self.shared)

        def make(wide: int) -> nn.Module:
            return TypedFilter(lambda: one(wide), types) if types else one(wide)

        def one(wide: int) -> PolynomialFilter:
            return PolynomialFilter(
                chosen.get("basis", self.basis),
                degree,
                1 if shared else wide,
                coefficients=chosen.get("coefficients", self.coefficients),
                init=chosen.get("init"),
                learn_basis=chosen.get("learn_basis", self.learn_basis),
                gamma=chosen.get("gamma", 1.0),
            )

        super().__init__(
            in_channels,
            hidden_channels,
            out_channels,
            filter=make(out_channels if placement == "output" else hidden_channels),
            output_filter=make(out_channels) if placement == "both" else None,
            placement=placement,
            **options,
        )


class LONGNN(PolynomialModel):
    r"""LON-GNN, `"Spectral GNNs with Learnable Orthonormal Basis"
    <https://arxiv.org/abs/2303.13750>`_ (Tao, Wang, Yu, Li and Wei, 2023).

    .. math:: \hat Y = \sum_{k=0}^{K} \alpha_k\, p_k^{(a,b)}(P)\, t_\theta(X)

    with orthonormal Jacobi polynomials whose a and b are trained with everything else. The defaults
    are those of least regret over ten graphs (docs/results/recipes.md); the paper's own
    form is :data:`longnn.registry.PAPER_FORM`.

    Args:
        in_channels, hidden_channels, out_channels: features, hidden units, classes.
        degree: K.
        a, b: where the basis starts, > -1.
        learn_basis: train a and b.
        orthonormal: divide each polynomial by its norm.
        weight: ``"paper"``, or ``"probability"`` for the weight function scaled to mass one.
        coefficients: ``"pcd"`` (the paper's) or ``"free"``.
        gamma: of the pcd parametrisation.
        shared: one filter for all channels instead of one each: fewer numbers to learn on a small
            graph.
        restart: start as personalised PageRank with this restart probability, in (0, 1], where 1 is
            the identity; 0 for the parametrisation's own start.
        self_loops: ``"keep"``, ``"add"`` or ``"remove"`` those of the graph.
        dropout, filter_dropout: inside the transform and just before the filter.
        options: of :class:`~longnn.nn.SpectralGNN` (transform, placement, input_dropout, ...).

    >>> LONGNN(1433, 64, 7).filters()[0]
    PolynomialFilter(jacobi, degree=10, channels=1, coefficients=free, a=0.5, b=1 learnable)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        degree: int = 10,
        a: float = 0.5,
        b: float = 1.0,
        learn_basis: bool = True,
        orthonormal: bool = True,
        weight: Weight = "probability",
        coefficients: Parametrization = "free",
        gamma: float = 1.0,
        shared: bool = True,
        restart: float = 1.0,
        self_loops: SelfLoops = "keep",
        dropout: float = 0.2,
        filter_dropout: float = 0.4,
        **options: Any,
    ) -> None:
        super().__init__(
            in_channels,
            hidden_channels,
            out_channels,
            degree=degree,
            filter_options={
                "basis": Jacobi(a, b, orthonormal=orthonormal, weight=weight),
                "coefficients": coefficients,
                "learn_basis": learn_basis,
                "gamma": gamma,
                "shared": shared,
                **({"init": partial(pagerank_response, degree, restart)} if restart else {}),
            },
            dropout=dropout,
            filter_dropout=filter_dropout,
            **options,
        )
        self.self_loops = check_self_loops(self_loops)


#: What the two ablations below share with LON-GNN as its paper has it.
_PAPERS: dict[str, bool | float | str] = {
    "a": 0.0,
    "b": 0.0,
    "weight": "paper",
    "coefficients": "pcd",
    "shared": False,
    "restart": 0.0,
    "dropout": 0.5,
    "filter_dropout": 0.0,
}


class JacobiOrthNorm(LONGNN):
    r"""The paper's ablation Jacobi+OrthNorm: an orthonormal Jacobi basis that is not learned."""

    defaults: ClassVar[Mapping[str, Any]] = {**_PAPERS, "learn_basis": False}

    def __init__(self, *sizes: int, **options: Any) -> None:
        super().__init__(*sizes, **{**self.defaults, **options})


class JacobiLearnable(LONGNN):
    r"""The paper's ablation Jacobi+Learnable: classical Jacobi polynomials, a and b trained.

    (In the authors' code the branch that would use the learnable a and b is never reached.)
    """

    defaults: ClassVar[Mapping[str, Any]] = {**_PAPERS, "orthonormal": False}

    def __init__(self, *sizes: int, **options: Any) -> None:
        super().__init__(*sizes, **{**self.defaults, **options})


class JacobiConv(PolynomialModel):
    r"""JacobiConv, `"How Powerful are Spectral Graph Neural Networks"
    <https://arxiv.org/abs/2205.11172>`_ (Wang and Zhang, 2022).

    .. math:: \hat Y = \sum_k \alpha_k\, P_k^{(a,b)}(P)\, X W

    with classical Jacobi polynomials of fixed a and b and a linear transform.

    (In the authors' code the sign of :math:`a^2 - b^2` is reversed from degree 2 on. It can express
    the same filters, but for a != b its terms are not Jacobi polynomials and not orthogonal.)
    """

    defaults: ClassVar[Mapping[str, Any]] = {"transform": "linear"}

    coefficients: ClassVar[Parametrization] = "pcd"

    def __init__(
        self,
        *sizes: int,
        degree: int = 10,
        a: float = 1.0,
        b: float = 1.0,
        gamma: float = 1.0,
        **options: Any,
    ) -> None:
        basis = Jacobi(a, b, orthonormal=False)
        options = {**self.defaults, "filter_options": {"basis": basis, "gamma": gamma}, **options}
        super().__init__(*sizes, degree=degree, **options)


class PageRankModel(PolynomialModel):
    """A polynomial model whose filter starts (or stays) as personalised PageRank.

    Args:
        restart: the probability to return to the start at each hop, in [0, 1].
    """

    def __init__(self, *sizes: int, degree: int = 10, restart: float = 0.1, **options: Any) -> None:
        terms = get_basis(self.basis).terms(degree)
        init = personalized_pagerank(terms - 1, restart)
        options = {"filter_options": {"init": init}, **options}
        super().__init__(*sizes, degree=degree, **options)


class GPRGNN(PageRankModel):
    r"""GPRGNN, `"Adaptive Universal Generalized PageRank Graph Neural Network"
    <https://arxiv.org/abs/2006.07988>`_ (Chien et al., 2021).

    .. math:: \hat Y = \sum_k \gamma_k\, \tilde P^k\, t_\theta(X)

    with self loops in :math:`\tilde P` and coefficients shared by the channels that start as
    personalised PageRank.
    """

    self_loops: SelfLoops = "add"
    shared: ClassVar[bool] = True
    basis: ClassVar[str | Basis] = "monomial"


class BernNet(PolynomialModel):
    r"""BernNet, `"Learning Arbitrary Graph Spectral Filters via Bernstein Approximation"
    <https://arxiv.org/abs/2106.10994>`_ (He et al., 2021).

    .. math:: \hat Y = \sum_k \theta_k \frac{1}{2^K}\binom{K}{k} (2I-L)^{K-k} L^k\, t_\theta(X),
              \qquad \theta_k \ge 0

    In Chebyshev terms it costs K products instead of :math:`O(K^2)`.
    """

    shared: ClassVar[bool] = True
    basis: ClassVar[str | Basis] = "bernstein"
    coefficients: ClassVar[Parametrization] = "nonnegative"


class ChebNetII(PolynomialModel):
    r"""ChebNetII, `"Convolutional Neural Networks on Graphs with Chebyshev Approximation,
    Revisited" <https://arxiv.org/abs/2202.03580>`_ (He, Wei and Wen, 2022).

    .. math:: \hat Y = \frac{2}{K+1}\sum_k{}^{'} \sum_j \gamma_j\, T_k(x_j)\, T_k(P)\,t_\theta(X),
              \qquad \gamma_j \ge 0

    the filter with values :math:`\gamma_j` at the Chebyshev nodes (the first term is halved).
    """

    shared: ClassVar[bool] = True
    basis: ClassVar[str | Basis] = "interpolation"
    coefficients: ClassVar[Parametrization] = "nonnegative"


class EvenNet(PageRankModel):
    r"""EvenNet, `"Ignoring Odd-Hop Neighbors Improves Robustness of Graph Neural Networks"
    <https://arxiv.org/abs/2205.13892>`_ (Lei et al., 2022).

    .. math:: \hat Y = \sum_{k=0}^{\lfloor K/2 \rfloor} w_k\, P^{2k}\, t_\theta(X)

    without self loops (they would bring odd hops back), starting as personalised PageRank.
    """

    self_loops: SelfLoops = "remove"
    shared: ClassVar[bool] = True
    basis: ClassVar[str | Basis] = Monomial(even=True)


class APPNP(PageRankModel):
    r"""APPNP, `"Predict then Propagate: Graph Neural Networks meet Personalized PageRank"
    <https://arxiv.org/abs/1810.05997>`_ (Klicpera, Bojchevski and Günnemann, 2019).

    .. math:: Z_{k+1} = (1-r)\,\tilde P Z_k + r\,Z_0, \qquad Z_0 = t_\theta(X)

    after K steps the fixed filter :math:`\sum_k r(1-r)^k\tilde P^k + (1-r)^K\tilde P^K`.
    """

    self_loops: SelfLoops = "add"
    shared: ClassVar[bool] = True
    basis: ClassVar[str | Basis] = "monomial"
    coefficients: ClassVar[Parametrization] = "fixed"


class SGC(PolynomialModel):
    r"""SGC, `"Simplifying Graph Convolutional Networks" <https://arxiv.org/abs/1902.07153>`_
    (Wu et al., 2019): :math:`\hat Y = \tilde P^K X W`, with self loops."""

    defaults: ClassVar[Mapping[str, Any]] = {"transform": "linear"}
    self_loops: SelfLoops = "add"
    shared: ClassVar[bool] = True
    basis: ClassVar[str | Basis] = "monomial"
    coefficients: ClassVar[Parametrization] = "fixed"

    def __init__(self, *sizes: int, degree: int = 2, **options: Any) -> None:
        highest = torch.zeros(degree + 1)
        highest[-1] = 1.0
        options = {**self.defaults, "filter_options": {"init": highest}, **options}
        super().__init__(*sizes, degree=degree, **options)


class FavardGNN(PolynomialModel):
    r"""FavardGNN, `"Graph Neural Networks with Learnable and Optimal Polynomial Bases"
    <https://arxiv.org/abs/2302.12432>`_ (Guo and Wei, 2023).

    .. math:: \hat Y = \Big(\sum_k \alpha_k\, p_k(P)\, H\Big) W, \qquad
              x\,p_k = s_{k+1}p_{k+1} + c_k p_k + s_k p_{k-1}

    with the recurrence itself learned, one table of s > 0 and c per hidden channel: by Favard's
    theorem every orthonormal basis. As a Chebyshev matrix it costs no more than a fixed basis.
    """

    basis: ClassVar[str | Basis] = Favard()
    learn_basis: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {"placement": "hidden"}

    def __init__(self, *sizes: int, **options: Any) -> None:
        super().__init__(*sizes, **{**self.defaults, **options})

r"""The polynomial models of the filter-fitting task, their bases, and how well these condition it.

A model here is a module that returns the Chebyshev coefficients :math:`\beta` of its filter: the
transform, the dropouts and the biases of the node classifiers are left out, as in the papers.
Knows nothing of training.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from lab.studies.filters._task import Problems
from longnn.filters import PolynomialFilter
from longnn.nn._polynomial import personalized_pagerank
from longnn.polynomials import Basis, Jacobi, Monomial, get_basis

HIDDEN = 32  # channels between ChebNet's layers, and stacks of ARMA

#: The starts (a, b) that are tried: most of the paper's range, and more of it close to -1.
STARTS = [
    (a, b)
    for a in (-0.97, -0.95, -0.9, -0.85, -0.8, -0.75, -0.6, -0.5, 0.0, 0.5, 1.0)
    for b in (-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
]


class FilterModel(nn.Module):
    """A :class:`~longnn.PolynomialFilter` of one channel as a model of the task.

    >>> FilterModel("chebyshev", 4)().shape
    torch.Size([5])
    """

    def __init__(self, basis: str | Basis, degree: int, **options: object) -> None:
        super().__init__()
        self.filter = PolynomialFilter(basis, degree, 1, **options).double()  # type: ignore[arg-type]

    def forward(self) -> Tensor:  # (degree+1,)
        """The Chebyshev coefficients of the filter."""
        return self.filter.chebyshev_coefficients()[:, 0]


class FixedPCD(FilterModel):
    """The decomposition with its factors held at the start, as JacobiConv's authors do here."""

    def __init__(self, basis: str | Basis, degree: int) -> None:
        super().__init__(basis, degree, coefficients="pcd")
        (eta,) = self.filter.coefficients.factors()
        eta.requires_grad_(False)


class GivenBasis(nn.Module):
    r"""Free coefficients in a basis that is given by its matrix: :math:`\beta = C^T\alpha`."""

    matrix: Tensor

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()
        self.register_buffer("matrix", matrix)
        one = torch.zeros(len(matrix), dtype=torch.float64)
        one[0] = 1.0  # the identity filter, T_0
        self.weight = nn.Parameter(torch.linalg.solve(matrix.T, one))

    def forward(self) -> Tensor:  # (degree+1,)
        """The Chebyshev coefficients of the filter."""
        return self.weight @ self.matrix


class LinearChebNet(nn.Module):
    r"""Two ChebNet layers of half the degree with 32 channels between them and no ReLU.

    :math:`\sum_h (\sum_j V_{jh}T_j(P))(\sum_k W_{kh}T_k(P))`, a polynomial by
    :math:`T_jT_k = (T_{j+k} + T_{|j-k|})/2`.
    """

    product: Tensor

    def __init__(self, degree: int) -> None:
        super().__init__()
        half = degree // 2
        product = torch.zeros(half + 1, half + 1, degree + 1, dtype=torch.float64)
        for j in range(half + 1):
            for k in range(half + 1):
                product[j, k, j + k] += 0.5
                product[j, k, abs(j - k)] += 0.5
        self.register_buffer("product", product)
        generator = torch.Generator().manual_seed(0)
        shape = (half + 1, HIDDEN)
        bound = (6 / (1 + HIDDEN)) ** 0.5  # Xavier, from 1 to 32 channels and back
        draw = lambda: (2 * torch.rand(shape, generator=generator).double() - 1) * bound  # noqa: E731
        self.first, self.second = nn.Parameter(draw()), nn.Parameter(draw())

    def forward(self) -> Tensor:  # (degree+1,)
        """The Chebyshev coefficients of the filter."""
        return torch.einsum("jh,kh,jkl->l", self.first, self.second, self.product)


class LinearARMA(nn.Module):
    r"""32 ARMA(1) recursions of as many steps as the degree, averaged, without ReLU.

    :math:`X_{t+1} = wPX_t + vX_0`, after T steps :math:`w^TP^T + v\sum_{k<T}w^kP^k`; with
    :math:`|w| < 1` and T growing, the rational :math:`v/(1 - wP)`.
    """

    matrix: Tensor
    powers: Tensor

    def __init__(self, degree: int) -> None:
        super().__init__()
        self.register_buffer("matrix", Monomial().chebyshev_matrix(degree))
        self.register_buffer("powers", torch.arange(degree + 1.0, dtype=torch.float64))
        generator = torch.Generator().manual_seed(0)
        draw = lambda: 2 * torch.rand(HIDDEN, generator=generator).double() - 1  # noqa: E731
        self.w, self.v = nn.Parameter(draw()), nn.Parameter(draw())

    def forward(self) -> Tensor:  # (degree+1,)
        """The Chebyshev coefficients of the filter."""
        powers = self.w[:, None] ** self.powers  # (stacks, degree+1)
        last = torch.zeros_like(powers[0])
        last[-1] = 1.0
        alpha = torch.where(last > 0, powers, self.v[:, None] * powers).mean(0)
        return alpha @ self.matrix


Start = tuple[float, float]

#: The models of the table: from a degree and a start (a, b), where they have one.
MODELS: Mapping[str, Callable[[int, Start], nn.Module]] = {
    "GPRGNN": lambda degree, start: FilterModel(
        "monomial", degree, init=personalized_pagerank(degree, 0.1)
    ),
    "ARMA, linear": lambda degree, start: LinearARMA(degree),
    "ChebNet, linear": lambda degree, start: LinearChebNet(degree),
    "BernNet": lambda degree, start: FilterModel("bernstein", degree, coefficients="nonnegative"),
    "JacobiConv": lambda degree, start: FixedPCD(Jacobi(*start, orthonormal=False), degree),
    "JacobiConv, PCD trained": lambda degree, start: FilterModel(
        Jacobi(*start, orthonormal=False), degree, coefficients="pcd"
    ),
    "LON-GNN": lambda degree, start: lon(degree, start),
    "LON-GNN, a = b = 0": lambda degree, start: lon(degree, (0.0, 0.0)),
}


def lon(degree: int, start: Start) -> FilterModel:
    """LON-GNN: an orthonormal Jacobi basis with trained a, b, free coefficients."""
    return FilterModel(Jacobi(*start, weight="probability"), degree, learn_basis=True)


def comparison_bases(degree: int, starts: Sequence[Start]) -> dict[str, list[Tensor]]:
    """The bases whose speed of learning is compared: one matrix for all, or one per image."""
    fixed: dict[str, str | Basis] = {
        "monomial": Monomial(),
        "Bernstein": "bernstein",
        "Jacobi (1, 1), orthonormal": Jacobi(1.0, 1.0, weight="probability"),
        "Legendre, orthonormal": Jacobi(0.0, 0.0, weight="probability"),
        "Chebyshev": "chebyshev",
    }
    found = {k: [get_basis(basis).chebyshev_matrix(degree)] for k, basis in fixed.items()}
    plain = [Jacobi(*start, orthonormal=False) for start in starts]
    normed = [Jacobi(*start, weight="probability") for start in starts]
    found["Jacobi of the image, classical"] = [j.chebyshev_matrix(degree) for j in plain]
    found["Jacobi of the image, orthonormal"] = [j.chebyshev_matrix(degree) for j in normed]
    return found


def own_bases(problems: Problems) -> Tensor:
    r"""The basis that is orthonormal on each image itself: :math:`C = R^{-T}`, so that
    :math:`CR^TRC^T = I`; shape (images, degree+1, degree+1).

    Columns have the length of the image, so that coefficients are of order one as elsewhere.
    """
    R = problems.R[: problems.images]
    size = R[:, 0, 0].abs()  # |T_0(P)x|
    return torch.linalg.inv(R).mT * size[:, None, None]


def conditions(matrix: Tensor, problems: Problems, *, scaled: bool = False) -> Tensor:
    r"""Condition number of the Hessian :math:`CR^TRC^T` of the coefficients, for each image.

    Args:
        matrix: C of the basis, one for all or one per image.
        problems: the images; the filters do not matter.
        scaled: of the matrix with its diagonal scaled to one, which is nearer to what Adam sees:
            it gives each coefficient a step size of its own.
    """
    J = problems.R[: problems.images] @ matrix.mT
    if scaled:
        J = J / torch.linalg.vector_norm(J, dim=1, keepdim=True)
    return torch.linalg.cond(J) ** 2


def best_starts(problems: Problems) -> list[Start]:
    """For each image the (a, b) of :data:`STARTS` under which its Hessian is best conditioned.

    It takes the image and not the target: (a, b) is chosen so that the weight
    :math:`(1-x)^a(1+x)^b` is nearest to where the image has its energy.
    """
    bases = [Jacobi(*start, weight="probability") for start in STARTS]
    tried = [conditions(b.chebyshev_matrix(problems.degree), problems) for b in bases]
    return [STARTS[i] for i in torch.stack(tried).argmin(0).tolist()]

r"""Polynomial bases as value objects: a family, its parameters, its normalisation.

A basis is nothing but a differentiable matrix :math:`C` whose rows are its terms written in
Chebyshev polynomials, :math:`p_k = \sum_j C_{kj} T_j`. With coefficients :math:`\alpha` in the
basis, the filter's Chebyshev coefficients are :math:`\beta = C^T \alpha`. A subclass says how to
evaluate its terms; the rest follows. Bases do not know of graphs or of learning.
"""

import abc
import copy
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor

from longnn.polynomials import _chebyshev as chebyshev
from longnn.polynomials import _recurrence as recurrence
from longnn.polynomials._chebyshev import check_degree

Weight = Literal["paper", "probability"]
Scalar = float | Tensor


def check_above(name: str, value: Scalar, bound: float) -> Scalar:
    """Return ``value`` if every entry is finite and greater than ``bound``, else raise."""
    tensor = torch.as_tensor(value, dtype=torch.float64)
    legal = torch.isfinite(tensor) & (tensor > bound)
    if not bool(legal.all()):
        worst = tensor[~legal].flatten()[0].item()
        limit = f"> {bound:g}" if bound > -math.inf else "to be finite"
        raise ValueError(f"Expected `{name}` {limit} (got {worst:g})")
    return value


def check_weight(weight: str) -> None:
    """Raise unless ``weight`` names a normalisation of the weight function."""
    if weight not in ("paper", "probability"):
        raise ValueError(f"Expected `weight` to be 'paper' or 'probability' (got {weight!r})")


@dataclasses.dataclass(frozen=True, repr=False)
class Basis(abc.ABC):
    """A family of polynomials on [-1, 1]."""

    #: The name under which :func:`get_basis` finds the family.
    name: ClassVar[str]
    #: Learnable parameters and the open lower bound of each (-inf where there is none).
    parameters: ClassVar[Mapping[str, float]] = {}

    def __post_init__(self) -> None:
        for name, bound in self.parameters.items():
            check_above(name, getattr(self, name), bound)

    def __repr__(self) -> str:
        fields = sorted(
            (f for f in dataclasses.fields(self) if f.repr), key=lambda f: bool(f.kw_only)
        )
        inner = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields)
        return f"{type(self).__name__}({inner})"

    @abc.abstractmethod
    def evaluate(self, x: Tensor, degree: int) -> Tensor:
        r"""The terms at the points x, shape (terms, \*batch, \*x.shape), float64."""

    @property
    def orthogonal(self) -> bool:
        """Whether the terms are orthogonal for a weight function of their own."""
        return False

    @property
    def is_orthonormal(self) -> bool:
        """Whether the terms moreover have norm one."""
        return False

    def terms(self, degree: int) -> int:
        """How many terms the basis has up to a degree."""
        return degree + 1

    def chebyshev_matrix(self, degree: int, *, device: torch.device | str = "cpu") -> Tensor:
        r"""The matrix C of the basis: rows = terms, columns = Chebyshev polynomials.

        Found by evaluating the terms at the K+1 Chebyshev nodes, where K is the degree, and
        applying the discrete cosine transform: exact for polynomials of degree K.

        Returns:
            shape (\*batch, terms, degree+1), float64.
        """
        values = self.evaluate(chebyshev.nodes(degree, device), degree)  # (terms, *batch, K+1)
        return (values @ chebyshev.transform(degree, device).T).movedim(0, -2)

    def initial(self, parameter: str, *, degree: int, channels: int) -> Tensor:
        """The value from which a learnable parameter starts."""
        return torch.as_tensor(getattr(self, parameter), dtype=torch.float64)

    def at(self, **values: Tensor) -> Self:
        """The same family at other parameter values; the caller vouches for their domain."""
        other = copy.copy(self)
        for name, value in values.items():
            object.__setattr__(other, name, value)
        return other

    def parameter(self, name: str, device: torch.device | str = "cpu") -> Tensor:
        """One of the parameters, as a float64 tensor."""
        return torch.as_tensor(getattr(self, name), dtype=torch.float64, device=device)


@dataclasses.dataclass(frozen=True, repr=False)
class OrthogonalBasis(Basis):
    """A family orthogonal for a weight function; plain or orthonormal.

    Args:
        orthonormal: divide each term by its norm.
        weight: ``"paper"`` for the textbook weight function, ``"probability"`` for the same
            weight scaled to mass one, under which parameters shape the basis and leave its
            amplitude alone.
    """

    orthonormal: bool = dataclasses.field(default=True, kw_only=True)
    weight: Weight = dataclasses.field(default="paper", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_weight(self.weight)

    @property
    def orthogonal(self) -> bool:
        return True

    @property
    def is_orthonormal(self) -> bool:
        return self.orthonormal

    @abc.abstractmethod
    def jacobi_parameters(self, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
        """The (a, b) of the weight function :math:`(1-x)^a (1+x)^b`."""

    @abc.abstractmethod
    def classical_table(self, degree: int, device: torch.device | str = "cpu") -> recurrence.Table:
        """The recurrence in the family's classical normalisation."""

    @abc.abstractmethod
    def classical_squared_norms(self, degree: int, device: torch.device | str = "cpu") -> Tensor:
        """Squared norms in the classical normalisation, for the chosen weight."""

    def evaluate(self, x: Tensor, degree: int) -> Tensor:
        if self.orthonormal:
            a, b = self.jacobi_parameters(x.device)
            unit = self.weight == "probability"
            table = recurrence.orthonormal_jacobi(degree, a, b, unit_mass=unit)
        else:
            table = self.classical_table(degree, x.device)
        table = recurrence.Table(*(t.to(x.device) for t in table))
        return recurrence.evaluate(table, x.to(torch.float64))

    def squared_norms(self, degree: int, *, device: torch.device | str = "cpu") -> Tensor:
        r""":math:`\int p_k^2\,w\,dx` for k = 0..degree, shape (degree+1, \*batch), float64."""
        check_degree(degree)
        norms = self.classical_squared_norms(degree, device)
        return torch.ones_like(norms) if self.orthonormal else norms


@dataclasses.dataclass(frozen=True, repr=False)
class Jacobi(OrthogonalBasis):
    r"""Jacobi polynomials :math:`P_k^{(a,b)}`, weight :math:`(1-x)^a(1+x)^b`, a, b > -1.

    >>> Jacobi(1.0, 0.5)
    Jacobi(a=1.0, b=0.5, orthonormal=True, weight='paper')
    """

    name: ClassVar[str] = "jacobi"
    parameters: ClassVar[Mapping[str, float]] = {"a": -1.0, "b": -1.0}
    a: Scalar = 0.0
    b: Scalar = 0.0

    def jacobi_parameters(self, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
        return self.parameter("a", device), self.parameter("b", device)

    def classical_table(self, degree: int, device: torch.device | str = "cpu") -> recurrence.Table:
        a, b = self.jacobi_parameters(device)
        return recurrence.classical_jacobi(degree, a, b)

    def classical_squared_norms(self, degree: int, device: torch.device | str = "cpu") -> Tensor:
        a, b = self.jacobi_parameters(device)
        unit = self.weight == "probability"
        return recurrence.jacobi_squared_norms(degree, a, b, unit_mass=unit)


@dataclasses.dataclass(frozen=True, repr=False)
class Legendre(OrthogonalBasis):
    r"""Legendre polynomials: weight 1, :math:`\|P_k\|^2 = 2/(2k+1)`."""

    name: ClassVar[str] = "legendre"

    def jacobi_parameters(self, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
        zero = torch.zeros((), dtype=torch.float64, device=device)
        return zero, zero

    def classical_table(self, degree: int, device: torch.device | str = "cpu") -> recurrence.Table:
        zero, _ = self.jacobi_parameters(device)
        return recurrence.classical_jacobi(degree, zero, zero)

    def classical_squared_norms(self, degree: int, device: torch.device | str = "cpu") -> Tensor:
        k = torch.arange(degree + 1, dtype=torch.float64, device=device)
        return (1.0 if self.weight == "probability" else 2.0) / (2 * k + 1)


@dataclasses.dataclass(frozen=True, repr=False)
class Chebyshev(OrthogonalBasis):
    r"""Chebyshev polynomials of the first or second kind.

    First kind: weight :math:`1/\sqrt{1-x^2}`, :math:`\|T_0\|^2=\pi`, :math:`\|T_k\|^2=\pi/2`.
    Second kind: weight :math:`\sqrt{1-x^2}`, :math:`\|U_k\|^2=\pi/2`.
    """

    name: ClassVar[str] = "chebyshev"
    kind: Literal[1, 2] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in (1, 2):
            raise ValueError(f"Expected `kind` to be 1 or 2 (got {self.kind!r})")

    def jacobi_parameters(self, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
        half = torch.full((), self.kind - 1.5, dtype=torch.float64, device=device)
        return half, half

    def classical_table(self, degree: int, device: torch.device | str = "cpu") -> recurrence.Table:
        return recurrence.constant_table(degree, float(self.kind), 2.0, 1.0)

    def classical_squared_norms(self, degree: int, device: torch.device | str = "cpu") -> Tensor:
        norms = torch.full((degree + 1,), math.pi / 2, dtype=torch.float64, device=device)
        mass = math.pi / self.kind
        if self.kind == 1:
            norms[0] = math.pi
        return norms / mass if self.weight == "probability" else norms


@dataclasses.dataclass(frozen=True, repr=False)
class Gegenbauer(OrthogonalBasis):
    r"""Gegenbauer (ultraspherical) polynomials :math:`C_k^{(\lambda)}`, :math:`\lambda > -1/2`.

    Weight :math:`(1-x^2)^{\lambda-1/2}`, and :math:`\|C_k\|^2 =
    \frac{\pi\,2^{1-2\lambda}\,\Gamma(k+2\lambda)}{k!\,(k+\lambda)\,\Gamma(\lambda)^2}`. In the
    plain normalisation all terms but the first vanish at :math:`\lambda = 0`; the orthonormal
    ones do not.
    """

    name: ClassVar[str] = "gegenbauer"
    parameters: ClassVar[Mapping[str, float]] = {"order": -0.5}
    order: Scalar = 1.0

    def jacobi_parameters(self, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
        half = self.parameter("order", device) - 0.5
        return half, half

    def classical_table(self, degree: int, device: torch.device | str = "cpu") -> recurrence.Table:
        return recurrence.gegenbauer(degree, self.parameter("order", device))

    def classical_squared_norms(self, degree: int, device: torch.device | str = "cpu") -> Tensor:
        r"""By :math:`C_k = \frac{(2\lambda)_k}{(\lambda+1/2)_k} P_k^{(\lambda-1/2,\lambda-1/2)}`:
        no pole at :math:`\lambda = 0` or below."""
        order = self.parameter("order", device)
        a, b = self.jacobi_parameters(device)
        unit = self.weight == "probability"
        norms = recurrence.jacobi_squared_norms(degree, a, b, unit_mass=unit)
        k = torch.arange(degree, dtype=torch.float64, device=device)[(...,) + (None,) * order.dim()]
        ratio = torch.cumprod((2 * order + k) / (order + 0.5 + k), dim=0)
        ratio = torch.cat([torch.ones_like(order)[None], ratio])
        return norms * ratio**2


@dataclasses.dataclass(frozen=True, repr=False)
class Monomial(Basis):
    """Powers of x, as in GPRGNN; ``even=True`` keeps the even ones only, as in EvenNet."""

    name: ClassVar[str] = "monomial"
    even: bool = dataclasses.field(default=False, kw_only=True)

    def terms(self, degree: int) -> int:
        return degree // 2 + 1 if self.even else degree + 1

    def evaluate(self, x: Tensor, degree: int) -> Tensor:
        x = x.double()
        count = self.terms(degree)
        table = recurrence.constant_table(count - 1, 1.0, 1.0, 0.0)
        table = recurrence.Table(*(t.to(x.device) for t in table))
        return recurrence.evaluate(table, x * x if self.even else x)


@dataclasses.dataclass(frozen=True, repr=False)
class Bernstein(Basis):
    r"""Bernstein polynomials of the normalised Laplacian, as in BernNet.

    .. math:: b_k(x) = \binom{K}{k} t^k (1-t)^{K-k}, \qquad t = \lambda/2 = (1-x)/2,

    so that term k is centred at the Laplacian eigenvalue :math:`\lambda = 2k/K`. They are
    non-negative and sum to one.
    """

    name: ClassVar[str] = "bernstein"

    def evaluate(self, x: Tensor, degree: int) -> Tensor:
        # b_{k,n} = (1-t) b_{k,n-1} + t b_{k-1,n-1}: sums of non-negative numbers, no cancellation.
        t = (1 - x.double()) / 2
        b = torch.ones_like(t)[None]
        edge = torch.zeros_like(b)
        for _ in range(degree):
            b = (1 - t) * torch.cat([b, edge]) + t * torch.cat([edge, b])
        return b


@dataclasses.dataclass(frozen=True, repr=False)
class Interpolation(Basis):
    r"""Interpolation at the Chebyshev nodes, as in ChebNetII.

    Term i is the polynomial of degree K that is 1 at the node :math:`x_i` and 0 at the others:
    coefficients in this basis are the filter's values at the nodes. The matrix is the discrete
    cosine transform itself.
    """

    name: ClassVar[str] = "interpolation"

    def evaluate(self, x: Tensor, degree: int) -> Tensor:
        return chebyshev.evaluate_series(x.double(), chebyshev.transform(degree, x.device))

    def chebyshev_matrix(self, degree: int, *, device: torch.device | str = "cpu") -> Tensor:
        return chebyshev.transform(degree, device).T


@dataclasses.dataclass(frozen=True, repr=False)
class Favard(Basis):
    r"""Any orthonormal basis, by Favard's theorem: the recurrence itself is the parameter.

    .. math:: x\,p_k = s_{k+1} p_{k+1} + c_k p_k + s_k p_{k-1}, \qquad p_0 = 1/s_0, \; s_k > 0.

    This is the basis of FavardGNN (Guo and Wei, ICML 2023), one table per channel. Its weight
    function exists but has no closed form.
    """

    name: ClassVar[str] = "favard"
    parameters: ClassVar[Mapping[str, float]] = {"s": 0.0, "c": -math.inf}
    s: Scalar = 1.0  # a number, or (*batch, degree+1)
    c: Scalar = 0.0  # a number, or (*batch, degree+1); the last entry is not used

    @property
    def is_orthonormal(self) -> bool:
        return True

    def initial(self, parameter: str, *, degree: int, channels: int) -> Tensor:
        value = super().initial(parameter, degree=degree, channels=channels)
        return value.expand(channels, degree + 1) if value.dim() == 0 else value

    def evaluate(self, x: Tensor, degree: int) -> Tensor:
        s, c = self.parameter("s", x.device), self.parameter("c", x.device)
        s = (s.expand(degree + 1) if s.dim() == 0 else s).movedim(-1, 0)
        c = (c.expand(degree + 1) if c.dim() == 0 else c).movedim(-1, 0)
        table = recurrence.from_symmetric(1 / s[0], s[1:], c[:degree])
        return recurrence.evaluate(table, x.double())


#: Every family by its name.
FAMILIES: dict[str, type[Basis]] = {
    family.name: family
    for family in (
        Monomial,
        Chebyshev,
        Legendre,
        Gegenbauer,
        Jacobi,
        Bernstein,
        Interpolation,
        Favard,
    )
}


def get_basis(basis: str | Basis, **options: Any) -> Basis:
    """A basis from its name and options, or the given object itself.

    >>> get_basis("jacobi", a=0.5)
    Jacobi(a=0.5, b=0.0, orthonormal=True, weight='paper')
    """
    if isinstance(basis, Basis):
        return dataclasses.replace(basis, **options) if options else basis
    if basis not in FAMILIES:
        raise ValueError(f"Expected `basis` to be one of {sorted(FAMILIES)} (got {basis!r})")
    return FAMILIES[basis](**options)

r"""Learnable polynomial graph filters: a basis, coefficients, and their properties.

.. math:: g(P)\,H = \sum_k \alpha_k\,p_k(P)\,H = \sum_j T_j(P)\,H\,\beta_j,
          \qquad \beta = C^T \alpha

A filter joins a basis (:mod:`longnn.polynomials`) and a parametrisation of its coefficients
(:mod:`longnn.filters`), hands :math:`\beta` to the one hot loop, and knows its response, its
norm, its best fit and its truncation. It knows no model.
"""

import dataclasses
import html
import math
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeGuard

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longnn import kernels
from longnn.filters._coefficients import PCD, Parametrization, make_coefficients
from longnn.filters._fused import jacobi_coefficients, jacobi_summary
from longnn.graphs import GraphOperator, Operator, apply_filter
from longnn.graphs._propagate import chebyshev_stack
from longnn.polynomials import Basis, Jacobi, get_basis
from longnn.polynomials._chebyshev import (
    check_degree,
    evaluate_series,
    nodes,
    transform,
    uniform_gram,
)
from longnn.polynomials._families import OrthogonalBasis
from longnn.polynomials._fused import jacobi_series

Init = str | Tensor | Callable[[Tensor], Tensor] | None


@dataclasses.dataclass(frozen=True)
class Truncation:
    """What :meth:`PolynomialFilter.truncate` did: a shorter filter and what it cost."""

    filter: "PolynomialFilter"
    degree_before: int
    degree: int
    dropped_norm: float  # the norm of what was dropped, exactly (Parseval)
    relative: float  # the same over the norm of the filter before


@dataclasses.dataclass(frozen=True)
class Fit:
    """What :meth:`PolynomialFilter.fit_least_squares` found."""

    squared_error: Tensor  # (channels,) or (1,) if shared, of the fitted filter, over the mask
    rank: int  # of the least-squares problem; below `terms` the fit is not unique


class PolynomialFilter(nn.Module):
    r"""A polynomial of the graph operator, with learnable coefficients and, if wanted, basis.

    Args:
        basis: a name (``"jacobi"``, ``"chebyshev"``, ``"bernstein"``, ...) or a
            :class:`~longnn.polynomials.Basis`.
        degree: the highest power of the operator.
        channels: 1 for one filter that all channels share, else one filter per channel.
        coefficients: ``"free"``, ``"pcd"``, ``"nonnegative"`` or ``"fixed"``
            (:mod:`longnn.filters`).
        init: the filter at the start: ``"identity"``, a function of the Laplacian eigenvalue
            :math:`\lambda \in [0, 2]`, or coefficients of shape (terms,) or (terms, channels).
            By default each parametrisation's own: the identity for free ones, all ones for pcd
            and non-negative ones.
        learn_basis: train the basis' parameters (a and b of Jacobi), kept inside their domain by
            :math:`a = -1 + \mathrm{softplus}(\cdot)`.
        gamma: of the pcd parametrisation.

    Shapes:
        - input: an operator, and a signal of shape (nodes, channels)
        - output: shape (nodes, channels)

    >>> PolynomialFilter("jacobi", degree=4, channels=8, learn_basis=True)
    PolynomialFilter(jacobi, degree=4, channels=8, coefficients=free, a=0, b=0 learnable)
    """

    matrix: Tensor | None
    norms: Tensor | None

    def __init__(
        self,
        basis: str | Basis = "jacobi",
        degree: int = 10,
        channels: int = 1,
        *,
        coefficients: Parametrization = "free",
        init: Init = None,
        learn_basis: bool = False,
        gamma: float = 1.0,
    ) -> None:
        super().__init__()
        self.basis = get_basis(basis)
        self.degree = check_degree(degree)
        if channels < 1:
            raise ValueError(f"Expected `channels` >= 1 (got {channels})")
        self.channels = channels
        self.kind = coefficients
        self.gamma = gamma
        terms = self.basis.terms(degree)
        self.coefficients = make_coefficients(coefficients, terms, channels, gamma=gamma)
        if coefficients == "fixed" and init is None:
            raise ValueError("Expected `init` with coefficients='fixed' (got None)")
        self.init = init
        self.raw_basis = nn.ParameterDict()
        self.learn_basis = learn_basis
        if learn_basis and not self.basis.parameters:
            raise ValueError(
                f"Expected a basis with parameters for learn_basis=True (got {self.basis!r})"
            )
        fixed = None if learn_basis else self.basis.chebyshev_matrix(degree)
        self.register_buffer("matrix", fixed, persistent=False)
        self.register_buffer("norms", self._fixed_norms(), persistent=False)
        if learn_basis:
            for name in self.basis.parameters:
                shape = self.basis.initial(name, degree=degree, channels=channels).shape
                self.raw_basis[name] = nn.Parameter(torch.empty(shape))
        self.reset_parameters()

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        """Move with the module; the matrix of a fixed basis stays float64 whatever the weights."""
        super()._apply(fn, recurse)
        if self.matrix is not None:
            device = self.matrix.device
            self.matrix = self.basis.chebyshev_matrix(self.degree, device=device)
            norms = self._fixed_norms()
            self.norms = None if norms is None else norms.to(device)
        return self

    def _fixed_norms(self) -> Tensor | None:
        """Squared norms of the terms of a fixed orthogonal basis, shape (terms,), or None."""
        if self.learn_basis or not _is_orthogonal(self.basis):
            return None
        return self.basis.squared_norms(self.degree)

    def reset_parameters(self) -> None:
        """Go back to the initial basis and filter."""
        for name, raw in self.raw_basis.items():
            value = self.basis.initial(name, degree=self.degree, channels=self.channels)
            with torch.no_grad():
                raw.copy_(_unconstrain(value, self.basis.parameters[name]))
        initial = make_coefficients(
            self.kind, self.coefficients.terms, self.channels, gamma=self.gamma
        )
        self.coefficients.load_state_dict(initial.state_dict())
        init = "identity" if self.init is None and self.kind == "free" else self.init
        if init is not None:
            self.coefficients.set_(self._initial_coefficients(init))

    def _initial_coefficients(self, init: Init) -> Tensor:
        shape = (self.coefficients.terms, self.channels)
        if isinstance(init, str):
            if init != "identity":
                raise ValueError(
                    "Expected `init` to be 'identity', a function or a tensor of coefficients "
                    f"(got {init!r})"
                )
            init = torch.ones_like
        if callable(init):
            values = init(1 - nodes(self.degree))  # eigenvalues of L at the nodes of P
            init = self._from_chebyshev(transform(self.degree) @ values)
        alpha = torch.as_tensor(init, dtype=torch.float64)
        alpha = alpha[:, None] if alpha.dim() == 1 else alpha
        if alpha.shape not in (shape, (shape[0], 1)):
            raise ValueError(f"Expected `init` of shape {shape} (got {tuple(alpha.shape)})")
        return alpha.expand(shape)

    def _from_chebyshev(self, beta: Tensor) -> Tensor:
        """Coefficients in this basis of a Chebyshev series: the least-squares C^T alpha = beta."""
        C = self.chebyshev_matrix().detach().cpu()
        C = C[0] if C.dim() == 3 else C
        if not bool(torch.isfinite(C).all()):
            numbers = {k: float(v.detach()) for k, v in self.basis_parameters().items()}
            raise ValueError(f"Expected a basis with finite coefficients (got {numbers})")
        solution = torch.linalg.lstsq(C.T, beta.reshape(C.shape[1], -1), driver="gelsd").solution
        return solution.reshape(-1, *beta.shape[1:])

    def basis_parameters(self) -> dict[str, Tensor]:
        """The basis' parameters now, float64: learned ones where they are learned."""
        if not self.learn_basis:
            return {name: self.basis.parameter(name) for name in self.basis.parameters}
        return {
            name: _constrain(raw.double(), self.basis.parameters[name])
            for name, raw in self.raw_basis.items()
        }

    def current_basis(self) -> Basis:
        """The basis at its present parameters."""
        return self.basis.at(**self.basis_parameters()) if self.learn_basis else self.basis

    def chebyshev_matrix(self) -> Tensor:
        r"""The matrix C of the basis, shape (terms, degree+1) or (channels, terms, degree+1)."""
        if self.matrix is not None:
            return self.matrix
        device = next(iter(self.raw_basis.values())).device
        return self.current_basis().chebyshev_matrix(self.degree, device=device)

    def effective_coefficients(self) -> Tensor:
        r"""The coefficients :math:`\alpha` in the basis, shape (terms, channels), float64."""
        return self.coefficients().double()

    def chebyshev_coefficients(self) -> Tensor:
        r""":math:`\beta = C^T\alpha`, shape (degree+1, channels), float64."""
        basis = self.basis
        if self._is_fused():
            return jacobi_coefficients(*self._jacobi_numbers(), **self._jacobi_options())
        if self.learn_basis and isinstance(basis, Jacobi) and basis.orthonormal:
            now, unit = self.basis_parameters(), basis.weight == "probability"
            alpha = self.effective_coefficients()
            return jacobi_series(now["a"], now["b"], alpha, self.degree, unit_mass=unit)
        alpha = self.effective_coefficients()
        C = self.chebyshev_matrix()
        if C.dim() == 3:  # a basis of its own for each channel
            return torch.einsum("ckj,kc->jc", C, alpha)
        return C.T @ alpha

    def _is_fused(self) -> bool:
        """Whether an orthonormal Jacobi basis is learned, on a device where all is one pass."""
        if not (self.learn_basis and isinstance(self.basis, Jacobi) and self.basis.orthonormal):
            return False
        raw = self.raw_basis["a"]
        return raw.device.type == "cpu" or kernels.usable(raw)

    def _jacobi_numbers(self) -> tuple[Tensor, ...]:
        """What such a filter is made of: raw a and b, weights, and eta and gamma of factors."""
        raw, of = self.raw_basis, self.coefficients
        numbers = (of.weight, of.eta, of.gamma) if isinstance(of, PCD) else (of(),)
        return raw["a"], raw["b"], *numbers

    def _jacobi_options(self) -> dict[str, Any]:
        assert isinstance(self.basis, Jacobi)
        bound = self.basis.parameters["a"] + MARGIN
        return {"bound": bound, "unit": self.basis.weight == "probability"}

    def summary(self) -> dict[str, Tensor]:
        """Numbers to watch in training: ``amplitude``, the root mean square of the channels'
        norms, and a and b where they are learned; scalars without derivatives."""
        if self._is_fused():
            summary = jacobi_summary(*self._jacobi_numbers(), **self._jacobi_options())
            return dict(zip(("amplitude", "a", "b"), summary.unbind(-1), strict=True))
        with torch.no_grad():
            # A fixed basis has nothing to watch, and its numbers are not on the device.
            basis = self.basis_parameters() if self.learn_basis else {}
            numbers = {k: v for k, v in basis.items() if k in ("a", "b") and v.dim() == 0}
            return {"amplitude": self.squared_norm().mean().sqrt(), **numbers}

    def forward(self, operator: Operator, signal: Tensor) -> Tensor:
        return apply_filter(operator, signal, self.chebyshev_coefficients())

    def response(self, eigenvalues: Tensor) -> Tensor:
        r"""The filter :math:`g(\lambda)` at eigenvalues :math:`\lambda\in[0,2]` of the Laplacian.

        Returns:
            shape (channels, \*eigenvalues.shape), float64.
        """
        beta = self.chebyshev_coefficients()
        x = 1 - torch.as_tensor(eigenvalues, dtype=torch.float64, device=beta.device)
        return evaluate_series(x, beta)

    def squared_norm(self) -> Tensor:
        r""":math:`\|g_c\|^2 = \int g_c^2\,w\,dx` for each channel, shape (channels,), float64.

        In an orthonormal basis this is :math:`\sum_k\alpha_k^2` (the paper's theorem); in an
        orthogonal one each term counts with its norm; in any other the weight is the uniform one
        of mass one, so that the norm is the root mean square over the spectrum.
        """
        alpha = self.effective_coefficients()
        if self.basis.is_orthonormal:
            return alpha.square().sum(0)
        basis = self.current_basis()
        if _is_orthogonal(basis):
            # A fixed basis keeps its norms as a buffer, so that members of a batch have their own.
            norms = self.norms
            if norms is None:
                norms = basis.squared_norms(self.degree, device=alpha.device)
            return (alpha.square() * norms[:, None]).sum(0)
        beta = self.chebyshev_coefficients()
        return torch.einsum("ic,ij,jc->c", beta, uniform_gram(self.degree, beta.device), beta)

    def norm(self) -> Tensor:
        """The norm of each channel's filter, its *amplitude*, shape (channels,), float64."""
        return self.squared_norm().sqrt()

    def waveform(self, eigenvalues: Tensor) -> Tensor:
        """The response divided by its norm: the filter's shape, whatever its amplitude."""
        return self.response(eigenvalues) / self.norm().reshape(
            -1, *(1,) * torch.as_tensor(eigenvalues).dim()
        )

    def penalty(self) -> Tensor:
        """The filter-norm penalty: squared norms summed over the channels, a scalar."""
        return self.squared_norm().sum()

    def degree_penalty(self) -> Tensor:
        r"""A penalty that empties high terms: :math:`\sum_{k=1}^K \|(\alpha_k,\dots,\alpha_K)\|`.

        In an orthonormal basis the k-th summand is the distance of the filter from the
        polynomials of degree below k, so the penalty is lowest for filters that a low degree
        already expresses. Train with it, then :meth:`truncate`.
        """
        self._require_orthonormal("degree_penalty")
        energy = self.effective_coefficients().square().sum(1)  # (terms,)
        tails = energy.flip(0).cumsum(0).flip(0)[1:]
        tiny = torch.finfo(tails.dtype).tiny  # the root has a slope at zero
        return (tails + tiny).sqrt().sum()

    def truncate(self, tolerance: float = 1e-3) -> Truncation:
        """The shortest filter within ``tolerance`` times the norm of this one.

        Exact in an orthonormal basis: dropping terms changes the squared norm by the sum of
        their squared coefficients (Parseval), and no filter of that degree is nearer.
        """
        self._require_orthonormal("truncate")
        if not 0 <= tolerance < 1:
            raise ValueError(f"Expected 0 <= `tolerance` < 1 (got {tolerance:g})")
        with torch.no_grad():
            alpha = self.effective_coefficients()
            energy = alpha.square().sum(1).cpu()
            tails = torch.cat([energy.flip(0).cumsum(0).flip(0)[1:], torch.zeros(1)])
            total = math.sqrt(energy.sum().item())
            within = tails.sqrt() <= tolerance * total
            degree = int(within.nonzero()[0])
            basis = self.current_basis()
            values = {name: v.detach() for name, v in self.basis_parameters().items()}
            shorter = PolynomialFilter(
                basis.at(**_cut_tables(values, degree)),
                degree,
                self.channels,
                coefficients="fixed" if self.kind == "fixed" else "free",
                init=alpha[: degree + 1],
                learn_basis=self.learn_basis,
            ).to(alpha.device)
        dropped = tails[degree].sqrt().item()
        relative = dropped / total if total > 0 else 0.0
        return Truncation(shorter, self.degree, degree, dropped, relative)

    def _require_orthonormal(self, what: str) -> None:
        if not self.basis.is_orthonormal:
            raise ValueError(f"Expected an orthonormal basis for {what} (got {self.basis!r})")

    def fit_least_squares(
        self, operator: GraphOperator, x: Tensor, y: Tensor, mask: Tensor | None = None
    ) -> Fit:
        r"""Set the coefficients to the best ones for turning signals x into y, in closed form.

        .. math:: \min_\alpha \sum_{i\in mask} \big(g_\alpha(P)x - y\big)_i^2

        Solved in float64 over the Chebyshev terms :math:`T_j(P)x`, which stay well conditioned
        where powers do not; non-negative coefficients by non-negative least squares.

        Args:
            operator: the graph.
            x, y: signals before and after, shape (nodes, channels) or (nodes,).
            mask: shape (nodes,), the nodes that count; by default all.
        """
        solved = solve(self, operator, x, y, mask)
        self.coefficients.set_(solved.alpha)
        beta = self.chebyshev_coefficients().detach().cpu()
        return Fit(solved.squared_error(beta), solved.rank)

    def _repr_html_(self) -> str:
        """The mean response over the spectrum: averages left, differences right, 0 dashed."""
        with torch.no_grad():
            g = self.response(torch.linspace(0, 2, 81)).mean(0).cpu()
        low, high = min(float(g.min()), 0.0), max(float(g.max()), 0.0)
        heights = (100 * (high - g) / max(high - low, 1e-9)).tolist()
        points = " ".join(f"{2.5 * k:.1f},{y:.1f}" for k, y in enumerate(heights))
        zero = 100 * high / max(high - low, 1e-9)
        return (
            '<svg viewBox="-2 -2 204 104" width="204" stroke="currentColor" fill="none">'
            f'<path d="M0 {zero:.1f}H200" stroke-dasharray="3"/><polyline points="{points}" '
            f'stroke-width="2"/></svg><p>{html.escape(repr(self))}</p>'
        )

    def __repr__(self) -> str:
        parts = [
            self.basis.name,
            f"degree={self.degree}",
            f"channels={self.channels}",
            f"coefficients={self.kind}",
        ]
        values = {k: v for k, v in self.basis_parameters().items() if v.dim() == 0}
        shown = ", ".join(f"{name}={round(v.item(), 4) + 0.0:g}" for name, v in values.items())
        if shown:
            parts.append(shown + (" learnable" if self.learn_basis else ""))
        return f"PolynomialFilter({', '.join(parts)})"


def _is_orthogonal(basis: Basis) -> TypeGuard[OrthogonalBasis]:
    return isinstance(basis, OrthogonalBasis) and basis.orthogonal


#: How far inside its open bound a learned parameter stays: softplus alone rounds onto the bound.
MARGIN = 1e-6


def _constrain(raw: Tensor, bound: float) -> Tensor:
    """A trainable number into (bound, inf): bound + softplus(raw), or itself without a bound."""
    return raw if bound == -math.inf else bound + MARGIN + F.softplus(raw)


def _unconstrain(value: Tensor, bound: float) -> Tensor:
    """The inverse: raw = log(expm1(value - bound)), stable for large values."""
    if bound == -math.inf:
        return value
    excess = (value - bound - MARGIN).clamp_min(MARGIN)
    return excess + torch.log(-torch.expm1(-excess))


def _cut_tables(values: Mapping[str, Tensor], degree: int) -> dict[str, Tensor]:
    """Recurrence tables, one number per degree, cut to a lower degree; scalars as they are."""
    return {name: v if v.dim() == 0 else v[..., : degree + 1] for name, v in values.items()}


@dataclasses.dataclass(frozen=True)
class Solved:
    """Coefficients, and the problem that they solve."""

    alpha: Tensor  # (terms, channels)
    rank: int  # the least over the channels
    terms: Tensor  # (K+1, rows, channels): T_j(P) x on the mask
    target: Tensor  # (rows, channels)

    def squared_error(self, beta: Tensor) -> Tensor:
        """Of the Chebyshev coefficients (K+1, channels), over the mask: (channels,)."""
        fitted = torch.einsum("jmc,jc->mc", self.terms, beta)
        return (fitted - self.target).square().sum(0)


def solve(
    filter: "PolynomialFilter",
    operator: GraphOperator,
    x: Tensor,
    y: Tensor,
    mask: Tensor | None,
) -> Solved:
    """The best coefficients of a filter; it is not changed."""
    if filter.kind == "fixed":
        raise ValueError("Expected trainable coefficients for a fit (got fixed ones)")
    x, y = (t[:, None] if t.dim() == 1 else t for t in (x, y))
    if x.shape != y.shape:
        raise ValueError(f"Expected x and y alike (got {tuple(x.shape)}, {tuple(y.shape)})")
    if filter.channels not in (1, x.shape[1]):
        raise ValueError(f"Expected {filter.channels} channels (got {x.shape[1]})")
    keep = slice(None) if mask is None else mask.bool()
    stack = chebyshev_stack(operator.to(torch.float64), x.double(), filter.degree)
    terms, target = stack[:, keep].cpu(), y.double()[keep].cpu()  # (K+1, m, c), (m, c)
    if filter.channels == 1:
        terms, target = terms.flatten(1)[..., None], target.reshape(-1, 1)
    C = filter.chebyshev_matrix().detach().cpu()
    solve = _solve_nonnegative if filter.kind == "nonnegative" else _solve_free
    solved = [
        solve(C[c] if C.dim() == 3 else C, terms[..., c], target[:, c])
        for c in range(filter.channels)
    ]
    alpha = torch.stack([a for a, _ in solved], 1)
    return Solved(alpha, min(rank for _, rank in solved), terms, target)


def _solve_free(C: Tensor, V: Tensor, target: Tensor) -> tuple[Tensor, int]:
    """For a basis (terms, K+1) and the terms V (K+1, rows) of one channel."""
    if C.shape[0] == C.shape[1]:  # complete: fit in Chebyshev terms, then change basis
        fit = torch.linalg.lstsq(V.T, target[:, None], driver="gelsd")
        alpha = torch.linalg.lstsq(C.T, fit.solution, driver="gelsd").solution
    else:
        fit = torch.linalg.lstsq((C @ V).T, target[:, None], driver="gelsd")
        alpha = fit.solution
    return alpha[:, 0], int(fit.rank)


def _solve_nonnegative(C: Tensor, V: Tensor, target: Tensor) -> tuple[Tensor, int]:
    import scipy.optimize  # slow to load, and for this alone

    design = (C @ V).T.numpy()
    alpha, _ = scipy.optimize.nnls(design, target.numpy(), maxiter=100 * design.shape[1])
    return torch.from_numpy(alpha), int(np.linalg.matrix_rank(design))

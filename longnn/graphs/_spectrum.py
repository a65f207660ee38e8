r"""What the spectrum of a graph looks like, without an eigendecomposition.

The spectral density by the kernel polynomial method (Weisse et al., Rev. Mod. Phys. 78, 2006):
Chebyshev moments :math:`\mu_k = \frac1n \mathrm{tr}\,T_k(P)` from random probe vectors, damped by
Jackson's kernel so that the estimate is non-negative. And the two ends of the spectrum.
"""

import dataclasses
import math

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
import torch
from torch import Tensor

from longnn.graphs._operator import GraphOperator

#: Random numbers that a moment is estimated from, at least, and vectors of them, at most: the error
#: is about the root of 2 / NUMBERS.
NUMBERS, MOST_PROBES = 2**17, 32
#: Relative error of an extreme eigenvalue.
TOLERANCE = 1e-3
#: An eigenvalue from which on it is worth looking whether it is exactly two.
NEARLY_TWO = 1.9


@dataclasses.dataclass(frozen=True)
class SpectralDensity:
    """An estimate of how the eigenvalues of the normalised Laplacian are spread over [0, 2].

    ``density`` integrates to one over :math:`\\lambda`; ``moments`` are those of P = I - L.
    """

    eigenvalues: Tensor  # (points,) the grid, in [0, 2]
    density: Tensor  # (points,)
    moments: Tensor  # (degree+1,)
    probes: int

    def histogram(self, bins: int) -> list[float]:
        """The share of eigenvalues in equal bins over [0, 2]."""
        gaps = self.eigenvalues.diff()
        areas = (self.density[1:] + self.density[:-1]) / 2 * gaps
        cumulative = np.concatenate([[0.0], areas.cumsum(0).numpy()])
        edges = np.linspace(0, 2, bins + 1)
        mass = np.diff(np.interp(edges, self.eigenvalues.numpy(), cumulative))
        shares: list[float] = (mass / mass.sum()).tolist()
        return shares

    def __repr__(self) -> str:
        return (
            f"SpectralDensity(points={len(self.eigenvalues)}, degree={len(self.moments) - 1}, "
            f"probes={self.probes})"
        )


def choose_probes(nodes: int) -> int:
    """Random vectors that make a moment accurate to 0.004: fewer on a larger graph, 32 at most.

    >>> choose_probes(2_708), choose_probes(300_000)
    (32, 1)
    """
    return max(1, min(MOST_PROBES, -(-NUMBERS // max(nodes, 1))))


def chebyshev_moments(
    operator: GraphOperator, degree: int, *, probes: int | None = None, seed: int = 0
) -> Tensor:
    r"""Estimate :math:`\frac1n\mathrm{tr}\,T_k(P)` for k = 0..degree with random sign vectors.

    Two moments per product, by :math:`T_{2k} = 2T_k^2 - 1` and
    :math:`T_{2k+1} = 2T_k T_{k+1} - x`. Where ``probes >= nodes`` the trace is exact.
    """
    n = operator.matrix.shape[0]
    if n == 0:
        raise ValueError("Expected a graph with nodes (got none)")
    probes = choose_probes(n) if probes is None else probes
    matrix = operator.matrix.to(torch.float64)
    if probes >= n:
        z = torch.eye(n, dtype=torch.float64) * math.sqrt(n)
    else:
        generator = torch.Generator().manual_seed(seed)
        z = torch.randint(0, 2, (n, probes), generator=generator).double() * 2 - 1
    z = z.to(operator.device)
    mean = lambda u, v: (u * v).sum() / (n * z.shape[1])  # noqa: E731
    previous, current = z, matrix @ z
    first = mean(z, current)
    moments = [torch.ones_like(first), first]
    for _ in range(1, degree // 2 + 1):
        moments.append(2 * mean(current, current) - 1)
        previous, current = current, 2 * (matrix @ current) - previous
        moments.append(2 * mean(previous, current) - first)
    return torch.stack(moments)[: degree + 1].cpu()


def spectral_density(
    operator: GraphOperator,
    *,
    degree: int = 100,
    probes: int | None = None,
    points: int = 201,
    seed: int = 0,
) -> SpectralDensity:
    r"""Density of the eigenvalues of the normalised Laplacian :math:`L = I - P` on [0, 2].

    .. math:: \rho(x) = \frac{1}{\pi\sqrt{1-x^2}}\Big(g_0\mu_0 + 2\sum_{k\ge1} g_k\mu_k T_k(x)\Big)

    Args:
        degree: moments; the resolution is about :math:`\pi/` degree.
        probes: random vectors; the moments' error falls as :math:`1/\sqrt{n \cdot probes}`. By
            default as many as :func:`choose_probes` says.
        points: of the returned grid.
    """
    probes = choose_probes(operator.matrix.shape[0]) if probes is None else probes
    moments = chebyshev_moments(operator, degree, probes=probes, seed=seed)
    size = degree + 2
    k = torch.arange(degree + 1, dtype=torch.float64)
    angle = math.pi / size
    jackson = (size - k) * torch.cos(k * angle) + torch.sin(k * angle) / math.tan(angle)
    weights = moments * jackson / size
    weights[1:] *= 2
    # Midpoints in angle: the ends, where the formula has an integrable pole, are not met.
    theta = (torch.arange(points, dtype=torch.float64) + 0.5) * (math.pi / points)
    series = torch.cos(k[:, None] * theta).T @ weights
    density = series / (math.pi * torch.sin(theta))
    return SpectralDensity(1 - torch.cos(theta), density.clamp_min(0.0), moments, probes)


def extreme_eigenvalues(operator: GraphOperator) -> tuple[float, float]:
    """The smallest and largest eigenvalue of the normalised Laplacian.

    The smallest is 0 wherever there is an edge (its eigenvector is the root of the degrees) and
    1 on isolated nodes alone. The largest is 2 exactly where a component is bipartite; otherwise
    it is found by Lanczos iteration, to three digits: they are for figures and words. Of a double
    cover the ends are 1 - s and 1 + s with its largest singular value s.
    """
    matrix = operator.matrix.to_scipy()
    n = matrix.shape[0]
    if n == 0:
        raise ValueError("Expected a graph with nodes (got none)")
    if matrix.nnz == 0:
        return 1.0, 1.0
    largest = _largest_eigenvalue(matrix)
    if operator.direction == "cover":  # the spectrum is symmetric about 1
        return 2 - largest, largest
    return 0.0, 2.0 if largest > NEARLY_TWO and _has_bipartite_component(matrix) else largest


def _largest_eigenvalue(matrix: scipy.sparse.csr_matrix) -> float:
    n = matrix.shape[0]
    if n <= 64:
        return float(1 - np.linalg.eigvalsh(matrix.toarray())[0])
    start = np.random.default_rng(0).standard_normal(n)
    lowest = scipy.sparse.linalg.eigsh(
        matrix,
        k=1,
        which="SA",
        v0=start,
        ncv=min(n - 1, 48),
        tol=TOLERANCE,
        return_eigenvectors=False,
    )
    return float(1 - lowest[0])


def _has_bipartite_component(matrix: scipy.sparse.csr_matrix) -> bool:
    """Whether some component with an edge is bipartite: in the double cover, which joins node i
    to the copy of its neighbour j, such a component falls apart in two, as isolated nodes do."""
    components, _ = scipy.sparse.csgraph.connected_components(matrix, directed=False)
    cover = scipy.sparse.block_array([[None, matrix], [matrix, None]])
    doubled, _ = scipy.sparse.csgraph.connected_components(cover, directed=False)
    isolated = int((np.diff(matrix.indptr) == 0).sum())
    return doubled - components > isolated

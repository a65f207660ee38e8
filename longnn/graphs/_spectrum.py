r"""What the spectrum of a graph looks like, without an eigendecomposition.

The spectral density by the kernel polynomial method (Weisse et al., Rev. Mod. Phys. 78, 2006):
Chebyshev moments :math:`\mu_k = \frac1n \mathrm{tr}\,T_k(P)` from random probe vectors, damped by
Jackson's kernel so that the estimate is non-negative. And the two ends of the spectrum.

Most eigenvalues of a graph's Laplacian form a bulk around 1. A graph of k communities has k - 1
more below the bulk, one of two mutually linked halves has one above it. They are few, so that no
density shows them, yet their eigenvectors are what tells the parts from each other. They are found
by Lanczos' method.
"""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from longnn.graphs._operator import GraphOperator
from longnn.matrices import SparseMatrix

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
    from scipy.sparse.linalg import eigsh  # slow to load

    start = np.random.default_rng(0).standard_normal(n)
    lowest = eigsh(
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
    from scipy.sparse.csgraph import connected_components  # slow to load

    components, _ = connected_components(matrix, directed=False)
    cover = scipy.sparse.block_array([[None, matrix], [matrix, None]])
    doubled, _ = connected_components(cover, directed=False)
    isolated = int((np.diff(matrix.indptr) == 0).sum())
    return doubled - components > isolated


#: Nodes up to which all eigenvalues are computed; above, Lanczos' method finds the outer ones.
EXACT = 512


#: Vectors side by side: copies of one eigenvalue that can be told apart.
BLOCK = 8


#: Products with a block of vectors: from LARGE nodes on the first number, on smaller graphs more
#: (the time grows with their square) and at most the second.
STEPS, LARGE = (16, 32), 300_000


#: Share of the nodes that an eigenvector must be on, and the gap between the bulk and such
#: eigenvalues, at least. The more are left aside as localised, the clearer the edge of the bulk.
RULES = ((0.01, 0.05), (0.05, 0.02))


#: The smallest component that counts: its share of all nodes, and its nodes.
SHARE, SMALLEST = 0.01, 3


#: Eigenvalues outside the bulk at each end, at most; and their part of all.
MOST, PART = 32, 0.1


#: The gap is compared with the largest of the next spacings, at least so many; and at most so many
#: values may be left aside before it.
GAP_RATIO, NEXT = 3.0, 8


#: Part of the gap that the error of an eigenvalue may reach.
ERROR = 0.25


#: An eigenvalue closer than this to 0 or 2 is one of the known copies of it.
EXACTLY = 1e-5


class _Spectrum(NamedTuple):
    """Increasing eigenvalues, how wrong each can be, and the share of the nodes its vector is on.

    That share is the participation ratio :math:`1 / (n \\sum_i u_i^4)` of a unit vector u.
    """

    values: np.ndarray
    errors: np.ndarray
    shares: np.ndarray

    def mirrored(self) -> "_Spectrum":
        """From the other end: 2 - values."""
        return _Spectrum(2 - self.values[::-1], self.errors[::-1], self.shares[::-1])

    def with_zeros(self, copies: int) -> "_Spectrum":
        """With 0 as often as it is known to occur; Lanczos' method finds some of them."""
        rest = slice(min(int((self.values < EXACTLY).sum()), copies), None)
        joined = (np.append(np.zeros(copies), part[rest]) for part in self)
        values, errors, shares = joined
        return _Spectrum(values, errors, np.where(values < EXACTLY, 1.0, shares))

    def outside(self, nodes: int) -> np.ndarray:
        """The leading values that a gap parts from the rest: the most that a rule finds."""
        eigenvalues = np.zeros(0)
        for share, least in RULES:
            spread = np.flatnonzero(self.shares >= share)
            values, errors = self.values[spread], self.errors[spread]
            count = _before_gap(values, errors, least, min(MOST, int(PART * nodes)))
            # Where many localised values come first, the edge of the bulk is not known.
            if count > len(eigenvalues) and spread[count] - count <= NEXT:
                eigenvalues = values[:count]
        return eigenvalues


def _before_gap(values: np.ndarray, errors: np.ndarray, least: float, most: int) -> int:
    """How many leading values there are before the last clear gap."""
    count = 0
    for j in range(1, most + 1):
        end = j + max(NEXT, 2 * j)
        if end >= len(values):
            break
        gap = values[j] - errors[j] - values[j - 1]
        clear = gap >= max(least, GAP_RATIO * np.diff(values[j : end + 1]).max())
        if clear and errors[:j].max() <= ERROR * gap:
            count = j
    return count


def outlying_eigenvalues(operator: GraphOperator) -> Tensor:
    r"""The isolated extreme eigenvalues of the normalised Laplacian :math:`L = I - P`.

    At each end of the spectrum, the j outermost eigenvalues lie outside the bulk where the gap
    behind them is at least 0.05, and three times the largest spacing of the eigenvalues that
    follow it (2j of them, at least 8). The largest such j counts, of at most 32 and a tenth of
    all. A ring or a grid, whose spacings grow steadily, has none. In sparse graphs, eigenvectors
    on a few nodes (chains that hang on the graph) blur the edge of the bulk: eigenvalues whose
    vector is on less than 1 % of the nodes, by its participation ratio, are left aside, up to
    eight of them. The same is tried with 5 %, and a gap of 0.02; the rule that finds more counts.
    Components of less than 1 % of the nodes are left out.

    Up to 512 nodes all eigenvalues are computed. Above, they are Ritz values of block Lanczos with
    8 vectors: 32 products with the block, falling to 16 on 300,000 nodes. A Ritz value has an
    eigenvalue within its residual. So the gap is measured to the nearest place where the bulk may
    begin, and a value that has not converged to a quarter of the gap is not reported: values close
    to the bulk are missed rather than invented. The start is random with a fixed seed: the same
    graph gives the same values.

    The multiplicities of 0 and 2, the components and the bipartite components, are exact. Of
    another eigenvalue with more than eight copies, eight are found.

    Returns:
        Increasing eigenvalues, float64, each as often as it occurs. The one 0 that every graph
        has is left out: k communities have k - 1, also where they are components.

    Raises:
        ValueError: if the graph has no nodes.

    >>> import scipy.sparse
    >>> clique = 1 - np.eye(20)
    >>> outlying_eigenvalues(GraphOperator.from_scipy(scipy.sparse.block_diag([clique] * 3)))
    tensor([0., 0.], dtype=torch.float64)
    """
    if operator.num_nodes == 0:
        raise ValueError("Expected a graph with nodes (got none)")
    structure, components = _large_components(operator.matrix.to_scipy())
    if components == 0:
        return torch.zeros(0, dtype=torch.float64)
    matrix = operator.matrix
    if structure.shape != matrix.shape:
        matrix = SparseMatrix.from_scipy(structure, symmetric=True, dtype=matrix.dtype)
        matrix = matrix.to(operator.device)
    nodes = matrix.shape[0]
    spectrum = _ritz_values(matrix) if nodes > EXACT else _all_values(matrix)
    low = spectrum.with_zeros(components).outside(nodes)
    spectrum = spectrum.mirrored()
    bipartite = 0
    if spectrum.values[0] < EXACTLY:
        bipartite = _bipartite_components(structure, components)
    high = spectrum.with_zeros(bipartite).outside(nodes)
    return torch.from_numpy(np.concatenate([low[1:], 2 - high[::-1]]))


def _large_components(
    structure: scipy.sparse.csr_matrix,
) -> tuple[scipy.sparse.csr_matrix, int]:
    """The part of a graph in its large components, and their number."""
    from scipy.sparse.csgraph import connected_components  # slow to load

    _, labels = connected_components(structure, directed=False)
    sizes = np.bincount(labels)
    large = sizes >= max(SMALLEST, SHARE * len(labels))
    if not large.all():
        inside = np.flatnonzero(large[labels])
        structure = structure[inside][:, inside]
    return structure, int(large.sum())


def _bipartite_components(structure: scipy.sparse.csr_matrix, components: int) -> int:
    """In the double cover, which joins i to the copy of its neighbour j, they fall apart."""
    from scipy.sparse.csgraph import connected_components  # slow to load

    cover = scipy.sparse.block_array([[None, structure], [structure, None]])
    doubled, _ = connected_components(cover, directed=False)
    return int(doubled) - components


def _all_values(matrix: SparseMatrix) -> _Spectrum:
    theta, vectors = torch.linalg.eigh(matrix.to_dense().double())
    values = 1 - theta.flip(0).cpu().numpy()
    return _Spectrum(values, np.zeros(len(values)), _shares(vectors.flip(1)))


def _shares(vectors: Tensor) -> np.ndarray:
    """The participation ratio of each column, from 1 / nodes to 1."""
    shares: np.ndarray = (1 / (len(vectors) * vectors.pow(4).sum(0))).double().cpu().numpy()
    return shares


def _ritz_values(matrix: SparseMatrix) -> _Spectrum:
    r"""The Ritz values of I - P, with the distance to the nearest eigenvalue, at most, as error.

    Blocks :math:`V_j` of orthonormal vectors, :math:`P V_j = \sum_{i \le j} V_i H_{ij} + V_{j+1}
    B_{j+1}`. With :math:`H y = \theta y`, the residual of :math:`V y` is
    :math:`\|B_m y_m\|`, where :math:`y_m` is the last block of y.
    """
    n, device = matrix.shape[0], matrix.device
    steps = int(np.clip(STEPS[0] * (LARGE / n) ** 0.5, *STEPS))
    generator = torch.Generator().manual_seed(0)
    block = torch.randn(n, BLOCK, generator=generator, dtype=matrix.dtype).to(device)
    block, B = torch.linalg.qr(block)  # (nodes, BLOCK)
    basis = block.new_empty(BLOCK * steps, n)  # as rows: its products read memory in order
    H = torch.zeros(BLOCK * steps, BLOCK * steps, dtype=torch.float64)
    for end in range(BLOCK, BLOCK * steps + 1, BLOCK):
        basis[end - BLOCK : end] = block.T
        earlier = basis[:end]
        block = matrix @ block
        inner = earlier @ block
        H[:end, end - BLOCK : end] = inner.double().cpu()
        block, B = torch.linalg.qr(block - earlier.T @ inner)
        if B.diagonal().abs().min() < 0.1:  # most was in the known directions: rounding is left
            block, again = torch.linalg.qr(block - earlier.T @ (earlier @ block))
            B = again @ B
    theta, vectors = torch.linalg.eigh(H, UPLO="U")
    vectors = vectors.flip(1)
    residual = torch.linalg.vector_norm(B.double().cpu() @ vectors[-BLOCK:], dim=0)
    some = vectors.to(basis).split(32, dim=1)  # not all at once: as large as the basis again
    shares = np.concatenate([_shares(basis.T @ part) for part in some])
    return _Spectrum(1 - theta.flip(0).numpy(), residual.numpy(), shares)

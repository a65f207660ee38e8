r"""The task of learning a filter from one image: images, targets, the floor, and the loss.

A filter :math:`g` of the normalised Laplacian turns an image x into the target :math:`y = g(L)x`.
A model sees x and y and is to find g; its loss is the sum of squared errors over the interior
pixels. All images live on one pixel grid. Knows nothing of models and training.
"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lab.studies.filters._images import ImageGrid, image_grid, read_image_grid
from longnn.graphs import GraphOperator
from longnn.graphs._adjacency import SelfLoops
from longnn.graphs._propagate import chebyshev_stack

Array = np.ndarray

#: The five filters, functions of the eigenvalue of the normalised Laplacian in [0, 2].
FILTERS: Mapping[str, Callable[[Array], Array]] = {
    "low": lambda t: np.exp(-10 * t**2),
    "high": lambda t: 1 - np.exp(-10 * t**2),
    "band": lambda t: np.exp(-10 * (t - 1) ** 2),
    "rejection": lambda t: 1 - np.exp(-10 * (t - 1) ** 2),
    "comb": lambda t: np.abs(np.sin(np.pi * t)),
}


def load_images(data_dir: str | None, *, quick: bool = False) -> ImageGrid:
    """``images/2Dgrid.mat`` of a data folder, or bundled photographs if it is absent.

    In quick mode three small photographs, wherever the data is.
    """
    if quick:
        return image_grid(size=32, images=3)
    file = None if data_dir is None else Path(data_dir) / "images" / "2Dgrid.mat"
    return image_grid() if file is None or not file.exists() else read_image_grid(file)


def grid_operator(grid: ImageGrid, *, self_loops: SelfLoops = "keep") -> GraphOperator:
    """:math:`P = D^{-1/2}AD^{-1/2}` of the pixel grid in float64."""
    return GraphOperator.from_edge_index(
        grid.edge_index, num_nodes=grid.num_nodes, dtype=torch.float64, self_loops=self_loops
    )


@dataclasses.dataclass(frozen=True)
class Block:
    """Eigenvectors of P among the images of one symmetry: P (Q^T U) = (Q^T U) diag(values)."""

    fold: sp.csr_array  # Q, (size, nodes), orthonormal rows
    values: Array  # (size,)
    vectors: Array  # U, (size, size)


def eigenblocks(grid: ImageGrid) -> list[Block]:
    """The exact eigendecomposition of P, in four blocks.

    A grid is its own mirror image left to right and top to bottom, so P keeps apart the images
    that are even or odd under each mirror: four problems of a quarter of the size, 64 times
    cheaper each than the whole.
    """
    P = grid_operator(grid).matrix.to_scipy()
    blocks = []
    for rows in _mirror(grid.height):
        for columns in _mirror(grid.width):
            fold = sp.csr_array(sp.kron(columns, rows))  # pixels are column-major
            values, vectors = np.linalg.eigh((fold @ P @ fold.T).toarray())
            blocks.append(Block(fold, values, vectors))
    return blocks


def _mirror(size: int) -> tuple[sp.csr_array, sp.csr_array]:
    """Orthonormal bases of the even and of the odd vectors of a length."""
    half = size // 2
    eye = np.eye(size)
    first, last = eye[:half], eye[::-1][:half]
    even = np.concatenate([(first + last) / np.sqrt(2), eye[half : size - half]])
    return sp.csr_array(even), sp.csr_array((first - last) / np.sqrt(2))


def apply_exactly(
    blocks: list[Block],
    responses: Array,  # (filters, eigenvalues of all blocks, in order)
    signals: Array,  # (nodes, images)
) -> Array:
    """Functions of P, given at its eigenvalues, applied to images: (filters, nodes, images)."""
    out = np.zeros((len(responses), *signals.shape))
    start = 0
    for block in blocks:
        here = responses[:, start : start + len(block.values)]
        start += len(block.values)
        spectrum = block.vectors.T @ (block.fold @ signals)  # (size, images)
        for k, response in enumerate(here):
            out[k] += block.fold.T @ (block.vectors @ (response[:, None] * spectrum))
    return out


def make_targets(grid: ImageGrid, blocks: list[Block]) -> Tensor:
    """The images after each of :data:`FILTERS`: (filters, nodes, images), float64."""
    eigenvalues = 1 - np.concatenate([block.values for block in blocks])
    responses = np.stack([g(eigenvalues) for g in FILTERS.values()])
    return torch.from_numpy(apply_exactly(blocks, responses, grid.signals.numpy()))


def exact_floor(grid: ImageGrid, blocks: list[Block], targets: Tensor, degree: int) -> Array:
    """The least loss of any polynomial of a degree: (filters, images).

    By a way that shares nothing with :meth:`~longnn.PolynomialFilter.fit_least_squares`:
    Legendre polynomials at the exact eigenvalues, eigenvectors, and NumPy's least squares.
    """
    x = np.concatenate([block.values for block in blocks])
    terms = np.polynomial.legendre.legvander(x, degree).T  # (degree+1, eigenvalues)
    keep = grid.mask.numpy()
    design = apply_exactly(blocks, terms, grid.signals.numpy())[:, keep]
    wanted = targets.numpy()[:, keep]
    losses = np.empty((len(wanted), grid.num_images))
    for k in range(grid.num_images):
        A, y = design[..., k].T, wanted[..., k].T
        solution = np.linalg.lstsq(A, y, rcond=None)[0]
        losses[:, k] = np.square(A @ solution - y).sum(0)
    return losses


@dataclasses.dataclass(frozen=True)
class Problems:
    r"""The losses of all images under all filters as small quadratic forms.

    With :math:`S = (T_0(P)x, \dots, T_K(P)x)` on the interior pixels and :math:`S = QR`,

    .. math:: \|S\beta - y\|^2 = \|R\beta - c\|^2 + \rho, \qquad c = Q^Ty, \quad
              \rho = \|y - Qc\|^2,

    for every polynomial model, whatever its basis. This is the loss that the hot loop computes,
    and so is its gradient: only the order of the sums differs. A gradient step then costs
    :math:`(K+1)^2` products per image and no sparse ones. Through R and c rather than the Gram
    matrix :math:`R^TR`, nothing cancels: rho is the floor, and what is above it keeps its digits.
    """

    R: Tensor  # (problems, degree+1, degree+1); problem = filter * images + image
    c: Tensor  # (problems, degree+1)
    rho: Tensor  # (problems,)
    images: int

    @property
    def degree(self) -> int:
        """Of the polynomials."""
        return self.c.shape[1] - 1

    def __len__(self) -> int:
        return len(self.rho)

    def losses(self, beta: Tensor) -> Tensor:  # (problems, degree+1) -> (problems,)
        """The loss of Chebyshev coefficients."""
        return quadratic_loss(beta[..., None], self.R, self.c[..., None])[..., 0] + self.rho

    def by_filter(self, losses: Tensor) -> Tensor:  # (..., problems) -> (..., filters, images)
        """Losses of all problems, sorted by filter and image."""
        return losses.unflatten(-1, (-1, self.images))

    def at_degree(self, degree: int) -> "Problems":
        """The same of a lower degree: R is triangular, so the leading block is its R."""
        size = degree + 1
        rho = self.rho + self.c[:, size:].square().sum(1)
        return Problems(self.R[:, :size, :size], self.c[:, :size], rho, self.images)

    def select(self, index: Tensor) -> "Problems":
        """Some of the problems."""
        return Problems(self.R[index], self.c[index], self.rho[index], self.images)


def quadratic_loss(beta: Tensor, R: Tensor, c: Tensor) -> Tensor:
    r""":math:`\|R\beta - c\|^2`, what of the loss depends on the coefficients.

    >>> quadratic_loss(torch.ones(2, 1), torch.eye(2), torch.zeros(2, 1))
    tensor([2.])
    """
    return (R @ beta - c).square().sum(-2)


def make_problems(
    grid: ImageGrid, targets: Tensor, degree: int, *, self_loops: SelfLoops = "keep"
) -> Problems:
    """The quadratic forms of all images and filters up to a degree."""
    stack = chebyshev_stack(grid_operator(grid, self_loops=self_loops), grid.signals, degree)
    S = stack[:, grid.mask].permute(2, 1, 0)  # (images, pixels, degree+1)
    Q, R = torch.linalg.qr(S)
    Y = targets[:, grid.mask].permute(2, 1, 0)  # (images, pixels, filters)
    c = Q.mT @ Y
    rho = (Y - Q @ c).square().sum(1)  # (images, filters)
    filters = len(targets)
    return Problems(
        R.repeat(filters, 1, 1),
        c.permute(2, 0, 1).reshape(-1, degree + 1),
        rho.T.reshape(-1),
        grid.num_images,
    )

r"""Figure 2: what a penalty on the coefficients does to the filter, basis by basis.

On the sphere :math:`\sum_k \alpha_k^2 = 25` of three coefficients the penalty on the coefficients
is the same everywhere. The norm of the filter is not:

.. math:: \|g_\alpha\|^2 = \int_{-1}^1 \Big(\sum_k \alpha_k p_k\Big)^2 w\,dx = \alpha^T G\,\alpha,
          \qquad G_{jk} = \int_{-1}^1 p_j\,p_k\,w\,dx

so its squares on the sphere lie between 25 times the least and the greatest eigenvalue of G; in
an orthonormal basis G is the identity (the paper's theorem). Everything is computed twice: by
SciPy alone (Gauss quadrature, exact at this degree), and by :meth:`PolynomialFilter.norm`.
"""

import dataclasses
import functools
from pathlib import Path

import numpy as np
import scipy.special
import torch

from lab.records import StudyRecord
from lab.studies._core._context import Context, record_path, save_figure
from lab.studies._core._table import ResultTable
from lab.studies.regularization._figure import draw_spheres
from longnn.filters import PolynomialFilter
from longnn.polynomials import Basis, Jacobi, get_basis

TITLE = "What penalising coefficients does to the filter (Figure 2)"
ORDER = 70

DEGREE, RADIUS = 2, 5.0
#: The paper does not give its a and b. It says that the squares go from 20 to 40: to one digit
#: that is (0.4, 1.2) or (1.2, 0.4). (1, 1) is JacobiConv's; (0, 0) is Legendre; (-1/2, -1/2) is
#: Chebyshev.
PAPERS = (0.4, 1.2)
PAIRS = (PAPERS, (1.0, 1.0), (0.0, 0.0), (-0.5, -0.5), (0.5, 0.5), (2.0, 0.0), (-0.5, 1.5))
OTHERS = ("monomial", "bernstein")


@dataclasses.dataclass(frozen=True)
class Plan:
    """Degree of the filters, length of their coefficients, points of the sphere."""

    degree: int
    radius: float
    points: int


@dataclasses.dataclass(frozen=True)
class SphereCell:
    """The norm over the sphere in one basis.

    Args:
        quadrature: least and greatest, by SciPy.
        ours: least and greatest over the points, by our code.
        difference: the largest between the two at any point.
        uniform: least and greatest root mean square over the spectrum.
        gram: the Gram matrix of the basis.
    """

    quadrature: list[float]
    ours: list[float]
    difference: float
    uniform: list[float]
    gram: list[list[float]]


def run(context: Context) -> None:
    """Compute what the record lacks; takes seconds, so there is no smaller version."""
    points = sphere()
    record = context.record("record", Plan(DEGREE, RADIUS, len(points)))
    bases = [(kind, a, b) for a, b in PAIRS for kind in ("plain", "orthonormal")]
    for kind, a, b in [*bases, *((name, 0.0, 0.0) for name in OTHERS)]:
        compute = functools.partial(measure, kind, a, b, points)
        key = f"{kind}/{a:g}/{b:g}"
        low, high = record.cell(key, SphereCell, compute, machine=context.machine("cpu")).quadrature
        context.tell(f"{kind}, a = {a:g}, b = {b:g}: norm {low:.3f} to {high:.3f}")


def sphere(rows: int = 60) -> np.ndarray:
    """Points of the sphere, (points, 3); the poles, where the extremes lie, are among them."""
    polar, around = np.meshgrid(
        np.linspace(0, np.pi, rows + 1), np.linspace(0, 2 * np.pi, 2 * rows + 1)
    )
    x, y = np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around)
    return RADIUS * np.stack([x, y, np.cos(polar)], axis=-1).reshape(-1, 3)


def measure(kind: str, a: float, b: float, points: np.ndarray) -> SphereCell:
    """The norm on the sphere by quadrature and by our code, in the basis' own weight."""
    G = gram(kind, a, b)
    ours = our_norms(kind, a, b, points)
    theirs = np.sqrt(np.einsum("ni,ij,nj->n", points, G, points))
    return SphereCell(
        quadrature=extremes(G),
        ours=[_short(ours.min()), _short(ours.max())],
        difference=float(f"{np.abs(ours - theirs).max():.1e}"),
        uniform=extremes(gram(kind, a, b, uniform=True)),
        gram=[[_short(v) for v in row] for row in G],
    )


def gram(kind: str, a: float, b: float, *, uniform: bool = False) -> np.ndarray:
    """The Gram matrix of three terms by SciPy, in the weight of a and b or the uniform one.

    Jacobi terms have the weight (1-x)^a (1+x)^b of the paper; monomials and Bernstein polynomials,
    which have none of their own, and ``uniform`` the constant weight 1/2 of mass one.

    >>> gram("plain", 0.0, 0.0).round(4).diagonal().tolist()
    [2.0, 0.6667, 0.4]
    """
    plain = uniform or kind in OTHERS
    x, w = scipy.special.roots_jacobi(DEGREE + 1, *((0.0, 0.0) if plain else (a, b)))
    w = w / 2 if plain else w
    k = np.arange(DEGREE + 1)[:, None]
    if kind == "monomial":
        terms = x**k
    elif kind == "bernstein":
        terms = scipy.special.binom(DEGREE, k) * ((1 - x) / 2) ** k * ((1 + x) / 2) ** (DEGREE - k)
    else:
        terms = scipy.special.eval_jacobi(k, a, b, x)
        if kind == "orthonormal":
            y, v = scipy.special.roots_jacobi(DEGREE + 1, a, b)
            norms = (scipy.special.eval_jacobi(k, a, b, y) ** 2 * v).sum(1, keepdims=True)
            terms = terms / np.sqrt(norms)
    return np.asarray((terms * w) @ terms.T)


def extremes(G: np.ndarray) -> list[float]:
    """Least and greatest norm on the sphere, from the eigenvalues of G."""
    values = RADIUS * np.sqrt(np.linalg.eigvalsh(G))
    return [_short(values[0]), _short(values[-1])]


def our_norms(kind: str, a: float, b: float, points: np.ndarray) -> np.ndarray:
    """The same by a filter with a channel for each point."""
    basis: Basis = get_basis(kind) if kind in OTHERS else Jacobi(a, b, orthonormal=kind != "plain")
    alpha = torch.from_numpy(points.T.copy())
    model = PolynomialFilter(basis, DEGREE, len(points), init=alpha).double()
    model.coefficients.set_(alpha)
    return model.norm().detach().numpy()


def _short(value: float) -> float:
    return float(f"{float(value):.6g}")


def tables(folder: Path) -> list[ResultTable]:
    """Least and greatest norm on the sphere, basis by basis."""
    rows = []
    for key, cell in StudyRecord.load(record_path(folder)).all(SphereCell).items():
        kind, a, b = key.split("/")
        label = kind if kind in OTHERS else f"Jacobi, {kind}"
        (low, high), (least, most) = cell.quadrature, cell.ours
        flat, steep = cell.uniform
        rows.append(
            [
                label,
                *(("–", "–") if kind in OTHERS else (a, b)),
                f"{low:.3f}",
                f"{high:.3f}",
                f"{high / low:.2f}",
                f"{low**2:.1f} to {high**2:.1f}",
                f"{least:.3f} to {most:.3f}",
                f"{cell.difference:.0e}",
                f"{flat:.2f} to {steep:.2f}",
            ]
        )
    caption = (
        "The filter's norm ‖g‖ over all coefficients of length 5, degree 2, in the basis' own "
        "weight (for monomials and Bernstein polynomials the uniform one of mass one): least and "
        "greatest by SciPy's quadrature; ‖g‖² is what the paper colours, from 20 to 40, and "
        "a = 0.4, b = 1.2 were chosen to give that; ours: "
        "PolynomialFilter.norm on a grid of points, with the largest difference from quadrature "
        "at any point; last: the same filters' root mean square over the spectrum."
    )
    columns = ["basis", "a", "b", "least ‖g‖", "greatest ‖g‖", "ratio", "‖g‖²"]
    columns += ["ours", "largest difference", "rms over the spectrum"]
    return [ResultTable("sphere", caption, columns, rows)]


def draw(folder: Path) -> list[Path]:
    """The sphere, coloured by the squared norm, in the plain and in the orthonormal basis."""
    a, b = PAPERS
    grids = {f"{kind} Jacobi": gram(kind, a, b) for kind in ("plain", "orthonormal")}
    return [save_figure(folder, "sphere", draw_spheres(grids, RADIUS, a, b))]

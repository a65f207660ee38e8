r"""Figure 2: what a penalty on the coefficients does to the filter, basis by basis.

On the sphere :math:`\sum_k \alpha_k^2 = 25` of three coefficients the penalty on the coefficients
is the same everywhere. The norm of the filter is not:

.. math:: \|g_\alpha\|^2 = \int_{-1}^1 \Big(\sum_k \alpha_k p_k\Big)^2 w\,dx = \alpha^T G\,\alpha,
          \qquad G_{jk} = \int_{-1}^1 p_j\,p_k\,w\,dx

so its squares on the sphere lie between 25 times the least and the greatest eigenvalue of G; in
an orthonormal basis G is the identity (the paper's theorem). Everything is computed twice: by
SciPy alone (Gauss quadrature, exact at this degree), and by :meth:`PolynomialFilter.norm`.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import scipy.special
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from lab.studies._engine import Cell, Cells, Context, read_record, rounded
from lab.studies._views import CAPTIONS, ResultTable
from longnn.filters import PolynomialFilter
from longnn.polynomials import Basis, Jacobi, get_basis
from longnn.report._style import WIDTH, in_style

TITLE = "What penalising coefficients does to the filter (Figure 2)"
ORDER = 70

DEGREE, RADIUS = 2, 5.0
#: The paper does not give its a and b. It says that the squares go from 20 to 40: to one digit
#: that is (0.4, 1.2) or (1.2, 0.4). (1, 1) is JacobiConv's; (0, 0) is Legendre; (-1/2, -1/2) is
#: Chebyshev.
PAPERS = (0.4, 1.2)
PAIRS = (PAPERS, (1.0, 1.0), (0.0, 0.0), (-0.5, -0.5), (0.5, 0.5), (2.0, 0.0), (-0.5, 1.5))
OTHERS = ("monomial", "bernstein")

LOW, HIGH = 20.0, 40.0  # of the paper's colours


def cells(context: Context) -> Cells:
    """Every basis; takes seconds, so there is no smaller version."""
    points = sphere().reshape(3, -1).T
    plan = {"degree": DEGREE, "radius": RADIUS, "points": len(points)}
    bases = [(kind, a, b) for a, b in PAIRS for kind in ("plain", "orthonormal")]
    for kind, a, b in [*bases, *((name, 0.0, 0.0) for name in OTHERS)]:
        compute = partial(measure, kind, a, b, points)
        yield Cell("record", plan, f"{kind}/{a:g}/{b:g}", compute, device="cpu")


def sphere(rows: int = 60) -> np.ndarray:
    """Points of the sphere, (3, 2 rows + 1, rows + 1), with the poles, where the extremes lie."""
    polar, around = np.meshgrid(
        np.linspace(0, np.pi, rows + 1), np.linspace(0, 2 * np.pi, 2 * rows + 1)
    )
    x, y = np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around)
    return RADIUS * np.stack([x, y, np.cos(polar)])


def measure(kind: str, a: float, b: float, points: np.ndarray) -> dict[str, Any]:
    """Least and greatest norm on the sphere by quadrature and by our code, in the basis' own
    weight; their largest difference at any point; the same over the spectrum; the Gram matrix.
    """
    G = gram(kind, a, b)
    ours = our_norms(kind, a, b, points)
    theirs = np.sqrt(np.einsum("ni,ij,nj->n", points, G, points))
    return {
        "quadrature": extremes(G),
        "ours": rounded([ours.min(), ours.max()], 6),
        "difference": float(f"{np.abs(ours - theirs).max():.1e}"),
        "uniform": extremes(gram(kind, a, b, uniform=True)),
        "gram": rounded(G, 6),
    }


def gram(kind: str, a: float, b: float, *, uniform: bool = False) -> np.ndarray:
    """The Gram matrix of three terms by SciPy, in the weight of a and b or the uniform one.

    Jacobi terms have the weight (1-x)^a (1+x)^b of the paper; monomials and Bernstein polynomials,
    which have none of their own, and ``uniform`` the constant weight 1/2 of mass one.
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
    return rounded(values[[0, -1]], 6)


def our_norms(kind: str, a: float, b: float, points: np.ndarray) -> np.ndarray:
    """The same by a filter with a channel for each point."""
    basis: Basis = get_basis(kind) if kind in OTHERS else Jacobi(a, b, orthonormal=kind != "plain")
    alpha = torch.from_numpy(points.T.copy())
    model = PolynomialFilter(basis, DEGREE, len(points), init=alpha).double()
    model.coefficients.set_(alpha)
    return model.norm().detach().numpy()


def tables(folder: Path) -> list[ResultTable]:
    """Least and greatest norm on the sphere, basis by basis."""
    rows = []
    for key, cell in read_record(folder).below("").items():
        kind, a, b = key.split("/")
        (low, high), (least, most), (flat, steep) = (
            cell.scores(name) for name in ("quadrature", "ours", "uniform")
        )
        rows.append(
            [
                kind if kind in OTHERS else f"Jacobi, {kind}",
                *(("–", "–") if kind in OTHERS else (a, b)),
                f"{low:.3f}",
                f"{high:.3f}",
                f"{high / low:.2f}",
                f"{low**2:.1f} to {high**2:.1f}",
                f"{least:.3f} to {most:.3f}",
                f"{cell['difference']:.0e}",
                f"{flat:.2f} to {steep:.2f}",
            ]
        )
    columns = ["basis", "a", "b", "least ‖g‖", "greatest ‖g‖", "ratio", "‖g‖²"]
    columns += ["ours", "largest difference", "rms over the spectrum"]
    return [ResultTable("sphere", CAPTIONS["regularization"]["sphere"], columns, rows)]


def figures(folder: Path) -> dict[str, Figure]:
    """The sphere, coloured by the squared norm, in the plain and in the orthonormal basis."""
    grams = {f"{kind} Jacobi": gram(kind, *PAPERS) for kind in ("plain", "orthonormal")}
    return {"sphere": draw_spheres(grams)}


@in_style
def draw_spheres(grams: Mapping[str, np.ndarray]) -> Figure:
    """A sphere for each Gram matrix G: colour is alpha^T G alpha."""
    figure = Figure(figsize=(WIDTH, 3.7))
    FigureCanvasAgg(figure)
    a, b = PAPERS
    title = f"Squared norm of filters whose coefficients have length 5, a = {a:g}, b = {b:g}"
    figure.suptitle(title, x=0.01, ha="left")
    points = sphere(40)
    scale = Normalize(LOW, HIGH)
    colours = mpl.colormaps["cividis"]
    axes = []
    for column, (name, G) in enumerate(grams.items()):
        value = np.einsum("ixy,ij,jxy->xy", points, G, points)
        panel = figure.add_subplot(1, len(grams), column + 1, projection="3d", proj_type="ortho")
        panel.plot_surface(
            *points, facecolors=colours(scale(value)), rstride=1, cstride=1, shade=False,
            linewidth=0, antialiased=False,
        )  # fmt: skip
        low, high = value.min(), value.max()
        span = f"{low:.0f}" if high - low < 1e-6 else f"{low:.0f} to {high:.0f}"
        panel.set_title(f"{name}: ‖g‖² = {span}")
        for axis, label in ((panel.xaxis, "α₀"), (panel.yaxis, "α₁"), (panel.zaxis, "α₂")):
            axis.set_label_text(label)
            axis.set_ticks([-5, 0, 5])
        panel.set_box_aspect((1, 1, 1), zoom=0.8)
        axes.append(panel)
    figure.colorbar(
        ScalarMappable(scale, colours), ax=axes, label="‖g‖² = Σ αₖ² ‖pₖ‖²", shrink=0.75, pad=0.08
    )
    return figure

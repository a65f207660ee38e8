"""LON-GNN on every graph: the learned a and b, and the spectrum of the graph."""

import dataclasses
import functools

import numpy as np
import scipy.sparse

from lab.studies._core._context import Context
from lab.studies._core._evaluation import train_splits
from lab.studies._core._protocol import TEN, ConfigTable
from longnn import data, training
from longnn.config import Config
from longnn.data._scaling import Scaling
from longnn.graphs import spectral_density

BUNDLED = ("csbm", "digits")
SEEDS, BINS = 10, 100
#: LON-GNN's defaults, except rates at which a and b can go where they want within a training: at
#: the default rate of 0.002 they move by less than 0.25 on most graphs.
TRAINING = {"lr_basis": 0.02, "lr_coefficients": 0.005, "wd_transform": 1e-4, "input_dropout": 0.3}


@dataclasses.dataclass(frozen=True)
class Plan:
    """Splits, bins of the histogram of eigenvalues, and changes to the training of a quick run."""

    seeds: int
    protocol: str
    bins: int
    changes: dict[str, int]


@dataclasses.dataclass(frozen=True)
class BasisCell:
    """One graph.

    Args:
        fingerprint: of the dataset.
        notes: of the dataset.
        config: of the training, as a flat table.
        start: a and b at the start.
        a: learned, over the splits.
        b: likewise.
        best_epochs: the epochs whose weights were kept.
        mean: of the eigenvalues of the normalised Laplacian.
        variance: likewise.
        histogram: shares of the eigenvalues in equal bins of [0, 2].
        label_mean: mean eigenvalue of the labels; see :func:`label_mean`.
        node_homophily: of the graph.
    """

    fingerprint: str
    notes: list[str]
    config: ConfigTable
    start: dict[str, float]
    a: list[float]
    b: list[float]
    best_epochs: list[int]
    mean: float
    variance: float
    histogram: list[float]
    label_mean: float
    node_homophily: float | None = None


def run(context: Context) -> None:
    """Train LON-GNN on what the record lacks: ten published splits of each graph."""
    seeds = 2 if context.quick else SEEDS
    changes = {"epochs": 40, "hidden_channels": 16} if context.quick else {}
    record = context.record("record", Plan(seeds, "published splits", BINS, changes))
    device = training.choose_device(context.device)
    for name in context.choose("datasets", BUNDLED if context.quick else TEN):
        config = Config().replace(device=device.type, **TRAINING, **changes)
        compute = functools.partial(measure, name, config, seeds, context)
        cell = record.cell(name, BasisCell, compute, machine=context.machine())
        start, (a, b) = cell.start, (np.mean(cell.a), np.mean(cell.b))
        context.tell(f"{name}: ({start['a']:g}, {start['b']:g}) to ({a:.2f}, {b:.2f})")


def measure(name: str, config: Config, seeds: int, context: Context) -> BasisCell:
    """Learned a and b of each split, and the graph's spectrum."""
    dataset = data.load(name, data_dir=context.data_dir)
    (scores,) = train_splits(dataset, [config], range(seeds), device=context.device)
    assert scores.a is not None
    assert scores.b is not None
    problem = training.make_problem(dataset, config, Scaling("none"))
    density = spectral_density(problem.operator, degree=400, probes=64, points=4001)
    P = problem.operator.matrix.to_scipy()
    first, second = P.trace() / P.shape[0], P.power(2).sum() / P.shape[0]  # of x: tr P, tr P^2
    card = data.describe(dataset)
    short = lambda values: [float(f"{v:.4g}") for v in values]  # noqa: E731
    return BasisCell(
        fingerprint=dataset.fingerprint(),
        notes=list(dataset.notes),
        config={k: v for k, v in config.to_dict().items() if k != "device"},
        start={k: float(config.options[k]) for k in ("a", "b")},
        a=short(scores.a),
        b=short(scores.b),
        best_epochs=scores.best_epochs,
        mean=float(f"{1 - first:.4g}"),
        variance=float(f"{second - first**2:.4g}"),
        histogram=short(density.histogram(BINS)),
        label_mean=round(label_mean(P, dataset.data.y.numpy()), 4),
        node_homophily=card.node_homophily and round(card.node_homophily, 4),
    )


def label_mean(P: scipy.sparse.csr_matrix, labels: np.ndarray) -> float:
    r"""The mean eigenvalue of the labels as a signal: :math:`1 - \mathrm{tr}\,Y^TPY / \|Y\|^2`.

    Y is one-hot, centred over the labelled nodes and zero on the others.

    >>> two = scipy.sparse.csr_matrix([[0.0, 1.0], [1.0, 0.0]])
    >>> label_mean(two, np.array([0, 1]))  # neighbours that differ: the highest frequency
    2.0
    """
    known = labels >= 0
    Y = (labels[:, None] == np.unique(labels[known])).astype(float)
    Y[known] -= Y[known].mean(0)
    return float(1 - (Y * (P @ Y)).sum() / (Y**2).sum())

r"""Does the learned basis follow the graph? Learned (a, b) against each graph's spectral density.

A Jacobi basis is orthogonal for the weight :math:`(1-x)^a(1+x)^b`, which over the Laplacian
eigenvalue :math:`\lambda = 1 - x` is a Beta density: :math:`\lambda/2 \sim
\mathrm{Beta}(a+1, b+1)`. It can be compared with the density of the graph's eigenvalues by the
Wasserstein distance, :math:`W_1 = \int_0^2 |F(\lambda) - G(\lambda)|\,d\lambda` of their
distribution functions: at the start of training, for the learned a and b, and for those that
have the mean and variance of the eigenvalues. A graph without self loops has
:math:`\mathrm{tr}\,P = 0`, so its mean eigenvalue is 1 (isolated nodes count as 1): by moments
alone, a = b on every such graph.
"""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import scipy.special
import scipy.stats

from longnn import data, training
from longnn.config import Config
from longnn.graphs import spectral_density
from longnn.report import write_atomically
from longnn.studies._basis_figure import draw_panels, to_small_png
from longnn.studies._evaluation import train_splits
from longnn.studies._paper import Context
from longnn.studies._record import Record, read_record
from longnn.studies._study import TEN
from longnn.studies._table import Table

TITLE = "Learned bases against the spectra of their graphs"

BUNDLED = ("csbm", "digits")
SEEDS, BINS = 10, 100
#: LON-GNN's defaults, but for rates at which a and b can go where they want within a training: at
#: the default's rate of 0.002 they move by less than 0.25 on most graphs.
TRAINING = {"lr_basis": 0.02, "lr_coefficients": 0.005, "wd_transform": 1e-4, "input_dropout": 0.3}
EDGES = np.linspace(0, 2, BINS + 1)


def run(context: Context) -> None:
    """LON-GNN on what the record lacks: ten published splits of each graph."""
    seeds = 2 if context.quick else SEEDS
    changes = {"epochs": 40, "hidden_channels": 16} if context.quick else {}
    settings = {"seeds": seeds, "protocol": "published splits", "bins": BINS, "changes": changes}
    record = Record(context.folder / "record.json", settings, commit=context.commit)
    device = training.choose_device(context.device)
    for name in context.choose("datasets", BUNDLED if context.quick else TEN):
        config = Config().replace(device=device.type, **TRAINING, **changes)
        part = record.part(
            name,
            functools.partial(measure, name, config, seeds, context),
            device=device.type,
        )
        a, b = np.mean(part["a"]), np.mean(part["b"])
        start = part["start"]
        context.tell(f"{name}: ({start['a']:g}, {start['b']:g}) to ({a:.2f}, {b:.2f})")


def measure(name: str, config: Config, seeds: int, context: Context) -> dict[str, Any]:
    """Learned a and b of each split, and the graph's spectrum."""
    dataset = data.load(name, data_dir=context.data_dir)
    (row,) = train_splits(dataset, [config], range(seeds), device=context.device)
    problem = training.make_problem(dataset, config, training.Scaling("none"))
    density = spectral_density(problem.operator, degree=400, probes=64, points=4001)
    P = problem.operator.matrix.to_scipy()
    first, second = P.trace() / P.shape[0], P.power(2).sum() / P.shape[0]  # of x: tr P, tr P^2
    card = data.describe(dataset)
    short = lambda values: [float(f"{v:.4g}") for v in values]  # noqa: E731
    return {
        "fingerprint": dataset.fingerprint(),
        "notes": list(dataset.notes),
        "config": {k: v for k, v in config.to_dict().items() if k != "device"},
        "start": {k: float(config.options[k]) for k in ("a", "b")},
        "a": short(row["a"]),
        "b": short(row["b"]),
        "best_epochs": row["best_epochs"],
        "mean": float(f"{1 - first:.4g}"),
        "variance": float(f"{second - first**2:.4g}"),
        "histogram": short(density.histogram(BINS)),
        "label_mean": round(label_mean(P, dataset.data.y.numpy()), 4),
        "node_homophily": card.node_homophily and round(card.node_homophily, 4),
    }


def label_mean(P: scipy.sparse.csr_matrix, labels: np.ndarray) -> float:
    r"""The mean eigenvalue of the labels as a signal: :math:`1 - \mathrm{tr}\,Y^TPY / \|Y\|^2`.

    Y is one-hot, centred over the labelled nodes and zero on the others.
    """
    known = labels >= 0
    Y = (labels[:, None] == np.unique(labels[known])).astype(float)
    Y[known] -= Y[known].mean(0)
    return float(1 - (Y * (P @ Y)).sum() / (Y**2).sum())


def fit_moments(mean: float, variance: float) -> tuple[float, float]:
    r"""The a and b whose weight has this mean and variance of the eigenvalue.

    With :math:`m = \mathrm{mean}/2`, :math:`v = \mathrm{variance}/4` and :math:`s = m(1-m)/v - 1`:
    :math:`a + 1 = m s`, :math:`b + 1 = (1-m) s`.

    >>> fit_moments(1.0, 1 / 3)  # the uniform density
    (0.0, 0.0)
    """
    m, v = mean / 2, variance / 4
    s = m * (1 - m) / v - 1
    return round(m * s - 1, 12), round((1 - m) * s - 1, 12)


def distance(histogram: np.ndarray, a: float, b: float) -> float:
    """W_1 between a histogram over equal bins of [0, 2] and the weight of a and b.

    >>> round(distance(np.full(100, 0.01), 0.0, 0.0), 9)
    0.0
    """
    ours = np.concatenate([[0.0], np.cumsum(histogram)])
    gap = np.abs(ours - scipy.special.betainc(a + 1, b + 1, EDGES / 2))
    return float(np.trapezoid(gap, EDGES))


def weight_moments(a: float, b: float) -> tuple[float, float]:
    """Mean and variance of the eigenvalue under the weight of a and b."""
    p, q = a + 1, b + 1
    return 2 * p / (p + q), 4 * p * q / ((p + q) ** 2 * (p + q + 1))


def tables(folder: Path) -> list[Table]:
    """Start, learned and fitted a and b with their distances; and the answer over all graphs."""
    parts = read_record(folder / "record.json")["parts"]
    names = [name for name in (*TEN, *BUNDLED) if name in parts]
    summaries = {name: summarize(parts[name]) for name in names}
    seeds = len(parts[names[0]]["a"])
    rows = []
    for name, s in summaries.items():
        a, b = np.array(parts[name]["a"]), np.array(parts[name]["b"])
        start, fitted = parts[name]["start"], s["fitted"]
        rows.append(
            [
                name,
                f"({start['a']:g}, {start['b']:g})",
                f"({a.mean():.2f} ± {a.std(ddof=1):.2f}, {b.mean():.2f} ± {b.std(ddof=1):.2f})",
                f"({fitted[0]:.2f}, {fitted[1]:.2f})",
                f"{s['before']:.3f}",
                f"{np.mean(s['after']):.3f}",
                f"{s['best']:.3f}",
                f"{s['closer']} of {seeds}",
                f"{parts[name]['mean']:.2f}",
                f"{np.sqrt(parts[name]['variance']):.3f}",
                f"{parts[name]['label_mean']:.2f}",
                f"{s['weight_mean']:.2f}",
                f"{s['weight_deviation']:.3f}",
            ]
        )
    columns = [
        "graph",
        "(a, b) at the start",
        "learned (± standard deviation)",
        "(a, b) by moments",
        "distance at the start",
        "distance, learned",
        "distance, by moments",
        "splits that came closer",
        "mean eigenvalue",
        "deviation of the eigenvalues",
        "mean eigenvalue of the labels",
        "mean of the learned weight",
        "deviation of the learned weight",
    ]
    learned = Table(
        "learned",
        "Jacobi parameters of LON-GNN at the start, learned (at the best epoch; mean over "
        f"{seeds} published splits) and with the mean and variance of the graph's eigenvalues; "
        "Wasserstein distance between the weight of each and the graph's spectral density, "
        "in units of the eigenvalue.",
        columns,
        rows,
    )
    return [learned, Table("answer", _ANSWER, ["question", "answer"], _answers(parts, summaries))]


_ANSWER = "Does the basis follow the graph? Over the graphs of the table before."


def summarize(part: dict[str, Any]) -> dict[str, Any]:
    """Distances and moments of one graph."""
    histogram = np.array(part["histogram"])
    pairs = list(zip(part["a"], part["b"], strict=True))
    before = distance(histogram, part["start"]["a"], part["start"]["b"])
    after = [distance(histogram, a, b) for a, b in pairs]
    fitted = fit_moments(part["mean"], part["variance"])
    moments = np.array([weight_moments(a, b) for a, b in pairs]).mean(0)
    return {
        "before": before,
        "after": after,
        "closer": sum(d < before for d in after),
        "fitted": fitted,
        "best": distance(histogram, *fitted),
        "weight_mean": float(moments[0]),
        "weight_deviation": float(np.sqrt(moments[1])),
    }


def _answers(parts: dict[str, Any], summaries: dict[str, dict[str, Any]]) -> list[list[str]]:
    count = len(summaries)
    closer = sum(np.mean(s["after"]) < s["before"] for s in summaries.values())
    spread = [np.sqrt(parts[name]["variance"]) for name in summaries]
    homophily = [parts[name]["node_homophily"] for name in summaries]
    gain = [s["before"] - np.mean(s["after"]) for s in summaries.values()]
    room = [s["before"] - s["best"] for s in summaries.values()]
    learned = [s["weight_deviation"] for s in summaries.values()]
    means = [s["weight_mean"] for s in summaries.values()]
    answers = {
        "graphs where the learned weight is closer to the spectrum": f"{closer} of {count}",
        "mean change of the distance by learning (positive: closer)": f"{np.mean(gain):+.3f}",
        "the same by the fit of two moments": f"{np.mean(room):+.3f}",
        "rank correlation, deviation of the learned weight and of the eigenvalues": _correlate(
            learned, spread
        ),
        "rank correlation, mean of the learned weight and of the labels' spectrum": _correlate(
            means, [parts[name]["label_mean"] for name in summaries]
        ),
        "rank correlation, mean of the learned weight and node homophily": _correlate(
            means, homophily
        ),
    }
    return [list(pair) for pair in answers.items()]


def _correlate(x: list[float], y: list[float]) -> str:
    """Spearman's coefficient and its p-value."""
    if len(x) < 4 or len(set(x)) == 1 or len(set(y)) == 1:
        return "too few graphs"
    found = scipy.stats.spearmanr(x, y)
    return f"{found.statistic:+.2f} (p = {found.pvalue:.2f}, n = {len(x)})"


def draw(folder: Path) -> list[Path]:
    """The spectrum of each graph with the weight at the start and the learned ones over it."""
    parts = read_record(folder / "record.json")["parts"]
    shown = {name: parts[name] for name in (*TEN, *BUNDLED) if name in parts}
    return [write_atomically(folder / "weights.png", to_small_png(draw_panels(shown)))]

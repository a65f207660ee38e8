r"""How time grows: sweeps over one size at a time, and the exponent of the growth.

A sweep times ``apply_filter``, forward and backward, or one epoch of a population. A time
:math:`c\,x^p` is a line of slope p in a log-log figure. Small sizes measure overhead, so p is
fitted to the larger half of the sizes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import Data

from lab.bench._contenders import EPOCHS, Workload, make_population, make_problem
from lab.bench._record import Sweep
from lab.bench._timing import Budget, Call, captured, median_time
from longnn.data import NodeDataset, from_data
from longnn.graphs import GraphOperator, apply_filter

MEAN_DEGREE = 10  # of the random graphs


@dataclass(frozen=True)
class Sizes:
    r"""The sizes of the sweeps.

    Args:
        edges, degree, channels, population: the points of each sweep.
        fixed_edges, fixed_channels, fixed_degree: the sizes that stay fixed in the other sweeps.
        nodes, features, density, classes: of the random dataset that populations train on; by
            default the sizes of Cora.
    """

    edges: tuple[int, ...]
    degree: tuple[int, ...]
    channels: tuple[int, ...]
    population: tuple[int, ...]
    fixed_edges: int
    fixed_channels: int = 16
    fixed_degree: int = 10
    nodes: int = 2708
    features: int = 1433
    density: float = 0.0127
    classes: int = 7


def _powers(low: int, high: int, step: int = 1) -> tuple[int, ...]:
    return tuple(2**k for k in range(low, high + 1, step))


SIZES = {
    "cpu": Sizes(_powers(10, 18), _powers(1, 6), _powers(0, 8), _powers(0, 5), 2**14),
    "cuda": Sizes(_powers(10, 22, 2), _powers(1, 6), _powers(0, 10), _powers(0, 8), 2**17),
    "quick": Sizes(
        _powers(8, 11),
        _powers(1, 4),
        _powers(0, 3),
        _powers(0, 2),
        2**9,
        nodes=200,
        features=50,
    ),
}


def random_operator(edges: int, device: torch.device, *, seed: int = 0) -> GraphOperator:
    """A random undirected graph with about ``edges`` edges and a mean degree of ten."""
    nodes = max(2 * edges // MEAN_DEGREE, 2)
    index = np.random.default_rng(seed).integers(nodes, size=(2, edges))
    operator = GraphOperator.from_edge_index(
        torch.from_numpy(index), num_nodes=nodes, symmetrize=True, self_loops="remove"
    )
    return operator.to(device)


def random_dataset(sizes: Sizes, *, seed: int = 0) -> NodeDataset:
    """A random graph with random sparse features and labels, for timings only."""
    rng = np.random.default_rng(seed)
    operator = random_operator(sizes.nodes * MEAN_DEGREE // 2, torch.device("cpu"), seed=seed)
    rows = operator.matrix.to_scipy().tocoo()
    x = (rng.random((operator.num_nodes, sizes.features)) < sizes.density) * 1.0
    data = Data(
        x=torch.from_numpy(x).float(),
        edge_index=torch.from_numpy(np.stack([rows.row, rows.col]).astype(np.int64)),
        y=torch.arange(operator.num_nodes) % sizes.classes,
    )
    classes = tuple(str(k) for k in range(sizes.classes))
    return from_data(data, name="random", classes=classes, default_split="published")


def filter_call(
    operator: GraphOperator, channels: int, degree: int, *, evaluate: bool = False
) -> Call:
    r"""A call of ``apply_filter``, forward and backward, on a random signal.

    Args:
        operator: of the graph.
        channels: of the signal.
        degree: of the filter.
        evaluate: apply the filter once more without gradients.
    """
    generator = torch.Generator().manual_seed(0)
    make = lambda *shape: torch.randn(*shape, generator=generator).to(operator.device)  # noqa: E731
    signal = make(operator.num_nodes, channels).requires_grad_()
    beta = make(degree + 1, channels).requires_grad_()
    gradient = make(operator.num_nodes, channels)

    def call() -> None:
        out = apply_filter(operator, signal, beta)
        torch.autograd.grad(out, (signal, beta), gradient)
        if evaluate:
            with torch.no_grad():
                apply_filter(operator, signal, beta)

    return call


def fit_exponent(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    r"""Fit :math:`\log y = p \log x + \log c` to the larger half of the points, at least two.

    Returns:
        The exponent p, the factor c, and the first x of the fit.

    >>> exponent, factor, first = fit_exponent([1, 2, 4, 8], [5, 5, 6, 12])
    >>> exponent, first
    (1.0, 4)
    """
    assert len(x) == len(y) >= 2, "a line needs two points"
    first = len(x) - max(2, (len(x) + 1) // 2)
    slope, intercept = np.polyfit(np.log(x[first:]), np.log(y[first:]), 1)
    return round(float(slope), 4), float(np.exp(intercept)), x[first]


def _sweep(
    what: str,
    axis: str,
    points: Sequence[int],
    fixed: str,
    make: Callable[[int], tuple[int, Call]],
    device: torch.device,
    budget: Budget,
) -> Sweep:
    """One sweep; ``make`` returns the exact size of a point and the call to time."""
    xs: list[float] = []
    ms: list[float] = []
    for point in points:
        size, call = make(point)
        xs.append(size)
        ms.append(1e3 * median_time(call, device, budget))
    exponent, factor, first = fit_exponent(xs, ms)
    return Sweep(
        what=what,
        axis=axis,
        fixed=fixed,
        x=xs,
        ms=ms,
        exponent=exponent,
        factor=factor,
        from_=first,
    )


def measure_scaling(
    device: torch.device,
    workload: Workload,
    sizes: Sizes,
    budget: Budget,
    on_sweep: Callable[[str], None] | None = None,
) -> list[Sweep]:
    r"""All sweeps: over edges, degree, channels and members of a population.

    Args:
        device: where they run.
        workload: the work of an epoch of the population.
        sizes: the points of the sweeps.
        budget: of each point.
        on_sweep: called with the name of each sweep when it begins.
    """
    tell = on_sweep or (lambda axis: None)
    one = random_operator(sizes.fixed_edges, device)
    K, channels = sizes.fixed_degree, sizes.fixed_channels

    def edges(point: int) -> tuple[int, Call]:
        operator = random_operator(point, device)
        return operator.num_edges, captured(filter_call(operator, channels, K), device)

    def degree(point: int) -> tuple[int, Call]:
        return point, captured(filter_call(one, channels, point), device)

    def wide(point: int) -> tuple[int, Call]:
        return point, captured(filter_call(one, point, K), device)

    what = "apply_filter, forward and backward"
    found = []
    sweeps = (
        ("edges", sizes.edges, f"degree {K}, {channels} channels", edges),
        ("degree", sizes.degree, f"{one.num_edges} edges, {channels} channels", degree),
        ("channels", sizes.channels, f"{one.num_edges} edges, degree {K}", wide),
    )
    for axis, points, fixed, make in sweeps:
        tell(axis)
        found.append(_sweep(what, axis, points, fixed, make, device, budget))
    tell("members")
    return [*found, _population_sweep(device, workload, sizes, budget)]


def _population_sweep(
    device: torch.device, workload: Workload, sizes: Sizes, budget: Budget
) -> Sweep:
    dataset = random_dataset(sizes)
    problem = make_problem(dataset, workload, device, epochs=EPOCHS)

    def members(point: int) -> tuple[int, Call]:
        return point, make_population(dataset, workload, device, point, problem=problem).step

    fixed = (
        f"{dataset.num_nodes} nodes, {problem.operator.num_edges} edges, {sizes.features} features"
    )
    what = "one epoch of a population"
    return _sweep(what, "members", sizes.population, fixed, members, device, budget)

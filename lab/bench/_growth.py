r"""How time grows: sweeps over one size at a time, and the exponent of the growth.

A sweep times ``apply_filter``, forward and backward, or one epoch of a population, on random graphs
that are made here, so that no file is needed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from lab.bench._contenders import Workload, make_population, make_problem
from lab.bench._measure import Budget, Call, captured, fit_sweep, median_time
from longnn.data import NodeDataset, from_data
from longnn.graphs import GraphOperator, apply_filter

#: Mean degree of random graphs.
MEAN_DEGREE = 10


def _powers(low: int, high: int, step: int = 1) -> list[int]:
    return [2**k for k in range(low, high + 1, step)]


@dataclass(frozen=True)
class Sizes:
    """The points of each sweep; the edges of the graph of the others, and of the random dataset
    that populations train on, if they are not those of Cora."""

    edges: Sequence[int]
    degree: Sequence[int]
    channels: Sequence[int]
    members: Sequence[int]
    fixed_edges: int
    dataset: Sequence[int] = ()


SIZES = {
    "cpu": Sizes(_powers(10, 18), _powers(1, 6), _powers(0, 8), _powers(0, 5), 2**14),
    "cuda": Sizes(_powers(10, 22, 2), _powers(1, 6), _powers(0, 10), _powers(0, 8), 2**17),
    "quick": Sizes(_powers(8, 11), _powers(1, 4), [1, 2, 4, 8], [1, 2, 4], 2**9, (200, 50)),
}
#: The degree and the channels that stay fixed in the other sweeps.
DEGREE, CHANNELS = 10, 16


def random_operator(edges: int, device: torch.device, *, seed: int = 0) -> GraphOperator:
    """A random undirected graph with about ``edges`` edges and a mean degree of ten."""
    nodes = max(2 * edges // MEAN_DEGREE, 2)
    index = np.random.default_rng(seed).integers(nodes, size=(2, edges))
    operator = GraphOperator.from_edge_index(
        torch.from_numpy(index), num_nodes=nodes, symmetrize=True, self_loops="remove"
    )
    return operator.to(device)


def random_dataset(
    nodes: int = 2708, features: int = 1433, density: float = 0.0127, classes: int = 7
) -> NodeDataset:
    """A random graph with random sparse features and labels; by default of the sizes of Cora."""
    rng = np.random.default_rng(0)
    operator = random_operator(nodes * MEAN_DEGREE // 2, torch.device("cpu"))
    rows = operator.matrix.to_scipy().tocoo()
    x = (rng.random((operator.num_nodes, features)) < density) * 1.0
    data = Data(
        x=torch.from_numpy(x).float(),
        edge_index=torch.from_numpy(np.stack([rows.row, rows.col]).astype(np.int64)),
        y=torch.arange(operator.num_nodes) % classes,
    )
    names = tuple(str(k) for k in range(classes))
    return from_data(data, name="random", classes=names, default_split="published")


def filter_call(operator: GraphOperator, channels: int, degree: int) -> Call:
    """A call of ``apply_filter``, forward and backward, on a random signal."""
    generator = torch.Generator().manual_seed(0)
    make = lambda *shape: torch.randn(*shape, generator=generator).to(operator.device)  # noqa: E731
    signal = make(operator.num_nodes, channels).requires_grad_()
    beta = make(degree + 1, channels).requires_grad_()
    gradient = make(operator.num_nodes, channels)

    def call() -> None:
        out = apply_filter(operator, signal, beta)
        torch.autograd.grad(out, (signal, beta), gradient)

    return call


def measure_scaling(
    device: torch.device,
    workload: Workload,
    sizes: Sizes,
    budget: Budget,
    on_sweep: Callable[[str], None] = lambda axis: None,
) -> list[dict[str, Any]]:
    """Sweeps of a filter over edges, degree and channels, and of an epoch over members."""
    graph = random_operator(sizes.fixed_edges, device)
    dataset = random_dataset(*sizes.dataset)
    problem = make_problem(dataset, workload, device)

    def edges(point: int) -> tuple[int, Call]:
        operator = random_operator(point, device)
        return operator.num_edges, captured(filter_call(operator, CHANNELS, DEGREE), device)

    def degree(point: int) -> tuple[int, Call]:
        return point, captured(filter_call(graph, CHANNELS, point), device)

    def channels(point: int) -> tuple[int, Call]:
        return point, captured(filter_call(graph, point, DEGREE), device)

    def members(point: int) -> tuple[int, Call]:
        return point, make_population(dataset, workload, device, point, problem=problem).step

    shape = f"{dataset.num_nodes} nodes, {problem.operator.num_edges} edges"
    sweeps = (
        (edges, f"degree {DEGREE}, {CHANNELS} channels"),
        (degree, f"{graph.num_edges} edges, {CHANNELS} channels"),
        (channels, f"{graph.num_edges} edges, degree {DEGREE}"),
        (members, f"{shape}, {dataset.num_features} features"),
    )
    measured = []
    for make, fixed in sweeps:
        axis = make.__name__
        on_sweep(axis)
        x, ms = [], []
        for point in getattr(sizes, axis):
            size, call = make(point)  # the exact size, and the call to time
            x.append(size)
            ms.append(1e3 * median_time(call, device, budget))
        what = "apply_filter, forward and backward"
        what = "one epoch of a population" if make is members else what
        measured.append({"what": what, "axis": axis, "fixed": fixed, **fit_sweep(x, ms)})
    return measured

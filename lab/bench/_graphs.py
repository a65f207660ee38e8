"""The graphs that are timed: made here, so that no file is needed."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import grid, remove_self_loops

from longnn.data import NodeDataset, from_data
from longnn.graphs import GraphOperator
from longnn.store._arrays import Manifest
from longnn.store._graph import GraphStore

#: Mean degree of random graphs.
MEAN_DEGREE = 10
#: Of the minefield: shares of cells with a mine, and of cells that do not tell how many mines are
#: around them; and the most mines around that are told apart.
MINES, HIDDEN, MOST = 0.2, 0.5, 5
FILES = ["offsets.npy", "neighbours.npy", "features.npy", "labels.npy"]


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


def minefield(side: int = 100, *, seed: int = 0) -> NodeDataset:
    r"""A square grid of cells, each linked to the eight around it.

    Sizes, edges and kinds of features are those of the dataset Minesweeper (Platonov et al. 2023,
    `"A critical look at the evaluation of GNNs under heterophily"
    <https://arxiv.org/abs/2302.11640>`_): a class is whether a cell has a mine; one feature says
    that a cell is hidden, six others how many mines are around one that is not.
    """
    generator, cells = torch.Generator().manual_seed(seed), side * side
    edges = remove_self_loops(grid(side, side)[0])[0]  # (2, arcs), both directions
    mines = torch.zeros(cells)
    mines[torch.randperm(cells, generator=generator)[: round(MINES * cells)]] = 1
    around = torch.zeros(cells).index_add(0, edges[0], mines[edges[1]])
    column = 1 + around.long().clamp_max(MOST)  # (cells,)
    column[torch.randperm(cells, generator=generator)[: round(HIDDEN * cells)]] = 0
    x = torch.nn.functional.one_hot(column, 2 + MOST).float()
    data, classes = Data(x=x, edge_index=edges, y=mines.long()), ("free", "mine")
    return from_data(data, name="grid", classes=classes, default_split="published", ready=True)


@dataclass(frozen=True)
class Size:
    """A random graph on disk, and the terms to compute of it.

    >>> print(Size(10_000, 50_000, 16, 10))
    10,000 nodes, 50,000 edges, 16 columns, degree 10
    """

    nodes: int
    edges: int
    columns: int
    degree: int

    def __str__(self) -> str:
        graph = f"{self.nodes:,} nodes, {self.edges:,} edges"
        return f"{graph}, {self.columns} columns, degree {self.degree}"


def write_random(folder: Path, size: Size, device: torch.device, *, seed: int = 0) -> GraphStore:
    """A prepared folder with a random undirected graph, made on the device."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator(device).manual_seed(seed)
    keys = _random_keys(size, generator)
    rows = keys // size.nodes
    offsets = torch.zeros(size.nodes + 1, dtype=torch.int64)
    offsets[1:] = torch.bincount(rows, minlength=size.nodes).cumsum(0).cpu()
    np.save(folder / FILES[0], offsets.numpy())
    np.save(folder / FILES[1], (keys - rows * size.nodes).int().cpu().numpy())
    del keys, rows
    features = np.lib.format.open_memmap(
        folder / FILES[2], "w+", np.float32, (size.nodes, size.columns), fortran_order=True
    )
    for column in range(size.columns):
        features[:, column] = torch.randn(size.nodes, generator=generator, device=device).cpu()
    features.flush()
    np.save(folder / FILES[3], np.zeros(size.nodes, dtype=np.int32))
    Manifest.of("graph", {"name": "random"}, folder, FILES).write(folder)
    return GraphStore.open(folder)


def _random_keys(size: Size, generator: torch.Generator) -> Tensor:
    """Both directions of each edge as row * nodes + column, sorted, none twice: int64."""
    shape, device = (2, size.edges), generator.device
    a, b = torch.randint(size.nodes, shape, generator=generator, device=device)
    keys = torch.cat([a * size.nodes + b, b * size.nodes + a])
    del a, b
    if device.type == "cpu":
        keys.numpy().sort()  # several times faster than torch's sort there
    else:
        keys = keys.sort().values
    return torch.unique_consecutive(keys)

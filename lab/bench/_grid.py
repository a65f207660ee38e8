"""A graph to time deep models on: a field of Minesweeper, made here so that no file is needed."""

import itertools

import torch
from torch import Tensor
from torch_geometric.data import Data

from longnn.data import NodeDataset, from_data

#: Cells along a side of the field, and quickly; the named dataset has 100, too.
SIDE, QUICK_SIDE = 100, 12
#: Shares of cells with a mine, and of cells that do not tell how many mines are around.
MINES, HIDDEN = 0.2, 0.5
#: The most mines around that are told apart.
MOST = 5


def minefield(side: int = SIDE, *, seed: int = 0) -> NodeDataset:
    r"""A square grid in which each cell is linked to the eight around it.

    Sizes, edges and kinds of features are those of the dataset Minesweeper (Platonov et al. 2023,
    `"A critical look at the evaluation of GNNs under heterophily"
    <https://arxiv.org/abs/2302.11640>`_): a class is whether a cell has a mine; one feature says
    that a cell is hidden, six others how many mines are around one that is not.

    Args:
        side: number of cells along a side, at least 2.
        seed: of mines and hidden cells.

    >>> minefield()
    NodeDataset('grid', nodes=10000, edges=39402, features=7, classes=2, labelled=10000, splits=0)
    """
    generator = torch.Generator().manual_seed(seed)
    cells = side * side
    edges = _neighbours(side)
    mines = torch.zeros(cells)
    mines[torch.randperm(cells, generator=generator)[: round(MINES * cells)]] = 1
    around = torch.zeros(cells).index_add(0, edges[0], mines[edges[1]])
    column = 1 + around.long().clamp_max(MOST)  # (cells,)
    column[torch.randperm(cells, generator=generator)[: round(HIDDEN * cells)]] = 0
    data = Data(
        x=torch.nn.functional.one_hot(column, 2 + MOST).float(), edge_index=edges, y=mines.long()
    )
    return from_data(
        data, name="grid", classes=("free", "mine"), default_split="published", ready=True
    )


def _neighbours(side: int) -> Tensor:
    """Both directions of every edge, cells numbered row by row: (2, arcs)."""
    number = torch.arange(side * side).view(side, side)
    arcs = []
    for down, right in itertools.product((-1, 0, 1), repeat=2):
        if down or right:
            here = number[_inside(down), :][:, _inside(right)]
            there = number[_inside(-down), :][:, _inside(-right)]
            arcs.append(torch.stack([here.flatten(), there.flatten()]))
    return torch.cat(arcs, 1)


def _inside(step: int) -> slice:
    """The rows, or columns, that stay in the grid when they move by a step."""
    return slice(max(-step, 0), -step if step > 0 else None)

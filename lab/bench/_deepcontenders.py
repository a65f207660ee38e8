r"""The contenders of depth: stacks of our blocks, and PyG's own layers of the same depth and width.

A block of ours has the message of K sparse products (one in ``gcn-deep``) and three times the dense
weights of a layer of PyG's GCN:

.. math:: h \leftarrow h + W_2\,\mathrm{ReLU}(W_1 [n(h), g(P)\,n(h)]), \qquad
          h \leftarrow h + \tilde P\,\mathrm{ReLU}(n(h))\,W

All evaluate as they train, and the same choices favour the rival as in the other contenders. What
PyG would compute from the graph in every epoch, it keeps (``cached=True``).
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import DeepGCNLayer, GCNConv, LayerNorm
from torch_geometric.utils import to_torch_csr_tensor

from lab.bench._contenders import Contender, Workload, make_population, plain_epoch
from longnn._base.precision import dense_products
from longnn.data import NodeDataset

#: Names of the contenders, in the order of the table.
DEEP_LABELS = {
    "deep": "lon-deep",
    "deep_population": "lon-deep population",
    "gcn_deep": "gcn-deep",
    "pyg_sparse": "PyG GCN, sparse matrix",
    "pyg_edges": "PyG GCN, list of edges",
}
#: PyG's own: the faster of them is what the others are compared with.
RIVALS = ("pyg_sparse", "pyg_edges")
#: What each contender is; stored in the record.
DEEP_DESCRIPTIONS = {
    "deep": "one model: Population.step() of a population of one",
    "deep_population": "several models at once, time per model; member i has seed i and split i",
    "gcn_deep": "one model, as lon-deep with one hop per block instead of a filter",
    "pyg_sparse": "DeepGCNLayer of GCNConv(cached=True), LayerNorm, ReLU; torch's CSR matrix",
    "pyg_edges": "the same layers; edge_index, messages gathered and scattered",
}


@dataclasses.dataclass(frozen=True)
class Depth(Workload):
    r"""The work of one epoch of a stack; as in :class:`Workload` but for its model.

    Args:
        model: ``"lon-deep"`` or ``"gcn-deep"``.
        blocks: how many, and layers of PyG's.
        precision: ``"float32"``, or ``"tf32"`` on a GPU.

    >>> Depth().config().options["blocks"]
    8
    """

    degree: int = 3
    hidden: int = 128
    dropout: float = 0.2
    model: str = "lon-deep"
    blocks: int = 8
    precision: str = "float32"

    def options(self) -> dict[str, Any]:
        """Our model, and its options."""
        return {
            "model": self.model,
            "blocks": self.blocks,
            "hidden_channels": self.hidden,
            "dropout": self.dropout,
            "input_dropout": 0.0,
            "precision": self.precision,
            **({"degree": self.degree} if self.model == "lon-deep" else {}),
        }


class PlainGCN(nn.Module):
    r"""PyG's layers of depth: norm, ReLU, dropout, one graph convolution, residual.

    Args:
        features, classes: channels that enter and leave.
        workload: blocks, hidden channels and dropout.

    >>> PlainGCN(7, 2, Depth())(torch.ones(2, 7), torch.tensor([[0, 1], [1, 0]])).shape
    torch.Size([2, 2])
    """

    def __init__(self, features: int, classes: int, workload: Depth) -> None:
        super().__init__()
        hidden, self.dropout = workload.hidden, workload.dropout
        self.enter = nn.Linear(features, hidden)
        self.layers = nn.ModuleList(
            DeepGCNLayer(
                GCNConv(hidden, hidden, cached=True),
                LayerNorm(hidden, mode="node"),
                nn.ReLU(),
                block="res+",
                dropout=self.dropout,
            )
            for _ in range(workload.blocks)
        )
        self.norm = LayerNorm(hidden, mode="node")
        self.leave = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        h = self.enter(x)
        for layer in self.layers:
            h = layer(h, edges)
        h = torch.relu(self.norm(h))
        return self.leave(F.dropout(h, self.dropout, self.training))


def make_deep_contender(
    key: str, dataset: NodeDataset, workload: Depth, device: torch.device, *, population: int
) -> Contender:
    r"""Make one contender, which has run one epoch.

    Args:
        key: its name in :data:`DEEP_LABELS`.
        dataset: what it trains on.
        workload: the work of one epoch; the key says of which model.
        device: where it runs.
        population: members of the contender ``"deep_population"``.
    """
    with torch.sparse.check_sparse_tensor_invariants(enable=False):  # of the matrix that PyG keeps
        if key in RIVALS:
            epoch, members = _plain(key, dataset, workload, device), 1
        else:
            model = "gcn-deep" if key == "gcn_deep" else "lon-deep"
            workload = dataclasses.replace(workload, model=model)
            members = population if key == "deep_population" else 1
            epoch = make_population(dataset, workload, device, members).step
        epoch()
    return Contender(key, epoch, members)


def _plain(
    key: str, dataset: NodeDataset, workload: Depth, device: torch.device
) -> Callable[[], Any]:
    """An epoch of PyG's layers on a sparse matrix, or on a list of edges."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = PlainGCN(dataset.num_features, dataset.num_classes, workload).to(device)
    adjacency = sparse_adjacency(dataset) if key == "pyg_sparse" else None
    epoch = plain_epoch(model, dataset, workload, adjacency=adjacency)
    return _rounded(epoch) if workload.precision == "tf32" else epoch


def _rounded(epoch: Callable[[], Any]) -> Callable[[], Any]:
    """The epoch with the factors of its dense products rounded to TF32, as ours round them."""

    def call() -> Any:
        with dense_products(rounded=True):
            return epoch()

    return call


def sparse_adjacency(dataset: NodeDataset) -> Tensor:
    """The graph as torch's CSR matrix, (nodes, nodes); edges go both ways."""
    with torch.sparse.check_sparse_tensor_invariants(enable=False):
        size = (dataset.num_nodes, dataset.num_nodes)
        return to_torch_csr_tensor(dataset.data.edge_index, size=size)

r"""The networks whose scores on Computers and Photo others print.

Those scores are means over seeds on *one* split, which is not at hand. So the same networks, with
the settings printed for them, are trained here on the splits that our rows have:

.. math:: h \leftarrow \mathrm{dropout}\big(\mathrm{ReLU}(\mathrm{LN}(m(h) \;[+\; h W]))\big)

with one hop m of GCN, :math:`\tilde P h W`, or GraphSAGE, :math:`D^{-1} A h W + h W'`. The epoch
with the best validation accuracy counts. A test compares them with PyTorch Geometric's layers.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longnn.data import NodeDataset, Split
from longnn.graphs import GraphOperator
from longnn.graphs._adjacency import SelfLoops
from longnn.nn._messages import Hop, Mean
from longnn.training import choose_device


@dataclasses.dataclass(frozen=True)
class Textbook:
    """A network as printed, trained by Adam."""

    kind: Literal["gcn", "sage"]
    channels: int
    layers: int
    dropout: float  # after each layer
    residual: bool  # whether a linear map of what enters a layer is added
    epochs: int = 1000


#: Row -> graph -> settings, as printed (Luo, Shi and Wu, 2024, https://arxiv.org/abs/2406.08993).
TEXTBOOK: dict[str, dict[str, Textbook]] = {
    "textbook-gcn": {
        "computers": Textbook("gcn", 512, 3, 0.5, residual=False),
        "photo": Textbook("gcn", 256, 6, 0.5, residual=True),
    },
    "textbook-sage": {
        "computers": Textbook("sage", 64, 4, 0.3, residual=False),
        "photo": Textbook("sage", 64, 6, 0.2, residual=True),
    },
}
RATE, DECAY = 1e-3, 5e-5


#: Kind -> the message, and what it makes of self loops.
MESSAGES: dict[str, tuple[nn.Module, SelfLoops]] = {
    "gcn": (Hop(), "add"),
    "sage": (Mean(), "keep"),
}


class _Network(nn.Module):
    def __init__(self, book: Textbook, inputs: int, outputs: int) -> None:
        super().__init__()
        self.message = MESSAGES[book.kind][0]
        sizes = [inputs] + [book.channels] * book.layers
        pairs = list(itertools.pairwise(sizes))
        self.maps = nn.ModuleList(nn.Linear(i, o) for i, o in pairs)
        self.own = nn.ModuleList(nn.Linear(i, o) for i, o in pairs if book.kind == "sage")
        self.shortcuts = nn.ModuleList(nn.Linear(i, o) for i, o in pairs if book.residual)
        self.norms = nn.ModuleList(nn.LayerNorm(o) for _, o in pairs)
        self.dropout = nn.Dropout(book.dropout)
        self.last = nn.Linear(book.channels, outputs)

    def forward(self, x: Tensor, operator: GraphOperator) -> Tensor:
        for i, (linear, norm) in enumerate(zip(self.maps, self.norms, strict=True)):
            assert isinstance(linear, nn.Linear)
            h = self.message(operator, F.linear(x, linear.weight)) + linear.bias
            for beside in (self.own, self.shortcuts):
                h = h + beside[i](x) if beside else h
            x = self.dropout(torch.relu(norm(h)))
        return self.last(x)


def train_textbook(
    dataset: NodeDataset, book: Textbook, splits: Sequence[Split], *, device: str = "auto"
) -> dict[str, Any]:
    """Train a network on every split; the seed of the split draws its weights."""
    where = choose_device(device)
    x = dataset.data.x
    x = (x if x.layout is torch.strided else x.to_dense()).float().to(where)
    y, loops = dataset.data.y.to(where), MESSAGES[book.kind][1]
    operator = GraphOperator.from_edge_index(
        dataset.data.edge_index, num_nodes=len(x), self_loops=loops
    ).to(where)
    runs = [_train(book, x, y, operator, split) for split in splits]
    return {
        "val": [val for val, _, _ in runs],
        "test": [test for _, test, _ in runs],
        "epochs": [book.epochs] * len(runs),
        "best_epochs": [epoch for _, _, epoch in runs],
        "fingerprint": dataset.fingerprint(),
        "metric": "accuracy",
        "configs": [{**dataclasses.asdict(book), "lr": RATE, "weight_decay": DECAY}],
    }


def _train(
    book: Textbook, x: Tensor, y: Tensor, operator: GraphOperator, split: Split
) -> tuple[float, float, int]:
    """Validation and test accuracy of the best epoch, and which it was."""
    train, val, test = (mask.to(x.device) for mask in (split.train, split.val, split.test))
    torch.manual_seed(split.seed)
    network = _Network(book, x.shape[1], int(y.max()) + 1).to(x.device)
    optimizer = torch.optim.Adam(network.parameters(), RATE, weight_decay=DECAY)
    best = (-1.0, 0.0, 0)
    for epoch in range(book.epochs):
        network.train()
        optimizer.zero_grad()
        F.cross_entropy(network(x, operator)[train], y[train]).backward()
        optimizer.step()
        network.eval()
        with torch.no_grad():
            right = (network(x, operator).argmax(1) == y).double()
        now = right[val].mean().item()
        if now > best[0]:
            best = (round(now, 6), round(right[test].mean().item(), 6), epoch)
    return best

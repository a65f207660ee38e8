"""The contenders: each is one function that trains one epoch and evaluates.

All do the same work on the same data: one training step with dropout on the training nodes, then
the validation accuracy without dropout. The rivals are written the way their users write them.
Where there is a choice, it favours them: the accuracy is never read back from the device, nodes are
selected by index and not by mask, and no copy of the best weights is kept (a population keeps one).
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import APPNP, ChebConv, GCNConv

from lab.bench._textbook import TextbookLONGNN
from longnn import training
from longnn.config import ROLES, Config
from longnn.data import NodeDataset, Scaling, make_split
from longnn.registry import PAPER_FORM
from longnn.training import Population, Problem

#: The most epochs that a contender can run.
EPOCHS = 2000


@dataclasses.dataclass(frozen=True)
class Workload:
    r"""The work of one epoch: the same for every contender.

    Args:
        degree: K of LON-GNN, the textbook model and APPNP.
        hidden: hidden channels.
        dropout: on the features and on the hidden channels.
        lr: learning rate of Adam; low, so that weights stay finite in long timings.
        weight_decay: of Adam.
        precision: of our model: ``"float32"``, or ``"tf32"`` on a GPU.
    """

    degree: int = 10
    hidden: int = 64
    dropout: float = 0.5
    lr: float = 1e-3
    weight_decay: float = 5e-4
    precision: str = "float32"

    def config(self, seed: int = 0, *, device: str = "cpu", epochs: int = EPOCHS) -> Config:
        """This workload as a configuration of our model."""
        return Config.from_dict(
            {
                **self.options(),
                "epochs": epochs,
                "patience": epochs,
                "seed": seed,
                "device": device,
                "precision": self.precision,
                **{f"lr_{role}": self.lr for role in ROLES},
                **{f"wd_{role}": self.weight_decay for role in ROLES},
            }
        )

    def options(self) -> dict[str, Any]:
        """Our model, and its options."""
        return {
            "model": "lon",
            **PAPER_FORM,  # the form of the textbook model
            "filter_dropout": 0.0,
            "hidden_channels": self.hidden,
            "degree": self.degree,
            "input_dropout": self.dropout,
            "dropout": self.dropout,
        }


@dataclasses.dataclass(frozen=True)
class Contender:
    r"""A contender that is ready to run.

    Args:
        key: its name in :data:`LABELS`.
        epoch: trains and evaluates one epoch of all its models.
        models: how many models that are.
    """

    key: str
    epoch: Callable[[], Any]
    models: int = 1


#: Names of the contenders, in the order of the tables.
LABELS = {
    "single": "LON-GNN",
    "population": "LON-GNN population",
    "textbook": "textbook LON-GNN",
    "gcn": "PyG GCN",
    "gcn_cached": "PyG GCN cached",
    "appnp": "PyG APPNP",
    "cheb": "PyG ChebConv",
}

#: What each contender is; stored in the record.
DESCRIPTIONS = {
    "single": "one model: Population.step() of a population of one",
    "population": "several models at once, time per model; member i has seed i and split i",
    "textbook": "longnn.bench.textbook: message passing, dense features, torch.optim.Adam",
    "gcn": "two GCNConv with their defaults (cached=False), dense features",
    "gcn_cached": "the same with cached=True, which PyG allows on one fixed graph",
    "appnp": "Linear-ReLU-Linear and APPNP(K, alpha=0.1), dense features",
    "cheb": "two ChebConv(K=3), dense features",
}


def make_problem(
    dataset: NodeDataset, workload: Workload, device: torch.device, *, epochs: int = EPOCHS
) -> Problem:
    """Features, operator and labels of a dataset in the form that populations take."""
    config = workload.config(device=device.type, epochs=epochs)
    return training.make_problem(dataset, config, Scaling("none"), device=device)


def make_population(
    dataset: NodeDataset,
    workload: Workload,
    device: torch.device,
    members: int,
    *,
    problem: Problem | None = None,
    epochs: int = EPOCHS,
) -> Population:
    """A population of LON-GNN; member i has seed i and the published split i."""
    problem = problem or make_problem(dataset, workload, device, epochs=epochs)
    configs = [workload.config(i, device=device.type, epochs=epochs) for i in range(members)]
    splits = [make_split(dataset, "published", i) for i in range(members)]
    return training.make_population(configs, problem, splits)


def make_contender(
    key: str,
    dataset: NodeDataset,
    workload: Workload,
    device: torch.device,
    *,
    population: int,
    epochs: int = EPOCHS,
) -> Contender:
    r"""Make one contender.

    Args:
        key: its name in :data:`LABELS`.
        dataset: what it trains on.
        workload: the work of one epoch.
        device: where it runs.
        population: members of the contender ``"population"``.
        epochs: the most epochs it can run.

    >>> from longnn.data import csbm
    >>> graph = csbm(num_nodes=60, num_features=8)
    >>> make_contender("gcn", graph, Workload(), torch.device("cpu"), population=1).models
    1
    """
    if key in ("single", "population"):
        members = 1 if key == "single" else population
        stacked = make_population(dataset, workload, device, members, epochs=epochs)
        return Contender(key, stacked.step, members)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        sizes = (dataset.num_features, workload.hidden, dataset.num_classes)
        model = RIVALS[key](*sizes, workload)
    return Contender(key, plain_epoch(model.to(device), dataset, workload))


def plain_epoch(
    model: nn.Module,
    dataset: NodeDataset,
    workload: Workload,
    *,
    adjacency: Tensor | None = None,
) -> Callable[[], Tensor]:
    """The training loop of a PyG tutorial as one function that returns the validation accuracy.

    The model is given the adjacency, (nodes, nodes) and sparse, or else the list of edges.
    """
    device = next(model.parameters()).device
    split = make_split(dataset, "published", 0)
    data = dataset.data
    edges = data.edge_index if adjacency is None else adjacency
    x, edges, y = (t.to(device) for t in (data.x.to_dense(), edges, data.y))
    train, val = (mask.nonzero()[:, 0].to(device) for mask in (split.train, split.val))
    y_train, y_val = y[train], y[val]
    optimizer = torch.optim.Adam(
        model.parameters(), lr=workload.lr, weight_decay=workload.weight_decay
    )

    def epoch() -> Tensor:
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, edges)[train], y_train)
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            return (model(x, edges)[val].argmax(1) == y_val).float().mean()

    return epoch


class TwoLayers(nn.Module):
    """Two graph convolutions of PyG, ReLU between them, dropout before each."""

    def __init__(self, first: nn.Module, second: nn.Module, dropout: float) -> None:
        super().__init__()
        self.first, self.second, self.dropout = first, second, dropout

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        h = F.dropout(x, self.dropout, self.training)
        h = torch.relu(self.first(h, edges))
        return self.second(F.dropout(h, self.dropout, self.training), edges)


class PredictThenPropagate(nn.Module):
    """Linear, ReLU, Linear, then PyG's APPNP."""

    def __init__(self, features: int, hidden: int, classes: int, workload: Workload) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, hidden), nn.Linear(hidden, classes)
        self.propagate, self.dropout = APPNP(K=workload.degree, alpha=0.1), workload.dropout

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        h = F.dropout(x, self.dropout, self.training)
        h = F.dropout(torch.relu(self.first(h)), self.dropout, self.training)
        return self.propagate(self.second(h), edges)


def _gcn(features: int, hidden: int, classes: int, workload: Workload, **options: Any) -> nn.Module:
    layers = (GCNConv(features, hidden, **options), GCNConv(hidden, classes, **options))
    return TwoLayers(*layers, workload.dropout)


def _gcn_cached(features: int, hidden: int, classes: int, workload: Workload) -> nn.Module:
    return _gcn(features, hidden, classes, workload, cached=True)


def _cheb(features: int, hidden: int, classes: int, workload: Workload) -> nn.Module:
    return TwoLayers(
        ChebConv(features, hidden, K=3), ChebConv(hidden, classes, K=3), workload.dropout
    )


def _textbook(features: int, hidden: int, classes: int, workload: Workload) -> nn.Module:
    return TextbookLONGNN(features, hidden, classes, workload.degree, dropout=workload.dropout)


RIVALS: dict[str, Callable[..., nn.Module]] = {
    "textbook": _textbook,
    "gcn": _gcn,
    "gcn_cached": _gcn_cached,
    "appnp": PredictThenPropagate,
    "cheb": _cheb,
}


def check_keys(keys: Sequence[str]) -> None:
    """Raise ValueError for a key that names no contender."""
    unknown = [key for key in keys if key not in LABELS]
    if unknown:
        raise ValueError(f"Expected contenders among {', '.join(LABELS)} (got {unknown[0]!r})")
